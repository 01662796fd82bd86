"""The SQL of what is read for the best candidates: their texts, vectors and issues, and the cases that they judge."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from app.foundation.db.session import Lookup, Row, Session
from app.foundation.models.late import Codes
from app.foundation.models.protocols import Matrix
from app.intake.cases.judgement import CASE
from app.recall.retrieval.recall import IssueState
from app.storage.index.models import StoredModel
from app.storage.index.vectors import unpacked_parts, unpacked_tokens, unpacked_vector
from app.storage.links.relations import CONTRADICTS, SUPERSEDES
from app.storage.memories.filters import Filters, conditions
from app.storage.memories.memory import Memory
from app.storage.memories.store import COLUMNS, COUNTED, SUSPECT, memory_of

READ = f"""
SELECT {COLUMNS}, NULL AS observation, ({{conditions}}) AS passes FROM {COUNTED}
WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = ANY(%(ids)s::uuid[]) AND m.valid_until IS NULL
"""  # noqa: S608 - constants
PARTS = """
SELECT memory_id, parts, tokens, CASE WHEN parts IS NULL THEN halfvec_send(embedding) END AS whole FROM {partition}
WHERE workspace_id = %(workspace_id)s AND memory_id = ANY(%(ids)s::uuid[]) AND passage = 0
"""
# The state of an issue is told where the text does not say it: it is not open any more, or open again.
STATED = """
SELECT m.memory_id, i.title, i.status, i.state, array_agg(DISTINCT o.status) AS said,
    array_agg(DISTINCT o.version) AS versions, array_agg(DISTINCT lower(j.issues -> o.place ->> 'title')) AS words
FROM memories m
JOIN judgements j ON j.workspace_id = m.workspace_id AND (j.source_id = m.source_id OR j.run_id = m.run_id)
JOIN issue_occurrences o ON o.workspace_id = j.workspace_id AND o.judgement_id = j.judgement_id
JOIN issues i ON i.workspace_id = o.workspace_id AND i.issue_id = o.issue_id
WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = ANY(%(ids)s::uuid[]) AND position(
    lower(j.issues -> o.place ->> 'title') IN lower(regexp_replace(m.title || ' ' || m.body, '\\s+', ' ', 'g'))
) > 0
GROUP BY m.memory_id, i.issue_id, i.title, i.status, i.state ORDER BY m.memory_id, i.title
"""


class StoredText(NamedTuple):
    """A live memory, with what is stored of its passages and its issues."""

    memory: Memory
    passes: bool
    """True if it passes the filters."""
    vectors: Row | None
    """The vectors of its passages, or its own; None if it has none of the model."""
    issues: Sequence[Row]
    """The issues that it states."""

    def vectors_of(self, starts: Sequence[int], dimension: int) -> Matrix | None:
        """Returns the vectors of its passages, which begin at these characters; a single one has its memory's.

        None where others are stored: passages were cut in another way when it was embedded.
        """
        if self.vectors is None:
            return None
        if self.vectors.parts is not None:
            return unpacked_parts(self.vectors.parts, starts, dimension)
        return unpacked_vector(self.vectors.whole) if len(starts) == 1 else None

    def tokens_of(self, passages: int) -> Sequence[Codes] | None:
        """Returns the codes of the words of its title and of each of its passages; None where others are stored."""
        if self.vectors is None or self.vectors.tokens is None:
            return None
        return unpacked_tokens(self.vectors.tokens, passages)

    @property
    def changed_issues(self) -> tuple[IssueState, ...]:
        """The issues whose present state its text does not say."""
        return tuple(
            IssueState(title=row.title, status=row.status, state=row.state, words=tuple(row.words))
            for row in self.issues
            if not _says(row)
        )


def _reading(ids: Sequence[UUID], filters: Filters) -> Lookup:
    clauses, values = conditions(filters)
    return Lookup(READ.format(conditions=" AND ".join(clauses) or "true"), {**values, "ids": ids})


async def read(
    session: Session, ids: Sequence[UUID], *, model: StoredModel | None, filters: Filters | None = None
) -> dict[UUID, StoredText]:
    """Returns the live memories among these by id, in one round trip, with their vectors of this model."""
    asked = [_reading(ids, filters or Filters()), Lookup(STATED, {"ids": ids})]
    if model is not None:
        asked.append(Lookup(PARTS.format(partition=model.partition), {"ids": ids}, binary=True))
    rows, stated, *parts = await session.together(asked)
    vectors = {row.memory_id: row for row in parts[0]} if parts else {}
    issues: dict[UUID, list[Row]] = defaultdict(list)
    for row in stated:
        issues[row.memory_id].append(row)
    return {
        row.memory_id: StoredText(memory_of(row), row.passes, vectors.get(row.memory_id), issues.get(row.memory_id, ()))
        for row in rows
    }


async def standing(session: Session, ids: Sequence[UUID], filters: Filters) -> tuple[dict[UUID, Memory], set[UUID]]:
    """Returns the live memories among these, by id, and the ids of those that pass the filters."""
    asked = _reading(ids, filters)
    rows = await session.rows(asked.statement, asked.values)
    return {row.memory_id: memory_of(row) for row in rows}, {row.memory_id for row in rows if row.passes}


def _says(row: Row) -> bool:
    """Tells if a text says the present state of an issue itself."""
    if row.state in {"", "open"} or row.status in row.said:
        return True
    return row.status == "reopened" and row.state.rpartition(" ")[2] in row.versions


CASES = """
SELECT case_name, array_agg(source_id) FILTER (WHERE source_id = ANY(%(sources)s::uuid[])) AS sources
FROM judgements WHERE workspace_id = %(workspace_id)s GROUP BY case_name
"""
STATE = f"""
SELECT {COLUMNS}, NULL AS observation FROM {COUNTED}
WHERE m.workspace_id = %(workspace_id)s AND s.kind = 'other' AND s.uri = %(uri)s AND m.kind = 'note'
    AND m.valid_until IS NULL AND ({{conditions}})
