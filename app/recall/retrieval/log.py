"""Makes the records of recalls and of the sections of runs from findings, with what a draw withholds, and logs them."""

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

import structlog

from app.foundation.db.session import Session
from app.foundation.values import frozen
from app.recall.retrieval.rank.presets import Signs
from app.recall.retrieval.recall import Hit, Query, Recall
from app.storage.memories.memory import new_id
from app.storage.memories.store import as_json
from app.storage.recalls import store
from app.storage.recalls.store import IMPORTED, TRIAL
from app.storage.tenants.workspace import UNMADE
from app.tracing import span

_HALF = 8
"""Bytes of the hash for each of the two draws."""


GIVEN = 0.5
"""The probability with which the slot of a withheld memory is given to the next candidate, if there is one."""


Shown = Mapping[UUID, Sequence[int]]
"""The characters of each memory that a section shows: the length of its text, then each passage's start and end."""


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


logger = structlog.get_logger()


@frozen
class UnloggedRecall(Recall):
    """A recall with what its log needs. The log gives it its id and the time that it took."""

    started: float
    """`time.perf_counter()` when the query came in."""
    unlikely: tuple[Hit, ...] = ()
    """Memories that were found and are no hits, because they are not likely enough to matter."""
    signs: Signs | None = None
    """The signs by which a history is silent; None where no probability decides."""

    @property
    def is_placed(self) -> bool:
        """False in a workspace that does not exist yet: a read does not make it."""
        return self.workspace.workspace_id != UNMADE


class RunSection(NamedTuple):
    """A stored section, which continues the earlier ones of its run."""

    kept: tuple[UUID, ...]
    """The memories of the blocks that are also in the previous section."""
    blocks: Sequence[object]
    """The blocks of the section, which are stored as JSON."""
    shown: Shown
    continues: UUID | None
    """The recall that made the previous section; None if the run had none."""


class Drawn(NamedTuple):
    """The draw over the slots of a recall."""

    propensity: float
    """The probability with which each slot is shown."""
    withheld: tuple[int, Hit] | None = None
    """The slot that was drawn, from 0, and the hit whose slot it was."""
    following: Hit | None = None
    """The next candidate for that slot; None if there is none, and where it could not get the slot."""
    gives: bool = False
    """True if the slot is given to the next candidate."""

    @property
    def given_to(self) -> Hit | None:
        """The next candidate, if it gets the slot."""
        return self.following if self.gives else None

    def propensity_of(self, hit: Hit) -> float:
        """Returns the probability with which a hit was to be shown."""
        given = self.given_to
        return GIVEN if given is not None and hit.memory.memory_id == given.memory.memory_id else self.propensity


def drawn_from(finding: UnloggedRecall, slots: Sequence[Hit], share: float) -> Drawn | None:
    """Draws over the hits that are to be shown; returns None where nothing is drawn.

    The next candidate is the caller's to find.
    """
    found = draw(share, finding.query, finding.workspace.workspace_id, len(slots))
    if found is None:
        return None
    return Drawn(found.propensity, None if found.slot is None else (found.slot, slots[found.slot]), gives=found.gives)


def shown_of(slots: Sequence[Hit], drawn: Drawn | None) -> Sequence[Hit]:
    """Returns the hits without the withheld one, whose slot is empty or has the next candidate."""
    if drawn is None or drawn.withheld is None:
        return slots
    place, _ = drawn.withheld
    given = [] if drawn.given_to is None else [drawn.given_to]
    return [*slots[:place], *given, *slots[place + 1 :]]


async def log(
    session: Session,
    finding: UnloggedRecall,
    *,
    hits: Sequence[Hit],
    tokens: int | None,
    budget_tokens: int | None = None,
    drawn: Drawn | None = None,
    shown: Shown | None = None,
) -> Recall:
    """Logs the recall of a finding with these hits, in the database and in a line of the service's log.

    A recall of a run is logged with what was found and not shown, and with the probabilities of its draw.
    If the workspace does not exist or the disk is full, only the line is written, and the recall is answered.
    """
    recall = _recall(finding, hits)
    if finding.is_placed:
        with span("recall.log", hits=len(hits)):
            record = _record(finding, recall, tokens, drawn, shown=shown, budget_tokens=budget_tokens)
            reason = await store.insert_if_room(session, record)
        if reason:
            logger.warning("a recall is not in the log", recall_id=str(recall.recall_id), reason=reason)
    _note(finding, recall)
    return recall


