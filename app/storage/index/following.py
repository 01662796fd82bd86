"""The provider that follows the store to another model, and the one that embeds each query of a request once."""

import asyncio
import time
from collections.abc import Callable, Sequence

import structlog

from app.errors import EmbeddingUnavailable, PriorsError
from app.foundation.models.late import TokenCodes
from app.foundation.models.protocols import (
    EmbeddingProvider,
    Matrix,
    QueryVectors,
    Vector,
    Window,
    adapted_vectors,
    embed_tokens,
    embed_words,
)
from app.foundation.models.providers import provider_from, provider_named
from app.settings import Settings
from app.storage.index.models import ACTIVE, RETIRING, StoredModel

UNSETTLED_SECONDS = 60.0
"""Time after a change of model in which a query may still have a vector of the old one; no query takes longer."""

Maker = Callable[[str, int], EmbeddingProvider]
"""Makes the provider of a stored model, by its name and dimension."""

logger = structlog.get_logger()


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

    async def embed_adapted(self, texts: Sequence[str], adapter: str, *, queries: bool) -> Matrix | None:
        """Returns what the model that embeds now gives for the texts with an adapter, if it has that."""
        return await adapted_vectors(self.provider, texts, adapter, queries=queries)

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

    async def follow(self, known: Sequence[StoredModel]) -> None:
        """Prepares the stored models, and embeds by the one that the database serves.

        A model that cannot be loaded is left out, with a line in the log; answers are then lexical, and say so.
        """
        async with self._preparing:
            for model in known:
                if model.state != RETIRING:
                    await self._prepare(model.name, model.dimension)
            active = next((model.name for model in known if model.state == ACTIVE), None)
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


def speaking(provider: EmbeddingProvider, name: str | None) -> EmbeddingProvider:
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
