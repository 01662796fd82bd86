"""The passages of hits: they are scored, tell if the store speaks to the query, and give way to later corrections."""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from heapq import nsmallest
from typing import NamedTuple
from uuid import UUID

from app.db.session import Session
from app.memories.memory import Memory
from app.models.protocols import Vector
from app.retrieval.call import Call
from app.retrieval.candidates import Question
from app.retrieval.cases import continued_case, with_case
from app.retrieval.rank.corrections import COMPARED, Dated, likely_corrections, outdated, says_so
from app.retrieval.rank.needs import gain_of_place, places_of
from app.retrieval.rank.passages import PassageScore, ReadText, need_of, read_text, scored
from app.retrieval.rank.presets import Threshold, hit_probability, probability
from app.retrieval.rank.quality import Weights
from app.retrieval.rank.rank import Candidate
from app.retrieval.recall import Hit, HitPassage
from app.retrieval.texts import Stored, intakes_between

PATH_MARKS = re.compile(r"[/_.-]+")


class Found(NamedTuple):
    """Hits, with the probability that the store speaks to the query."""

    hits: tuple[Hit, ...]
    probability: float | None


NOTHING = Found((), None)
Scores = Sequence[Sequence[PassageScore]]
"""The passages of each hit."""


async def with_passages(
    session: Session,
    call: Call,
    question: Question,
    pool: Sequence[Candidate],
    hits: tuple[Hit, ...],
    stored: Mapping[UUID, Stored],
) -> Found:
    """Returns likely hits with their ranked passages, and with the best one and a probability in their explanations."""
    found = _scores(call, question, hits, stored)
    case = await continued_case(session, call, hits, found)
    known = question.terms.share(question.terms.stored.union(*(item.lexemes for items in found for item in items)))
    similarity, lexical = _signs(hits, found) if hits else _signs_of_pool(pool, question.full_match(pool))
    is_measured = call.measured and question.vector is not None
    likely = probability(similarity, lexical, known) if is_measured else None
    gate = call.preset.threshold if call.passages and is_measured and not (case and case.named) else None
    if gate is not None and not _is_answerable(gate, lexical if hits else 0.0, likely):
        return Found((), likely)
    places = places_of(call.needs) if call.passages else ()
    gains = [gain_of_place(places, _place(hit.memory)) if places else 0.0 for hit in hits]
    corrected = await _corrected(session, hits, found) if call.passages else {}
    hits = passed(hits, found, call.preset.weights, corrected, gains, None if likely is None else known)
    if call.passages:
        hits = await with_case(session, call, tuple(sorted(hits, key=lambda hit: -hit.score)), case, likely)
    least, by = call.query.min_probability or 0.0, "lexical" if likely is None else "probability"
    return Found(tuple(hit for hit in hits if (hit.explain.get(by) or 0.0) >= least), likely)


def _scores(call: Call, question: Question, hits: Sequence[Hit], stored: Mapping[UUID, Stored]) -> Scores:
    terms = question.terms
    embedded: Sequence[Vector | None] = question.embedded or [None] * (len(call.several) + 1)
    whole, *vectors = embedded
    needs = [need_of(text, terms, vector) for text, vector in zip(call.several, vectors, strict=True)]
    return scored([_text_of(hit, stored[hit.memory.memory_id]) for hit in hits], terms, whole, needs)


def _text_of(hit: Hit, stored: Stored) -> ReadText:
    explain = hit.explain
    evidence, links = explain["evidence"] or 0.0, explain["links"] or 0.0
    text = read_text(hit.title, hit.body, similarity=explain["similarity"], evidence=evidence, links=links)
    return text._replace(vectors=stored.vectors_of([part.start for part in text.passages]))


def _place(memory: Memory) -> str:
    return f"{PATH_MARKS.sub(' ', memory.source_uri or '')} {memory.title}"


def _signs(hits: Sequence[Hit], found: Scores) -> tuple[float, float]:
    """Returns the best similarity of a hit or a passage, and the best lexical score of a hit."""
    passages = [item.similarity for items in found for item in items]
    similarity = max([hit.explain["similarity"] or 0.0 for hit in hits] + passages)
    return similarity, max(hit.explain["lexical"] or 0.0 for hit in hits)


def _signs_of_pool(pool: Sequence[Candidate], full_match: float) -> tuple[float, float]:
    """Returns the same of a pool of which no memory is a hit."""
    bm25 = max((item.bm25 for item in pool), default=0.0)
    similarity = max((item.similarity or 0.0 for item in pool), default=0.0)
    return similarity, min(1.0, bm25 / full_match) if full_match else 0.0


