"""The verb that finds."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from uuid import UUID

import structlog
from psycopg import AsyncConnection

from app.db.engine import Database
from app.embeddings.following import speaking
from app.embeddings.provider import EmbeddingProvider, Vector
from app.embeddings.store import as_literal
from app.errors import EmbeddingUnavailable
from app.masking import masked_values
from app.memories.filters import conditions
from app.memories.identity import new_id
from app.retrieval import arms, store
from app.retrieval.arms import Question
from app.retrieval.dedupe import deduplicated
from app.retrieval.degradation import lexical_degradation, nothing_stored, vector_degradation
from app.retrieval.lexical import LexicalQuery, lexical_query
from app.retrieval.presets import Preset
from app.retrieval.query import Query, checked_preset
from app.retrieval.recall import HYBRID, LEXICAL, VECTOR, Degradation, Hit, Recall
from app.retrieval.scoring import Ranked, ranked
from app.retrieval.store import Survey
from app.workspaces import store as workspaces
from app.workspaces.language import configuration
from app.workspaces.workspace import checked_name

SPARE = 12
"""Memories fetched beyond k, because dedupe leaves some out."""
COMPARED_AT_ONCE = 100_000
"""Characters that are compared on the event loop: as many take 10 ms."""
MASKED_AT_ONCE = 2_000
"""Characters of a query that are masked on the event loop: as many take 0.9 ms at most, a short one 0.03 ms."""

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
    database: Database, provider: EmbeddingProvider, *, workspace: str, language: str, query: Query, mask: bool = True
) -> Recall:
    """The memories that matter for a query, best first, logged as a recall.

    `language` is that of the workspace, should this call be the first to name it. The log has no secrets of the query,
    unless `mask` is off.

    Raises:
        InvalidInput: the query, its filters, preset or k cannot be taken.
        DatabaseUnavailable: the database does not answer.
    """
    finding = await find(database, provider, workspace=workspace, query=query, mask=mask)
    return await log(database, finding, hits=finding.hits, tokens=None, language=language)


async def find(
    database: Database, provider: EmbeddingProvider, *, workspace: str, query: Query, mask: bool = True
) -> Finding:
    """`search` without the log. The query is embedded while the database surveys: neither waits for the other."""
    started = time.perf_counter()
    checked_name(workspace)
    preset = checked_preset(query)
    (vector, refusal), survey, loggable = await asyncio.gather(
        _embedded(provider, query.text), _survey(database, workspace, query), _loggable(query, mask=mask)
    )
    hits: tuple[Hit, ...] = ()
    mode, degraded = LEXICAL, nothing_stored(workspace)
    if survey is not None and survey.live:
        embedded_by, provider = provider, speaking(provider, survey.model.name if survey.model else None)
        if provider is not embedded_by:
            # The database has just moved to another model, which is at hand.
            vector, refusal = await _embedded(provider, query.text)
        words = _words(survey)
        degraded = _degradations(provider, survey, refusal, words, query.text)
        if any(item.arm == VECTOR and item.silent for item in degraded):
            vector = None
        mode = HYBRID if vector is not None and words else VECTOR if vector is not None else LEXICAL
        hits = await _hits(database, survey, query, preset, vector, words)
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
    if len(query.text) <= MASKED_AT_ONCE:
        return masked_values(query)
    return await asyncio.to_thread(masked_values, query)


async def _survey(database: Database, workspace: str, query: Query) -> Survey | None:
    language = None if query.language is None else configuration(query.language)
    async with database.direct() as connection:
        return await store.survey(connection, workspace, query.text, filters=query.filters, language=language)


def _words(survey: Survey) -> LexicalQuery | None:
    return lexical_query(survey.terms, workspace_id=survey.workspace.workspace_id, total=survey.live)


def _degradations(
    provider: EmbeddingProvider, survey: Survey, refusal: str | None, words: LexicalQuery | None, query: str
) -> tuple[Degradation, ...]:
    vector = vector_degradation(provider, survey.model, waiting=survey.waiting, live=survey.live, refusal=refusal)
    lexical = None if words else lexical_degradation(query)
    return tuple(item for item in (vector, lexical) if item is not None)


async def _hits(
    database: Database,
    survey: Survey,
    query: Query,
    preset: Preset,
    vector: Vector | None,
    words: LexicalQuery | None,
) -> tuple[Hit, ...]:
    if vector is None and words is None:
        return ()
    clauses, values = conditions(query.filters)
    question = Question(
        workspace_id=survey.workspace.workspace_id,
        model=survey.model,
        vector=None if vector is None else as_literal(vector),
        match=words.match if words else None,
        weights=words.weights if words else None,
        indexed=survey.indexed,
        eligible=survey.eligible,
        clauses=tuple(clauses),
        values=values,
        least=query.k + SPARE,
    )
    async with database.direct() as connection:
        pool = await arms.candidates(connection, question)
        best = ranked(
            pool, preset, query=query.text, full_match=words.full_match if words else 0.0, now=datetime.now(UTC)
        )
        return await _with_bodies(connection, question.workspace_id, best, preset, query.k)


async def _with_bodies(
    connection: AsyncConnection, workspace_id: int, best: Sequence[Ranked], preset: Preset, k: int
) -> tuple[Hit, ...]:
    """The first k of the ranking, once its doubles are left out; fetched on until they are k or the ranking ends."""
    wanted = k if preset.most is None else min(k, preset.most)
    found: list[Hit] = []
    hits: tuple[Hit, ...] = ()
    step = wanted + SPARE
    for chosen in (best[start : start + step] for start in range(0, len(best), step)):
        memories = await store.bodies(connection, workspace_id, [item.candidate.memory_id for item in chosen])
        found += (
            Hit(memory=memories[item.candidate.memory_id], score=item.rank.value, explain=item.explain)
            for item in chosen
            if item.candidate.memory_id in memories
        )
        hits = await _without_doubles(found, preset, wanted)
        if len(hits) >= wanted:
            break
    return hits


async def _without_doubles(found: Sequence[Hit], preset: Preset, wanted: int) -> tuple[Hit, ...]:
    """The first `wanted` of them. Large texts are compared in a thread, so that no other request waits for them."""

    def compare() -> tuple[Hit, ...]:
        single = deduplicated(found, title_kinds=preset.title_kinds, by_text=preset.dedupe_by_text)
        return tuple(islice(single, wanted))

    if sum(len(hit.body) for hit in found) <= COMPARED_AT_ONCE:
        return compare()
    return await asyncio.to_thread(compare)
