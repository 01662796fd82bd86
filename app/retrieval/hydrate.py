"""Turns the best of a ranking into hits: reads their texts, orders them anew by these, and leaves doubles out."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import islice
from uuid import UUID

from app.db.session import Session
from app.memories.filters import Filters, conditions
from app.memories.memory import Memory
from app.memories.store import COLUMNS, JOINED
from app.retrieval.candidates import SPARE
from app.retrieval.query import Query
from app.retrieval.rank.dedupe import deduplicated, wording
from app.retrieval.rank.presets import Preset
from app.retrieval.rank.rank import Ranked, reread
from app.retrieval.rank.texts import Text
from app.retrieval.recall import Hit, HitLink

READ_AT_ONCE = 100_000
"""Characters that are read and compared on the event loop: as many take 10 ms; more do so in a thread, so that no
other request waits for them."""

BODIES = f"""
SELECT {COLUMNS} FROM {JOINED}
WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = ANY(%(ids)s::uuid[]) AND m.valid_until IS NULL
"""  # noqa: S608 - constants
PASSING = f"""
SELECT m.memory_id FROM {JOINED} WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = ANY(%(ids)s::uuid[])
"""  # noqa: S608 - constants


async def hits_of(
    session: Session, best: Iterator[Ranked], preset: Preset, query: Query, *, now: datetime, wanted: int
) -> tuple[Hit, ...]:
    """Returns the first `wanted` of the ranking, ordered by their texts too, without doubles.

    It reads on until they are as many or the ranking ends, twice as many each time.
    """
    chosen: list[Ranked] = []
    memories: dict[UUID, Memory] = {}
    hits: tuple[Hit, ...] = ()
    remembered = cache(wording)

    def read() -> tuple[Hit, ...]:
        # The texts that were fetched before are read again with those that follow: only together are they in order.
        found = _read(chosen, memories, preset, query.text, now)
        single = deduplicated(found, title_kinds=preset.title_kinds, by_text=preset.dedupe_by_text, wording=remembered)
        return tuple(islice(single, wanted))

    while len(hits) < wanted and (following := list(islice(best, max(wanted + SPARE, len(chosen))))):
        chosen += following
        memories |= await bodies(session, [item.candidate.memory_id for item in following])
        large = sum(len(memory.body) for memory in memories.values()) > READ_AT_ONCE
        hits = await asyncio.to_thread(read) if large else read()
    return hits


def _read(
    chosen: Sequence[Ranked], memories: Mapping[UUID, Memory], preset: Preset, query: str, now: datetime
) -> Iterator[Hit]:
    """Yields these hits in the order that their texts give them; one that went in the meantime is left out."""
    there = [item for item in chosen if item.candidate.memory_id in memories]
    texts = [_text(memories[item.candidate.memory_id]) for item in there]
    for item in reread(there, texts, preset, query=query, now=now):
        memory = memories[item.candidate.memory_id]
        yield Hit(memory=memory, score=item.rank.value, explain=item.explain, link=_link(item))


def _text(memory: Memory) -> Text:
    return Text(memory.title, memory.body, memory.source_id, memory.ordinal)


def _link(item: Ranked) -> HitLink | None:
    """Returns the link that boosts a memory, with the seed at its other end."""
    edge, seed = item.relevance.edge, item.seed
    if edge is None or seed is None:
        return None
    return HitLink(relation=edge.relation, direction=edge.direction, memory_id=seed.memory_id, title=seed.title)


async def bodies(session: Session, ids: Sequence[UUID]) -> dict[UUID, Memory]:
    """Returns those of these memories that are live, by id."""
    rows = await session.rows(BODIES, {"ids": list(ids)})
    return {row.memory_id: Memory(**{**row._asdict(), "tags": tuple(row.tags)}) for row in rows}


async def standing(
    session: Session, ids: Sequence[UUID], filters: Filters
) -> tuple[dict[UUID, Memory], Collection[UUID]]:
    """Returns those of these memories that are live, and the ids of those of them that pass the filters."""
    live = await bodies(session, ids)
    clauses, values = conditions(filters)
    if not clauses:
        return live, live.keys()
    statement = f"{PASSING} AND {' AND '.join(clauses)}"
    return live, set(await session.column(statement, {**values, "ids": list(ids)}))
