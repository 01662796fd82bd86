"""Ranks the passages of hits, leaves out what a later one corrects, and puts the case of a request first."""

import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from heapq import nlargest, nsmallest
from posixpath import dirname, join, normpath
from typing import NamedTuple
from uuid import UUID

from app.foundation.db.session import Session
from app.foundation.models.late import late_scores, project_words
from app.foundation.models.protocols import Matrix, Vector
from app.foundation.text.passages import Passage, passages_of, says_something
from app.foundation.text.scores import version_order, versions_in
from app.foundation.text.words import path_in_words
from app.intake.cases.judgement import CALIBRATION, CASE, FACET, case_key, is_case_note, named_in_path
from app.intake.reports.chunk import HEADING_SEPARATOR
from app.intake.reports.record import DECIDED, STATUS, role_of_passage
from app.intake.reports.state import CONCLUSION, files_replaced_by, names_conclusion
from app.intake.reports.state import state_of as state_in_report
from app.recall.retrieval.candidates import ArmQuery
from app.recall.retrieval.rank.asking import Case, case_of, continues_a_case, gain_of_place, places_of, words_of_place
from app.recall.retrieval.rank.corrections import (
    COMPARED,
    ERRATUM,
    Correction,
    Dated,
    left_of,
    likely_corrections,
    outdated_places,
)
from app.recall.retrieval.rank.passages import (
    PassageScore,
    ReadText,
    evidence_in,
    expected_late,
    expected_similarity,
    fuse_scores,
    need_of,
    read_text,
    score_passages,
)
from app.recall.retrieval.rank.presets import Signs, Weights, answerable, hit_probability, probability
from app.recall.retrieval.rank.rank import COMPONENTS, INFLUENCE, Candidate
from app.recall.retrieval.recall import CheckedQuery, Hit, HitPassage
from app.recall.retrieval.texts import (
    StoredText,
    cases_of,
    conclusions_of,
    intakes_between,
    lists_of_judgements,
    state_of,
)
from app.storage.memories.memory import Memory

_VOTERS = 10
"""The best passages whose sources tell of which case a request is."""
_SCORE = re.compile(r"\b\d{1,3}(?:[.,]\d+)?\b")


async def _continued_case(
    session: Session, call: CheckedQuery, hits: Sequence[Hit], found: Sequence[Sequence[PassageScore]]
) -> Case | None:
    """Returns the case that the request of a history continues; None if it continues none."""
    if not call.passages or not continues_a_case(call.needs):
        return None
    ranked = sorted(
        ((item.own, hit.memory.source_id) for hit, items in zip(hits, found, strict=True) for item in items),
        key=lambda item: -item[0],
    )[:_VOTERS]
    cases = await cases_of(session, {source for _, source in ranked if source is not None})
    whole = sum(own for own, _ in ranked) or 1.0
    votes = {case: sum(own for own, source in ranked if source in of_case) / whole for case, of_case in cases.items()}
    return case_of(call.query.text, cases, votes)


async def _with_case(
    session: Session, call: CheckedQuery, hits: tuple[Hit, ...], case: Case | None, likely: float | None
) -> tuple[Hit, ...]:
    """Returns hits with a case's score history once, and after the state of the case that the request continues."""
    if any(is_case_note(hit.memory.source_uri) for hit in hits):
        sources = {hit.memory.source_id for hit in hits if hit.memory.source_id is not None}
        hits = _without_copies(hits, await lists_of_judgements(session, sources))
    state = None if case is None else await state_of(session, case.name, call.query.filters)
    return hits if state is None or (state.suspect and not call.suspects) else _with_state(hits, state, likely)


