"""Globs over source paths, conditions that can never be met, and the indexes of lists."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

import pytest

from app.errors import InvalidInput
from app.foundation.db.database import Database
from app.foundation.db.session import Session
from app.foundation.models.protocols import TokenCounter
from app.storage.memories import filters as store
from app.storage.memories.filters import Filters, check, conditions, conditions_of_list, glob_pattern, page
from app.storage.memories.memory import Kind, NewMemory, new_id
from app.storage.memories.remember import WriteGate
from app.storage.tenants.workspace import Workspace

PATH = "/data/reports/bads-russia/v6/judgement.json"


@pytest.mark.parametrize(
    "glob",
    [
        "judgement.json",
        "v6/*.json",
        "bads-russia/**",
        "**/v6/*",
        "v?/judgement.json",
        "reports/**/judgement.json",
        "*",
        PATH,
    ],
)
def test_a_glob_matches_from_any_folder_on(glob: str) -> None:
    assert re.search(glob_pattern(glob), PATH)


@pytest.mark.parametrize(
    "glob", ["v6", "v6/*.md", "6/judgement.json", "bads-russia/*", "judgementXjson", "reports", "**/ement.json"]
)
def test_a_glob_does_not_match_parts_of_names(glob: str) -> None:
    assert not re.search(glob_pattern(glob), PATH)


def test_nothing_filtered_has_no_conditions() -> None:
    assert conditions(Filters()) == ([], {})
    assert not Filters()


def test_each_filter_is_one_condition() -> None:
    filters = Filters(
        kinds=("chunk",),
        source="a/*",
        tags=("v6",),
        since=datetime(2026, 1, 1, tzinfo=UTC),
        until=datetime(2026, 2, 1),  # noqa: DTZ001 - a caller may leave the zone out
    )
    clauses, values = conditions(filters)
    assert len(clauses) == 5
    assert values["until"] == datetime(2026, 2, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("filters", "field"),
    [
        (Filters(kinds=(cast("Kind", "poem"),)), "filters.kinds[0]"),
        (Filters(source="a\0b"), "filters.source"),
        (Filters(tags=("a\ud800",)), "filters.tags"),
        (Filters(tags=("t",) * 65), "filters.tags"),
        (Filters(source="x" * 501), "filters.source"),
        (
            Filters(since=datetime(2026, 2, 1, tzinfo=UTC), until=datetime(2026, 1, 1, tzinfo=UTC)),
            "filters.until",
        ),
    ],
)
def test_what_cannot_be_asked_names_its_field(filters: Filters, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check(filters)
    assert caught.value.field == field


@pytest.mark.parametrize(("given", "stored"), [(1e-100, 0.0), (5e-324, 0.0), (6.25, 6.25), (6.3, 6.300000190734863)])
def test_a_score_is_compared_as_its_column_holds_it(given: float, stored: float) -> None:
    assert conditions(Filters(min_score=given))[1] == {"min_score": stored}


MOMENT = datetime(2026, 3, 1, tzinfo=UTC)


@asynccontextmanager
async def indexes_only(database: Database, workspace: Workspace) -> AsyncIterator[Session]:
    """Opens a session whose planner uses indexes where it can, as it does in a large table."""
    async with database.session(workspace) as session:
        for setting in ("enable_seqscan", "enable_bitmapscan", "enable_sort"):
            await session.execute(f"SET LOCAL {setting} = off")
        yield session


async def plan_of(session: Session, statement: str, values: dict[str, Any]) -> str:
    """Returns the plan of a statement: the generic one, and on a cluster that of the node for these values."""
    if not session.distributed:
        return await session.plan(statement)
    # A node adds numbers to the names of tables and indexes.
    return re.sub(r"_\d{4,}\b", "", "\n".join(await session.column(f"EXPLAIN {statement}", values)))


@pytest.mark.parametrize(
    ("order", "after", "expected"),
    [
        (("created", "desc"), MOMENT, {"memories_created_ix": "ROW"}),
        (("occurred", "desc"), MOMENT, {"memories_moment_ix": "ROW"}),
        (("occurred", "asc"), MOMENT, {"memories_moment_ix": "ROW"}),
        (("score", "desc"), 7.0, {"memories_score_ix": "ROW", "memories_pk": ""}),
        (("score", "asc"), 11.0, {"memories_score_ix": "ROW", "memories_pk": "memory_id >"}),
        (("quality", "desc"), 0.0, {"memories_pk": "memory_id <", "memories_quality_ix": "ROW"}),
        (("quality", "asc"), -1.0, {"memories_quality_ix": "ROW", "memories_pk": ""}),
    ],
)
async def test_a_page_is_read_from_an_index_from_where_the_last_one_ended(
    database: Database,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    order: tuple[str, str],
    after: datetime | float,
    expected: dict[str, str],
) -> None:
    statements = list[tuple[str, dict[str, Any]]]()
    rows = Session.rows

    async def noting(session: Session, statement: str, values: dict[str, Any]) -> Any:
        statements.append((statement, values))
        return await rows(session, statement, values)

    monkeypatch.setattr(Session, "rows", noting)
    async with indexes_only(database, workspace) as session:
        met = await conditions_of_list(session, Filters(), None)
        await page(session, met, order=order, after=(after, new_id()), limit=50)
        plans = [await plan_of(session, statement, values) for statement, values in statements]
    assert not any("Sort" in plan for plan in plans)
    for name, condition in expected.items():
        scans = re.findall(rf"using {name} on memories m.*\n.*Index Cond: (.*)", "\n".join(plans))
        assert scans
        assert all(condition in scan for scan in scans)


async def test_a_memory_that_is_rated_while_a_page_is_read_stands_in_it_once(
    database: Database, workspace: Workspace, counter: TokenCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = [NewMemory(kind="note", body=f"The ferry leaves from pier {number}.") for number in range(3)]
    stored = await WriteGate(database=database, counter=counter).remember(workspace, notes)
    *others, rated = sorted(memory_id for memory_id in stored.ids if memory_id is not None)
    await rate(database, workspace, rated, 1)
    rows = Session.rows

    async def followed_by_a_rating(session: Session, statement: str, *given: Any) -> Any:
        found = await rows(session, statement, *given)
        await rate(database, workspace, rated, 0)
        return found

    monkeypatch.setattr(Session, "rows", followed_by_a_rating)
    async with database.session(workspace, transaction=False) as session:
        met = await conditions_of_list(session, Filters(), None)
        found = await page(session, met, order=("quality", "desc"), after=None, limit=3)
    assert [memory.memory_id for memory, _ in found] == [rated, *others[::-1]]


async def rate(database: Database, workspace: Workspace, memory_id: UUID, quality: int) -> None:
    async with database.session(workspace) as session:
        changed = "UPDATE memories SET quality = %(quality)s WHERE memory_id = %(memory_id)s"
        assert await session.execute(changed, {"quality": quality, "memory_id": memory_id}) == 1


@pytest.mark.parametrize(
    ("filters", "condition"),
    [
        (Filters(kinds=("note",)), "memories_kind_ix.*kind >="),
        (Filters(since=MOMENT), "memories_moment_ix.*CASE"),
        (Filters(until=MOMENT, since=MOMENT), "memories_moment_ix.*CASE.*CASE"),
        (Filters(max_score=3.0), "memories_score_ix.*final_score <="),
        (Filters(min_quality=1), "memories_quality_ix.*Cond:.*quality > 0.*Filter"),
    ],
)
async def test_a_condition_has_an_index(
    database: Database, workspace: Workspace, filters: Filters, condition: str
) -> None:
    """Row-level security would keep an expression from its index that it does not know as safe."""
    async with indexes_only(database, workspace) as session:
        met, values = conditions(filters)
        clauses = " AND ".join([store.LIVE, *met])
        own = "m.workspace_id = %(workspace_id)s"
        by_quality = f"SELECT m.memory_id FROM memories m WHERE {own} AND {clauses} ORDER BY m.quality"
        lookups = list(store._lookups(filters)) or [by_quality]
        (plan,) = [await plan_of(session, statement, values) for statement in lookups]
    assert re.search(condition, plan.replace("\n", " "))
