"""Moving a store to another model: the old one serves until the new one is whole."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio
from sqlalchemy import make_url
from structlog.testing import capture_logs

from app.errors import ConfigurationError, EmbeddingUnavailable
from app.foundation.db.database import Database
from app.foundation.db.pool import libpq_url
from app.foundation.models.protocols import EmbeddingProvider, TokenCounter
from app.intake.reports.ingest import Ingestions
from app.interfaces.http.context import Metrics
from app.operations.doctor import WARN, diagnose
from app.recall.retrieval.recall import Query, Recall
from app.recall.retrieval.service import Retrieval
from app.settings import Settings
from app.storage.index import models as stored
from app.storage.index import service as indexes
from app.storage.index import vectors
from app.storage.index.following import UNSETTLED_SECONDS, FollowingProvider, speaking
from app.storage.index.models import MoveState, move_state
from app.storage.index.reembed import ModelMoves
from app.storage.index.service import Embedder, pending_counts, queue_lacking
from app.storage.links.service import Links
from app.storage.links.store import forget_similar_of_all
from app.storage.memories.memory import NewMemory
from app.storage.memories.remember import WriteGate
from tests.cluster import is_cluster
from tests.conftest import store_database, workspace_in
from tests.fakes.providers import Closing, Lent, Turned

LESSONS = [f"Lesson {number}: the scout verifies producers of town {number} in the register." for number in range(300)]


def moves(database: Database, *, grace_seconds: float = 0) -> ModelMoves:
    return ModelMoves(database=database, forget_similar=forget_similar_of_all, grace_seconds=grace_seconds)


async def filled(database: Database, provider: EmbeddingProvider, counter: TokenCounter) -> None:
    notes = [NewMemory(kind="note", body=body) for body in LESSONS]
    await WriteGate(database=database, counter=counter).remember(await workspace_in(database, "w"), notes)
    await Embedder(database=database, provider=provider).embed_all_pending(database.across)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def template(
    server_url: str, store_template: str, provider: EmbeddingProvider, counter: TokenCounter
) -> AsyncIterator[str]:
    """The name of a filled database; on a cluster an empty one, because nobody may be connected to what is copied."""
    if is_cluster(server_url):
        yield store_template
        return
    with store_database(server_url, store_template) as url:
        database = Database(url, pool_size=4)
        await filled(database, provider, counter)
        await database.close()
        yield str(make_url(url).database)


@pytest_asyncio.fixture
async def filled_url(
    server_url: str, template: str, provider: EmbeddingProvider, counter: TokenCounter
) -> AsyncIterator[str]:
    """The URL of a filled database of the test's own."""
    with store_database(server_url, template) as url:
        if is_cluster(server_url):
            database = Database(url, pool_size=4)
            await filled(database, provider, counter)
            await database.close()
        yield url


@pytest_asyncio.fixture
async def own(filled_url: str) -> AsyncIterator[Database]:
    """A filled database of the test's own."""
    database = Database(filled_url, pool_size=8)
    yield database
    await database.close()


async def state_of(database: Database) -> MoveState:
    async with database.across() as session:
        return await move_state(session)


async def vectors_of(database: Database) -> dict[str, int]:
    async with database.across() as session:
        counted = "SELECT name, count(*) FROM embeddings JOIN embedding_models USING (model_id) GROUP BY 1"
        return {row[0]: row[1] for row in await session.rows(counted)}


async def found(database: Database, provider: EmbeddingProvider) -> Recall:
    query = Query(text="which town's producers were verified, 17", k=3)
    return await Retrieval(database=database, provider=provider).search(await workspace_in(database, "w"), query)


async def models(database: Database) -> list[tuple[str, bool]]:
    async with database.across() as session:
        rows = await session.rows("SELECT name, active FROM embedding_models ORDER BY model_id")
        return [(row.name, row.active) for row in rows]


