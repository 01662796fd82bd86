"""The verb that finds what says the same as a memory: copies, cues and their quotes, and what was derived of it."""

from collections.abc import Iterable, Sequence
from typing import Literal
from uuid import UUID

from msgspec import Struct

from app.errors import NotFound, check
from app.foundation.db.database import Database
from app.foundation.db.session import Session
from app.foundation.text.data import unstorable
from app.foundation.text.words import WORD
from app.foundation.values import frozen
from app.insight.same import store
from app.storage.links.relations import SIMILAR
from app.storage.memories.echoes import says_no_more
from app.storage.memories.memory import Memory
from app.storage.memories.store import read_all
from app.storage.tenants.workspace import Workspace

PHRASE_LIMIT = 2_000
_DERIVED = "derived_from"
Why = Literal["chosen", "copy", "holds", "near", "cue", "quote", "derived"]


class Saying(Struct, frozen=True, kw_only=True):
    """A memory that says the same as another, and the reason why it was found."""

    memory: Memory
    why: Why
    """chosen: the memory itself; copy: the same text; holds: it says the same and more; near: nearly the same words;
    cue: a cue that quotes it or was learnt from it; quote: a turn or chunk that a cue quotes; derived: made of it."""


class SameSayings(Struct, frozen=True, kw_only=True):
    """The memories that say the same as another, which comes first."""

    found: Sequence[Saying]
    more: bool
    """True if more may say the same than were read: take these back, and ask again."""


@frozen
class SameTexts:
    """Finds the memories that say the same."""

    database: Database

    async def find(self, workspace: Workspace, memory_id: UUID, phrase: str = "") -> SameSayings:
        """Returns the memory and all live ones that say the same; with a phrase, what says the phrase of it.

        A search hides equal texts, so that after one is deleted another takes its place: here each is named.

        Raises:
            NotFound: the workspace has no such memory.
            InvalidInput: the phrase cannot be stored.
        """
        check(unstorable(phrase, "phrase"))
        async with self.database.session(workspace, reading=True) as session:
            memory = (await read_all(session, [memory_id])).get(memory_id)
            if memory is None:
                raise NotFound(f"there is no memory {memory_id} in workspace {workspace.name}")
            found, more = await _find(session, memory, phrase.strip())
            memories = await read_all(session, found)
        others = [memories[one] for one in found if one != memory_id and one in memories]
        said = [Saying(memory=one, why=_reason(one, memory, found[one.memory_id])) for one in others]
        return SameSayings(found=[Saying(memory=memory, why="chosen"), *said], more=more)


async def _find(session: Session, memory: Memory, phrase: str) -> tuple[dict[UUID, Why], bool]:
    """Returns the ids of what says the same, each with the first reason for it, and whether there may be more."""
    found: dict[UUID, Why] = {}
    quotes, turns = await store.evidence_of(session, [memory.memory_id]) if memory.kind == "cue" else ([], [])
    texts = [phrase] if phrase else [memory.body, *quotes]
    cues = await store.find_cues(session, [] if phrase else [memory.memory_id], texts, short=bool(phrase))
    further, sources = await store.evidence_of(session, cues)
    holding = await store.find_texts(session, [*texts, *([] if phrase else further)], short=bool(phrase))
    alive = [] if phrase else await _alive(session, [*turns, *sources])
    near, is_cut = ([], False) if phrase else await _near(session, memory)
    _note(found, cues[: store.MOST_FOUND], "cue")
    _note(found, holding[: store.MOST_FOUND], "holds")
    _note(found, alive, "quote")
    _note(found, near, "near")
    derived = [one for one, _ in await store.find_links(session, [memory.memory_id, *found], _DERIVED)]
    _note(found, derived[: store.MOST_FOUND], "derived")
    return found, is_cut or max(len(cues), len(holding), len(derived)) > store.MOST_FOUND


def _note(found: dict[UUID, Why], ids: Iterable[UUID], why: Why) -> None:
    for one in ids:
        found.setdefault(one, why)


async def _alive(session: Session, ids: Sequence[UUID]) -> list[UUID]:
    known = await read_all(session, ids)
    return [one for one in dict.fromkeys(ids) if one in known and known[one].retired_as is None]


async def _near(session: Session, memory: Memory) -> tuple[list[UUID], bool]:
    """Returns those among the memories that are linked as similar which say nearly the same words and nothing else.

    And whether more are linked than were read. Titles do not count: a heading says nothing of its own.
    """
    similar = await store.find_links(session, [memory.memory_id], SIMILAR, both=True)
    near = [one for one, body in similar if says_no_more(body, memory.body) or says_no_more(memory.body, body)]
    return near, len(similar) > store.MOST_FOUND


def _reason(memory: Memory, chosen: Memory, why: Why) -> Why:
    if memory.kind == "cue":
        return "cue"
    return "copy" if _plain(memory.body) == _plain(chosen.body) else why


def _plain(text: str) -> str:
    return " ".join(WORD.findall(text.lower()))
