"""Finds hits: candidates of both arms are ranked, read, ranked again by their texts and passages, and re-ranked."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any
from uuid import UUID

from app.errors import RerankerUnavailable
from app.foundation.db.session import Session
from app.foundation.models.protocols import Reranker
from app.recall.retrieval.candidates import SPARE, ArmQuery, candidates
from app.recall.retrieval.passages import NOTHING, ProbableHits, with_passages
from app.recall.retrieval.rank.presets import Preset
from app.recall.retrieval.rank.quality import MOST_RERANKED, rerank_by_quality
from app.recall.retrieval.rank.rank import Asking, Candidate, Ranked, rank_pool, reread
from app.recall.retrieval.rank.text_features import HitText, drop_duplicates
from app.recall.retrieval.recall import RERANKER, CheckedQuery, Hit
from app.recall.retrieval.texts import StoredText, read, replaced_by
from app.storage.effects import influences_of
from app.storage.index.models import StoredModel
from app.storage.index.vectors import as_literal, embedded_text
from app.storage.links.relations import SAME_TASK
from app.storage.recalls.store import Degradation, HitLink
from app.tracing import span

_MOST_READ = 32
"""Hits whose passages are ranked for a history. On six report trees of 51 to 82 memories, with 24 the corrections of 3
in 100 answers are not among them; 40 answer as 32 do."""
_MOST_SEARCHED = 4
"""Searches by meaning for a request: one for all needs, and one for each of the first three."""
_READ_AT_ONCE = 100_000
"""Most characters that are read and compared on the event loop, in 10 ms; a thread does longer work, so that no
other request waits."""


async def found_hits(
    call: CheckedQuery, question: ArmQuery, reranker: Reranker | None
) -> tuple[ProbableHits, tuple[Degradation, ...]]:
    """Returns the hits in their final order, and the degradation of the re-ranker."""
    query, preset = call.query, call.preset
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
    async with call.database.session(call.workspace, reading=True, at_node=True) as session:
        with span("recall.candidates", vectors=question.vector is not None):
            pool = await _pool(session, replace(question, least=max(question.least, wanted + SPARE)))
        preset = call.before_passages(has_vector=question.vector is not None)
        asking = await _asking(session, call, pool)
        ranking = rank_pool(pool, preset, asking, full_match=question.full_match(pool))
        read_texts = partial(_read, chosen, call.preset, wanted, asking=asking)
        # Of so many hits a history needs no certain number: duplicates among those that it reads only leave fewer.
        spare, least = (0, wanted - SPARE) if call.passages and wanted >= _MOST_READ else (SPARE, wanted)
        while len(hits) < least and (following := _take_next(ranking, max(wanted + spare, len(chosen)))):
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


def _take_next(ranking: Iterator[Ranked], count: int) -> list[Ranked]:
    """Returns the next of a ranking; the first of them cost the ranking of all."""
    with span("recall.rank"):
        return list(islice(ranking, count))


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