async def test_the_store_moves_while_queries_are_answered(filled_url: str, provider: EmbeddingProvider) -> None:
    database = Database(filled_url, pool_size=4)
    following = FollowingProvider(Lent(provider), lambda _name, _dimension: Turned(provider))
    modes: list[str] = []
    stop = asyncio.Event()

    async def ask() -> None:
        while not stop.is_set():
            await Embedder(database=database, provider=following).follow()
            modes.append((await found(database, following)).mode)

    asking = asyncio.create_task(ask())
    seen: list[tuple[int, int]] = []
    done = await moves(database, grace_seconds=1.0).reembed(
        database.across, Turned(provider), on_progress=lambda *counts: seen.append(counts)
    )
    stop.set()
    await asking
    assert done == 300
    assert (seen[0], seen[-1]) == ((0, 300), (300, 300))
    assert await models(database) == [("turned", True)]
    assert set(modes) == {"hybrid"}
    assert following.model_id == "turned"
    assert (await found(database, provider)).mode == "lexical"
    assert (await pending_counts(database.across))[0] == 0
    await database.close()


async def test_what_is_near_is_found_anew_by_the_other_model(own: Database, provider: EmbeddingProvider) -> None:
    async def similar() -> tuple[int, float]:
        async with own.across() as session:
            counted = "SELECT count(*), coalesce(min(weight), 0) FROM links WHERE relation = 'similar'"
            return tuple(await session.one(counted))

    await Links(database=own).link_pending(own.across)
    before = await similar()
    assert before[0] > 0
    async with own.across() as session:
        await session.execute("UPDATE links SET weight = 0.01 WHERE relation = 'similar'")
    await moves(own).reembed(own.across, Turned(provider))
    assert (await similar())[0] == 0
    await Links(database=own).link_pending(own.across)
    # The vectors are the same but for the order of their numbers, and so is what is near to what.
    count, least = await similar()
    assert abs(count - before[0]) <= before[0] / 10
    assert least > 0.5


@pytest.mark.test_all("kills")
async def test_what_was_killed_half_way_goes_on(filled_url: str, provider: EmbeddingProvider) -> None:
    database = Database(filled_url, pool_size=4)
    with pytest.raises(EmbeddingUnavailable):
        await moves(database).reembed(database.across, Turned(provider, fails_after=1))
    assert await models(database) == [(provider.model_id, True), ("turned", False)]
    assert (await found(database, provider)).mode == "hybrid"
    assert await moves(database).reembed(database.across, Turned(provider)) == 300 - 256
    assert await models(database) == [("turned", True)]
    await database.close()


async def test_what_lacks_a_vector_is_found_by_count(filled_url: str) -> None:
    database = Database(filled_url, pool_size=4)
    assert not await queue_lacking(database.across)
    async with database.across() as session:
        await session.execute("DELETE FROM embeddings WHERE memory_id IN (SELECT memory_id FROM memories LIMIT 7)")
    assert await queue_lacking(database.across)
    assert (await pending_counts(database.across))[0] == 7
    await database.close()


