"""The SQL of judgements, issues and their occurrences."""

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from msgspec import Struct

from app.foundation.db.session import MATCH, Row, Session, as_kind
from app.foundation.text.scores import spellings
from app.intake.cases.cases import CaseHistory, Judgement, unify_version_spellings
from app.intake.cases.judgement import OPEN, REOPENED, FoundJudgement, case_key, in_order
from app.storage.memories.memory import in_utc, new_id
from app.storage.memories.store import as_json

_COLUMNS = """
    j.pointer, j.version, j.judged_at, j.score, j.stated, j.verdict, j.passed, j.grade, j.judge, j.basis, j.summary,
    j.advice, j.lists_issues, j.issues
"""
_LOCK_CASES = "SELECT pg_advisory_xact_lock(hashtextextended('priors.cases:' || %(workspace_id)s::text, 0))"

# The other judgements of a case are matched anew: an issue may begin or end where one comes or goes.
_FORGET = """
WITH gone AS (
    DELETE FROM judgements WHERE workspace_id = %(workspace_id)s
        AND (source_id = ANY(%(source_ids)s::uuid[]) OR run_id = ANY(%(run_ids)s::text[]))
    RETURNING case_name
)
SELECT DISTINCT case_name FROM gone
"""
_UNMATCH = """
UPDATE judgements SET matched = false
WHERE workspace_id = %(workspace_id)s AND case_name = ANY(%(cases)s::text[]) AND matched
"""
_EMPTIED = """
DELETE FROM issues i WHERE i.workspace_id = %(workspace_id)s AND i.case_name = ANY(%(cases)s::text[])
    AND NOT EXISTS (SELECT 1 FROM judgements j WHERE j.workspace_id = %(workspace_id)s AND j.case_name = i.case_name)
"""
_ADD = """
INSERT INTO judgements (workspace_id, judgement_id, source_id, run_id, pointer, case_name, case_title, version,
    judged_at, score, stated, verdict, passed, grade, judge, basis, summary, advice, lists_issues, issues)
SELECT %(workspace_id)s, judgement_id, source_id, run_id, pointer, case_name, "case", version, judged_at, score,
    stated, verdict, passed, grade, judge, basis, summary, advice, lists_issues, issues
FROM jsonb_to_recordset(%(rows)s::jsonb) AS given(
    judgement_id uuid, source_id uuid, run_id text, pointer text, case_name text, "case" text, version text,
    judged_at timestamptz, score real, stated double precision, verdict text, passed boolean, grade text, judge text,
    basis text, summary text, advice text, lists_issues boolean, issues jsonb
)
RETURNING 1
"""
_PENDING = "SELECT DISTINCT case_name FROM judgements WHERE workspace_id = %(workspace_id)s AND NOT matched ORDER BY 1"
_PENDING_OF_ALL = "SELECT DISTINCT workspace_id FROM judgements WHERE NOT matched ORDER BY 1"
_OF_CASE = f"""
SELECT j.judgement_id, j.run_id, j.case_title AS "case", j.matched, coalesce(s.title, '') AS source, {_COLUMNS}
FROM judgements j LEFT JOIN sources s USING (workspace_id, source_id)
WHERE j.workspace_id = %(workspace_id)s AND j.case_name = %(case)s
ORDER BY j.judgement_id
"""  # noqa: S608 - constants
_OF_RUN = f"""
SELECT j.case_title AS "case", {_COLUMNS} FROM judgements j
WHERE j.workspace_id = %(workspace_id)s AND j.run_id = %(run_id)s
"""  # noqa: S608 - constants
_NUMBERS = """
SELECT DISTINCT o.judgement_id, o.place, o.issue_id FROM issue_occurrences o
JOIN issues i USING (workspace_id, issue_id)
WHERE o.workspace_id = %(workspace_id)s AND i.case_name = %(case)s
"""
_MATCHED = """
UPDATE judgements SET matched = true WHERE workspace_id = %(workspace_id)s AND judgement_id = ANY(%(ids)s::uuid[])
"""
_CLEAR = "DELETE FROM issues WHERE workspace_id = %(workspace_id)s AND case_name = %(case)s"
_ADD_ISSUES = """
INSERT INTO issues (workspace_id, issue_id, case_name, title, severity, status, versions, state)
SELECT %(workspace_id)s, id, %(case)s, title, severity, status, ARRAY(SELECT jsonb_array_elements_text(versions)), state
FROM jsonb_to_recordset(%(issues)s::jsonb)
    AS given(id uuid, title text, severity text, status text, versions jsonb, state text)
RETURNING 1
"""
_ADD_OCCURRENCES = """
INSERT INTO issue_occurrences (workspace_id, judgement_id, place, version, status, issue_id, severity)
SELECT %(workspace_id)s, told.judgement_id, told.place, told.version, told.status, given.id, told.severity
FROM jsonb_to_recordset(%(issues)s::jsonb) AS given(id uuid, occurrences jsonb)
CROSS JOIN LATERAL jsonb_to_recordset(given.occurrences) AS told(
    judgement_id uuid, place smallint, version text, status text, severity text
) ON CONFLICT DO NOTHING
"""
_NOTES = """
SELECT DISTINCT ON (ordinal) ordinal, memory_id, CASE WHEN valid_until IS NOT NULL THEN coalesce(retired_as, 'gone') END
FROM memories WHERE workspace_id = %(workspace_id)s AND source_id = %(source_id)s AND kind = 'note'
ORDER BY ordinal, valid_until IS NOT NULL, created_at DESC
"""
# The name of a case stands in the URI of its notes' source.
_IDLE = """
SELECT source_id FROM sources s WHERE s.workspace_id = %(workspace_id)s AND s.kind = 'other' AND s.uri LIKE 'case:%%'
    AND NOT EXISTS (
        SELECT FROM judgements j WHERE j.workspace_id = %(workspace_id)s AND 'case:' || j.case_name = s.uri
    )
"""
_IDLE_NOTES = f"""
SELECT memory_id FROM memories WHERE workspace_id = %(workspace_id)s AND kind = 'note' AND valid_until IS NULL
    AND jsonb_exists(metadata, 'facet') AND source_id IN ({_IDLE})
"""  # noqa: S608 - constants
_VERSIONS = """
SELECT jsonb_agg(DISTINCT jsonb_build_array(named.version, named.score)) FROM judgements v CROSS JOIN LATERAL (
    SELECT CASE WHEN v.version <> '' THEN v.version WHEN num_nonnulls(v.score, nullif(v.verdict, ''), v.passed) > 0
        THEN coalesce(v.run_id, (v.judged_at AT TIME ZONE 'UTC')::date::text, 'undated') END,
        CASE WHEN v.basis = 'judged' THEN v.score END
    UNION ALL
    SELECT stated.version, NULL FROM jsonb_array_elements(v.issues) AS issue, LATERAL (
        SELECT jsonb_array_elements_text(issue -> 'versions') UNION ALL SELECT nullif(issue ->> 'since', '')
    ) AS stated(version)
) AS named(version, score)
WHERE v.workspace_id = %(workspace_id)s AND v.case_name = j.case_name AND named.version IS NOT NULL
"""
"""The versions that `cases.versions_of` tells apart, in any spelling, with the scores of judgements."""
_IS_CASE = "NOT (count(*) = 1 AND bool_and(j.run_id IS NOT NULL AND j.case_title = j.run_id AND j.version = ''))"
"""Leaves out what is judged of a run that names no case."""
_CASES = f"""
SELECT j.case_name, ({_VERSIONS}) AS named, count(*) AS judgements, max(j.judged_at) AS judged_at,
    (array_agg(j.case_title ORDER BY j.case_title = lower(j.case_title), j.judgement_id))[1] AS title,
    (SELECT count(*) FROM issues i WHERE i.workspace_id = %(workspace_id)s AND i.case_name = j.case_name
        AND i.status IN ('open', 'reopened')) AS open_issues,
    (SELECT count(*) FROM issues i WHERE i.workspace_id = %(workspace_id)s AND i.case_name = j.case_name
        AND cardinality(i.versions) > 1) AS recurring_issues
FROM judgements j WHERE j.workspace_id = %(workspace_id)s
GROUP BY j.workspace_id, j.case_name HAVING {_IS_CASE}
ORDER BY max(j.judged_at) DESC NULLS LAST, j.case_name LIMIT %(limit)s
"""  # noqa: S608 - constants
_NAMES = f"""
SELECT j.case_name FROM judgements j WHERE j.workspace_id = %(workspace_id)s GROUP BY j.case_name HAVING {_IS_CASE}
ORDER BY max(j.judged_at) DESC NULLS LAST, j.case_name LIMIT %(limit)s
"""  # noqa: S608 - constants
_OPEN_ISSUES = """
SELECT i.case_name, i.title FROM issues i WHERE i.workspace_id = %(workspace_id)s
    AND i.status = ANY(%(open)s::text[]) AND i.severity <> 'P3' AND i.case_name = ANY(%(cases)s::text[])
ORDER BY i.severity = '', i.severity LIMIT %(limit)s
"""


