"""The verbs that find: candidates are found, ranked, read, ranked again, and logged."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any
from uuid import UUID

from app.errors import EmbeddingUnavailable, RerankerUnavailable
from app.foundation.db.database import Database
from app.foundation.db.session import Session
from app.foundation.models.bundled import DEFAULT_MODEL
from app.foundation.models.protocols import EmbeddingProvider, Matrix, Reranker, Vector, embed_words
from app.foundation.safety.secrets import masked_values
from app.foundation.text.dates import Period, in_words, period_asked
from app.foundation.text.words import is_latin
from app.foundation.values import frozen
from app.recall.retrieval.candidates import (
    SPARE,
    ArmQuery,
    candidates,
    degradations_of,
    lexical_hits,
    nothing_stored,
    plans,
    question_of,
    survey,
)
from app.recall.retrieval.log import UnloggedRecall, drawn_from, is_explored, log, shown_of
from app.recall.retrieval.passages import NOTHING, ProbableHits, with_passages
from app.recall.retrieval.rank.asking import needs_of, words_of_place
from app.recall.retrieval.rank.features import drop_duplicates
from app.recall.retrieval.rank.pasted import need_of
from app.recall.retrieval.rank.presets import MOST_RERANKED, Preset, rerank_by_quality
from app.recall.retrieval.rank.rank import Asking, Candidate, HitText, Ranked, rank_pool, reread
from app.recall.retrieval.recall import (
    HYBRID,
    LEXICAL,
    RERANKER,
    VECTOR,
    CheckedQuery,
    Hit,
    Query,
    Recall,
    checked_preset,
)
from app.recall.retrieval.recorded import find_recorded, within
from app.recall.retrieval.texts import StoredText, read, replaced_by
from app.storage.effects import influences_of
from app.storage.index.following import speaking
from app.storage.index.models import StoredModel
from app.storage.index.vectors import as_literal, embedded_text
from app.storage.links.relations import SAME_TASK
from app.storage.recalls.store import Degradation, HitLink
from app.storage.tenants.workspace import Workspace, configuration
from app.tracing import span

_MOST_READ = 32
"""Hits whose passages are ranked for a history. On six report trees of 51 to 82 memories, with 24 the corrections of 3
in 100 answers are not among them; 40 answer as 32 do."""
_MOST_SEARCHED = 4
"""Searches by meaning for a request: one for all needs, and one for each of the first three."""
_READ_AT_ONCE = 100_000
"""Most characters that are read and compared on the event loop, in 10 ms; a thread does longer work, so that no
other request waits."""


async def _found_hits(
    call: CheckedQuery, question: ArmQuery, reranker: Reranker | None
) -> tuple[ProbableHits, tuple[Degradation, ...]]:
    """Returns the hits in their final order, and the degradation of the re-ranker."""
    query, preset = call.query, call.preset
    if call.newest:
        async with call.database.session(call.workspace, reading=True) as session:
            return ProbableHits(await find_recorded(session, call, question, query.k + call.spare), None), ()
    most = max(query.k, _MOST_READ) if call.passages else query.k + call.spare
    most = most if preset.most is None else min(most, preset.most)
    # Hits that are not likely enough are left out, so that more are read.
    read = max(most, _MOST_READ) if query.min_probability else most
    # Presets that follow another recipe are not re-ranked, unless the query asks for it.
    if not (reranker is not None and preset.text_features is not None if query.rerank is None else query.rerank):
        found = await _hits(call, question, read)
        return found._replace(hits=found.hits[:most]), ()
    found = await _hits(call, question, max(read, MOST_RERANKED))
    hits, missing = await _rerank_hits(reranker, call, found.hits)
    return found._replace(hits=hits[:most]), missing


async def _hits(call: CheckedQuery, question: ArmQuery, wanted: int) -> ProbableHits:
    """Returns the first `wanted` hits of the ranking, also ordered by their texts, without duplicates.

    It reads twice as many hits each time, until there are enough or the ranking ends.
    """
    if question.vector is None and question.words is None:
        return NOTHING
    hits: tuple[Hit, ...] = ()
    chosen: list[tuple[Ranked, StoredText]] = []
    model = question.survey.model if question.embedded else None
    async with call.database.session(call.workspace, reading=True) as session:
        with span("recall.candidates", vectors=question.vector is not None):
            pool = await _pool(session, replace(question, least=max(question.least, wanted + SPARE)))
        preset = call.before_passages(has_vector=question.vector is not None)
        asking = await _asking(session, call, pool)
        ranking = rank_pool(pool, preset, asking, full_match=question.full_match(pool))
        read_texts = partial(_read, chosen, call.preset, wanted, asking=asking)
        # Of so many hits a history needs no certain number: duplicates among those that it reads only leave fewer.
        spare, least = (0, wanted - SPARE) if call.passages and wanted >= _MOST_READ else (SPARE, wanted)
        while len(hits) < least:
            # The first of a ranking cost the ranking of all.
            with span("recall.rank"):
                following = list(islice(ranking, max(wanted + spare, len(chosen))))
            if not following:
                break
            with span("recall.hydrate", memories=len(following)):
                live = await read(session, [item.candidate.memory_id for item in following], model=model)
            read_now = ((item, live.get(item.candidate.memory_id)) for item in following)
            chosen += [(item, its) for item, its in read_now if its and (call.suspects or not its.memory.suspect)]
            is_long = sum(len(its.memory.body) for _, its in chosen) > _READ_AT_ONCE
            with span("recall.rank", memories=len(chosen)):
                hits = await asyncio.to_thread(read_texts) if is_long else read_texts()
        stored = {its.memory.memory_id: its for _, its in chosen}
        if call.passages and question.survey.linked:
            hits = await _current(session, call, hits, stored, model)
        return await with_passages(session, call, question, pool, hits, stored)


async def _pool(session: Session, question: ArmQuery) -> list[Candidate]:
    """Returns the candidates of the query, and those that are nearest to each of its needs, if there are several."""
    pool = {item.memory_id: item for item in await candidates(session, question)}
    for vector in question.embedded[1:_MOST_SEARCHED] if question.vector is not None else ():
        near = replace(question, vector=as_literal(vector), lexical_hits=None, linked=False)
        for item in await candidates(session, near):
            pool.setdefault(item.memory_id, item._replace(seed=None, edges=None))
    return list(pool.values())


async def _asking(session: Session, call: CheckedQuery, pool: Sequence[Candidate]) -> Asking:
    """Returns the query as ranking takes it, with the influence of the pool's memories where the workspace uses it."""
    if not call.workspace.uses_effects or call.preset.judges_all:
        return call.asking
    return call.asking._replace(influences=await influences_of(session, [item.memory_id for item in pool]))