ORDER BY m.ordinal DESC LIMIT 1
"""  # noqa: S608 - constants


async def cases_of(session: Session, sources: Collection[UUID]) -> dict[str, Collection[UUID]]:
    """Returns the names of the judged cases, each with those of the sources that judge it."""
    rows = await session.tuples(CASES, {"sources": sources})
    return {case: found or () for case, found in rows}


LISTED = """
SELECT source_id, min(case_name) FROM judgements
WHERE workspace_id = %(workspace_id)s AND basis = 'listed' AND score IS NOT NULL
    AND source_id = ANY(%(sources)s::uuid[])
GROUP BY source_id HAVING count(DISTINCT case_name) = 1
"""


async def lists_of_judgements(session: Session, sources: Collection[UUID]) -> dict[UUID, str]:
    """Returns the case of each of these sources that lists the scores of one case, and of no other."""
    return dict(await session.tuples(LISTED, {"sources": sources}))


CONCLUDED = f"""
SELECT DISTINCT ON (m.source_id) m.source_id, m.metadata ->> 'conclusion' FROM memories m
WHERE m.workspace_id = %(workspace_id)s AND m.source_id = ANY(%(sources)s::uuid[]) AND m.ordinal < %(first)s
    AND m.kind = 'chunk' AND m.valid_until IS NULL AND ({SUSPECT}) IS NOT TRUE AND m.metadata ->> 'conclusion' <> ''
