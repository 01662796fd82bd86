"""The case that a request continues: it is found, and what its notes tell is put in order."""

import re
from collections.abc import Mapping, Sequence
from uuid import UUID

from app.foundation.db.session import Session
from app.foundation.text.passages import passages_of
from app.foundation.text.pieces import says_something
from app.foundation.text.scores import versions_in
from app.intake.cases.judgement import CALIBRATION, CASE, FACET, is_case_note
from app.recall.retrieval.rank.needs import Case, case_of, continues_a_case
from app.recall.retrieval.rank.passages import PassageScore
from app.recall.retrieval.rank.rank import COMPONENTS
from app.recall.retrieval.recall import CheckedQuery, Hit, HitPassage
from app.recall.retrieval.texts import cases_of, lists_of_judgements, state_of
from app.storage.memories.memory import Memory

_VOTERS = 10
"""The best passages whose sources tell of which case a request is."""
_SCORE = re.compile(r"\b\d{1,3}(?:[.,]\d+)?\b")


async def continued_case(
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


async def with_case(
    session: Session, call: CheckedQuery, hits: tuple[Hit, ...], case: Case | None, likely: float | None
) -> tuple[Hit, ...]:
    """Returns hits with a case's score history once, and after the state of the case that the request continues."""
    if any(is_case_note(hit.memory.source_uri) for hit in hits):
        sources = {hit.memory.source_id for hit in hits if hit.memory.source_id is not None}
        hits = _without_copies(hits, await lists_of_judgements(session, sources))
    state = None if case is None else await state_of(session, case.name, call.query.filters)
    return hits if state is None or (state.suspect and not call.suspects) else _with_state(hits, state, likely)


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
