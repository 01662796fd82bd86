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
from app.insight.same import store
from app.storage.links.relations import SIMILAR
from app.storage.memories.echoes import says_no_more
from app.storage.memories.memory import Memory
from app.storage.memories.store import get
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


async def says_the_same(
    database: Database, *, workspace: Workspace, memory_id: UUID, phrase: str = ""
) -> Sequence[Saying]:
    """Returns the memory and all live ones that say the same; with a phrase, what says the phrase of it.

    A search hides equal texts, so that after one is deleted another takes its place: here each is named.

    Raises:
        NotFound: the workspace has no such memory.
        InvalidInput: the phrase cannot be stored.
    """
    check(unstorable(phrase, "phrase"))
    async with database.session(workspace, reading=True) as session:
        memory = await get(session, memory_id)
        if memory is None:
            raise NotFound(f"there is no memory {memory_id} in workspace {workspace.name}")
        found = await _find(session, memory, phrase.strip())
        memories = [(await get(session, one), why) for one, why in found.items() if one != memory_id]
    own = Saying(memory=memory, why="chosen")
    return [own, *(Saying(memory=one, why=_reason(one, memory, why)) for one, why in memories if one is not None)]


async def _find(session: Session, memory: Memory, phrase: str) -> dict[UUID, Why]:
    """Returns the ids of what says the same, each with the first reason for it."""
    found: dict[UUID, Why] = {}
    quotes, turns = await store.evidence_of(session, [memory.memory_id]) if memory.kind == "cue" else ([], [])
    texts = [phrase] if phrase else [memory.body, *quotes]
    cues = await store.find_cues(session, [] if phrase else [memory.memory_id], texts)
    further, sources = await store.evidence_of(session, cues)
    _note(found, cues, "cue")
    _note(found, await store.find_texts(session, [*texts, *([] if phrase else further)]), "holds")
    _note(found, [] if phrase else await _alive(session, [*turns, *sources]), "quote")
    if not phrase:
        _note(found, await _near(session, memory), "near")
    derived = await store.find_links(session, [memory.memory_id, *found], _DERIVED)
    _note(found, (one for one, _ in derived), "derived")
    return found


def _note(found: dict[UUID, Why], ids: Iterable[UUID], why: Why) -> None:
    for one in ids:
        found.setdefault(one, why)


async def _alive(session: Session, ids: Sequence[UUID]) -> list[UUID]:
    known = [await get(session, one) for one in dict.fromkeys(ids)]
    return [one.memory_id for one in known if one is not None and one.retired_as is None]


async def _near(session: Session, memory: Memory) -> list[UUID]:
    """Returns those among the memories that are linked as similar which say nearly the same words and nothing else."""
    similar = await store.find_links(session, [memory.memory_id], SIMILAR, both=True)
    own = f"{memory.title}\n{memory.body}"
    return [one for one, text in similar if says_no_more(text, own) or says_no_more(own, text)]


def _reason(memory: Memory, chosen: Memory, why: Why) -> Why:
    if memory.kind == "cue":
        return "cue"
    return "copy" if _plain(memory.body) == _plain(chosen.body) else why


def _plain(text: str) -> str:
    return " ".join(WORD.findall(text.lower()))