async def _current(
    session: Session,
    call: CheckedQuery,
    hits: tuple[Hit, ...],
    stored: dict[UUID, StoredText],
    model: StoredModel | None,
) -> tuple[Hit, ...]:
    """Returns hits in which a memory that a later one supersedes or contradicts has given its place to that one.

    If that one does not pass the filters, neither is a hit. It is added to what is `stored`.
    """
    found = await replaced_by(session, [hit.memory.memory_id for hit in hits])
    own = {hit.memory.memory_id for hit in hits}
    if not found:
        return hits
    live = await read(session, list({*found.values()} - own), model=model, filters=call.query.filters)
    stored |= live
    current: dict[UUID, Hit] = {}
    for hit in hits:
        new = found.get(hit.memory.memory_id)
        if new is None:
            current.setdefault(hit.memory.memory_id, hit)
        elif new in live and live[new].passes and not live[new].memory.suspect:
            current.setdefault(new, replace(hit, memory=live[new].memory, link=None, **_issues(live[new])))
    return tuple(current.values())


def _read(
    chosen: Sequence[tuple[Ranked, StoredText]], preset: Preset, wanted: int, *, asking: Asking
) -> tuple[Hit, ...]:
    """Returns the first `wanted` hits in the order that their texts give; the order depends on all of them."""
    stored = {item.candidate.memory_id: its for item, its in chosen}
    memories = {memory_id: its.memory for memory_id, its in stored.items()}
    texts = [
        HitText(memory.title, memory.body, memory.source_id, memory.ordinal if memory.kind == "message" else None)
        for memory in memories.values()
    ]
    again = reread([item for item, _ in chosen], texts, preset, asking)
    items = {item.candidate.memory_id: item for item in again}
    single = drop_duplicates(
        [memories[memory_id] for memory_id in items],
        title_kinds=preset.title_kinds,
        by_text=preset.dedupe_by_text,
        paired=lambda memory: _is_paired(items[memory.memory_id]),
    )
    return tuple(_hit(items[memory.memory_id], stored[memory.memory_id]) for memory in islice(single, wanted))


