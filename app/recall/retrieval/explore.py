"""Draws the slot of a run's recall from which a memory is withheld, so that effects of memories can be told from other
causes. Pure.

A memory that is recalled for hard tasks stands beside low scores without causing them. Where chance alone decided that
a run did not get it, the difference between the runs with it and without it is its effect (docs/explanation/effect.md).
The slot stays empty or is given to the next candidate, which by the same chance gets runs that would not have had it.
"""

import hashlib
from typing import NamedTuple

from app.recall.retrieval.recall import Query
from app.storage.recalls.store import IMPORTED, TRIAL

_HALF = 8
"""Bytes of the hash for each of the two draws."""


GIVEN = 0.5
"""The probability with which the slot of a withheld memory is given to the next candidate, if there is one."""


class Draw(NamedTuple):
    """The draw of a recall."""

    propensity: float
    """The probability with which each slot is shown."""
    slot: int | None
    """The slot from which a memory is withheld, from 0; None if all are shown."""
    gives: bool = False
    """True if the slot goes to the next candidate; false if it stays empty, as that of a recall's only memory does."""


def is_explored(share: float, query: Query) -> bool:
    """Tells if something is drawn for a query.

    Recalls without a run have no outcome to compare, and a person who tries out what an agent would get shall see all
    of it.
    """
    return bool(share and query.run_id and query.purpose not in {TRIAL, IMPORTED})


def draw(share: float, query: Query, workspace_id: int, slots: int) -> Draw | None:
    """Returns the draw for a recall with so many slots; None where nothing is drawn.

    The same run gets the same draw for the same query.
    """
    if not slots or not is_explored(share, query):
        return None
    seed = f"{workspace_id}\n{query.run_id}\n{query.text}".encode(errors="surrogatepass")
    digest = hashlib.blake2b(seed, digest_size=2 * _HALF).digest()
    chance = int.from_bytes(digest[:_HALF]) / 2 ** (8 * _HALF)
    slot = int.from_bytes(digest[_HALF:]) % slots
    return Draw(1 - share / slots, slot if chance < share else None, gives=slots > 1 and chance < share * GIVEN)
