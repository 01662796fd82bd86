"""Finds what was recorded in the period that a query asks for, newest first."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from msgspec import structs

from app.foundation.db.session import Session
from app.foundation.text.dates import Period
from app.foundation.text.passages import passages_of
from app.intake.cases.judgement import CASE
from app.recall.retrieval.candidates import ArmQuery
from app.recall.retrieval.rank.passages import PassageScore
from app.recall.retrieval.rank.rank import COMPONENTS
from app.recall.retrieval.recall import CheckedQuery, Hit, HitPassage, Query
from app.recall.retrieval.texts import read
from app.storage.memories.memory import in_utc
from app.storage.memories.store import HAPPENED, JOINED

_NEWEST = 2_000
"""The newest memories of a period, which are read."""
_SAYS_LITTLE = 100
"""Characters of a turn below which it thanks or agrees, and sums nothing up."""
# The newest of each source come first, then its second ones: the last long turn of a session says what came of it, and
# the first chunk of a report what it is about. Notes on a case are made anew each time.
_RECORDED = f"""
SELECT memory_id FROM (
    SELECT memory_id, at, row_number() OVER (PARTITION BY coalesce(source_id, memory_id) ORDER BY
        kind = 'message' AND length(body) < {_SAYS_LITTLE}, CASE WHEN kind = 'message' THEN -ordinal ELSE ordinal END,
        memory_id) AS place
    FROM (
        SELECT m.memory_id, m.source_id, m.kind, m.body, m.ordinal, {HAPPENED} AS at FROM {JOINED}
        WHERE m.workspace_id = %(workspace_id)s AND m.valid_until IS NULL AND {{conditions}}
            AND (s.uri IS NULL OR NOT starts_with(s.uri, '{CASE}')) ORDER BY at DESC, m.memory_id LIMIT {_NEWEST}
    ) AS newest
) AS placed ORDER BY place, at DESC, memory_id LIMIT %(wanted)s
"""  # noqa: S608 - constants and the filters' conditions


def within(query: Query, period: Period) -> Query:
    """Returns a query that only memories of a period answer, within the time that its filters give."""
    given = query.filters
    since, until = (None if moment is None else in_utc(moment) for moment in (given.since, given.until))
    begins = max(period.since, since) if since is not None else period.since
    ends = min(period.until, until) if until is not None else period.until
    return replace(query, filters=structs.replace(given, since=begins, until=ends))


async def find_recorded(session: Session, call: CheckedQuery, question: ArmQuery, wanted: int) -> tuple[Hit, ...]:
    """Returns the memories that pass the filters of a query, newest first, with their passages."""
    values: dict[str, Any] = {**question.values, "wanted": wanted}
    ids: list[UUID] = await session.column(_RECORDED.format(conditions=" AND ".join(question.scanned)), values)
    stored = await read(session, ids, model=None)
    found = [stored[memory_id].memory for memory_id in ids if memory_id in stored]
    memories = [memory for memory in found if call.suspects or not memory.suspect]
    hits: list[Hit] = []
    for place, memory in enumerate(memories):
        score = 1 - place / len(memories)
        # The first passage of each memory comes before the second of any.
        parts = enumerate(passages_of(memory.body)) if call.passages else ()
        passages = tuple(HitPassage(PassageScore(part, 1.0, 0.0, 0.0), score - number) for number, part in parts)
        explain = {**dict.fromkeys(COMPONENTS), "score": score, "probability": None}
        hits.append(Hit(memory=memory, score=score, explain=explain, passages=passages))
    return tuple(hits)
