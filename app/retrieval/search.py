"""The verbs that find: candidates are found, ranked, read and logged."""

import asyncio
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from app.db.database import Database
from app.db.session import Session
from app.errors import EmbeddingUnavailable, NotFound, RerankerUnavailable
from app.index.models import StoredModel
from app.index.reembed import speaking
from app.index.vectors import as_literal, embedded_text
from app.links.relations import SAME_TASK
from app.memories.filters import Filters
from app.memories.memory import Memory
from app.models.bundled import DEFAULT_MODEL
from app.models.protocols import EmbeddingProvider, QueryEmbedder, Reranker, Vector
from app.retrieval.candidates import (
    SPARE,
    TOLERATED_PENDING,
    Question,
    candidates,
    cases_of,
    intakes_between,
    lexical_hits,
    lists_of_judgements,
    plans,
    question_of,
    replaced_by,
    standing,
    state_of,
    survey,
    vectors_of_passages,
    with_states,
)
from app.retrieval.log import Finding, LoggedRecall, days_since, listed, log, logged
from app.retrieval.rank.corrections import says_so
from app.retrieval.rank.needs import Case, case_of, continues_a_case, gain_of_place, needs_of
from app.retrieval.rank.passages import PassageScore, need_of, read_text, scored
from app.retrieval.rank.presets import Preset, hit_probability, probability
from app.retrieval.rank.quality import MOST_RERANKED, reranked
from app.retrieval.rank.rank import Asking, Candidate, Ranked, ranked, reread
from app.retrieval.rank.roles import DEFAULT_ROLE, role_of
from app.retrieval.rank.text_features import Text, deduplicated
from app.retrieval.recall import (
    CASE,
    HYBRID,
    LEXICAL,
    RERANKER,
    VECTOR,
    Degradation,
    Hit,
    HitLink,
    LoggedSummary,
    Query,
    Recall,
    RecallDay,
    RecallFilters,
    checked_filters,
    checked_preset,
    of_place,
    passed,
    with_state,
    without_copies,
)
from app.retrieval.roles import roles_of
from app.safety.secrets import masked_values
from app.text.words import WORD, is_latin
from app.tracing import span
from app.workspaces.workspace import Workspace, configuration

MASKED_AT_ONCE = 500
"""Characters of a query that are masked on the event loop: they take 0.03 ms, random tokens 0.5, at worst 4."""
MOST_READ = 32
"""Hits whose passages are ranked for a history. On six report trees of 51 to 82 memories, with 24 the corrections of 3
in 100 answers are not among them; 40 answer as 32 do."""
PATH_MARKS = re.compile(r"[/_.-]+")
READ_AT_ONCE = 100_000
"""Most characters that are read and compared on the event loop, in 10 ms; a thread does longer work, so that no
other request waits."""


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


class _Call(NamedTuple):
    """A checked query, with its workspace and database."""

    database: Database
    workspace: Workspace
    query: Query
    preset: Preset
    suspects: bool
    """True where memories with a suspect text are hits too."""
    measured: bool = True
    """False for a model, or a script, by whose similarities no probability was fitted."""
    passages: bool = False
    """True where the hits' passages are ranked too: of more hits than the query wants, because blocks are made of the
    passages of several."""
    needs: Sequence[str] = ()
    """The sentences of the query that name what it needs."""

    @property
    def several(self) -> Sequence[str]:
        """The first needs, if there are several and passages are ranked by them."""
        return self.needs[:MOST_NEEDS] if self.passages and len(self.needs) > 1 else ()

    @property
    def asking(self) -> Asking:
        """The query as ranking takes it; a preset that judges all memories knows no roles."""
        role = DEFAULT_ROLE if self.preset.judges_all else role_of(self.query.agent, roles_of(self.workspace))
        return Asking(self.query.text, self.query.moment, role)


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
    call = _Call(database, workspace, asked, preset, suspects, is_measured, passages, needs)
    (vectors, refusal), question, loggable = await asyncio.gather(
        _embedded(provider, call), _question(call), _loggable(query, mask=mask)
    )
    hits, likely = _NOTHING
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
        (hits, likely), missing = await _found(call, question, reranker)
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


async def _embedded(provider: QueryEmbedder, call: _Call) -> tuple[Sequence[Vector], str | None]:
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


async def _question(call: _Call) -> Question | None:
    """Surveys the workspace and queries the lexical arm; returns None if the workspace has no memory."""
    async with call.database.session(call.workspace, reading=True, at_node=True) as session:
        question = await _surveyed(session, call)
        if question is None:
            return None
        with span("recall.lexical"):
            return replace(question, lexical_hits=await lexical_hits(session, question))


