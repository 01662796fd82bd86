"""The verbs that find, in five steps: the query is checked, candidates are found, ranked, hydrated and logged."""

import asyncio
import time
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from app.db.database import Database
from app.errors import EmbeddingUnavailable, NotFound, RerankerUnavailable
from app.index.following import speaking
from app.index.vectors import as_literal, embedded_text
from app.models.protocols import EmbeddingProvider, Reranker, Vector
from app.retrieval.candidates import SPARE, Question, Survey, candidates, lexical_hits, question_of, survey
from app.retrieval.hydrate import hits_of
from app.retrieval.lexical import LexicalQuery, lexical_query
from app.retrieval.log import Finding, LoggedRecall, log, logged, placed
from app.retrieval.query import Query, checked_preset
from app.retrieval.rank.presets import Preset
from app.retrieval.rank.quality import MOST_RERANKED, reranked
from app.retrieval.rank.rank import ranked
from app.retrieval.recall import (
    HYBRID,
    LEXICAL,
    RERANKER,
    VECTOR,
    Degradation,
    Hit,
    Recall,
    lexical_degradation,
    nothing_stored,
    vector_degradation,
)
from app.safety.secrets import masked_values
from app.workspaces.workspace import Workspace, configuration

MASKED_AT_ONCE = 500
"""Characters of a query that are masked on the event loop: as many take 0.03 ms, and 0.5 ms, at worst 4, where they are
random tokens."""


async def search(
    database: Database,
    provider: EmbeddingProvider,
    *,
    workspace: Workspace,
    query: Query,
    mask: bool = True,
    reranker: Reranker | None = None,
) -> Recall:
    """Returns the memories that matter for a query, best first, logged as a recall.

    The log has no secrets of the query, unless `mask` is off.

    Raises:
        InvalidInput: the query, its filters, preset or k cannot be taken.
        DatabaseUnavailable: the database does not answer.
    """
    finding = await find(database, provider, workspace=workspace, query=query, mask=mask, reranker=reranker)
    finding = await placed(database, finding)
    async with database.session(finding.workspace, transaction=False) as session:
        return await log(session, finding, hits=finding.hits, tokens=None)


async def find(
    database: Database,
    provider: EmbeddingProvider,
    *,
    workspace: Workspace,
    query: Query,
    mask: bool = True,
    reranker: Reranker | None = None,
) -> Finding:
    """Does `search` without the log. While the query is embedded the database surveys and asks the lexical arm."""
    started = time.perf_counter()
    call = _Call(database, workspace, query, checked_preset(query))
    (vector, refusal), asked, loggable = await asyncio.gather(
        _embedded(provider, query.text), _asked(call), _loggable(query, mask=mask)
    )
    hits: tuple[Hit, ...] = ()
    mode, degraded = LEXICAL, nothing_stored(workspace.name)
    if asked is not None:
        model, words = asked.survey.model, asked.words
        embedded_by, provider = provider, speaking(provider, model.name if model else None)
        if provider is not embedded_by:
            # The database has just moved to another model, which is at hand.
            vector, refusal = await _embedded(provider, query.text)
        degraded = _degradations(provider, asked.survey, refusal, words, query.text)
        if any(item.arm == VECTOR and item.silent for item in degraded):
            vector = None
        both = words is not None and call.preset.nearest is None
        mode = LEXICAL if vector is None else HYBRID if both else VECTOR
        hits, missing = await _found(call, asked, vector, reranker)
        degraded = (*degraded, *missing)
    return Finding(workspace=workspace, query=loggable, hits=hits, mode=mode, degraded=degraded, started=started)


async def _embedded(provider: EmbeddingProvider, text: str) -> tuple[Vector | None, str | None]:
    """Returns the query's vector, or the reason why there is none."""
    if not provider.enabled:
        return None, None
    try:
        return await provider.embed_query(text), None
    except EmbeddingUnavailable as error:
        return None, str(error)


async def _loggable(query: Query, *, mask: bool) -> Query:
    """Returns the query as it may be stored. A long one is masked in a thread."""
    if not mask:
        return query
    if len(query.text) > MASKED_AT_ONCE:
        return await asyncio.to_thread(masked_values, query)
    return masked_values(query)