async def log_section(
    session: Session, finding: UnloggedRecall, section: RunSection, *, hits: Sequence[Hit], tokens: int
) -> Recall | None:
    """Logs the recall as `log` does, and its run's new section.

    Returns None, and logs nothing, if another section of the run was logged after the one that this continues.
    """
    recall = _recall(finding, hits)
    record = _record(finding, recall, tokens, None, shown=section.shown, stable=True, kept=section.kept)
    record |= {"blocks": as_json(section.blocks), "continues": section.continues}
    with span("recall.log", hits=len(hits)):
        if finding.is_placed and not await store.insert_with_section(session, record):
            return None
    _note(finding, recall)
    return recall


def _recall(finding: UnloggedRecall, hits: Sequence[Hit]) -> Recall:
    took_ms = (time.perf_counter() - finding.started) * 1000
    return replace(finding, recall_id=new_id(), hits=tuple(hits), took_ms=took_ms)


_OPTIONS = ("weights", "min_probability", "half_life_days", "now", "rerank")
"""Options of a query that the log has where they were given."""


def _record(
    finding: UnloggedRecall,
    recall: Recall,
    tokens: int | None,
    drawn: Drawn | None,
    *,
    shown: Shown | None,
    **more: object,
) -> dict[str, Any]:
    """Returns the parameters for the statement that stores the recall; `more` are further ones."""
    query = finding.query
    given = {name: getattr(query, name) for name in _OPTIONS} | more
    always = {"k": query.k, "preset": query.preset, "language": query.language, "filters": query.filters}
    hits = [
        {"rank": place, "memory_id": hit.memory.memory_id, "score": hit.score, "explain": hit.logged}
        | ({} if drawn is None else {"propensity": drawn.propensity_of(hit)})
        | ({} if shown is None else {"shown": shown.get(hit.memory.memory_id)})
        for place, hit in enumerate(recall.hits, start=1)
    ]
    return {
        **{name: getattr(query, name) for name in ("purpose", "agent", "run_id")},
        **{name: getattr(recall, name) for name in ("recall_id", "mode", "took_ms")},
        "query": query.text,
        "parameters": as_json({**always, **{name: value for name, value in given.items() if value is not None}}),
        "degraded": as_json(recall.degraded),
        "tokens": tokens,
        "hits": as_json(hits),
        "withheld": as_json(list(_withheld(finding, recall.hits, drawn)) if query.run_id else []),
    }


def _withheld(finding: UnloggedRecall, hits: Sequence[Hit], drawn: Drawn | None) -> Iterator[dict[str, Any]]:
    """Yields what was found and not shown, with the reasons, as the log stores it."""
    shown = {hit.memory.memory_id for hit in hits}
    if drawn is not None and drawn.withheld is not None:
        place, hit = drawn.withheld
        shown.add(hit.memory.memory_id)
        given = {} if drawn.given_to is None else {"given_to": drawn.given_to.memory.memory_id}
        yield _left_out(place + 1, hit, "draw") | {"propensity": drawn.propensity} | given
        if drawn.following is not None and drawn.given_to is None:
            shown.add(drawn.following.memory.memory_id)
            yield _left_out(place + 1, drawn.following, "next") | {"propensity": GIVEN}
    for reason, items in (("room", finding.hits), ("threshold", finding.unlikely)):
        for place, hit in enumerate(items, start=1):
            if hit.memory.memory_id not in shown:
                yield _left_out(place, hit, reason)


def _left_out(rank: int, hit: Hit, reason: str) -> dict[str, Any]:
    return {"rank": rank, "memory_id": hit.memory.memory_id, "score": hit.score, "reason": reason}


def _note(finding: UnloggedRecall, recall: Recall) -> None:
    """Writes a line of the service's log."""
    facts = {"purpose": finding.query.purpose, "mode": finding.mode, "hits": len(recall.hits)}
    facts |= {"recall_id": str(recall.recall_id), "took_ms": round(recall.took_ms, 1)}
    if finding.degraded:
        logger.warning("recall", degraded=[f"{item.arm}: {item.reason}" for item in finding.degraded], **facts)
    else:
        logger.info("recall", **facts)