async def _surveyed(session: Session, call: _Call) -> Question | None:
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
    call = _Call(database, workspace, query, checked_preset(query, workspace.weights), suspects=True)
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


class _Found(NamedTuple):
    """Hits, with the probability that the store speaks to the query."""

    hits: tuple[Hit, ...]
    probability: float | None


_NOTHING = _Found((), None)


async def _found(call: _Call, question: Question, reranker: Reranker | None) -> tuple[_Found, tuple[Degradation, ...]]:
    """Returns the hits in their final order, and the degradation of the re-ranker."""
    query, preset = call.query, call.preset
    most = max(query.k, MOST_READ) if call.passages else query.k
    most = most if preset.most is None else min(most, preset.most)
    # Hits that are not likely enough are left out, so that more are read.
    read = max(most, MOST_READ) if query.min_probability else most
    # Presets that follow another recipe are not re-ranked, unless the query asks for it.
    if not (reranker is not None and preset.text_features is not None if query.rerank is None else query.rerank):
        found = await _hits(call, question, read)
        return found._replace(hits=found.hits[:most]), ()
    found = await _hits(call, question, max(read, MOST_RERANKED))
    hits, missing = await _reranked(reranker, call, found.hits)
    return found._replace(hits=hits[:most]), missing


async def _hits(call: _Call, question: Question, wanted: int) -> _Found:
    """Returns the first `wanted` hits of the ranking, also ordered by their texts, without duplicates.

    It reads twice as many hits each time, until there are enough or the ranking ends.
    """
    if question.vector is None and question.words is None:
        return _NOTHING
    hits: tuple[Hit, ...] = ()
    chosen: list[tuple[Ranked, Memory]] = []
    asking = call.asking
    async with call.database.session(call.workspace, reading=True, at_node=True) as session:
        with span("recall.candidates", vectors=question.vector is not None):
            pool = await _pool(session, replace(question, least=max(question.least, wanted + SPARE)))
        full_match = question.full_match(pool)
        ranking = ranked(pool, _before_passages(call, question), asking, full_match=full_match)
        read = partial(_read, chosen, call, wanted, asking=asking)
        while len(hits) < wanted and (following := _taken(ranking, max(wanted + SPARE, len(chosen)))):
            with span("recall.hydrate", memories=len(following)):
                live, _ = await standing(session, [item.candidate.memory_id for item in following], Filters())
            read_now = ((item, live.get(item.candidate.memory_id)) for item in following)
            chosen += [(item, memory) for item, memory in read_now if memory and (call.suspects or not memory.suspect)]
            is_long = sum(len(memory.body) for _, memory in chosen) > READ_AT_ONCE
            with span("recall.rank", memories=len(chosen)):
                hits = await asyncio.to_thread(read) if is_long else read()
        if call.passages and question.survey.linked:
            hits = await _current(session, call, hits)
        found = await _with_passages(session, call, question, pool, hits)
        return found._replace(hits=await with_states(session, found.hits))


async def _pool(session: Session, question: Question) -> list[Candidate]:
    """Returns the candidates of the query, and those that are nearest to each of its needs, if there are several."""
    pool = {item.memory_id: item for item in await candidates(session, question)}
    for vector in question.embedded[1:MOST_SEARCHED] if question.vector is not None else ():
        near = replace(question, vector=as_literal(vector), lexical_hits=None, linked=False)
        for item in await candidates(session, near):
            pool.setdefault(item.memory_id, item._replace(seed=None, edges=None))
    return list(pool.values())


