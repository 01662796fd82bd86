"""The verbs that find: candidates are found, ranked, read and logged."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from app.db.database import Database
from app.db.session import Session
from app.errors import EmbeddingUnavailable, NotFound
from app.index.models import StoredModel
from app.index.reembed import speaking
from app.index.vectors import as_literal
from app.models.bundled import DEFAULT_MODEL
from app.models.protocols import EmbeddingProvider, QueryEmbedder, Reranker, Vector
from app.retrieval.call import Call
from app.retrieval.candidates import TOLERATED_PENDING, Question, lexical_hits, plans, question_of, survey
from app.retrieval.hits import found_hits
from app.retrieval.log import Finding, LoggedRecall, days_since, listed, log, logged
from app.retrieval.passages import NOTHING
from app.retrieval.rank.needs import needs_of
from app.retrieval.recall import (
    HYBRID,
    LEXICAL,
    VECTOR,
    Degradation,
    LoggedSummary,
    Query,
    Recall,
    RecallDay,
    RecallFilters,
    checked_filters,
    checked_preset,
)
from app.safety.secrets import masked_values
from app.text.words import WORD, is_latin
from app.tracing import span
from app.workspaces.workspace import Workspace, configuration

MASKED_AT_ONCE = 500
"""Characters of a query that are masked on the event loop: they take 0.03 ms, random tokens 0.5, at worst 4."""


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
        InvalidInput: the query, its filters, preset or k is not valid.
        DatabaseUnavailable: the database does not answer.
    """
    finding = await find(database, provider, workspace=workspace, query=query, mask=mask, reranker=reranker)
    async with database.session(finding.workspace, transaction=False, at_node=True) as session:
        return await log(session, finding, hits=finding.hits, tokens=None)


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


async def list_recalls(
    database: Database, *, workspace: Workspace, asked: RecallFilters, limit: int = 50, before: UUID | None = None
) -> list[LoggedSummary]:
    """Returns logged recalls that meet every condition, the latest first; those after `before` on the next page.

    Raises:
        InvalidInput: a text or moment that the log cannot have.
    """
    asked = checked_filters(asked)
    async with database.session(workspace, transaction=False) as session:
        return await listed(session, asked, limit=limit, before=before)


async def recall_days(database: Database, *, workspace: Workspace, days: int) -> list[RecallDay]:
    """Returns the latest days in UTC, today the last, each with its recalls; trials do not count."""
    today = datetime.now(UTC).date()
    asked = [today - timedelta(days=back) for back in reversed(range(days))]
    async with database.session(workspace, transaction=False) as session:
        found = await days_since(session, asked[0])
    return [found.get(day, RecallDay(day=day)) for day in asked]


async def find(
    database: Database,
    provider: QueryEmbedder,
    *,
    workspace: Workspace,
    query: Query,
    mask: bool = True,
    reranker: Reranker | None = None,
    suspects: bool = True,
    passages: bool = False,
) -> Finding:
    """Does `search` without the log. While the query is embedded the database surveys and asks the lexical arm.

    Without `suspects`, a memory in which the injection scan suspects an instruction is no hit. With `passages` it
    returns MOST_READ hits or more, with their passages ranked.
    """
    started = time.perf_counter()
    is_measured = provider.model_id == DEFAULT_MODEL
    preset = checked_preset(query, workspace.weights, measured=is_measured)
    # A preset that judges all memories compares a text, which is no request.
    needs = (query.text,) if preset.judges_all else needs_of(query.text)
    asked = query if len(needs) == 1 else replace(query, text=" ".join(needs))
    is_measured = is_measured and is_latin(query.text)
    call = Call(database, workspace, asked, preset, suspects, is_measured, passages, needs)
    (vectors, refusal), question, loggable = await asyncio.gather(
        _embedded(provider, call), _question(call), _loggable(query, mask=mask)
    )
    hits, likely = NOTHING
    mode, degraded = LEXICAL, _nothing_stored(workspace.name)
    if question is not None:
        model = question.survey.model
        embedded_by, provider = provider, speaking(provider, model.name if model else None)
        if provider is not embedded_by:
            # The database has just moved to another model, which is loaded already.
            vectors, refusal = await _embedded(provider, call)
        degraded = _degradations(provider, question, query.text, refusal)
        if vectors and not any(item.arm == VECTOR and item.silent for item in degraded):
            question = replace(question, vector=as_literal(vectors[0]), embedded=vectors)
        both = question.words is not None and call.preset.nearest is None
        mode = LEXICAL if question.vector is None else HYBRID if both else VECTOR
        (hits, likely), missing = await found_hits(call, question, reranker)
        degraded = (*degraded, *missing)
    return Finding(
        workspace=workspace,
        query=loggable,
        hits=hits,
        mode=mode,
        degraded=degraded,
        probability=likely,
        started=started,
    )


