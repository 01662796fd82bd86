"""`priors store reembed` killed with SIGKILL, half-way and after the switch, by a model behind a slow endpoint."""

import asyncio
import hashlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from app.foundation.db.database import Database
from app.foundation.models.protocols import TokenCounter
from app.operations.doctor import diagnose
from app.recall.retrieval.recall import Query
from app.recall.retrieval.service import Retrieval
from app.settings import Settings
from app.storage.index import models as stored
from app.storage.index.following import FollowingProvider, following_provider
from app.storage.index.models import MoveState, move_state
from app.storage.index.service import Embedder
from app.storage.memories.memory import NewMemory
from app.storage.memories.remember import WriteGate
from tests.conftest import workspace_in
from tests.fakes.embeddings import DIMENSION, Endpoint, answered
from tests.storage.index.test_reembed import models

pytestmark = pytest.mark.test_all("kills")

PRIORS = Path(sys.executable).with_name("priors")
NOTES = [f"Lesson {number}: the scout verifies the producers of town {number}." for number in range(600)]
SLOW_SECONDS = 0.4
"""Time that a request of the new model takes, which has 128 texts at most."""


def vector_of(model: str, text: str) -> list[float]:
    """Another one for each model: two vectors of one text agree only by chance unless one model has made them."""
    digest = hashlib.sha256(f"{model}:{text.strip()}".encode()).digest()
    return [byte - 127.5 for byte in digest[:DIMENSION]]


class TwoModels(Endpoint):
    """The endpoint of both models; it notes what was embedded by the new one."""

    def __init__(self) -> None:
        super().__init__()
        self.moved: list[str] = []

    def reply_to(self, model: str, texts: list[str]) -> tuple[int, bytes]:
        if model == "new" and texts != ["ready?"] and len(texts) > 1:
            time.sleep(SLOW_SECONDS)
            self.moved += texts
        return answered([vector_of(model, text) for text in texts])


class Asker:
    """Asks all the while for a memory by its own words: the vector of one model finds it at a similarity of 1."""

    def __init__(self, database: Database, provider: FollowingProvider) -> None:
        self._database, self._provider = database, provider
        self.modes: list[str] = []
        self.least = 1.0

    async def ask(self) -> None:
        await Embedder(database=self._database, provider=self._provider).follow()
        note = NOTES[len(self.modes) % len(NOTES)]
        query = Query(text=note, k=1, preset="classic")
        workspace = await workspace_in(self._database, "w")
        found = await Retrieval(database=self._database, provider=self._provider).search(workspace, query)
        self.modes.append(found.mode)
        self.least = min(self.least, found.hits[0].explain["similarity"] or 0.0)

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        async def for_ever() -> None:
            while True:
                await self.ask()
                await asyncio.sleep(0.02)

        task = asyncio.create_task(for_ever())
        try:
            yield
        finally:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task


async def started(settings: Settings, model: str = "new") -> asyncio.subprocess.Process:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PRIORS_")}
    given = {
        "PRIORS_DATABASE_URL": settings.database_url,
        "PRIORS_DATA_DIR": str(settings.data_dir),
        "PRIORS_EMBEDDING_PROVIDER": "openai",
        "PRIORS_EMBEDDING_BASE_URL": settings.embedding_base_url,
        "PRIORS_EMBEDDING_DIMENSION": str(DIMENSION),
    }
    return await asyncio.create_subprocess_exec(
        PRIORS, "store", "reembed", "--model", model, env={**environment, **given}, stderr=asyncio.subprocess.PIPE
    )


async def state_of(database: Database) -> MoveState:
    async with database.across() as session:
        return await move_state(session)


async def killed_when(database: Database, settings: Settings, reached: Callable[[MoveState], bool]) -> None:
    process = await started(settings)
    while not reached(await state_of(database)):
        assert process.returncode is None
        await asyncio.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    assert await process.wait() == -signal.SIGKILL


async def told(settings: Settings) -> list[str]:
    return [finding.message for finding in await diagnose(settings) if finding.subject == "model change"]


async def test_a_killed_move_goes_on_and_queries_never_mix_models(
    own_database_url: str, settings: Settings, counter: TokenCounter
) -> None:
    endpoint = TwoModels()
    own = replace(
        settings, database_url=own_database_url, embedding_provider="openai", embedding_model="old",
        embedding_dimension=DIMENSION, embedding_base_url=endpoint.url,
    )  # fmt: skip
    database, provider = Database(own_database_url, pool_size=8), following_provider(own)
    assert isinstance(provider, FollowingProvider)
    notes = [NewMemory(kind="note", body=body) for body in NOTES]
    await WriteGate(database=database, counter=counter).remember(await workspace_in(database, "w"), notes)
    assert await Embedder(database=database, provider=provider).embed_all_pending(database.across) == len(NOTES)
    asker = Asker(database, provider)
    async with asker.asking():
        await killed_when(database, own, lambda state: state.move is not None and state.move.done > 0)
        assert await models(database) == [("openai:old", True), ("openai:new", False)]
        (half,) = await told(own)
        assert half.startswith("to openai:new: 256 of 600 memories embedded; it was broken off, and `PRIORS_EMB")

        await killed_when(database, own, lambda state: bool(state.retiring))
        assert await models(database) == [("openai:old", False), ("openai:new", True)]
        assert await told(own) == ["openai:old is no longer served: a running worker drops its vectors within minutes"]

        async with database.across(transaction=False) as session, stored.lock(session, stored.MOVE) as mine:
            assert mine
            other = await started(own, "other")
            _, refusal = await other.communicate()
        assert (other.returncode, refusal.decode().splitlines()) == (
            2,
            ["priors: the store is being moved to openai:new already: wait for that to end, or stop it"],
        )

        last = await started(own)
        assert await last.wait() == 0
    assert await models(database) == [("openai:new", True)]
    assert await told(own) == []
    assert set(endpoint.moved) == set(NOTES)
    assert len(endpoint.moved) <= len(NOTES) + 256  # the batch that was under way is embedded again
    assert (provider.model_id, set(asker.modes)) == ("openai:new", {"vector"})
    assert asker.least > 0.99
    await provider.close()
    await database.close()
    endpoint.close()
