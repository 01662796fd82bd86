"""The verb that finds."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial
from itertools import islice
from typing import Any, NamedTuple
from uuid import UUID

import structlog
from psycopg import AsyncConnection

from app.aside import aside
from app.db.engine import Database
from app.errors import EmbeddingUnavailable, RerankerUnavailable
from app.index.vectors import as_literal, embedded_text
from app.memories.filters import conditions
from app.memories.memory import Memory, new_id
from app.models.following import speaking
from app.models.protocols import EmbeddingProvider, Reranker, Vector
from app.retrieval import candidates as arms
from app.retrieval import store
from app.retrieval.candidates import Question
from app.retrieval.degradation import lexical_degradation, nothing_stored, vector_degradation
from app.retrieval.lexical import LexicalQuery, lexical_query
from app.retrieval.query import Query, checked_preset
from app.retrieval.rank.dedupe import deduplicated, wording
from app.retrieval.rank.presets import Preset
from app.retrieval.rank.rank import MOST_RERANKED, Ranked, ranked, reranked, reread
from app.retrieval.rank.texts import Text
from app.retrieval.recall import HYBRID, LEXICAL, RERANKER, VECTOR, Degradation, Hit, Recall
from app.retrieval.store import Survey
from app.safety.secrets import masked_values
from app.workspaces import store as workspaces
from app.workspaces.languages import configuration
from app.workspaces.workspace import checked_name

SPARE = 12
"""Memories fetched beyond k, because dedupe leaves some out."""
MASKED_AT_ONCE = 500
"""Characters of a query that are masked on the event loop: as many take 0.03 ms, and 0.5 ms, at worst 4, where they are
random tokens."""
READ_AT_ONCE = 100_000
"""Characters that are read and compared on the event loop: as many take 10 ms; more do so in a thread, so that no
other request waits for them."""

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A recall before it is logged."""

    workspace: str
    query: Query
    """As it may be stored."""
    hits: tuple[Hit, ...]
    mode: str
    degraded: tuple[Degradation, ...]
    started: float
    """`time.perf_counter()` when the query came in."""


async def search(
    database: Database,
    provider: EmbeddingProvider,
    *,
    workspace: str,
    language: str,
    query: Query,
    mask: bool = True,
    reranker: Reranker | None = None,
) -> Recall:
    """The memories that matter for a query, best first, logged as a recall.

    `language` is that of the workspace, should this call be the first to name it. The log has no secrets of the query,
    unless `mask` is off.

    Raises:
        InvalidInput: the query, its filters, preset or k cannot be taken.
        DatabaseUnavailable: the database does not answer.
    """
    finding = await find(database, provider, workspace=workspace, query=query, mask=mask, reranker=reranker)
    return await log(database, finding, hits=finding.hits, tokens=None, language=language)


async def find(
    database: Database,
    provider: EmbeddingProvider,
    *,
    workspace: str,
    query: Query,
    mask: bool = True,
    reranker: Reranker | None = None,
) -> Finding:
    """`search` without the log. While the query is embedded the database surveys and asks the lexical arm."""
    started = time.perf_counter()
    checked_name(workspace)
    preset = checked_preset(query)
    (vector, refusal), asked, loggable = await asyncio.gather(
        _embedded(provider, query.text), _asked(database, workspace, query, preset), _loggable(query, mask=mask)
    )
    hits: tuple[Hit, ...] = ()
    mode, degraded = LEXICAL, nothing_stored(workspace)
    if asked is not None:
        survey, words = asked.survey, asked.words
        embedded_by, provider = provider, speaking(provider, survey.model.name if survey.model else None)
        if provider is not embedded_by:
            # The database has just moved to another model, which is at hand.
            vector, refusal = await _embedded(provider, query.text)
        degraded = _degradations(provider, survey, refusal, words, query.text)
        if any(item.arm == VECTOR and item.silent for item in degraded):
            vector = None
        both = words is not None and preset.nearest is None
        mode = LEXICAL if vector is None else HYBRID if both else VECTOR
        hits, missing = await _found(database, asked, query, preset, vector, reranker)
        degraded = (*degraded, *missing)
    return Finding(workspace=workspace, query=loggable, hits=hits, mode=mode, degraded=degraded, started=started)