_NAME = "coalesce(nullif(j.version, ''), j.run_id, '')"
_JUDGED_RUNS = f"""
SELECT j.run_id, j.case_name, {_NAME} AS version, count(DISTINCT o.issue_id)::int AS issues,
    count(DISTINCT o.issue_id) FILTER (WHERE array_position(i.versions, o.version) > 1)::int AS repeats
FROM judgements j
LEFT JOIN issue_occurrences o
    ON o.workspace_id = %(workspace_id)s AND o.judgement_id = j.judgement_id AND o.status = %(open)s
LEFT JOIN issues i ON i.workspace_id = %(workspace_id)s AND i.issue_id = o.issue_id
WHERE j.workspace_id = %(workspace_id)s AND j.run_id = ANY(%(run_ids)s::text[]) AND j.matched AND j.lists_issues
GROUP BY j.run_id, j.case_name, j.version
"""  # noqa: S608 - constants
_JUDGED_VERSIONS = f"""
SELECT j.case_name, jsonb_object_agg(j.version, j.judged_at) AS judged FROM (
    SELECT j.case_name, {_NAME} AS version, min(j.judged_at) AS judged_at FROM judgements j
    WHERE j.workspace_id = %(workspace_id)s AND j.case_name = ANY(%(cases)s::text[]) AND j.matched AND j.lists_issues
    GROUP BY 1, 2
) AS j GROUP BY j.case_name
"""  # noqa: S608 - constants
_RECURRING = """
SELECT coalesce((
    SELECT j.case_title FROM judgements j
    WHERE j.workspace_id = %(workspace_id)s AND j.case_name = i.case_name ORDER BY j.judgement_id DESC LIMIT 1
), i.case_name) AS "case", i.title, i.severity, i.versions, i.state
FROM issues i
WHERE i.workspace_id = %(workspace_id)s AND i.status = ANY(%(open)s::text[])
    AND i.severity = ANY(%(severities)s::text[]) AND cardinality(i.versions) >= %(least)s
    AND (%(run_ids)s::text[] IS NULL OR EXISTS (
        SELECT FROM issue_occurrences o JOIN judgements j USING (workspace_id, judgement_id)
        WHERE o.workspace_id = %(workspace_id)s AND o.issue_id = i.issue_id AND o.status = %(named)s
            AND j.run_id = ANY(%(run_ids)s::text[])
    ))
ORDER BY i.severity, cardinality(i.versions) DESC, i.title LIMIT %(limit)s
"""
_MOST_RECURRING = 50


