"""The verb that moves a store to another model while the old one serves, and the provider that follows the move."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar
from uuid import UUID

import structlog

from app.errors import ConfigurationError, EmbeddingUnavailable, PriorsError
from app.foundation.db.database import Database, LockedByOthers, again_while_locked
from app.foundation.db.distribution import IN_ORDER
from app.foundation.db.session import Across, Session
from app.foundation.models.late import TokenCodes
from app.foundation.models.protocols import (
    EmbeddingProvider,
    Matrix,
    QueryEmbedder,
    QueryVectors,
    Vector,
    Window,
    adapted_vectors,
    embed_tokens,
    embed_words,
)
from app.foundation.models.providers import provider_from, provider_named
from app.settings import Settings
from app.storage.index import embedding, models, vectors
from app.storage.index.indexing import BATCH, queue_all_for_links, queue_lacking_of_all
from app.storage.index.models import StoredModel
from app.storage.index.vectors import by_workspace
from app.storage.tenants.workspace import UNMADE

FOLLOW_SECONDS = 2.0
"""Time between two reads of the stored models; `reembed` waits for more than two of them before it switches."""
UNSETTLED_SECONDS = 60.0
"""Time after a change of model in which a query may still have a vector of the old one; no query takes longer."""
_GRACE_SECONDS = 2.5 * FOLLOW_SECONDS
"""Time before the switch in which every process prepares the new model, and time after it in which the answers that
began with the old model end."""
_PATIENCE = 120
"""Attempts at work that needs the lock of a table; each waits half a second."""
_PAUSE_SECONDS = 0.2
"""Time between two attempts."""
_ATTEMPTS_TO_BEGIN = 10
"""Attempts to begin a move: the server takes a moment to notice that an earlier move was killed."""

T = TypeVar("T")
OnProgress = Callable[[int, int], None]
"""Called with the number of memories that have the new vector, and of all memories."""
Maker = Callable[[str, int], EmbeddingProvider]
"""Makes the provider of a stored model, by its name and dimension."""
ForgetSimilar = Callable[[Session], Awaitable[None]]
"""Removes the links that were found by vectors, in all workspaces and in the transaction that drops the vectors."""

logger = structlog.get_logger()


async def reembed(
    database: Database,
    provider: EmbeddingProvider,
    *,
    across: Across,
    forget_similar: ForgetSimilar,
    grace_seconds: float = _GRACE_SECONDS,
    on_progress: OnProgress = lambda _done, _total: None,
) -> int:
    """Embeds every memory by `provider`'s model in a new partition, switches to it, and drops the old vectors.

    Queries are answered by the old model until the switch. After it was killed, another call continues. Returns how
    many memories were embedded.

    Raises:
        ConfigurationError: the provider is switched off, or the store is being moved already.
        EmbeddingUnavailable: the provider does not answer; the vectors so far stay.
    """
    if not provider.enabled:
        raise ConfigurationError("the model is `noop`, which has no vectors; name another")
    await provider.start()
    async with _moving(across) as held:
        candidate = await _patiently(
            across, partial(models.register_candidate, name=provider.model_id, dimension=provider.dimension)
        )
        done = await _fill(database, held, provider, candidate, on_progress)
        if await models.active_model(held) != candidate:
            async with across(transaction=False) as session:
                await vectors.build_indexes(session, candidate)
            await asyncio.sleep(grace_seconds)
            done += await _fill(database, held, provider, candidate, on_progress)
            await _patiently(across, partial(_switch, candidate=candidate))
            logger.info("switched", model=candidate.name)
        if await models.retired_models(held, for_seconds=0):
            await asyncio.sleep(grace_seconds)
            await _drop_all(across, held, forget_similar, for_seconds=0, attempts=_PATIENCE)
    return done


async def drop_retired(across: Across, *, forget_similar: ForgetSimilar) -> int:
    """Drops the vectors of models that are no longer served, after a killed move. Returns the number of models.

    While a move is in progress, that move drops them.
    """
    async with across(transaction=False) as held, models.lock(held, models.MOVE) as mine:
        return await _drop_all(across, held, forget_similar, for_seconds=_GRACE_SECONDS, attempts=1) if mine else 0


@asynccontextmanager
async def _moving(across: Across) -> AsyncIterator[Session]:
    """Opens a session that holds the lock of moves; the lock ends with the session."""
    async with across(transaction=False) as held:
        for _ in range(_ATTEMPTS_TO_BEGIN):
            async with models.lock(held, models.MOVE) as mine:
                if mine:
                    yield held
                    return
            await asyncio.sleep(_PAUSE_SECONDS)
        names = {model.state: model.name for model in await models.models(held)}
        other = names.get(models.CANDIDATE) or names.get(models.ACTIVE) or "another model"
        raise ConfigurationError(f"the store is being moved to {other} already: wait for that to end, or stop it")


async def _patiently(across: Across, work: Callable[[Session], Awaitable[T]], attempts: int = _PATIENCE) -> T:
    """Runs `work` in a transaction that waits only briefly for locks; runs it again while others hold them."""

    async def attempt() -> T:
        async with across() as session:
            await models.wait_briefly(session)
            await session.execute(IN_ORDER)
            return await work(session)

    return await again_while_locked(attempt, attempts=attempts, pause=_PAUSE_SECONDS)


async def _switch(session: Session, *, candidate: StoredModel) -> None:
    await models.switch(session, candidate)
    await queue_lacking_of_all(session, candidate.partition)


async def _drop_all(
    across: Across, held: Session, forget_similar: ForgetSimilar, *, for_seconds: float, attempts: int
) -> int:
    """Drops retiring models; leaves a table that others lock for the next call."""
    dropped = 0
    for model in await models.retired_models(held, for_seconds=for_seconds):
        try:
            await _patiently(across, partial(_drop, model=model, forget_similar=forget_similar), attempts)
        except LockedByOthers:
            logger.warning("vectors of a former model are still in use, and dropped later", model=model.name)
            continue
        dropped += 1
        logger.info("dropped", model=model.name)
    return dropped


async def _drop(session: Session, *, model: StoredModel, forget_similar: ForgetSimilar) -> None:
    # The links go first, and come back if the table cannot be locked: the retiring model found them.
    await forget_similar(session)
    await queue_all_for_links(session)
    await models.drop_model(session, model)
    if (served := await models.active_model(session)) is not None:
        # A writer that began before the switch and ended after it may have written vectors of the old model.
        await queue_lacking_of_all(session, served.partition)


async def _fill(
    database: Database, held: Session, provider: EmbeddingProvider, candidate: StoredModel, on_progress: OnProgress
) -> int:
    """Embeds the memories that have no vector of the candidate, newest first. Returns their number.

    The connection that holds the move's lock also reads the remaining work, so that its loss ends the move.
    """
    done = 0
    before: tuple[int, UUID] | None = None
    while True:
        batch = await vectors.lacking_of_all(held, candidate, limit=BATCH, before=before)
        on_progress(*await models.progress_of_all(held, candidate))
        if not batch:
            return done
        texts = await embedding.cut(provider, [(item.title, item.body) for item in batch])
        for part in embedding.groups(texts, BATCH):
            found = await embedding.embed_passages(provider, texts[part])
            for workspace_id, own in by_workspace(batch[part], found).items():
                async with database.session(workspace_id) as session:
                    await vectors.insert(session, candidate, own)
        done += len(batch)
        before = (batch[-1].workspace_id, batch[-1].memory_id)


class ProviderRelay:
    """Embeds by another provider."""

    def __init__(self, provider: EmbeddingProvider) -> None:
        self.provider = provider

    @property
    def model_id(self) -> str:
        """The name of the model that embeds now."""
        return self.provider.model_id

    @property
    def dimension(self) -> int:
        """The dimension of the model that embeds now."""
        return self.provider.dimension

    @property
    def enabled(self) -> bool:
        """True unless embeddings are switched off."""
        return self.provider.enabled

    async def start(self) -> None:
        """Prepares the model that embeds now."""
        await self.provider.start()

    async def window(self) -> Window | None:
        """Returns the window of the model that embeds now."""
        return await self.provider.window()

    async def embed_query(self, text: str) -> Vector:
        """Returns the vector of a query."""
        vector, _ = await self.embed_words(text)
        return vector

    async def embed_words(self, query: str) -> QueryVectors:
        """Returns the vectors of a query and of its words, if the model that embeds now gives these."""
        return await embed_words(self.provider, query)

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Returns the texts' vectors by the model that embeds now."""
        return await self.provider.embed_documents(texts)

    async def embed_tokens(self, texts: Sequence[str]) -> tuple[Matrix, Sequence[TokenCodes | None]]:
        """Returns the texts' vectors and the codes of their tokens by the model that embeds now."""
        return await embed_tokens(self.provider, texts)

    async def embed_adapted(self, texts: Sequence[str], *, queries: bool) -> Matrix | None:
        """Returns the texts' vectors by the adapted form of the model that embeds now, if it has one."""
        return await adapted_vectors(self.provider, texts, queries=queries)

    async def close(self) -> None:
        """Leaves the provider open: it is another's."""