async def log(
    database: Database, finding: Finding, *, hits: Sequence[Hit], tokens: int | None, language: str
) -> Recall:
    """Keep the recall with these of its hits, in the database and as a line of the log."""
    recall, record = entry(finding, hits=hits, tokens=tokens)
    if not await _logged(database, record):
        async with database.transaction() as connection:
            await workspaces.ensure(connection, finding.workspace, configuration(language))
        await _logged(database, record)
    note(finding, recall)
    return recall


def entry(
    finding: Finding, *, hits: Sequence[Hit], tokens: int | None, kept: Sequence[UUID] | None = None
) -> tuple[Recall, dict[str, Any]]:
    """The recall that gives these hits, and its record as the store keeps it, with what it `kept` of an earlier one."""
    took_ms = (time.perf_counter() - finding.started) * 1000
    recall = Recall(recall_id=new_id(), hits=tuple(hits), mode=finding.mode, degraded=finding.degraded, took_ms=took_ms)
    return recall, store.record(finding.query, recall, workspace=finding.workspace, tokens=tokens, kept=kept)


async def _logged(database: Database, record: Mapping[str, Any]) -> bool:
    async with database.direct() as connection:
        return await store.log(connection, record)


def note(finding: Finding, recall: Recall) -> None:
    """Say in the service's log that a recall was answered."""
    facts = {
        "recall_id": str(recall.recall_id),
        "purpose": finding.query.purpose,
        "mode": finding.mode,
        "hits": len(recall.hits),
        "took_ms": round(recall.took_ms, 1),
    }
    if finding.degraded:
        logger.warning("recall", degraded=[f"{item.arm}: {item.reason}" for item in finding.degraded], **facts)
    else:
        logger.info("recall", **facts)


async def _embedded(provider: EmbeddingProvider, text: str) -> tuple[Vector | None, str | None]:
    """The query's vector, or why there is none."""
    if not provider.enabled:
        return None, None
    try:
        return await provider.embed_query(text), None
    except EmbeddingUnavailable as error:
        return None, str(error)


async def _loggable(query: Query, *, mask: bool) -> Query:
    """The query as it may be stored. A long one is masked beside the event loop."""
    if not mask:
        return query
    return await aside(partial(masked_values, query), long=len(query.text) > MASKED_AT_ONCE)


class _Asked(NamedTuple):
    """What the database was asked while the query was embedded."""

    survey: Survey
    words: LexicalQuery | None
    question: Question
    """With what the lexical arm found, and still without a vector."""


async def _asked(database: Database, workspace: str, query: Query, preset: Preset) -> _Asked | None:
    """None where the workspace has no memory."""
    language = None if query.language is None else configuration(query.language)
    async with database.direct() as connection:
        survey = await store.survey(connection, workspace, query.text, filters=query.filters, language=language)
        if survey is None or not survey.live:
            return None
        words = lexical_query(survey.terms, workspace_id=survey.workspace.workspace_id, total=survey.live)
        question = question_of(survey, query, preset, words)
        return _Asked(survey, words, replace(question, worded=await arms.worded(connection, question)))


def question_of(survey: Survey, query: Query, preset: Preset, words: LexicalQuery | None) -> Question:
    """What the arms are asked for a query; what the lexical arm finds and the vector are still to come."""
    clauses, values = conditions(query.filters)
    return Question(
        workspace_id=survey.workspace.workspace_id,
        model=survey.model,
        vector=None,
        match=words.match if words else None,
        wider=words.wider if words else None,
        weights=words.weights if words else None,
        indexed=survey.indexed,
        kept=survey.kept,
        clauses=tuple(clauses),
        values=values,
        least=query.k + SPARE,
        linked=survey.linked and bool(preset.blend.links),
    )


def _degradations(
    provider: EmbeddingProvider, survey: Survey, refusal: str | None, words: LexicalQuery | None, query: str
) -> tuple[Degradation, ...]:
    vector = vector_degradation(provider, survey.model, waiting=survey.waiting, live=survey.live, refusal=refusal)
    lexical = None if words else lexical_degradation(query)
    return tuple(item for item in (vector, lexical) if item is not None)