def _is_paired(item: Ranked) -> bool:
    """Tells if a memory comes with another observation of its task, which may have its title."""
    edge = item.relevance.edge
    return edge is not None and edge.relation == SAME_TASK


def _hit(item: Ranked, stored: StoredText) -> Hit:
    """Returns the hit, with the seed at the other end of the link that boosts it."""
    edge, seed, link = item.relevance.edge, item.seed, None
    if edge is not None and seed is not None:
        link = HitLink(relation=edge.relation, direction=edge.direction, memory_id=seed.memory_id, title=seed.title)
    return Hit(memory=stored.memory, score=item.rank.value, explain=item.explain, link=link, **_issues(stored))


def _issues(stored: StoredText) -> dict[str, Any]:
    issues = stored.changed_issues
    return {"issues": issues, "stated_issues": len(stored.issues) if issues else 0}


async def _rerank_hits(
    reranker: Reranker | None, call: CheckedQuery, hits: tuple[Hit, ...]
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
    order = rerank_by_quality([hit.explain for hit in hits], scores, call.preset.weights)
    return tuple(replace(hits[place], score=parts["score"] or 0.0, explain=parts) for place, parts in order), ()


_SEARCHED_AT_ONCE = 20_000
"""Characters of a request that are searched for its need on the event loop, in 1 to 60 ms."""
_MASKED_AT_ONCE = 500
"""Characters of a query that are masked on the event loop: they take 0.03 ms, random tokens 0.5, at worst 4."""


@frozen
class Retrieval:
    """Finds memories of a database."""

    database: Database
    provider: EmbeddingProvider
    reranker: Reranker | None = None
    """Scores the best hits again; None if none is configured."""
    mask_secrets: bool = True
    """True if the log has no secrets of a query."""
    explore: float = 0.0
    """Share of the recalls of runs in which a draw withholds the memory of one slot."""

    async def search(self, workspace: Workspace, query: Query) -> Recall:
        """Returns the memories that matter for a query, best first, logged as a recall.

        The log has no secrets of the query, unless they are not masked.

        Raises:
            InvalidInput: the query, its filters, preset or k is not valid.
            DatabaseUnavailable: the database does not answer.
        """
        finding = await self.find(workspace, query, spare=int(is_explored(self.explore, query)))
        slots, following = finding.hits[: query.k], finding.hits[query.k :]
        drawn = drawn_from(finding, slots, self.explore)
        if drawn is not None and drawn.withheld is not None and following and len(slots) > 1:
            drawn = drawn._replace(following=following[0])
        async with self.database.session(finding.workspace, transaction=False) as session:
            return await log(session, finding, hits=shown_of(slots, drawn), tokens=None, drawn=drawn)

    async def find(
        self, workspace: Workspace, query: Query, *, suspects: bool = True, passages: bool = False, spare: int = 0
    ) -> UnloggedRecall:
        """Does `search` without the log. While the query is embedded the database surveys and asks the lexical arm.

        Without `suspects`, a memory in which the injection scan suspects an instruction is no hit. With `passages` it
        returns MOST_READ hits or more, with their passages ranked. It returns `spare` hits more than the query wants.
        """
        started, provider = time.perf_counter(), self.provider
        is_measured = provider.model_id == DEFAULT_MODEL
        preset = checked_preset(query, measured=is_measured)
        # A preset that judges all memories compares a text, which is no request.
        if not preset.judges_all:
            query = replace(query, text=await _need_in(query.text))
            preset = checked_preset(query, measured=is_measured)
        needs = (query.text,) if preset.judges_all else needs_of(query.text)
        asked = replace(query, text=" ".join(filter(None, (*needs, words_of_place(needs) if passages else ""))))
        is_measured = is_measured and is_latin(query.text)
        period, newest = _period_in(needs, query) if not preset.judges_all else (None, False)
        asked = within(asked, period) if period is not None else asked
        call = CheckedQuery(
            self.database, workspace, asked, preset, suspects, is_measured, passages, needs, spare, newest
        )
        embedded, question, loggable = await asyncio.gather(
            _embed_needs(provider, call), _question(call), _loggable(query, mask=self.mask_secrets)
        )
        found = NOTHING
        mode, degraded = LEXICAL, nothing_stored(workspace.name)
        if question is not None:
            question, degraded = await self._with_vectors(call, question, embedded, query.text)
            both = question.words is not None and call.preset.nearest is None
            mode = LEXICAL if question.vector is None else HYBRID if both else VECTOR
            found, missing = await _found_hits(call, question, self.reranker)
            degraded = (*degraded, *missing)
        return UnloggedRecall(
            workspace=workspace,
            query=loggable,
            mode=mode,
            degraded=degraded,
            started=started,
            period=None if period is None else in_words(period, query.moment),
            **found._asdict(),
        )

    async def _with_vectors(
        self, call: CheckedQuery, question: ArmQuery, embedded: "_EmbeddedNeeds", text: str
    ) -> tuple[ArmQuery, tuple[Degradation, ...]]:
        """Returns a question with its vectors, if the stored vectors can be compared, and what is missing."""
        vectors, tokens, refusal = embedded
        model = question.survey.model
        provider = speaking(self.provider, model.name if model else None)
        if provider is not self.provider:
            # The database has just moved to another model, which is loaded already.
            vectors, tokens, refusal = await _embed_needs(provider, call)
        degraded = degradations_of(provider, question, text, refusal)
        if vectors and not any(item.arm == VECTOR and item.silent for item in degraded):
            question = replace(question, vector=as_literal(vectors[0]), embedded=vectors, tokens=tokens)
        return question, degraded

    async def plans_of(self, recall: Recall) -> Mapping[str, str]:
        """Returns the plans by which Postgres answers the statements of a recall, by step; none has a value of it."""
        query, workspace = recall.query, recall.workspace
        call = CheckedQuery(self.database, workspace, query, checked_preset(query), suspects=True)
        async with self.database.session(workspace, transaction=False) as session:
            question = await _survey(session, call)
            if question is None:
                return {}
            return await plans(session, replace(question, vector=None if recall.mode == LEXICAL else ""), query)


def _period_in(needs: Sequence[str], query: Query) -> tuple[Period | None, bool]:
    """Returns the period of which a query asks for records, and True if it asks for all of them."""
    found = period_asked(query.text, query.moment) if len(needs) == 1 else None
    return found or (None, False)


async def _need_in(request: str) -> str:
    return await asyncio.to_thread(need_of, request) if len(request) > _SEARCHED_AT_ONCE else need_of(request)


_EmbeddedNeeds = tuple[Sequence[Vector], Matrix | None, str | None]
"""The vectors of a query and of its needs, and of its words, or none and the reason."""


async def _embed_needs(provider: EmbeddingProvider, call: CheckedQuery) -> _EmbeddedNeeds:
    if not provider.enabled:
        return (), None, None
    try:
        with span("recall.embed"):
            texts = call.query.text, *call.several
            vectors, words = zip(*await asyncio.gather(*(embed_words(provider, it) for it in texts)), strict=True)
            return vectors, words[0] if call.passages else None, None
    except EmbeddingUnavailable as error:
        return (), None, str(error)


async def _loggable(query: Query, *, mask: bool) -> Query:
    """Returns the query in the form that may be stored. A long query is masked in a thread."""
    if mask and len(query.text) > _MASKED_AT_ONCE:
        return await asyncio.to_thread(masked_values, query)
    return masked_values(query) if mask else query


async def _question(call: CheckedQuery) -> ArmQuery | None:
    """Surveys the workspace and queries the lexical arm; returns None if the workspace has no memory."""
    async with call.database.session(call.workspace, reading=True) as session:
        question = await _survey(session, call)
        if question is None:
            return None
        with span("recall.lexical"):
            return replace(question, lexical_hits=await lexical_hits(session, question))


async def _survey(session: Session, call: CheckedQuery) -> ArmQuery | None:
    query = call.query
    language = None if query.language is None else configuration(query.language)
    with span("recall.survey"):
        known = await survey(session, query.text, filters=query.filters, language=language)
    if known is None or not known.live:
        return None
    return question_of(known, query, call.preset)