class JudgedRun(NamedTuple):
    """The numbers of issues that the judge of a run named."""

    issues: int | None
    repeats: int | None
    """The number of issues that were named of an earlier version of the case too; None of the first version."""


class Alert(Struct, frozen=True, kw_only=True):
    """A severe issue that judges name again and again."""

    case: str
    title: str
    severity: str
    versions: tuple[str, ...]
    """The versions in which it was named."""
    state: str


class KnownCase(NamedTuple):
    """A case with what is stored of it."""

    judgements: Sequence[Judgement]
    numbers: Mapping[tuple[UUID, int], UUID]
    """The issue of each statement that is matched."""
    matched: bool
    """True where every judgement of it is."""


async def replace(
    session: Session,
    found: Mapping[UUID | str, Sequence[FoundJudgement]],
) -> None:
    """Makes these the judgements of reports (by source) and runs (by id), and asks a worker to match them."""
    if not found:
        return
    await session.execute(_LOCK_CASES)
    gone = await session.column(
        _FORGET,
        {
            "source_ids": [key for key in found if isinstance(key, UUID)],
            "run_ids": [key for key in found if isinstance(key, str)],
        },
    )
    rows = [_row(key, item) for key, items in found.items() for item in items]
    if rows:
        await session.execute(_ADD, {"rows": as_json(rows)})
    cases = {"cases": sorted({*gone, *(row["case_name"] for row in rows)})}
    if cases["cases"]:
        await session.execute(_UNMATCH, cases)
        await session.execute(_EMPTIED, cases)
        await session.enqueue(MATCH, lock=f"{MATCH}:{session.workspace_id}", workspace_id=session.workspace_id)


async def note_run(session: Session, run_id: str, judgement: FoundJudgement | None) -> None:
    """Makes this the judgement of a run, unless it is the one that is known; None takes away what is known.

    A judgement without a date is of now. What a user's run judges joins no case: cases are of nobody.
    """
    if session.user:
        return
    known = await session.rows_as(FoundJudgement, _OF_RUN, {"run_id": run_id})
    if judgement is not None and judgement.judged_at is None:
        judged_at = known[0].judged_at if known else datetime.now(UTC)
        judgement = dataclasses.replace(judgement, judged_at=judged_at)
    wanted = [] if judgement is None else [judgement]
    if known != wanted:
        await replace(session, {run_id: wanted})


def _row(key: UUID | str, found: FoundJudgement) -> dict[str, Any]:
    is_source = isinstance(key, UUID)
    return {
        **msgspec.to_builtins(found),
        "judgement_id": new_id(),
        "source_id": key if is_source else None,
        "run_id": None if is_source else key,
        "case_name": case_key(found.case),
        "judged_at": None if found.judged_at is None else in_utc(found.judged_at),
    }