async def _embedded(provider: QueryEmbedder, call: Call) -> tuple[Sequence[Vector], str | None]:
    """Returns the vectors of the query and of its needs, or none and the reason."""
    if not provider.enabled:
        return (), None
    try:
        with span("recall.embed"):
            return await asyncio.gather(*map(provider.embed_query, (call.query.text, *call.several))), None
    except EmbeddingUnavailable as error:
        return (), str(error)


async def _loggable(query: Query, *, mask: bool) -> Query:
    """Returns the query in the form that may be stored. A long query is masked in a thread."""
    if not mask:
        return query
    if len(query.text) > MASKED_AT_ONCE:
        return await asyncio.to_thread(masked_values, query)
    return masked_values(query)


async def _question(call: Call) -> Question | None:
    """Surveys the workspace and queries the lexical arm; returns None if the workspace has no memory."""
    async with call.database.session(call.workspace, reading=True, at_node=True) as session:
        question = await _surveyed(session, call)
        if question is None:
            return None
        with span("recall.lexical"):
            return replace(question, lexical_hits=await lexical_hits(session, question))


async def _surveyed(session: Session, call: Call) -> Question | None:
    query = call.query
    language = None if query.language is None else configuration(query.language)
    with span("recall.survey"):
        known = await survey(session, query.text, filters=query.filters, language=language)
    if known is None or not known.live:
        return None
    return question_of(known, query, call.preset)


async def plans_of(database: Database, recall: Recall) -> Mapping[str, str]:
    """Returns the plans by which Postgres answers the statements of a recall, by step; no plan has a value of it."""
    query, workspace = recall.query, recall.workspace
    call = Call(database, workspace, query, checked_preset(query, workspace.weights), suspects=True)
    async with database.session(workspace, transaction=False) as session:
        question = await _surveyed(session, call)
        if question is None:
            return {}
        return await plans(session, replace(question, vector=None if recall.mode == LEXICAL else ""), query)


def _nothing_stored(workspace: str) -> tuple[Degradation, ...]:
    """Returns the reason why neither arm has anything to search; often the workspace's name is mistyped."""
    reason = f"the workspace {workspace!r} holds no memories"
    return tuple(Degradation(arm=arm, reason=reason, silent=True) for arm in (VECTOR, LEXICAL))


def _degradations(
    provider: QueryEmbedder, question: Question, query: str, refusal: str | None
) -> tuple[Degradation, ...]:
    known = question.survey
    vector = vector_degradation(provider, known.model, pending=known.pending, live=known.live, refusal=refusal)
    reason = "the query has no words besides stop words" if WORD.search(query) else "the query has no words"
    lexical = None if question.words else Degradation(arm=LEXICAL, reason=reason, silent=True)
    return tuple(item for item in (vector, lexical) if item is not None)


def vector_degradation(
    provider: QueryEmbedder, stored: StoredModel | None, *, pending: int, live: int, refusal: str | None = None
) -> Degradation | None:
    """Returns the degradation of the vector arm; None if it serves in full.

    `stored` is the model whose vectors the database serves, `pending` the number of the workspace's `live` memories
    that have none, `refusal` the reason why the query could not be embedded.
    """
    silent = None if refusal is None else f"the query could not be embedded: {refusal}"
    silent = silent or _mismatch(provider, stored)
    if silent is None and not pending:
        return None
    reason = f"{pending:,} of {max(live, pending):,} memories have no vector yet and are found by their words alone"
    is_silent = silent is not None or pending > TOLERATED_PENDING * live
    return Degradation(arm=VECTOR, reason=silent or reason, silent=is_silent)


def _mismatch(provider: QueryEmbedder, stored: StoredModel | None) -> str | None:
    """Returns the reason why stored vectors cannot be compared with the provider's; None if they can."""
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
