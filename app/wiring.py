"""The composition root: makes the Services of the Settings. The only place that names concrete classes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Protocol, TypeAlias, TypeVar

from app.foundation.db.database import Database
from app.foundation.models.protocols import Chat, EmbeddingProvider, Reranker
from app.foundation.models.providers import chat_from
from app.foundation.models.reranker import reranker_from
from app.foundation.models.tokens import BundledTokenCounter, Counting, NamedCounter
from app.foundation.postgres.embedded import EmbeddedPostgres
from app.insight.effect.service import Effects
from app.insight.exports import Exports
from app.insight.map.service import Maps
from app.insight.novelty import Novelties
from app.insight.same.service import SameTexts
from app.intake.cases.service import Cases
from app.intake.imports.service import Imports
from app.intake.reports.ingest import Ingestions
from app.intake.runs.feedback.service import Ratings
from app.intake.runs.observations import store as traces
from app.intake.runs.observations.service import Observations
from app.intake.runs.service import Runs
from app.intake.sessions.browse import Sessions
from app.intake.sessions.take_in import SessionIntake
from app.recall.context.history import Histories
from app.recall.context.service import Contexts
from app.recall.cues.activate import Activations
from app.recall.cues.conflicts import Conflicts
from app.recall.cues.extraction.extracting import Extraction
from app.recall.cues.index import CueIndexes
from app.recall.cues.outcomes import infer_outcomes
from app.recall.cues.review.mining import Mining
from app.recall.cues.review.review import Reviews
from app.recall.cues.service import Cues
from app.recall.cues.why.why import Reasons
from app.recall.preflight import Preflights
from app.recall.retrieval.service import Retrieval
from app.recall.tuning import Tunings
from app.settings import Settings
from app.storage.index.following import following_provider
from app.storage.index.reembed import ModelMoves
from app.storage.index.service import Embedder, Statistics
from app.storage.links.service import Links
from app.storage.links.store import forget_similar_of_all
from app.storage.memories.remember import WriteGate
from app.storage.memories.service import Memories
from app.storage.memories.write import RunTraces
from app.storage.recalls.service import Recalls
from app.storage.tenants.service import Workspaces, check_defaults

_TOKENIZERS = "tokenizers"
"""Folder of the data directory for the tokenizers of models that read contexts."""
MAP_CACHE = "graph"
"""Folder of the data directory for the compiled code of the process that computes maps."""


class _Closable(Protocol):
    async def close(self) -> None: ...


C = TypeVar("C", bound=_Closable | None)
Revive: TypeAlias = Callable[[], Awaitable[object]]
"""Starts the embedded Postgres again if it has died."""


@dataclass(frozen=True, kw_only=True)
class Services:
    """The parts of the service, and the service of each room, which is made once, of the parts that it uses."""

    settings: Settings
    database: Database
    provider: EmbeddingProvider
    """The embedding provider, not started yet; `await provider.start()` loads its model."""
    counter: NamedCounter
    reranker: Reranker | None = None
    """Scores the best hits again; None if no re-ranker is configured."""
    chat: Chat | None = None
    """The language model that compresses runs; None if no model is configured."""
    revive: Revive | None = None
    """Starts the embedded Postgres again if it has died; None if another database is used."""
    run_traces: RunTraces = traces

    @cached_property
    def workspaces(self) -> Workspaces:
        """The workspaces."""
        return Workspaces(database=self.database, language=self.settings.language)

    @cached_property
    def recalls(self) -> Recalls:
        """The log of recalls."""
        return Recalls(database=self.database)

    @cached_property
    def retrieval(self) -> Retrieval:
        """The search for memories."""
        return Retrieval(
            database=self.database,
            provider=self.provider,
            reranker=self.reranker,
            mask_secrets=self.settings.mask_secrets,
            explore=self.settings.explore,
        )

    @cached_property
    def histories(self) -> Histories:
        """Gives agents their history before they act."""
        return Histories(retrieval=self.retrieval, activations=self.activations, cases=self.cases, counter=self.counter)

    @cached_property
    def activations(self) -> Activations:
        """Tells agents what was learnt about their plans."""
        mask_secrets = self.settings.mask_secrets
        return Activations(
            database=self.database, provider=self.provider, counter=self.counter, mask_secrets=mask_secrets
        )

    @cached_property
    def cues(self) -> Cues:
        """Stored cues."""
        return Cues(
            database=self.database,
            provider=self.provider,
            counter=self.counter,
            conflicts=Conflicts(
                database=self.database, indexes=CueIndexes(database=self.database, provider=self.provider)
            ),
            mask=self.settings.mask_secrets,
        )

    @cached_property
    def reviews(self) -> Reviews:
        """Reviews cues."""
        return Reviews(database=self.database, cues=self.cues)

    @cached_property
    def extraction(self) -> Extraction:
        """Makes cues of sessions and decision records."""
        return Extraction(database=self.database, cues=self.cues, reviews=self.reviews, chat=self.chat)

    @cached_property
    def mining(self) -> Mining:
        """Compares sessions."""
        return Mining(database=self.database, cues=self.cues, reviews=self.reviews)

    @cached_property
    def reasons(self) -> Reasons:
        """Says why something is as it is."""
        return Reasons(database=self.database, provider=self.provider, counter=self.counter)

    @property
    def counting(self) -> Counting:
        """The token counters of named models."""
        return Counting(
            self.settings.data_dir / _TOKENIZERS, self.counter, embedding_model=self.settings.embedding_model
        )

    @cached_property
    def contexts(self) -> Contexts:
        """Contexts."""
        return Contexts(
            retrieval=self.retrieval, activations=self.activations, sessions=self.sessions, counting=self.counting
        )

    @cached_property
    def runs(self) -> Runs:
        """Runs and their judgements."""
        return Runs(database=self.database, mask_secrets=self.settings.mask_secrets, on_end=infer_outcomes)

    @cached_property
    def observations(self) -> Observations:
        """Compresses finished runs."""
        return Observations(
            database=self.database,
            runs=self.runs,
            provider=self.provider,
            counter=self.counter,
            evaluator=self.settings.evaluator,
            chat=self.chat,
            mask_secrets=self.settings.mask_secrets,
        )

    @cached_property
    def cases(self) -> Cases:
        """Judged test cases and their issues."""
        return Cases(
            database=self.database,
            provider=self.provider,
            counter=self.counter,
            mask_secrets=self.settings.mask_secrets,
        )

    @cached_property
    def preflights(self) -> Preflights:
        """Checks plans before they are carried out."""
        return Preflights(activations=self.activations, cases=self.cases, retrieval=self.retrieval)

    @cached_property
    def effects(self) -> Effects:
        """Reports and estimates what memories did to later runs."""
        return Effects(database=self.database, reviews=self.reviews, explore=self.settings.explore)

    @cached_property
    def tunings(self) -> Tunings:
        """The settings of workspaces."""
        return Tunings(database=self.database, mask_secrets=self.settings.mask_secrets)

    @cached_property
    def maps(self) -> Maps:
        """Draws the map of a workspace."""
        return Maps(database=self.database, provider=self.provider, cache=self.settings.data_dir / MAP_CACHE)

    @cached_property
    def novelties(self) -> Novelties:
        """The novelty of texts."""
        return Novelties(database=self.database, provider=self.provider)

    @cached_property
    def exports(self) -> Exports:
        """The export of what people judged."""
        return Exports(database=self.database, evaluator=self.settings.evaluator)

    @cached_property
    def statistics(self) -> Statistics:
        """Counts words for the lexical arm."""
        return Statistics(database=self.database)

    @cached_property
    def embedder(self) -> Embedder:
        """Gives memories their vectors."""
        return Embedder(database=self.database, provider=self.provider)

    @cached_property
    def model_moves(self) -> ModelMoves:
        """Moves the store to another model."""
        return ModelMoves(database=self.database, forget_similar=forget_similar_of_all)

    @cached_property
    def write_gate(self) -> WriteGate:
        """Stores memories."""
        return WriteGate(
            database=self.database,
            counter=self.counter,
            mask=self.settings.mask_secrets,
            provider=self.provider,
            runs=self.run_traces,
        )

    @cached_property
    def memories(self) -> Memories:
        """Stored memories, and their sources."""
        return Memories(database=self.database)

    @cached_property
    def sessions(self) -> Sessions:
        """Stored sessions."""
        return Sessions(database=self.database, masked=self.settings.mask_secrets)

    @cached_property
    def session_intake(self) -> SessionIntake:
        """Stores sessions."""
        return SessionIntake(database=self.database, counter=self.counter, mask=self.settings.mask_secrets)

    @cached_property
    def links(self) -> Links:
        """Links between memories."""
        return Links(database=self.database)

    @cached_property
    def same_texts(self) -> SameTexts:
        """The memories that say the same as one."""
        return SameTexts(database=self.database)

    @cached_property
    def imports(self) -> Imports:
        """The import of what earlier harnesses stored."""
        mask_secrets = self.settings.mask_secrets
        write_gate = replace(self.write_gate, provider=None)
        return Imports(database=self.database, write_gate=write_gate, runs=self.runs, mask_secrets=mask_secrets)

    @cached_property
    def ratings(self) -> Ratings:
        """The feedback log."""
        return Ratings(database=self.database, mask_secrets=self.settings.mask_secrets)

    @cached_property
    def ingestions(self) -> Ingestions:
        """Ingests report files and logs of sessions."""
        return Ingestions(
            database=self.database,
            provider=self.provider,
            counter=self.counter,
            max_file_bytes=self.settings.max_file_bytes,
            mask=self.settings.mask_secrets,
        )


@asynccontextmanager
async def opened_database(settings: Settings, *, pool_size: int) -> AsyncIterator[tuple[Database, Revive | None]]:
    """Yields the database, and what revives it; None if it is not the embedded one, which runs while this is open.

    Raises:
        ConfigurationError: the data directory cannot be used.
        DatabaseUnavailable: the embedded Postgres does not start.
    """
    url = admin_url = settings.database_url
    revive: Revive | None = None
    async with AsyncExitStack() as stack:
        if not url:
            embedded = EmbeddedPostgres(settings.data_dir)
            revive = partial(asyncio.to_thread, embedded.start)
            admin_url = await asyncio.to_thread(embedded.start)
            stack.push_async_callback(asyncio.to_thread, embedded.stop)
            url = embedded.service_url
        yield _close_at_end(stack, Database(url, admin_url=admin_url, pool_size=pool_size)), revive


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """Opens everything that the verbs need and closes it at the end. The schema is not touched.

    Raises:
        ConfigurationError: a setting or the data directory cannot be used.
        DatabaseUnavailable: the embedded Postgres does not start.
    """
    check_defaults(settings)
    async with AsyncExitStack() as stack:
        database, revive = await stack.enter_async_context(opened_database(settings, pool_size=settings.pool_size))
        yield Services(
            settings=settings,
            database=database,
            provider=_close_at_end(stack, following_provider(settings)),
            counter=BundledTokenCounter(),
            reranker=_close_at_end(stack, reranker_from(settings)),
            chat=_close_at_end(stack, chat_from(settings)),
            revive=revive,
        )


def _close_at_end(stack: AsyncExitStack, part: C) -> C:
    """Returns the part, and has the stack close it at the end."""
    if part is not None:
        stack.push_async_callback(part.close)
    return part