async def pending(session: Session) -> list[str]:
    """Returns the cases whose issues are to be matched."""
    return await session.column(_PENDING)


async def pending_of_all(session: Session) -> list[int]:
    """Returns the workspaces that have such cases."""
    return await session.column(_PENDING_OF_ALL)


async def case(session: Session, name: str, *, locked: bool = False) -> KnownCase:
    """Returns what is stored of a case; with `locked` nobody else changes a case until the transaction ends."""
    if locked:
        await session.execute(_LOCK_CASES)
    rows = await session.rows(_OF_CASE, {"case": name})
    numbers = {(row.judgement_id, row.place): row.issue_id for row in await session.rows(_NUMBERS, {"case": name})}
    judgements = [
        Judgement(
            judgement_id=row.judgement_id,
            found=as_kind(row, FoundJudgement),
            source=row.source,
            run_id=row.run_id,
        )
        for row in rows
    ]
    return KnownCase(unify_version_spellings(judgements), numbers, all(row.matched for row in rows))


async def write_issues(session: Session, history: CaseHistory, known: KnownCase) -> None:
    """Makes these the issues of a case; its judgements are matched from now on."""
    ids = [item.judgement_id for item in known.judgements]
    values = {"case": history.case, "issues": as_json(history.issues), "ids": ids}
    for statement in (_CLEAR, _ADD_ISSUES, _ADD_OCCURRENCES, _MATCHED):
        await session.execute(statement, values)


async def notes(session: Session, source_id: UUID) -> dict[int, tuple[UUID, str | None]]:
    """Returns the latest notes of a case by their places, each with the reason for which it is retired, if it is."""
    return {
        place: (memory_id, reason) for place, memory_id, reason in await session.rows(_NOTES, {"source_id": source_id})
    }


async def idle_notes(session: Session) -> list[UUID]:
    """Returns the live notes of cases that have no judgement any more; nobody changes a case until the end."""
    await session.execute(_LOCK_CASES)
    return await session.column(_IDLE_NOTES)


async def idle(session: Session) -> list[UUID]:
    """Returns the sources of the notes of cases that have no judgement any more."""
    return await session.column(_IDLE)


async def judged_runs(session: Session, run_ids: Sequence[str]) -> dict[str, JudgedRun]:
    """Returns the numbers of issues of those of these runs whose judgement lists issues, by the runs."""
    rows = await session.rows(_JUDGED_RUNS, {"run_ids": list(run_ids), "open": OPEN})
    cases = await session.tuples(_JUDGED_VERSIONS, {"cases": list({row.case_name for row in rows})})
    first = {case: in_order(msgspec.convert(judged, dict[str, datetime | None]))[0] for case, judged in cases}
    return {
        row.run_id: JudgedRun(row.issues, None if first[row.case_name] == row.version else row.repeats) for row in rows
    }


async def recurring(
    session: Session, *, severities: Sequence[str], least: int, run_ids: Sequence[str] | None = None
) -> list[Alert]:
    """Returns open issues of these severities that were named of so many versions, the worst first.

    With `run_ids` it returns those that a judge named of one of these runs.
    """
    asked = {"severities": list(severities), "least": least, "open": [OPEN, REOPENED], "limit": _MOST_RECURRING}
    asked |= {"run_ids": None if run_ids is None else list(run_ids), "named": OPEN}
    return await session.rows_as(Alert, _RECURRING, asked)


class CaseSummary(Struct, frozen=True, kw_only=True, rename={"case_name": "case"}):
    """A case in a list."""

    case_name: str
    versions: int
    judgements: int
    judged_at: datetime | None
    title: str
    open_issues: int
    recurring_issues: int


async def cases(session: Session, *, limit: int) -> list[CaseSummary]:
    """Returns the cases, the latest judged first."""
    return [_summary(row) for row in await session.rows(_CASES, {"limit": limit})]


async def names(session: Session, *, limit: int) -> list[str]:
    """Returns the names of the cases, the latest judged first."""
    return await session.column(_NAMES, {"limit": limit})


async def open_issues(session: Session, cases: Sequence[str], *, limit: int) -> list[tuple[str, str]]:
    """Returns the case and the title of the open issues of these cases that are worse than P3, the worst first."""
    asked = {"open": [OPEN, REOPENED], "cases": list(cases), "limit": limit}
    return [(name, title) for name, title in await session.rows(_OPEN_ISSUES, asked)]


def _summary(row: Row) -> CaseSummary:
    values = row._asdict()
    named = values.pop("named") or ()
    first = spellings(named)
    return CaseSummary(**values, versions=len({first.get(name, name) for name, _ in named}))
