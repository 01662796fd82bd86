"""The composition root: makes the Services of the Settings. The only place that names concrete classes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from app.context.contexts import Parts
from app.db.database import Database
from app.insight.map.worker import LayoutWorker
from app.intake.reports.outcome import Intake
from app.memories.write import RunTraces
from app.models.chat import Chat, chat_from
from app.models.protocols import EmbeddingProvider, Reranker, TokenCounter
from app.models.tokens import Counting
from app.runs import traces
from app.runs.observations.request import Compressor
from app.settings import Settings
from app.workspaces.resolve import check_defaults
from app.workspaces.workspace import Workspace

TOKENIZERS = "tokenizers"
"""Folder of the data directory for the tokenizers of models that read contexts."""
LAYOUT_CACHE = "graph"
"""Folder of the data directory for the compiled code of the process that computes maps."""


class _Closable(Protocol):
    async def close(self) -> None: ...


C = TypeVar("C", bound=_Closable | None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The parts that the verbs need; each takes those that it uses."""

    settings: Settings
    database: Database
    provider: EmbeddingProvider
    """The embedding provider, not started yet; `await provider.start()` loads its model."""
    counter: TokenCounter
    layouts: LayoutWorker
    """Computes maps, in a separate process that starts with the first one."""
    reranker: Reranker | None = None
    """Scores the best hits again; None if no re-ranker is configured."""
    chat: Chat | None = None
    """The language model that compresses runs; None if no model is configured."""
    revive: Callable[[], Awaitable[object]] | None = None
    """Starts the embedded Postgres again if it has died; None if another database is used."""
    run_traces: RunTraces = traces

    @property
    def counting(self) -> Counting:
        """The token counters of named models."""
        folder = self.settings.tokenizer_folder or self.settings.data_dir / TOKENIZERS
        return Counting(Path(folder).expanduser(), self.counter, embedding_model=self.settings.embedding_model)

    @property
    def context_parts(self) -> Parts:
        """The parts that making a context needs."""
        return Parts(
            database=self.database,
            provider=self.provider,
            counting=self.counting,
            reranker=self.reranker,
            mask=self.settings.mask_secrets,
        )

    @property
    def compressor(self) -> Compressor:
        """The parts that compressing a run needs."""
        return Compressor(
            provider=self.provider,
            counter=self.counter,
            chat=self.chat,
            evaluator=self.settings.evaluator,
            mask=self.settings.mask_secrets,
        )

    def intake(self, workspace: Workspace, language: str | None = None) -> Intake:
        """Returns the parts and options of an ingestion into this workspace, of files in this language."""
        return Intake(
            database=self.database,
            provider=self.provider,
            counter=self.counter,
            workspace=workspace,
            language=language,
            max_file_bytes=self.settings.max_file_bytes,
            mask=self.settings.mask_secrets,
        )


class Address(NamedTuple):
    """The ways to reach the database."""

    url: str
    admin_url: str
    """The URL of a role that may migrate."""
    revive: Callable[[], Awaitable[object]] | None = None
    """Starts the embedded Postgres again if it has died; None if another database is used."""


@asynccontextmanager
async def opened_database(settings: Settings) -> AsyncIterator[Address]:
    """Yields the address of the database. The embedded Postgres runs for as long as this is open.

    Raises:
        ConfigurationError: the data directory cannot be used.
        DatabaseUnavailable: the embedded Postgres does not start.
    """
    if settings.database_url:
        yield Address(settings.database_url, settings.database_url)
        return
    from app.postgres.embedded import EmbeddedPostgres  # noqa: PLC0415 - only where nothing names a database

    embedded = EmbeddedPostgres(settings.data_dir)
    admin_url = await asyncio.to_thread(embedded.start)
    try:
        yield Address(embedded.service_url, admin_url, lambda: asyncio.to_thread(embedded.start))
    finally:
        await asyncio.to_thread(embedded.stop)


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """Opens everything that the verbs need and closes it at the end. The schema is not touched.

    Raises:
        ConfigurationError: a setting or the data directory cannot be used.
        DatabaseUnavailable: the embedded Postgres does not start.
    """
    from app.index.reembed import following_provider  # noqa: PLC0415 - `priors --help` needs none of it
    from app.models.local import reranker_from  # noqa: PLC0415 - the same
    from app.models.tokenizer import BundledTokenCounter  # noqa: PLC0415 - the same

    check_defaults(settings)
    async with AsyncExitStack() as stack:
        address = await stack.enter_async_context(opened_database(settings))
        database = Database(
            address.url,
            admin_url=address.admin_url,
            pool_size=settings.pool_size,
            replica_urls=settings.replica_url.split(),
            ask_nodes=settings.ask_nodes,
            quota=settings.quota,
        )
        yield Services(
            settings=settings,
            database=_closed(stack, database),
            provider=_closed(stack, following_provider(settings)),
            counter=BundledTokenCounter(),
            layouts=_closed(stack, LayoutWorker(settings.data_dir / LAYOUT_CACHE)),
            reranker=_closed(stack, reranker_from(settings)),
            chat=_closed(stack, chat_from(settings)),
            revive=address.revive,
        )


def _closed(stack: AsyncExitStack, part: C) -> C:
    """Returns the part, and has the stack close it at the end."""
    if part is not None:
        stack.push_async_callback(part.close)
    return part