ORDER BY m.source_id, m.ordinal
"""  # noqa: S608 - constants
FIRST_CHUNKS = 8
"""The chunks at the beginning of a file in which it states its result."""


async def conclusions_of(session: Session, sources: Collection[UUID | None]) -> dict[UUID | None, str]:
    """Returns what these sources conclude, as far as the chunk that states it is live."""
    return dict(await session.tuples(CONCLUDED, {"sources": sources, "first": FIRST_CHUNKS}))


async def state_of(session: Session, case: str, filters: Filters) -> Memory | None:
    """Returns the note that tells the state of a case's issues, or else its scores; None if none passes the filters."""
    clauses, values = conditions(filters)
    statement = STATE.format(conditions=" AND ".join(clauses) or "true")
    rows = await session.rows(statement, {**values, "uri": f"{CASE}{case}"})
    return memory_of(rows[0]) if rows else None


REPLACED = """
SELECT DISTINCT ON (l.to_id) l.to_id, l.from_id
FROM links l
JOIN memories n ON n.workspace_id = l.workspace_id AND n.memory_id = l.from_id AND n.valid_until IS NULL
JOIN memories o ON o.workspace_id = l.workspace_id AND o.memory_id = l.to_id AND (
    o.created_at < n.created_at OR (o.created_at = n.created_at AND l.relation = %(at_once)s)
)
WHERE l.workspace_id = %(workspace_id)s AND l.to_id = ANY(%(ids)s::uuid[]) AND l.relation = ANY(%(relations)s::text[])
ORDER BY l.to_id, n.created_at DESC, l.from_id
"""


async def replaced_by(session: Session, ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """Returns the live memory that supersedes or contradicts each of these, the latest; older ones do neither.

    Of two that were stored at once, neither contradicts the other, but one may supersede the other.
    """
    values = {"ids": ids, "relations": [SUPERSEDES, CONTRADICTS], "at_once": SUPERSEDES}
    return dict(await session.tuples(REPLACED, values))


_INTAKES = """
WITH moments AS (
    SELECT created_at FROM sources
    WHERE workspace_id = %(workspace_id)s AND created_at BETWEEN %(first)s AND %(last)s
    UNION (
        SELECT created_at FROM sources WHERE workspace_id = %(workspace_id)s AND created_at < %(first)s
        ORDER BY created_at DESC LIMIT %(before)s
    )
    UNION SELECT unnest(%(moments)s::timestamptz[])
), pauses AS (
    SELECT created_at, extract(epoch FROM created_at - lag(created_at) OVER (ORDER BY created_at)) AS pause FROM moments
), usual AS (
    SELECT CASE WHEN count(pause) >= %(fewest)s THEN percentile_cont(0.5) WITHIN GROUP (ORDER BY pause) ELSE 0 END
        AS pause
    FROM pauses
)
SELECT created_at FROM pauses, usual
WHERE pauses.created_at > %(first)s
    AND pauses.pause > least(%(longest)s, greatest(%(shortest)s, %(times)s * usual.pause))
ORDER BY created_at
"""
SHORTEST_PAUSE, LONGEST_PAUSE = 3.0, 60.0
"""Seconds without a new source after which another intake may begin, and after which one always begins. The files of
one intake come in no order that counts."""
_TIMES_USUAL = 8.0
"""Multiple of the median pause between sources that separates two intakes: a busy machine stores a folder slowly. On
one that stored a file in 2 to 8 seconds, a limit of 3 seconds took files of one folder for corrections of one another:
0.79 of the answers of the three report trees were right, and 0.86 on an idle machine."""
BEFORE, FEWEST_PAUSES = 20, 5
"""Earlier sources whose pauses count too, and the fewest pauses of which the median counts."""


async def intakes_between(session: Session, moments: Sequence[datetime]) -> Sequence[datetime]:
    """Returns the moments from the first of these to the last at which an intake began, in their order.

    At these moments memories were stored, which may be of a source that was stored long before.
    """
    values = {
        "first": min(moments),
        "last": max(moments),
        "moments": moments,
        "before": BEFORE,
        "fewest": FEWEST_PAUSES,
        "shortest": SHORTEST_PAUSE,
        "longest": LONGEST_PAUSE,
        "times": _TIMES_USUAL,
    }
    return await session.column(_INTAKES, values)