async def test_an_ingestion_under_way_survives_the_move(
    own: Database, provider: EmbeddingProvider, counter: TokenCounter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.intake.reports.pipeline.WINDOW", 1)
    for number in range(8):
        (tmp_path / f"{number}.md").write_text(
            f"# Report {number}\n\nLesson {number} on the pump of the third block.\n"
        )
    old = Lent(provider, held=True)
    workspace = await workspace_in(own, "w")
    ingestions = Ingestions(database=own, provider=old, counter=counter, max_file_bytes=10**6)
    ingesting = asyncio.create_task(ingestions.ingest(workspace, [tmp_path]))
    await old.entered.wait()
    await moves(own).reembed(own.across, Turned(provider))
    old.let_go.set()
    result = await ingesting
    assert not result.failed
    assert result.pending > 0
    assert await models(own) == [("turned", True)]
    await Embedder(database=own, provider=Turned(provider)).embed_all_pending(own.across)
    assert not await queue_lacking(own.across)
    assert await vectors_of(own) == {"turned": 300 + result.stored}


async def test_a_worker_that_embeds_by_the_old_model_leaves_the_rest_to_the_new_one(
    own: Database, provider: EmbeddingProvider, counter: TokenCounter
) -> None:
    notes = [NewMemory(kind="note", body=f"Late lesson {number}.") for number in range(300)]
    await WriteGate(database=own, counter=counter).remember(await workspace_in(own, "w"), notes)
    old = Lent(provider, held=True)
    embedding = asyncio.create_task(Embedder(database=own, provider=old).embed_all_pending(own.across))
    await old.entered.wait()
    await moves(own).reembed(own.across, Turned(provider))
    old.let_go.set()
    assert await embedding == 0
    assert await vectors_of(own) == {"turned": 600}
    assert (await pending_counts(own.across))[0] == 0


@pytest.mark.one_server("the list of models is on all nodes, and changes only while no transaction holds a row of it")
async def test_what_a_writer_straddles_the_move_with_is_embedded_again(
    own: Database, provider: EmbeddingProvider, counter: TokenCounter
) -> None:
    """A transaction that made sure of the old model is waited for, and what it wrote is listed."""
    late = NewMemory(kind="note", body="The judge came late.")
    ids = (await WriteGate(database=own, counter=counter).remember(await workspace_in(own, "w"), [late])).ids
    vector = vectors.as_literals(await provider.embed_documents([late.body]))
    async with own.session(await workspace_in(own, "w")) as session:
        model = await stored.active_model(session)
        assert model is not None
        assert await stored.is_served(session, model)
        moving = asyncio.create_task(moves(own, grace_seconds=0.1).reembed(own.across, Turned(provider)))
        while await models(own) != [(provider.model_id, False), ("turned", True)]:  # noqa: ASYNC110 - the database is what is waited for
            await asyncio.sleep(0.05)
        await asyncio.sleep(1)
        assert not moving.done()
        await vectors.insert(session, model, {ids[0]: [vectors.PassageVector(vector[0])]} if ids[0] else {})
    await moving
    assert await models(own) == [("turned", True)]
    assert await vectors_of(own) == {"turned": 301}


async def test_one_move_at_a_time(own: Database, provider: EmbeddingProvider) -> None:
    destination = Turned(provider, held=True)
    first = asyncio.create_task(moves(own).reembed(own.across, destination))
    await destination.entered.wait()
    for other in ("turned", "another"):
        with pytest.raises(ConfigurationError, match="is being moved to turned already"):
            await moves(own).reembed(own.across, Turned(provider, name=other))
    state = await state_of(own)
    assert state.move is not None
    assert (state.move.model.name, state.move.total, state.move.in_progress) == ("turned", 300, True)
    shown = Metrics()
    shown.note_move(state.move)
    assert b'priors_reembed_memories{count="all",model="turned"} 300.0' in shown.exposition()
    shown.note_move(None)
    assert b"turned" not in shown.exposition()
    destination.let_go.set()
    assert await first == 300
    assert await models(own) == [("turned", True)]


async def test_another_destination_gives_up_the_first(own: Database, provider: EmbeddingProvider) -> None:
    with pytest.raises(EmbeddingUnavailable):
        await moves(own).reembed(own.across, Turned(provider, fails_after=1))
    await moves(own).reembed(own.across, Lent(provider))
    assert await models(own) == [(provider.model_id, True)]
    assert await vectors_of(own) == {provider.model_id: 300}


async def test_a_move_that_ended_before_the_drop_does_not_move_back(
    own: Database, filled_url: str, settings: Settings, provider: EmbeddingProvider,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    async def killed(*_: object) -> None:
        raise KeyError

    with monkeypatch.context() as patch:
        patch.setattr(stored, "drop_model", killed)
        with pytest.raises(KeyError):
            await moves(own).reembed(own.across, Turned(provider))
    state = await state_of(own)
    assert (state.move, state.retiring) == (None, (provider.model_id,))
    told = [
        finding.message
        for finding in await diagnose(replace(settings, database_url=filled_url))
        if finding.subject == "model change"
    ]
    assert told == [f"{provider.model_id} is no longer served: a running worker drops its vectors within minutes"]
    own_moves = ModelMoves(database=own, forget_similar=forget_similar_of_all)
    assert await own_moves.drop_retired(own.across) == 0  # answers that began with it may still be given
    async with own.across() as session:
        await session.execute("UPDATE embedding_models SET retiring_since = now() - interval '1 min' WHERE NOT active")
    assert await own_moves.drop_retired(own.across) == 1
    assert await models(own) == [("turned", True)]
    assert (await state_of(own)).retiring == ()


async def test_a_store_from_before_prefixes_is_no_failure(own_database_url: str, settings: Settings) -> None:
    database = Database(own_database_url, pool_size=1)
    async with database.across() as session:
        await stored.register(session, "ollama:nomic-embed-text", 768)
    await database.close()
    model = replace(settings, embedding_model="nomic-embed-text", embedding_dimension=768)
    remote = replace(model, embedding_provider="ollama", embedding_base_url="http://127.0.0.1:9")
    findings = await diagnose(replace(remote, database_url=own_database_url))
    (told,) = [finding for finding in findings if finding.subject == "vectors"]
    assert (told.status, "ollama:nomic-embed-text, which serves until `priors store reembed`" in told.message) == (
        WARN,
        True,
    )


async def test_pending_rows_that_have_their_vector_hide_none_that_lack_it(own: Database) -> None:
    newest = "SELECT workspace_id, memory_id FROM memories ORDER BY memory_id DESC LIMIT 7"
    oldest = "SELECT memory_id FROM memories ORDER BY memory_id LIMIT 7"
    async with own.across() as session:
        await session.execute(f"DELETE FROM embeddings WHERE memory_id IN ({oldest})")
        await session.execute(f"INSERT INTO pending_embeddings {newest}")
    assert await queue_lacking(own.across)


async def test_a_query_that_a_change_of_model_overtakes_is_embedded_again(
    own: Database, provider: EmbeddingProvider
) -> None:
    """Its vector is the old model's, and the provider that it asks again has changed meanwhile."""
    now = [0.0]
    former = Closing(provider)
    following = FollowingProvider(former, lambda _name, _dimension: Turned(provider), clock=lambda: now[0])
    assert speaking(following, provider.model_id) is following
    await moves(own).reembed(own.across, Turned(provider))
    await Embedder(database=own, provider=following).follow()
    assert following.model_id == "turned"
    assert speaking(following, "turned") is following.ready_provider("turned")
    assert former.closed == 0, "a query may still wait for its vector"
    now[0] = UNSETTLED_SECONDS
    await Embedder(database=own, provider=following).follow()
    assert former.closed == 1
    assert speaking(following, "turned") is following


async def test_a_statement_that_the_database_refuses_does_not_end_the_following(
    own: Database, provider: EmbeddingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs beside the requests of a service and of `priors mcp`: its error would end their process."""
    monkeypatch.setattr(indexes, "FOLLOW_SECONDS", 0.01)
    following = FollowingProvider(Lent(provider), lambda _name, _dimension: Turned(provider))
    await moves(own).reembed(own.across, Turned(provider))
    with psycopg.connect(libpq_url(own.url), autocommit=True) as admin:
        admin.execute("ALTER TABLE embedding_models RENAME TO away")
        with capture_logs() as lines:
            task = asyncio.create_task(Embedder(database=own, provider=following).follow_for_ever())
            while not lines and not task.done():  # noqa: ASYNC110 - the log is no event
                await asyncio.sleep(0.01)
        admin.execute("ALTER TABLE away RENAME TO embedding_models")
    while following.model_id != "turned" and not task.done():  # noqa: ASYNC110 - the provider tells no event
        await asyncio.sleep(0.01)
    task.cancel()
    assert following.model_id == "turned"
    assert "embedding_models" in lines[0]["reason"]


async def test_a_stored_model_that_the_settings_cannot_make_is_left_out(
    own: Database, provider: EmbeddingProvider
) -> None:
    def refuse(_name: str, _dimension: int) -> EmbeddingProvider:
        raise ConfigurationError("there is no such provider")

    following = FollowingProvider(Lent(provider), refuse)
    await moves(own).reembed(own.across, Turned(provider))
    await Embedder(database=own, provider=following).follow()
    assert following.model_id == provider.model_id
