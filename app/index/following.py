"""A provider that follows the database from one model to the next, so that a change of model needs no restart."""

import asyncio
import time
from collections.abc import Callable, Sequence

import structlog

from app.db.database import Database
from app.errors import EmbeddingUnavailable, PriorsError
from app.index import models as store
from app.index.models import StoredModel
from app.models.factory import provider_from, provider_named
from app.models.protocols import EmbeddingProvider, Matrix, Vector
from app.settings import Settings
from app.workspaces.workspace import UNMADE

FOLLOW_SECONDS = 2.0
"""Time between two looks at which models the database has; `reembed` waits for more than two before it switches."""

UNSETTLED_SECONDS = 60.0
"""Time after a change of model in which a query may still have a vector of the old one; none takes longer."""

Maker = Callable[[str, int], EmbeddingProvider]
"""Makes the provider of a stored model, by its name and dimension."""

logger = structlog.get_logger()


class FollowingProvider:
    """Embeds by the configured provider, until the database serves another model that can be loaded."""

    def __init__(self, configured: EmbeddingProvider, make: Maker, clock: Callable[[], float] = time.monotonic) -> None:
        self._current = configured
        self._make, self._clock = make, clock
        self._unsettled_until = 0.0
        self._prepared = {configured.model_id: configured}
        self._preparing = asyncio.Lock()

    @property
    def model_id(self) -> str:
        """The name of the model that embeds now."""
        return self._current.model_id

    @property
    def dimension(self) -> int:
        """The numbers of a vector of the model that embeds now."""
        return self._current.dimension

    @property
    def enabled(self) -> bool:
        """True unless embeddings are switched off."""
        return self._current.enabled

    async def start(self) -> None:
        """Prepare the model that embeds now."""
        await self._current.start()

    async def embed_query(self, text: str) -> Vector:
        """Returns the text's vector by the model that embeds now."""
        return await self._current.embed_query(text)

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Returns the texts' vectors by the model that embeds now."""
        return await self._current.embed_documents(texts)

    async def close(self) -> None:
        """Release every model."""
        for provider in self._prepared.values():
            await provider.close()

    def prepared(self, name: str) -> EmbeddingProvider | None:
        """Returns the provider of a stored model, if it is ready."""
        return self._prepared.get(name)

    @property
    def settled(self) -> bool:
        """True where every vector that is still in use is of the model that embeds now."""
        return self._clock() >= self._unsettled_until

    async def follow(self, database: Database) -> None:
        """Prepare the models that the database has, and embed by the one it serves.

        A model that cannot be had is left out, with a line in the log; answers are then lexical, and say so.
        """
        if not self.enabled:
            return
        async with database.session(UNMADE, transaction=False) as session:
            models = await store.models(session)
        async with self._preparing:
            for model in models:
                if model.state != store.RETIRING:
                    await self._prepare(model.name, model.stored.dimension)
            active = next((model.name for model in models if model.state == store.ACTIVE), None)
            if active in self._prepared and active != self.model_id:
                logger.info("embedding by another model", before=self.model_id, now=active)
                self._current = self._prepared[active]
                self._unsettled_until = self._clock() + UNSETTLED_SECONDS
            await self._release(keep={model.name for model in models} | {self.model_id})

    async def _prepare(self, name: str, dimension: int) -> None:
        if name in self._prepared:
            return
        provider = self._make(name, dimension)
        try:
            await provider.start()
        except EmbeddingUnavailable as error:
            await provider.close()
            logger.warning("a stored model cannot be had", model=name, reason=str(error))
            return
        self._prepared[name] = provider

    async def _release(self, keep: set[str]) -> None:
        for name in self._prepared.keys() - keep:
            await self._prepared.pop(name).close()


def following_provider(settings: Settings) -> EmbeddingProvider:
    """Returns the configured provider, which follows the database to another model; not started yet.

    Raises:
        ConfigurationError: the provider's own settings do not fit.
    """
    return FollowingProvider(provider_from(settings), lambda name, dimension: provider_named(settings, name, dimension))


def speaking(provider: EmbeddingProvider, name: str | None) -> EmbeddingProvider:
    """Returns the provider of the model that the database serves, if it is ready; else the one that embeds now.

    Just after a change it is the model itself and not the one that follows: a caller who embedded by the latter cannot
    know by which of the two models, and embeds again.
    """
    if name is None or not isinstance(provider, FollowingProvider):
        return provider
    if name == provider.model_id and provider.settled:
        return provider
    return provider.prepared(name) or provider


def mismatch(provider: EmbeddingProvider, stored: StoredModel | None) -> str | None:
    """Returns why the stored vectors cannot answer what the provider embeds; None where they can."""
    if not provider.enabled:
        return "embeddings are switched off (PRIORS_EMBEDDING_PROVIDER=noop)"
    if stored is None:
        return "no memory has been embedded yet; a worker does it, or `priors backfill`"
    if stored.name != provider.model_id:
        return (
            f"the stored vectors are of {stored.name} and the configured model is {provider.model_id}; vectors"
            " of different models are never compared, so configure the stored one, or move with `priors reembed`"
        )
    if stored.dimension != provider.dimension:
        return (
            f"the stored vectors of {stored.name} have {stored.dimension} numbers and the configured model gives"
            f" {provider.dimension}: set PRIORS_EMBEDDING_DIMENSION={stored.dimension}"
        )
    return None


def pinned(provider: EmbeddingProvider, name: str) -> EmbeddingProvider | None:
    """Returns the provider of this very model, whatever the store moves to meanwhile; None where it is not ready."""
    if isinstance(provider, FollowingProvider):
        return provider.prepared(name)
    return provider if provider.model_id == name else None


async def follow_for_ever(provider: EmbeddingProvider, database: Database) -> None:
    """Follow until cancelled; a database that is away for a while is asked again."""
    while isinstance(provider, FollowingProvider):
        try:
            await provider.follow(database)
        except PriorsError as error:
            logger.warning("the stored models are not known for now", reason=str(error))
        await asyncio.sleep(FOLLOW_SECONDS)
