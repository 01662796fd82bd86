"""The examples: stored in an empty store only, completed after a kill, and taken away without a trace."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import psycopg
import pytest
import pytest_asyncio
from sqlalchemy import make_url

from app.foundation.db.database import Database
from app.foundation.db.migrations import SCHEMA
from app.foundation.db.pool import libpq_url
from app.insight.map import store as maps
from app.insight.map.drawing import DrawnMap, Point
from app.intake.runs.feedback.service import Ratings
from app.intake.runs.feedback.store import FeedbackEntry
from app.intake.runs.run import NewRun
from app.intake.runs.service import Runs
from app.operations import examples
from app.operations.examples import EXAMPLE, REPORTS, SESSIONS, Examples, example_runs
from app.recall.retrieval.recall import Query
from app.recall.retrieval.service import Retrieval
from app.storage.memories.filters import Filters
from app.storage.memories.memory import Memory, NewMemory, SourceReference
from app.storage.memories.service import Memories
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.cluster import is_cluster
from tests.conftest import store_database, workspace_in

VERSIONS = 13
TABLES = [name for name, table in SCHEMA.items() if table.of_workspace]


@asynccontextmanager
async def opened(services: Services, url: str) -> AsyncIterator[Services]:
    """Yields these services over another database."""
    database = Database(url, pool_size=4)
    yield replace(services, database=database, settings=replace(services.settings, database_url=url))
    await database.close()


async def seed(services: Services) -> None:
    """Stores all examples in the workspace `w` of an empty store."""
    assert await Examples(services=services).are_lacking()
    workspace = await workspace_in(services.database, "w")
    await Examples(services=services).begin(workspace)
    assert await Examples(services=services).play(workspace) == VERSIONS


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def template(services: Services, server_url: str, store_template: str) -> AsyncIterator[str]:
    """The name of a database that holds all examples: to copy it takes a fraction of the time of storing them.

    On a cluster it is the empty one: only a database to which no node connects can be copied there.
    """
    if is_cluster(server_url):
        yield store_template
        return
    with store_database(server_url, store_template) as url:
        async with opened(services, url) as stored:
            await seed(stored)
        yield str(make_url(url).database)


@pytest_asyncio.fixture
async def seeded(services: Services, server_url: str, template: str) -> AsyncIterator[Services]:
    """Services over a database of their own whose workspace `w` holds all examples."""
    with store_database(server_url, template) as url:
        async with opened(services, url) as own:
            if is_cluster(server_url):
                await seed(own)
            yield own


async def note(
    services: Services, workspace: Workspace, body: str, *tags: str, source: SourceReference | None = None
) -> None:
    await services.write_gate.remember(
        workspace, [NewMemory(kind="note", title="own", body=body, tags=tags, source=source)]
    )


def drawn(*memories: Memory) -> DrawnMap:
    """Returns a map of these memories."""
    places = {memory.memory_id: Point(x=0, y=0, cluster=0) for memory in memories}
    return DrawnMap(places=places, clusters=(), computed_at=datetime.now(UTC))


def rows(services: Services, table: str) -> list[str]:
    """Returns the rows of a table, as texts."""
    with psycopg.connect(libpq_url(services.settings.database_url)) as superuser:
        return [row for (row,) in superuser.execute(f"SELECT t::text FROM {table} t").fetchall()]


def test_a_run_is_judged_as_the_judgement_beside_its_report_says() -> None:
    for run in example_runs():
        report = REPORTS.parent / str(run.judged.output_path)
        said = json.loads((report.parent / "judgement.json").read_text())
        assert (run.judged.final_score, run.judged.verdict) == (said["score"], said["verdict"])
        assert run.judged.issues == tuple(f"{issue['severity']}: {issue['title']}" for issue in said["issues"])
        assert said["date"] == str(run.begun.started_at)[:10]
        assert {query.filters.until for query in run.recalls} == {datetime.fromisoformat(f"{said['date']}T00:00Z")}


async def test_examples_are_runs_that_were_given_only_what_was_there_before_and_are_stored_once(
    seeded: Services,
) -> None:
    workspace = await workspace_in(seeded.database, "w")
    found = await Runs(database=seeded.database).page(workspace)
    assert [run.run_id for run in found][:2] == ["example-bads-russia-v7", "example-bads-russia-v6"]
    assert Counter(run.verdict for run in found) == {"fail": 10, "pass": 3}
    for run in found:  # the first of all comes last, and was given nothing
        story = await Runs(database=seeded.database).get(workspace, run.run_id)
        assert story.run is not None
        assert story.run.final_score == story.run.round_scores[-1]
        assert next(iter(story.run.stages)) == "director"
        assert [made.tags[0] for made in story.observations] == [EXAMPLE]
        for given in story.given:
            memory = await Memories(database=seeded.database).get(workspace, memory_id=given.memory_id)
            assert memory.occurred_at is not None
            assert run.started_at is not None
            assert memory.occurred_at < run.started_at.replace(hour=0)
    assert story.given == ()
    assert len((await Memories(database=seeded.database).page(workspace, state="prune")).memories) == 3
    (page,) = (await Memories(database=seeded.database).page(workspace, state="quarantined")).memories
    assert EXAMPLE in page.tags

    cues = await seeded.cues.page(workspace)
    told = [(cue.evidence[0].session, "drop" in cue.lesson, cue.heeded, cue.tags) for cue in cues if cue.fired]
    assert ("session-47", True, 1, (EXAMPLE,)) in told
    for asked in ("API versioning", "Why did we not use header versioning?"):
        answer = await seeded.reasons.ask(workspace, subject=asked)
        assert "our CDN does not vary its cache by that header" in answer.markdown, asked

    kept = ("memories", "recalls", "feedback", "compressions", "activations")
    before = {table: sorted(rows(seeded, table)) for table in kept}
    assert not await Examples(services=seeded).are_lacking()
    await Examples(services=seeded).begin(workspace)
    assert await Examples(services=seeded).play(workspace) == 0
    assert before == {table: sorted(rows(seeded, table)) for table in before}


@pytest.mark.test_all("kills")
async def test_what_a_killed_start_began_the_next_one_completes(own_services: Services) -> None:
    workspace = await workspace_in(own_services.database, "w")
    await Examples(services=own_services).begin(workspace)
    workspace = await workspace_in(own_services.database, "w")
    playing = asyncio.create_task(Examples(services=own_services).play(workspace))
    while len(rows(own_services, "recalls")) < 9:  # noqa: ASYNC110 - polls a condition
        await asyncio.sleep(0.01)
    playing.cancel()
    await asyncio.gather(playing, return_exceptions=True)
    assert await Examples(services=own_services).are_lacking()
    await Examples(services=own_services).begin(workspace)
    assert 0 < await Examples(services=own_services).play(workspace) < VERSIONS
    assert not await Examples(services=own_services).are_lacking()
    assert len(rows(own_services, "recalls")) == 4 * VERSIONS - 1  # one run had no scout
    assert len(rows(own_services, "observations")) == VERSIONS


async def test_a_start_that_was_killed_at_once_counts_as_none(own_services: Services) -> None:
    await workspace_in(own_services.database, "w")
    assert len(rows(own_services, "workspaces")) == 1
    assert await Examples(services=own_services).are_lacking()


async def test_a_store_with_anything_of_its_own_is_never_touched(own_services: Services) -> None:
    database = own_services.database
    workspace = await workspace_in(database, "other")
    await Runs(database=database).record(workspace, NewRun(run_id="mine"))
    assert not await Examples(services=own_services).are_lacking()


async def test_a_store_whose_own_memories_are_deleted_is_not_empty(own_services: Services) -> None:
    database = own_services.database
    await note(own_services, await workspace_in(database, "w"), "Kept in the trash.")
    workspace = await workspace_in(database, "w")
    (memory,) = await Memories(database=database).list_live(workspace)
    await Memories(database=database).delete(workspace, ids=[memory.memory_id])
    assert not await Examples(services=own_services).are_lacking()


async def test_removing_takes_everything_of_the_examples_and_nothing_else(seeded: Services) -> None:
    database, workspace = seeded.database, await workspace_in(seeded.database, "w")
    await note(seeded, workspace, "The director ordered a second search of actors.", "example")
    (mine,) = await Memories(database=database).list_live(workspace, filters=Filters(tags=("example",)))
    await Ratings(database=database).rate(workspace, FeedbackEntry(memory_id=mine.memory_id, rating=1, comment="mine"))
    await Runs(database=database).record(workspace, NewRun(run_id="mine", metadata={"example": True}))
    query = Query(text="director actors search", k=5, run_id="mine")
    recall = await Retrieval(database=database, provider=seeded.provider).search(workspace, query)
    assert len(recall.hits) == 5
    examples_of = await Memories(database=database).list_live(workspace, filters=Filters(tags=(EXAMPLE,)), limit=200)
    async with database.session(workspace) as session:
        await maps.save(session, drawn(examples_of[0], mine), kind="", limit=9)
    await Memories(database=database).delete(workspace, ids=[examples_of[0].memory_id])

    gone = await Examples(services=seeded).remove(workspace)
    files = [path for folder in (REPORTS, SESSIONS) for path in folder.rglob("*") if path.is_file()]
    notes = 2 * len({run.parts[-3] for run in REPORTS.glob("*/v*/report.md")})
    assert (gone.runs, gone.memories, gone.files) == (VERSIONS, len(examples_of) + 1 + notes, len(files))
    # The audit log keeps that they were there.
    for table in set(TABLES) - {"audit"}:
        found = "\n".join(rows(seeded, table))
        assert not re.search(
            r"priors-example|bads|brew|insurance|session-47|deprecated_flag|migrations\.md", found, re.IGNORECASE
        ), table
        assert table == "recall_hits" or not any(str(memory.memory_id) in found for memory in examples_of), table
    assert [memory.body for memory in await Memories(database=database).list_live(workspace)] == [mine.body]
    ratings = await Ratings(database=database).of_memory(workspace, mine.memory_id)
    assert [item.comment for item in ratings] == ["mine"]
    assert len((await Runs(database=database).get(workspace, "mine")).given) == 5
    assert await Examples(services=seeded).remove(workspace) == examples.Removed(memories=0, files=0, runs=0)
    assert not await Examples(services=seeded).are_lacking()


async def test_own_memories_in_a_source_that_is_named_like_a_case_stay(seeded: Services) -> None:
    workspace = await workspace_in(seeded.database, "w")
    source = SourceReference(kind="other", uri="case:of-my-own")
    await note(seeded, workspace, "The kettle needs a second test.", source=source)
    await Examples(services=seeded).remove(workspace)
    left = await Memories(database=seeded.database).list_live(workspace)
    assert [memory.body for memory in left] == ["The kettle needs a second test."]


async def test_an_own_run_that_is_named_like_an_example_stays(own_services: Services) -> None:
    database, workspace = own_services.database, await workspace_in(own_services.database, "w")
    for name, marks in (("example-bads-russia-v7", {}), ("example-bads-russia-v6", {EXAMPLE: True})):
        await Runs(database=database).record(workspace, NewRun(run_id=name, metadata=marks))
    assert (await Examples(services=own_services).remove(workspace)).runs == 1
    assert [run.run_id for run in await Runs(database=database).page(workspace)] == ["example-bads-russia-v7"]


async def test_a_removal_before_the_words_were_counted_lasts(own_services: Services) -> None:
    database = own_services.database
    workspace = await workspace_in(database, "w")
    await Runs(database=database).record(workspace, NewRun(run_id="r", metadata={EXAMPLE: True}))
    workspace = await workspace_in(database, "w")
    await Examples(services=own_services).remove(workspace)
    assert not await Examples(services=own_services).are_lacking()


@pytest.mark.test_all("kills")
async def test_examples_that_are_removed_while_they_are_stored_stay_away(own_services: Services) -> None:
    database = own_services.database
    await Examples(services=own_services).begin(await workspace_in(database, "w"))
    workspace = await workspace_in(database, "w")
    playing = asyncio.create_task(Examples(services=own_services).play(workspace))
    while len(rows(own_services, "recalls")) < 6:  # noqa: ASYNC110 - polls a condition
        await asyncio.sleep(0.01)
    await Examples(services=own_services).remove(workspace)
    await playing
    assert [rows(own_services, table) for table in ("memories", "runs", "recalls", "compressions")] == [[], [], [], []]
    assert not await Examples(services=own_services).are_lacking()