class _Call(NamedTuple):
    """A checked query, and where it is asked."""

    database: Database
    workspace: Workspace
    query: Query
    preset: Preset


class _Asked(NamedTuple):
    """The database's answers while the query was embedded."""

    survey: Survey
    words: LexicalQuery | None
    question: Question
    """With the lexical arm's hits, and still without a vector."""


async def _asked(call: _Call) -> _Asked | None:
    """Surveys the workspace and asks the lexical arm; None where the workspace has no memory."""
    query = call.query
    language = None if query.language is None else configuration(query.language)
    async with call.database.session(call.workspace, transaction=False) as session:
        known = await survey(session, query.text, filters=query.filters, language=language)
        if known is None or not known.live:
            return None
        words = lexical_query(known.terms, total=known.live)
        question = question_of(known, query, call.preset, words)
        return _Asked(known, words, replace(question, lexical_hits=await lexical_hits(session, question)))


def _degradations(
    provider: EmbeddingProvider, known: Survey, refusal: str | None, words: LexicalQuery | None, query: str
) -> tuple[Degradation, ...]:
    vector = vector_degradation(provider, known.model, pending=known.pending, live=known.live, refusal=refusal)
    lexical = None if words else lexical_degradation(query)
    return tuple(item for item in (vector, lexical) if item is not None)


async def _found(
    call: _Call, asked: _Asked, vector: Vector | None, reranker: Reranker | None
) -> tuple[tuple[Hit, ...], tuple[Degradation, ...]]:
    """Returns the hits, and what could not be done for their order."""
    k, preset = call.query.k, call.preset
    most = k if preset.most is None else min(k, preset.most)
    if not _wants_reranking(call.query, preset, reranker):
        return await _hits(call, asked, vector, most), ()
    hits = await _hits(call, asked, vector, max(most, MOST_RERANKED))
    hits, missing = await _reranked(reranker, call.query, preset, hits)
    return hits[:most], missing


async def _hits(call: _Call, asked: _Asked, vector: Vector | None, wanted: int) -> tuple[Hit, ...]:
    if vector is None and asked.words is None:
        return ()
    query, preset = call.query, call.preset
    question = replace(asked.question, vector=None if vector is None else as_literal(vector), least=wanted + SPARE)
    full_match = asked.words.full_match if asked.words else 0.0
    async with call.database.session(call.workspace, transaction=False) as session:
        pool = await candidates(session, question)
        now = query.moment
        best = ranked(pool, preset, query=query.text, full_match=full_match, now=now)
        return await hits_of(session, best, preset, query, now=now, wanted=wanted)


def _wants_reranking(query: Query, preset: Preset, reranker: Reranker | None) -> bool:
    """Recipes that stand to the letter are left as they are, unless the query asks for the re-ranker."""
    if query.rerank is None:
        return reranker is not None and preset.text_features is not None
    return query.rerank


async def _reranked(
    reranker: Reranker | None, query: Query, preset: Preset, hits: tuple[Hit, ...]
) -> tuple[tuple[Hit, ...], tuple[Degradation, ...]]:
    """Returns the hits as the re-ranker orders them, or as they are with the reason. It holds no connection."""
    if reranker is None:
        return hits, (Degradation(arm=RERANKER, reason="none is configured; set PRIORS_RERANKER", silent=True),)
    if not hits:
        return hits, ()
    texts = [embedded_text(hit.title, hit.body) for hit in hits[:MOST_RERANKED]]
    try:
        scores = await reranker.scores(query.text, texts)
    except RerankerUnavailable as error:
        return hits, (Degradation(arm=RERANKER, reason=str(error), silent=True),)
    order = reranked([hit.explain for hit in hits], scores, preset.weights)
    return tuple(_scored(hits[place], parts) for place, parts in order), ()


def _scored(hit: Hit, parts: dict[str, float | None]) -> Hit:
    return replace(hit, score=parts["score"] or 0.0, explain=parts)


async def get_recall(database: Database, *, workspace: Workspace, recall_id: UUID) -> LoggedRecall:
    """Returns one logged recall with its hits.

    Raises:
        NotFound: the workspace has no such recall.
    """
    async with database.session(workspace, transaction=False) as session:
        found = await logged(session, recall_id)
    if found is None:
        raise NotFound(f"there is no recall {recall_id} in workspace {workspace.name}")
    return found