def _is_answerable(threshold: Threshold, lexical: float, likely: float | None) -> bool:
    return lexical >= threshold.lexical or (likely or 0.0) >= threshold.likely


Place = tuple[int, int]
"""The number of a hit, and of a passage in it."""


async def _corrected(session: Session, hits: Sequence[Hit], found: Scores) -> dict[Place, Place]:
    """Returns the passages that a later one corrects, each with the one that does."""
    if not any(says_so(hit.body) for hit in hits):
        return {}
    own = [(-item.own, place, number) for place, items in enumerate(found) for number, item in enumerate(items)]
    best = nsmallest(COMPARED, own)
    places = [(place, number) for _, place, number in best]
    most = max((-value for value, *_ in best), default=0.0) or 1.0
    dated = [_dated(hits[place].memory, found[place][number], most) for place, number in places]
    likely = likely_corrections(dated)
    if not likely:
        return {}
    moments = [hit.memory.created_at for hit in hits]
    later = _numbered(dated, places, moments, await intakes_between(session, moments))
    return {places[old]: places[new] for old, new in outdated(later, likely).items()}


def _numbered(
    dated: Sequence[Dated], places: Sequence[Place], moments: Sequence[datetime], intakes: Sequence[datetime]
) -> list[Dated]:
    """Returns passages with the numbers of their intakes; `intakes` are the moments at which these began, in order."""
    return [
        item._replace(intake=bisect_right(intakes, moments[place]))
        for item, (place, _) in zip(dated, places, strict=True)
    ]


def _dated(memory: Memory, item: PassageScore, most: float) -> Dated:
    text = f"{memory.title}\n{item.passage.of(memory.body)}"
    return Dated(
        text=text,
        vector=item.vector,
        source=memory.source_id or memory.memory_id,
        evidence=item.own / most,
        moment=None if memory.occurred_at is None else memory.occurred_at.timestamp(),
        # People say "again" and "no longer" in every conversation, and mean something else each time.
        corrects=memory.kind != "message" and says_so(text),
    )


def passed(
    hits: Sequence[Hit],
    found: Scores,
    weights: Weights,
    corrected: Mapping[Place, Place],
    gains: Sequence[float],
    known: float | None,
) -> tuple[Hit, ...]:
    """Returns hits with their passages, ranked like the hits; those that are `corrected` are left out.

    A correction ranks at least as high as what it corrects. The explanation of a hit names its best passage, from 1.
    `gains` are what the hits' places in a report add to their scores; `known` is the share of the query's words that is
    known, None for hits without a probability.
    """
    best = max((item.evidence for items in found for item in items), default=0.0) or 1.0
    ranks = {
        (place, number): _passage_rank(hits[place].explain, item.evidence / best, weights) + gains[place]
        for place, items in enumerate(found)
        for number, item in enumerate(items)
    }
    for old, new in corrected.items():
        ranks[new] = max(ranks[new], ranks[old])
    return tuple(
        replace(
            hit,
            score=hit.score + gains[place],
            explain=_explain(hit, items, gains[place], known),
            passages=tuple(
                HitPassage(item, ranks[place, number])
                for number, item in enumerate(items)
                if (place, number) not in corrected
            ),
        )
        for place, (hit, items) in enumerate(zip(hits, found, strict=True))
    )


def _passage_rank(explain: Mapping[str, float | None], relevance: float, weights: Weights) -> float:
    qual_weight, adjustment, recency, role = (
        explain[name] or 0.0 for name in ("qual_weight", "q_adjust", "recency", "role")
    )
    return (weights.relevance * relevance + weights.quality * qual_weight) * adjustment * recency + role


def _explain(hit: Hit, items: Sequence[PassageScore], gain: float, known: float | None) -> Mapping[str, float | None]:
    """Returns the components of a hit's score with its place, its best passage and its probability."""
    explain = dict(hit.explain)
    if gain:
        explain |= {"place": gain, "score": (explain["score"] or 0.0) + gain}
    if len(items) > 1:
        number = max(range(len(items)), key=lambda place: items[place].evidence)
        start, end, _ = items[number].passage
        explain |= {"passage": number + 1, "passages": len(items), "passage_starts": start, "passage_ends": end}
    explain["probability"] = None
    if known is not None:
        similarity = max([explain["similarity"] or 0.0, *(item.similarity for item in items)])
        lexical = max([explain["lexical"] or 0.0, *(item.lexical for item in items)])
        explain["probability"] = hit_probability(similarity, lexical, known)
    return explain