async def _with_conclusions(session: Session, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
    """Returns hits, those of reports with what their file concludes, which one of its chunks states."""
    sources = {hit.memory.source_id for hit in hits if hit.memory.kind == "chunk"} - {None}
    found = await conclusions_of(session, sources) if sources else {}
    return tuple(_note_conclusion(hit, found.get(hit.memory.source_id, "")) for hit in hits)


def _note_conclusion(hit: Hit, conclusion: str) -> Hit:
    if not conclusion:
        return hit
    return replace(hit, memory=replace(hit.memory, metadata={**hit.memory.metadata, CONCLUSION: conclusion}))


def _with_state(hits: Sequence[Hit], note: Memory, likely: float | None) -> tuple[Hit, ...]:
    """Returns hits after the note that tells the state of the case that is asked about, with its passages in order.

    `likely` is the probability that the store speaks to the query: the note is what it says first.
    """
    best = max((item.passage.evidence for hit in hits for item in hit.passages), default=1.0)
    top = max((item.score for hit in hits for item in hit.passages), default=1.0) + 1.0
    parts = passages_of(note.body)
    passages = tuple(
        HitPassage(PassageScore(part, best, 0.0, 0.0), top - place / len(parts)) for place, part in enumerate(parts)
    )
    explain = {**dict.fromkeys(COMPONENTS), "score": top, "state": top, "probability": likely}
    state = Hit(memory=note, score=top, explain=explain, passages=passages)
    others = (hit for hit in hits if hit.memory.memory_id != note.memory_id)
    return (state, *(hit for hit in others if not _is_of_another_case(hit.memory, note)))


def _is_of_another_case(memory: Memory, note: Memory) -> bool:
    return is_case_note(memory.source_uri) and memory.source_uri != note.source_uri


def _without_copies(hits: Sequence[Hit], lists: Mapping[UUID, str]) -> tuple[Hit, ...]:
    """Returns hits without a case's score history where it stands twice: in the file that lists it, and in the note.

    The better hit stays. `lists` has the case of each source that lists judgements.
    """
    raw = [hit for hit in hits if hit.memory.source_id in lists and _lists_scores(hit.body)]
    left_out: set[UUID] = set()
    for note in filter(_is_score_history, hits):
        case = (note.memory.source_uri or "").removeprefix(CASE)
        copies = [hit for hit in raw if hit.memory.source_id and lists[hit.memory.source_id] == case]
        if copies and _best(note) >= max(map(_best, copies)):
            left_out |= {hit.memory.memory_id for hit in copies}
        elif copies:
            left_out.add(note.memory.memory_id)
    return tuple(hit for hit in hits if hit.memory.memory_id not in left_out)


def _lists_scores(text: str) -> bool:
    """Tells if most lines of a text name a version and have a number beside it."""
    lines = [line for line in text.splitlines() if says_something(line)]
    rows = [line for line in lines if next(versions_in(line), "") and _SCORE.search(line)]
    return len(rows) > 1 and 2 * len(rows) >= len(lines)


def _is_score_history(hit: Hit) -> bool:
    return hit.memory.kind == "note" and hit.memory.metadata.get(FACET) == CALIBRATION


def _best(hit: Hit) -> float:
    return max((item.score for item in hit.passages), default=0.0)


_LEAST_LEFT = 24
"""Least characters of a part of a passage from which a wrong sentence was taken: a shorter one states nothing."""
_BEFORE = 1e-6
"""The rank by which a correction stands before what it corrects."""
_DECISIVE = ("rejected", "declined", "reverted", "abandoned")
"""States that are themselves what a question may ask for: nothing stands in place of such a file."""
_OF_OUTDATED = 0.5
"""Share of its rank that a passage keeps whose file calls itself superseded, or which another hit's file replaces."""
_OF_A_NOTE = 0.7
"""Share of its rank that a passage of a note on a case keeps: a note sums up its sources, and gives way to them. On
six report trees, first blocks are right in 0.03 more of the answers than without (benchmarks/retrieval.md)."""
_ALONE = 3
"""Factor of the gain by a place where the request asks for nothing else. It has hardly a word of what is kept there."""
_OF_A_DECISION = 1.2
"""Factor of the rank of a passage below a heading for a decision or a status: half of the evidence of the questions on
two repositories of records stands there, and 0.15 of the other passages. The reciprocal rank of the first evidence is
0.51 instead of 0.38 on these, and as before on six report trees (benchmarks/retrieval.md)."""
_OF_A_CONCLUSION = 1.15
"""Factor of the rank of a passage whose nearest heading names a conclusion: such passages hold needed evidence twice as
often as others. Of 278 questions on 14 report trees 190 have right answers instead of 185 when a history is never
silent; with 1.1 as many, with 1.2 189 (benchmarks/retrieval.md)."""
_OF_A_PLAN = 0.85
"""Share of its rank that a passage of a file keeps whose path calls it a plan: what came out stands before what was
intended. On eight development trees no answer changes; on a tree of trading research that nobody had read, reports of
results stand before the hypotheses that they test."""
_OF_WORDS = 1.0
"""Gain of a passage by its late score. Of 114 questions on six public report trees 63 have right answers with it, 59
with 0.5 and 64 with 2, and 56 without; of 164 on eight other trees 124, 122, 119 and 123 (benchmarks/retrieval.md)."""
_PLANS = re.compile(
    r"(?i)(?<![a-z])(?:hypothes[ie]s|plans?|planning|specs?|specifications?|proposals?|roadmaps?|backlogs?|todos?|"
    r"prompts?|templates?)(?![a-z])"
)


class ProbableHits(NamedTuple):
    """Hits, with the probability that the store speaks to the query."""

    hits: tuple[Hit, ...]
    probability: float | None
    unlikely: tuple[Hit, ...] = ()
    """Memories that were found and left out, because they are not likely enough to matter."""
    signs: Signs | None = None
    """The signs by which a history is silent; None where no probability decides."""


NOTHING = ProbableHits((), None)
Scores = Sequence[Sequence[PassageScore]]
"""The passages of each hit."""


async def with_passages(
    session: Session,
    call: CheckedQuery,
    question: ArmQuery,
    pool: Sequence[Candidate],
    hits: tuple[Hit, ...],
    stored: Mapping[UUID, StoredText],
) -> ProbableHits:
    """Returns likely hits with their ranked passages, and with the best one and a probability in their explanations."""
    found = _scores(call, question, hits, stored)
    case = await _continued_case(session, call, hits, found)
    known = question.terms.share(question.terms.stored.union(*(item.lexemes for items in found for item in items)))
    similarity, lexical = _signs(hits, found) if hits else _signs_of_pool(pool, question.full_match(pool))
    is_measured = call.measured and question.vector is not None
    likely = probability(similarity, lexical, known) if is_measured else None
    gate = call.preset.threshold if call.passages and is_measured and not (case and case.named) else None
    places = places_of(call.needs) if call.passages else ()
    gains = [gain_of_place(places, _place(hit.memory)) if places else 0.0 for hit in hits]
    if any(gains) and words_of_place(call.needs):
        gate, gains = None, [_ALONE * gain for gain in gains]
    signs = None
    if gate is not None:
        seen = [_with_expected(hit, items) for hit, items in zip(hits, found, strict=True)]
        similarity = max([similarity, *(item.similarity for items in seen for item in items)])
        signs = Signs(*_best_passages(question, seen), similarity, known, _gap(seen), math.log(question.survey.live))
        likely = answerable(signs)
        if likely < gate.likely and (not hits or lexical < gate.lexical):
            return ProbableHits((), likely, hits, signs)
    corrected = await _find_corrected(session, hits, found) if call.passages else {}
    hits = pass_hits(hits, found, call.preset.weights, corrected, gains, None if likely is None else known)
    if call.passages:
        hits = await _with_case(session, call, tuple(sorted(hits, key=lambda hit: -hit.score)), case, likely)
        hits = await _with_conclusions(session, hits)
    least, by = call.query.min_probability or 0.0, "lexical" if likely is None else "probability"
    wanted = tuple(hit for hit in hits if (hit.explain.get(by) or 0.0) >= least)
    return ProbableHits(wanted, likely, tuple(hit for hit in hits if hit not in wanted) if least else (), signs)


def _scores(call: CheckedQuery, question: ArmQuery, hits: Sequence[Hit], stored: Mapping[UUID, StoredText]) -> Scores:
    terms = question.terms
    embedded: Sequence[Vector | None] = question.embedded or [None] * (len(call.several) + 1)
    whole, *vectors = embedded
    needs = [need_of(text, terms, vector) for text, vector in zip(call.several, vectors, strict=True)]
    dimension = question.survey.model.dimension if question.survey.model else 0
    texts = [_text_of(hit, stored[hit.memory.memory_id], dimension) for hit in hits]
    if question.tokens is not None:
        texts = _with_late_scores(question.tokens, texts, [stored[hit.memory.memory_id] for hit in hits])
    found = score_passages(texts, terms, whole, needs)
    if not call.passages:
        return found
    return [evidence_in(hit.body, items) for hit, items in zip(hits, found, strict=True)]


def _text_of(hit: Hit, stored: StoredText, dimension: int) -> ReadText:
    explain = hit.explain
    evidence, links = explain["evidence"] or 0.0, explain["links"] or 0.0
    whole = fuse_scores(explain["similarity"] or 0.0, explain["lexical"] or 0.0)
    text = read_text(hit.title, hit.body, similarity=explain["similarity"], evidence=evidence, links=links + whole)
    return text._replace(vectors=stored.vectors_of([part.start for part in text.passages], dimension))


def _with_late_scores(tokens: Matrix, texts: Sequence[ReadText], stored: Sequence[StoredText]) -> list[ReadText]:
    """Returns texts, those whose words have codes with the scores of their passages by the words of the query."""
    codes = [
        None if text.vectors is None else item.tokens_of(len(text.passages))
        for text, item in zip(texts, stored, strict=True)
    ]
    known = [item for item in codes if item is not None]
    scores = iter(late_scores(project_words(tokens), known))
    return [text if item is None else text._replace(late=next(scores)) for text, item in zip(texts, codes, strict=True)]


def _place(memory: Memory) -> str:
    return f"{path_in_words(memory.source_uri or '')} {memory.title}"


def _signs(hits: Sequence[Hit], found: Scores) -> tuple[float, float]:
    """Returns the best similarity of a hit or a passage, and the best lexical score of a hit."""
    passages = [item.similarity for items in found for item in items]
    similarity = max([hit.explain["similarity"] or 0.0 for hit in hits] + passages)
    return similarity, max(hit.explain["lexical"] or 0.0 for hit in hits)


_NEAREST = 20
"""The nearest passages by which it is seen if the nearest one stands out."""


def _with_expected(hit: Hit, items: Sequence[PassageScore]) -> Sequence[PassageScore]:
    """Returns passages; those of a memory that waits for its vector, as after a write, with what such words promise."""
    if hit.explain["similarity"] is not None:
        return items
    return [item._replace(similarity=expected_similarity(item), late=None) for item in items]


def _best_passages(question: ArmQuery, found: Scores) -> tuple[float, float]:
    """Returns the best late score of a passage, and the greatest share of the query's words in one passage."""
    items = [item for its in found for item in its]
    together = {item.lexemes for item in items}
    late = (expected_late(item) if item.late is None else item.late for item in items)
    return max(late, default=0.0), max(map(question.terms.share, together), default=0.0)


def _gap(found: Scores) -> float:
    nearest = nlargest(_NEAREST, (item.similarity for items in found for item in items))
    return nearest[0] - nearest[-1] if nearest else 0.0


def _signs_of_pool(pool: Sequence[Candidate], full_match: float) -> tuple[float, float]:
    """Returns the same of a pool of which no memory is a hit."""
    bm25 = max((item.bm25 for item in pool), default=0.0)
    similarity = max((item.similarity or 0.0 for item in pool), default=0.0)
    return similarity, min(1.0, bm25 / full_match) if full_match else 0.0


Place = tuple[int, int]
"""The number of a hit, and of a passage in it."""
_Corrected = dict[Place, tuple[Place, Correction]]
"""The passages that a later one corrects, each with that one."""


async def _find_corrected(session: Session, hits: Sequence[Hit], found: Scores) -> _Corrected:
    """Returns the passages that a later one corrects, each with the one that does.

    Notes on cases are left out: they are made anew of the judgements, and so are never outdated.
    """
    own = [
        (-item.own, place, number)
        for place, items in enumerate(found)
        if not is_case_note(hits[place].memory.source_uri)
        for number, item in enumerate(items)
    ]
    places = [(place, number) for _, place, number in nsmallest(COMPARED, own)]
    dated = [_date_passage(hits[place].memory, found[place][number]) for place, number in places]
    likely = likely_corrections(dated)
    if not likely:
        return {}
    moments = [hit.memory.created_at for hit in hits]
    intakes = await intakes_between(session, moments)
    later = [
        item._replace(intake=bisect_right(intakes, moments[place]))
        for item, (place, _) in zip(dated, places, strict=True)
    ]
    outdated = outdated_places(later, likely)
    return {places[old]: (places[item.new], item) for old, item in outdated.items()}


def _date_passage(memory: Memory, item: PassageScore) -> Dated:
    path, passage = memory.source_name, item.passage
    heading = memory.title.rpartition(HEADING_SEPARATOR)[2]
    return Dated(
        # People say "again" and "no longer" in every conversation, and mean something else each time.
        text="" if memory.kind == "message" else memory.body[passage.start : passage.end],
        heading=f"{heading} {passage.head_of(memory.body)}",
        vector=item.vector,
        source=memory.source_id or memory.memory_id,
        evidence=item.own,
        line=_line(path),
        is_erratum=ERRATUM.search(f"{memory.title} {path}") is not None,
        moment=None if memory.occurred_at is None else memory.occurred_at.timestamp(),
        series=_series(path),
    )


@lru_cache(maxsize=1_024)
def _line(path: str) -> str:
    """Returns the case of a path, or else its folder: what stands elsewhere speaks of another matter."""
    *folders, _ = parts = path.split("/")
    case, _ = named_in_path(parts)
    return case_key(case) if case else "/".join(folders)


@lru_cache(maxsize=1_024)
def _series(path: str) -> tuple[str, tuple[int, ...]] | None:
    """Returns the case and the number of the version that a path names; None if it names no version."""
    case, version = named_in_path(path.split("/"))
    return (case_key(case), version_order(version)) if version else None


def pass_hits(
    hits: Sequence[Hit],
    found: Scores,
    weights: Weights,
    corrected: _Corrected,
    gains: Sequence[float],
    known: float | None,
) -> tuple[Hit, ...]:
    """Returns hits with their passages, ranked like the hits, without the sentences that are `corrected`.

    A correction ranks before what it corrects; what may be corrected names its source. The explanation of a hit names
    its best passage, from 1. `gains` are what the hits' places in a report add to their scores; `known` is the share of
    the query's words that is known, None for hits without a probability.
    """
    best = max((item.evidence for items in found for item in items), default=0.0) or 1.0
    ranks = {
        (place, number): _passage_rank(hits[place], item, best, weights) + gains[place]
        for place, items in enumerate(found)
        for number, item in enumerate(items)
    }
    newer = _replaced_by(hits, ranks)
    for old, (new, correction) in corrected.items():
        ranks[new] = max(ranks[new], ranks[old] + _BEFORE)
        if not correction.spans:
            newer[old] = hits[new[0]].memory.source_name
    return tuple(
        replace(
            hit,
            score=hit.score + gains[place],
            explain=_explain(hit, items, gains[place], known),
            passages=tuple(
                HitPassage(part, ranks[place, number], newer.get((place, number), ""))
                for number, item in enumerate(items)
                for part in _uncorrected_parts(item, corrected.get((place, number)))
            ),
        )
        for place, (hit, items) in enumerate(zip(hits, found, strict=True))
    )


def _uncorrected_parts(item: PassageScore, corrected: tuple[Place, Correction] | None) -> Iterator[PassageScore]:
    """Yields what is left of a passage without the sentences that a later one corrects."""
    if corrected is None or not corrected[1].spans:
        yield item
        return
    start, end, head = item.passage
    for first, last in left_of(start, end, corrected[1].spans):
        if last - first >= _LEAST_LEFT:
            yield item._replace(passage=Passage(first, last, head))


def _passage_rank(hit: Hit, item: PassageScore, best: float, weights: Weights) -> float:
    factors = ("qual_weight", "q_adjust", "recency", "role")
    qual_weight, adjustment, recency, role = (hit.explain[name] or 0.0 for name in factors)
    added = role + (hit.explain.get(INFLUENCE) or 0.0)
    rank = (weights.relevance * item.evidence / best + weights.quality * qual_weight) * adjustment * recency + added
    rank += _OF_WORDS * (item.late or 0.0)
    if is_case_note(hit.memory.source_uri):
        return _OF_A_NOTE * rank
    state = state_in_report(hit.memory)
    if state:
        return rank if state.startswith(_DECISIVE) else _OF_OUTDATED * rank
    decides = role_of_passage(hit.memory, item.passage.start) in {DECIDED, STATUS}
    if decides:
        rank *= _OF_A_DECISION
    elif hit.memory.kind == "chunk" and names_conclusion(_nearest_heading(hit.memory, item.passage)):
        rank *= _OF_A_CONCLUSION
    return _OF_A_PLAN * rank if hit.memory.kind == "chunk" and _is_plan(hit.memory.source_name) else rank


def _nearest_heading(memory: Memory, passage: Passage) -> str:
    """Returns the heading right above a passage: one within the text, or the last of the title; "" without one."""
    first, _, below = passage.head_of(memory.body).strip().partition("\n")
    if first.startswith("#") or (below and not below.strip("=- ")):
        return first.strip("# ")
    return memory.title.rpartition(HEADING_SEPARATOR)[2] if HEADING_SEPARATOR in memory.title else ""


@lru_cache(maxsize=1_024)
def _is_plan(path: str) -> bool:
    return _PLANS.search(path) is not None


def _replaced_by(hits: Sequence[Hit], ranks: dict[Place, float]) -> dict[Place, str]:
    """Returns the source that replaces a passage's own, by the place of each, and lets these passages rank behind."""
    replacing = [(name, hit.memory) for hit in hits for name in files_replaced_by(hit.memory)]
    names = [_replacing_name(hit.memory, replacing) for hit in hits]
    found = {place: names[place[0]] for place in ranks if names[place[0]]}
    for place in found:
        ranks[place] *= _OF_OUTDATED
    return found


def _replacing_name(memory: Memory, replacing: Sequence[tuple[str, Memory]]) -> str:
    """Returns the name of the first source that replaces a memory's own; empty if none does."""
    others = (newer for name, newer in replacing if _is_at(memory.source_name, name, newer.source_name))
    return next((newer.source_name for newer in others if newer.source_id != memory.source_id), "")


def _is_at(path: str, name: str, own: str) -> bool:
    """Tells if a path is the file that another file, `own`, names: beside it, or by a path from a common folder."""
    name = normpath(name.lstrip("/"))
    return path == normpath(join(dirname(own), name)) or ("/" in name and f"/{path}".endswith(f"/{name}"))


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