class FollowingProvider(ProviderRelay):
    """Embeds by the configured provider, until the database serves another model that can be loaded."""

    def __init__(self, configured: EmbeddingProvider, make: Maker, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(configured)
        self._make, self._clock = make, clock
        self._unsettled_until = 0.0
        self._prepared = {configured.model_id: configured}
        self._preparing = asyncio.Lock()

    async def close(self) -> None:
        """Releases every model."""
        for provider in self._prepared.values():
            await provider.close()

    def ready_provider(self, name: str) -> EmbeddingProvider | None:
        """Returns the provider of a stored model, if it is ready."""
        return self._prepared.get(name)

    @property
    def settled(self) -> bool:
        """True if every vector that is still in use is of the model that embeds now."""
        return self._clock() >= self._unsettled_until

    async def follow(self, database: Database) -> None:
        """Prepares the models that the database has, and embeds by the one that it serves.

        A model that cannot be loaded is left out, with a line in the log; answers are then lexical, and say so.
        """
        if not self.enabled:
            return
        async with database.session(UNMADE, transaction=False) as session:
            known = await models.models(session)
        async with self._preparing:
            for model in known:
                if model.state != models.RETIRING:
                    await self._prepare(model.name, model.dimension)
            active = next((model.name for model in known if model.state == models.ACTIVE), None)
            if active in self._prepared and active != self.model_id:
                logger.info("embedding by another model", before=self.model_id, now=active)
                self.provider = self._prepared[active]
                self._unsettled_until = self._clock() + UNSETTLED_SECONDS
            if self.settled:
                # Until then, calls that began before the switch may still ask the former model.
                for name in self._prepared.keys() - {model.name for model in known} - {self.model_id}:
                    await self._prepared.pop(name).close()

    async def _prepare(self, name: str, dimension: int) -> None:
        if name in self._prepared:
            return
        try:
            provider = self._make(name, dimension)
        except PriorsError as error:
            logger.warning("a stored model does not fit the settings", model=name, reason=str(error))
            return
        try:
            await provider.start()
        except EmbeddingUnavailable as error:
            await provider.close()
            logger.warning("a stored model cannot be had", model=name, reason=str(error))
            return
        self._prepared[name] = provider


def following_provider(settings: Settings) -> EmbeddingProvider:
    """Returns the configured provider, which follows the database to another model; not started yet.

    Raises:
        ConfigurationError: the provider's own settings do not fit.
    """
    return FollowingProvider(provider_from(settings), lambda name, dimension: provider_named(settings, name, dimension))


class OncePerText(ProviderRelay):
    """Embeds each query of a request once for all who ask, by another provider; failures are final.

    A query waits at most `seconds`. `embed_first` waits for as long as its texts take: it is called before any query.
    """

    def __init__(self, provider: EmbeddingProvider, *, seconds: float | None = None) -> None:
        super().__init__(provider)
        self._seconds = seconds
        self._found: dict[str, QueryVectors | EmbeddingUnavailable] = {}
        self._embedding = asyncio.Lock()

    async def embed_first(self, texts: Sequence[str]) -> None:
        """Embeds texts as documents, so that a later call for one of them does not wait."""
        rows: Sequence[QueryVectors | EmbeddingUnavailable]
        try:
            rows = [(row, None) for row in await self.embed_documents(texts)]
        except EmbeddingUnavailable as error:
            rows = [error] * len(texts)
        self._found.update(zip(texts, rows, strict=True))

    async def embed_words(self, query: str) -> QueryVectors:
        """Returns the vectors of a query and of its words; a second call for it waits for the first."""
        async with self._embedding:
            if query not in self._found:
                try:
                    async with asyncio.timeout(self._seconds):
                        self._found[query] = await super().embed_words(query)
                except EmbeddingUnavailable as error:
                    self._found[query] = error
                except TimeoutError:
                    self._found[query] = EmbeddingUnavailable(f"the embedding took longer than {self._seconds} s")
        found = self._found[query]
        if isinstance(found, EmbeddingUnavailable):
            raise EmbeddingUnavailable(str(found)) from found
        return found


def speaking(provider: QueryEmbedder, name: str | None) -> QueryEmbedder:
    """Returns the provider of the served model if it is ready, else the provider that embeds now.

    Just after a change of model it does not return the following provider, but that of the served model. A caller who
    has embedded by the following provider cannot know by which model, and must embed again.
    """
    following = provider.provider if isinstance(provider, OncePerText) else provider
    if name is None or not isinstance(following, FollowingProvider):
        return provider
    if name == following.model_id and following.settled:
        return provider
    return following.ready_provider(name) or provider


def provider_of_model(provider: EmbeddingProvider, name: str) -> EmbeddingProvider | None:
    """Returns the provider of this model, even if the store moves to another meanwhile; None if it is not ready."""
    if isinstance(provider, FollowingProvider):
        return provider.ready_provider(name)
    return provider if provider.model_id == name else None


async def follow(provider: EmbeddingProvider, database: Database) -> None:
    """Has a provider embed by the model that the database serves, if it is one that follows."""
    if isinstance(provider, FollowingProvider):
        await provider.follow(database)


async def follow_for_ever(provider: EmbeddingProvider, database: Database) -> None:
    """Follows until cancelled; after any failure it asks again later.

    It runs beside the requests of a process: an error that it raised would end the process.
    """
    while isinstance(provider, FollowingProvider):
        try:
            await provider.follow(database)
        except Exception as error:  # noqa: BLE001 - whatever it was, the requests go on
            logger.warning("the stored models are not known for now", reason=str(error) or repr(error))
        await asyncio.sleep(FOLLOW_SECONDS)