async def _found(
    database: Database,
    asked: _Asked,
    query: Query,
    preset: Preset,
    vector: Vector | None,
    reranker: Reranker | None,
) -> tuple[tuple[Hit, ...], tuple[Degradation, ...]]:
    """The hits, and what could not be done for their order."""
    most = query.k if preset.most is None else min(query.k, preset.most)
    if not _wants_reranking(query, preset, reranker):
        return await _hits(database, asked, query, preset, vector, most), ()
    hits = await _hits(database, asked, query, preset, vector, max(most, MOST_RERANKED))
    hits, missing = await _reranked(reranker, query, preset, hits)
    return hits[:most], missing


async def _hits(
    database: Database, asked: _Asked, query: Query, preset: Preset, vector: Vector | None, wanted: int
) -> tuple[Hit, ...]:
    if vector is None and asked.words is None:
        return ()
    question = replace(asked.question, vector=None if vector is None else as_literal(vector), least=wanted + SPARE)
    full_match = asked.words.full_match if asked.words else 0.0
    async with database.direct() as connection:
        pool = await arms.candidates(connection, question)
        now = query.moment
        best = ranked(pool, preset, query=query.text, full_match=full_match, now=now)
        return await _with_bodies(connection, question.workspace_id, best, preset, query, now, wanted)


def _wants_reranking(query: Query, preset: Preset, reranker: Reranker | None) -> bool:
    """Where one is configured, recipes that stand to the letter are left as they are unless it is asked for."""
    if query.rerank is None:
        return reranker is not None and preset.hints is not None
    return query.rerank


async def _reranked(
    reranker: Reranker | None, query: Query, preset: Preset, hits: tuple[Hit, ...]
) -> tuple[tuple[Hit, ...], tuple[Degradation, ...]]:
    """The hits as the re-ranker orders them, or as they are with why it does not. No connection is held meanwhile."""
    if reranker is None:
        return hits, (Degradation(arm=RERANKER, reason="none is configured; set PRIORS_RERANKER", silent=True),)
    if not hits:
        return hits, ()
    texts = [embedded_text(hit.title, hit.body) for hit in hits[:MOST_RERANKED]]
    try:
        scores = await reranker.scores(query.text, texts)
    except RerankerUnavailable as error:
        return hits, (Degradation(arm=RERANKER, reason=str(error), silent=True),)
    return tuple(reranked(hits, scores, preset.weights)), ()


async def _with_bodies(
    connection: AsyncConnection,
    workspace_id: int,
    best: Iterator[Ranked],
    preset: Preset,
    query: Query,
    now: datetime,
    wanted: int,
) -> tuple[Hit, ...]:
    """The first `wanted` of the ranking, once its texts are read and its doubles left out; fetched on until they are
    as many or the ranking ends, twice as many each time."""
    chosen: list[Ranked] = []
    memories: dict[UUID, Memory] = {}
    hits: tuple[Hit, ...] = ()
    remembered = cache(wording)

    def read() -> tuple[Hit, ...]:
        # What was fetched before is read again with what follows, because only together are they in order.
        found = _read(chosen, memories, preset, query.text, now)
        single = deduplicated(found, title_kinds=preset.title_kinds, by_text=preset.dedupe_by_text, wording=remembered)
        return tuple(islice(single, wanted))

    while len(hits) < wanted and (following := list(islice(best, max(wanted + SPARE, len(chosen))))):
        chosen += following
        memories |= await store.bodies(connection, workspace_id, [item.candidate.memory_id for item in following])
        large = sum(len(memory.body) for memory in memories.values()) > READ_AT_ONCE
        hits = await aside(read, long=large)
    return hits


def _read(
    chosen: Sequence[Ranked], memories: Mapping[UUID, Memory], preset: Preset, query: str, now: datetime
) -> Iterator[Hit]:
    """These hits in the order that their texts give them; one that went in the meantime is left out."""
    there = [item for item in chosen if item.candidate.memory_id in memories]
    texts = [_text(memories[item.candidate.memory_id]) for item in there]
    for item in reread(there, texts, preset, query=query, now=now):
        memory = memories[item.candidate.memory_id]
        yield Hit(memory=memory, score=item.rank.value, explain=item.explain, link=item.link)


def _text(memory: Memory) -> Text:
    return Text(memory.title, memory.body, memory.source_id, memory.ordinal)
