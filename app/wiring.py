"""The composition root: Settings in, Services out. The only place that names concrete classes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from app.db.engine import Database
from app.embeddings.provider import EmbeddingProvider, TokenCounter
from app.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What the verbs need; each takes what it uses."""

    settings: Settings
    database: Database
    provider: EmbeddingProvider
    """Not started yet: `await provider.start()` where the model is needed at once."""
    counter: TokenCounter


@asynccontextmanager
async def database_url(settings: Settings) -> AsyncIterator[str]:
    """The database's URL; the embedded Postgres runs for as long as this is open, where none is configured.

    Raises:
        ConfigurationError: the data directory cannot be used.
        DatabaseUnavailable: the embedded Postgres does not start.
    """
    if settings.database_url:
        yield settings.database_url
        return
    from app.db.embedded import EmbeddedPostgres  # noqa: PLC0415 - only where nothing names a database

    embedded = EmbeddedPostgres(settings.data_dir)
    url = await asyncio.to_thread(embedded.start)
    try:
        yield url
    finally:
        await asyncio.to_thread(embedded.stop)


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """Everything that the verbs need, closed again at the end. The schema is not touched.

    Raises:
        ConfigurationError: a setting or the data directory cannot be used.
        DatabaseUnavailable: the embedded Postgres does not start.
    """
    from app.embeddings.factory import counter, provider_from  # noqa: PLC0415 - `priors --help` needs none of it

    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(database_url(settings))
        database = Database(url, pool_size=settings.pool_size)
        stack.push_async_callback(database.close)
        provider = provider_from(settings)
        stack.push_async_callback(provider.close)
        yield Services(settings=settings, database=database, provider=provider, counter=counter())