async def _current(session: Session, call: _Call, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
    """Returns hits in which a memory that a later one supersedes or contradicts has given its place to that one.

    If that one does not pass the filters, neither is a hit.
    """
    found = await replaced_by(session, [hit.memory.memory_id for hit in hits])
    own = {hit.memory.memory_id for hit in hits}
    if not found:
        return hits
    live, passing = await standing(session, list({*found.values()} - own), call.query.filters)
    current: dict[UUID, Hit] = {}
    for hit in hits:
        new = found.get(hit.memory.memory_id)
        if new is None:
            current.setdefault(hit.memory.memory_id, hit)
        elif new in passing and not live[new].suspect:
            current.setdefault(new, replace(hit, memory=live[new], link=None))
    return tuple(current.values())


def _is_measured(call: _Call, question: Question) -> bool:
    return call.measured and question.vector is not None


async def _with_passages(
    session: Session, call: _Call, question: Question, pool: Sequence[Candidate], hits: tuple[Hit, ...]
) -> _Found:
    """Returns likely hits with their ranked passages, and with the best one and a probability in their explanations."""
    texts = [
        read_text(
            hit.title,
            hit.body,
            similarity=hit.explain["similarity"],
            evidence=hit.explain["evidence"] or 0.0,
            links=hit.explain["links"] or 0.0,
        )
        for hit in hits
    ]
    if question.survey.model is not None and question.embedded:
        starts = {
            hit.memory.memory_id: [part.start for part in text.passages] for hit, text in zip(hits, texts, strict=True)
        }
        stored = await vectors_of_passages(session, question.survey.model, starts)
        texts = [text._replace(vectors=stored.get(hit.memory.memory_id)) for hit, text in zip(hits, texts, strict=True)]
    terms = question.terms
    embedded: Sequence[Vector | None] = question.embedded or [None] * (len(call.several) + 1)
    whole, *vectors = embedded
    needs = [need_of(text, terms, vector) for text, vector in zip(call.several, vectors, strict=True)]
    found = scored(texts, terms, whole, needs)
    case = await _case_of(session, call, hits, found)
    known = terms.share(terms.stored.union(*(item.lexemes for items in found for item in items)))
    signs = _signs(hits, found) if hits else _signs_of_pool(pool, question.full_match(pool))
    likely = probability(*signs, known) if _is_measured(call, question) else None
    gated = _before_passages(call, question) is not call.preset
    if gated and not (case and case.named) and not _is_answerable(call.preset, hits, likely):
        return _Found((), likely)
    corrects = call.passages and any(says_so(text.body) for text in texts)
    intakes = await intakes_between(session, [hit.memory.created_at for hit in hits]) if corrects else None
    if call.passages:
        hits = tuple(of_place(hit, gain_of_place(call.needs, _place(hit.memory))) for hit in hits)
    hits = passed(hits, found, call.preset.weights, intakes)
    hits = tuple(_likely(hit, items, None if likely is None else known) for hit, items in zip(hits, found, strict=True))
    if call.passages:
        hits = await _with_case(session, call, tuple(sorted(hits, key=lambda hit: -hit.score)), case, likely)
    least, by = call.query.min_probability or 0.0, "lexical" if likely is None else "probability"
    return _Found(tuple(hit for hit in hits if (hit.explain.get(by) or 0.0) >= least), likely)


async def _with_case(
    session: Session, call: _Call, hits: tuple[Hit, ...], case: Case | None, likely: float | None
) -> tuple[Hit, ...]:
    """Returns hits with a case's score history once, and after the state of the case that the request continues."""
    if any((hit.memory.source_uri or "").startswith(CASE) for hit in hits):
        sources = {hit.memory.source_id for hit in hits if hit.memory.source_id is not None}
        hits = without_copies(hits, await lists_of_judgements(session, sources))
    state = None if case is None else await state_of(session, case.name, call.query.filters)
    return hits if state is None or (state.suspect and not call.suspects) else with_state(hits, state, likely)


def _likely(hit: Hit, items: Sequence[PassageScore], known: float | None) -> Hit:
    """Returns a hit with its probability, for the share of the query's words that is known; None gives none."""
    value = None
    if known is not None:
        similarity = max([hit.explain["similarity"] or 0.0, *(item.similarity for item in items)])
        lexical = max([hit.explain["lexical"] or 0.0, *(item.lexical for item in items)])
        value = hit_probability(similarity, lexical, known)
    return replace(hit, explain={**hit.explain, "probability": value})


MOST_NEEDS = 6
"""Needs of a request for which passages are scored."""
MOST_SEARCHED = 4
"""Searches by meaning for a request: one for all needs, and one for each of the first three."""
VOTERS = 10
"""The best passages whose sources tell of which case a request is."""


async def _case_of(
    session: Session, call: _Call, hits: Sequence[Hit], found: Sequence[Sequence[PassageScore]]
) -> Case | None:
    """Returns the case that the request of a history continues; None if it continues none."""
    if not call.passages or not continues_a_case(call.needs):
        return None
    ranked = sorted(
        ((item.own, hit.memory.source_id) for hit, items in zip(hits, found, strict=True) for item in items),
        key=lambda item: -item[0],
    )[:VOTERS]
    cases = await cases_of(session, {source for _, source in ranked if source is not None})
    whole = sum(own for own, _ in ranked) or 1.0
    votes = {case: sum(own for own, source in ranked if source in of_case) / whole for case, of_case in cases.items()}
    return case_of(call.query.text, cases, votes)


def _place(memory: Memory) -> str:
    return f"{PATH_MARKS.sub(' ', memory.source_uri or '')} {memory.title}"


def _before_passages(call: _Call, question: Question) -> Preset:
    """Returns the preset by which memories are found whose passages tell if the query has an answer."""
    threshold = call.preset.threshold
    if not call.passages or threshold is None or not _is_measured(call, question):
        return call.preset
    return replace(call.preset, threshold=threshold.of_memories())


def _signs(hits: Sequence[Hit], found: Sequence[Sequence[PassageScore]]) -> tuple[float, float]:
    """Returns the best similarity of a hit or a passage, and the best lexical score of a hit."""
    passages = [item.similarity for items in found for item in items]
    similarity = max([hit.explain["similarity"] or 0.0 for hit in hits] + passages, default=0.0)
    return similarity, _best_lexical(hits)


def _signs_of_pool(pool: Sequence[Candidate], full_match: float) -> tuple[float, float]:
    """Returns the same of a pool of which no memory is a hit."""
    bm25 = max((item.bm25 for item in pool), default=0.0)
    similarity = max((item.similarity or 0.0 for item in pool), default=0.0)
    return similarity, min(1.0, bm25 / full_match) if full_match else 0.0


def _best_lexical(hits: Sequence[Hit]) -> float:
    return max((hit.explain["lexical"] or 0.0 for hit in hits), default=0.0)


def _is_answerable(preset: Preset, hits: Sequence[Hit], likely: float | None) -> bool:
    threshold = preset.threshold
    return threshold is None or _best_lexical(hits) >= threshold.lexical or (likely or 0.0) >= threshold.likely


def _taken(ranking: Iterator[Ranked], count: int) -> list[Ranked]:
    """Returns the next of a ranking; the first of them cost the ranking of all."""
    with span("recall.rank"):
        return list(islice(ranking, count))


def _read(
    chosen: Sequence[tuple[Ranked, Memory]],
    call: _Call,
    wanted: int,
    *,
    asking: Asking,
) -> tuple[Hit, ...]:
    """Returns the first `wanted` hits in the order that their texts give; the order depends on all of them."""
    memories = {item.candidate.memory_id: memory for item, memory in chosen}
    texts = [
        Text(memory.title, memory.body, memory.source_id, memory.ordinal if memory.kind == "message" else None)
        for memory in memories.values()
    ]
    preset = call.preset
    again = reread([item for item, _ in chosen], texts, preset, asking)
    items = {item.candidate.memory_id: item for item in again}
    single = deduplicated(
        [memories[memory_id] for memory_id in items],
        title_kinds=preset.title_kinds,
        by_text=preset.dedupe_by_text,
        paired=lambda memory: _is_paired(items[memory.memory_id]),
    )
    return tuple(_hit(items[memory.memory_id], memory) for memory in islice(single, wanted))


def _is_paired(item: Ranked) -> bool:
    """Tells if a memory comes with another observation of its task, which may have its title."""
    edge = item.relevance.edge
    return edge is not None and edge.relation == SAME_TASK


def _hit(item: Ranked, memory: Memory) -> Hit:
    """Returns the hit, with the seed at the other end of the link that boosts it."""
    edge, seed, link = item.relevance.edge, item.seed, None
    if edge is not None and seed is not None:
        link = HitLink(relation=edge.relation, direction=edge.direction, memory_id=seed.memory_id, title=seed.title)
    return Hit(memory=memory, score=item.rank.value, explain=item.explain, link=link)


async def _reranked(
    reranker: Reranker | None, call: _Call, hits: tuple[Hit, ...]
) -> tuple[tuple[Hit, ...], tuple[Degradation, ...]]:
    """Returns the hits in the re-ranker's order, or unchanged with the reason. It holds no connection."""
    if reranker is None:
        return hits, (Degradation(arm=RERANKER, reason="none is configured; set PRIORS_RERANKER", silent=True),)
    if not hits:
        return hits, ()
    texts = [embedded_text(hit.title, hit.body) for hit in hits[:MOST_RERANKED]]
    try:
        with span("recall.rerank", texts=len(texts)):
            scores = await reranker.scores(call.query.text, texts)
    except RerankerUnavailable as error:
        return hits, (Degradation(arm=RERANKER, reason=str(error), silent=True),)
    order = reranked([hit.explain for hit in hits], scores, call.preset.weights)
    return tuple(replace(hits[place], score=parts["score"] or 0.0, explain=parts) for place, parts in order), ()
