"""Finds the cues that a plan may trigger, by meaning, action types, files and words. Pure.

A store of cues is one matrix: the mean of the cosines of a plan and the texts of a cue is one product with it. The
weights are data, fitted by `python -m benchmarks.activation --fit`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import numpy as np

from app.cues.cue import FORMS
from app.cues.known import CueIndex, Flags, Halves, Numbers, centred, file_name, learnt
from app.cues.vocabulary import Places, overlaps
from app.models.protocols import Vector
from app.text.words import content_words

MOST_WORDS = 0.3
"""Share of words from which more of them change nothing."""
OWN_WORDS, OWN_FROM = 20.0, 0.6
"""Weight of words shared with the trigger beyond this share: such a plan is the trigger in its own words, and its cue
comes first. The plans of the benchmark fire as before."""
FILES = 2.0
"""Added for a file that the plan names and the cue is about."""
TOUCHED = 1.0
"""Added for a cue of a session that touched a file that the plan names. Smaller, because a session touches many."""
WORDS_ALONE, ACTS_ALONE = 12.0, 1.5
"""Weights of the words, and of an action type in common, of a cue without vectors; the words then count for it."""
SHORTLIST = 300
"""Cues whose words are compared."""
MOST_FILES = 100
UNKNOWN_RARITY = 0.5
"""Rarity of the act of a cue without an action type."""


class Plan(NamedTuple):
    """A plan or action that somebody is about to carry out."""

    text: str
    files: tuple[str, ...] = ()
    vector: Vector | None = None
    touched: frozenset[UUID] = frozenset()
    """Cues of the sessions that touched the files that it names."""
    users: Sequence[str] | None = None
    """The users whose cues it may trigger, "" for nobody; None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A cue that a plan may trigger, with the parts of its relevance."""

    cue_id: UUID
    relevance: float
    """The sum by which cues are ranked, on the scale of a log-odds."""
    parts: Mapping[str, float]
    """Contribution of each part to the relevance."""
    rarity: float
    """The rarity of its act in the store, 0 to 1."""
    same_words: float
    """Contribution of the words in common to the score: they lower it, and do not change the rank. A near miss has
    the words of a cue, but not its act."""
    vectors: Halves | None = field(repr=False)


class _Scored(NamedTuple):
    """Rows of an index with the parts of their relevance, one column for each part."""

    rows: Places
    names: Sequence[str]
    parts: Numbers
    same_words: Numbers
    """One for each row."""


def matched(index: CueIndex, plan: Plan, *, moment: datetime, past: bool = False, most: int) -> list[Match]:
    """Returns the cues that a plan may trigger, the most relevant first: those that hold at a moment.

    Of a `past` moment, those that were taken away since are among them.
    """
    allowed = index.standing(moment, past=past, users=plan.users)
    of_file = {place: added for place, added in _of_files(index, plan).items() if allowed[place]}
    asked = [index.numbers.get(word) for word in content_words(plan.text)]
    query = _query(index, plan)
    scored = [_by_words(index, plan, asked, allowed if query is None else allowed & ~index.embedded, of_file)]
    if query is not None:
        scored.append(_by_meaning(index, query, asked, allowed & index.embedded, of_file))
    found = [match for part in scored for match in _matches(index, part, of_file, most)]
    return sorted(found, key=lambda item: (-item.relevance, item.cue_id))[:most]


def _query(index: CueIndex, plan: Plan) -> Vector | None:
    """Returns the plan as a combined row; None if its meaning cannot be compared."""
    if plan.vector is None or index.scale is None or plan.vector.shape != index.scale.mean.shape:
        return None
    return index.scale.query(plan.vector)


def _of_files(index: CueIndex, plan: Plan) -> Mapping[int, float]:
    """Returns the rows of the cues that the files of a plan bring up, each with what that adds."""
    found = {index.places[cue_id]: TOUCHED for cue_id in plan.touched if cue_id in index.places}
    for path in plan.files[:MOST_FILES]:
        for place in index.of_files.get(file_name(path), ()):
            if any(_same_file(path, other) for other in index.known[place].files):
                found[place] = FILES
    return found


def _same_file(one: str, other: str) -> bool:
    """Returns True if one path ends with the other."""
    first, second = (path.replace("\\", "/").lstrip("./").casefold() for path in (one, other))
    return f"/{first}".endswith(f"/{second}") or f"/{second}".endswith(f"/{first}")


def _best(scores: Numbers, rows: Places, named: Sequence[int], least: float) -> Places:
    """Returns the places of the best scores above the least one, and of the named rows."""
    most = min(SHORTLIST, len(scores))
    best = np.argpartition(-scores, most - 1)[:most] if most else np.zeros(0, dtype=int)
    others = np.flatnonzero(np.isin(rows, named)) if named else np.zeros(0, dtype=int)
    return np.unique(np.concatenate([best[scores[best] > least], others]))


def _by_meaning(
    index: CueIndex, query: Vector, asked: Sequence[int | None], allowed: Flags, of_file: Mapping[int, float]
) -> _Scored:
    """Returns the cues with vectors that are nearest to a plan."""
    assert index.scale is not None, "there is no query without it"  # noqa: S101
    count, width = len(index.known), len(index.scale.mean)
    # `einsum` runs in this thread: 0.8 ms for 50,000 cues. BLAS takes 0.2 ms on free cores and 20 on busy ones, where
    # it waits for its threads.
    scores = np.einsum("ij,j->i", index.screen[:count], index.scale.screened(query))
    screened = np.where(allowed, scores, np.float32(-np.inf))
    rows = _best(screened, np.arange(count), [place for place in of_file if allowed[place]], -np.inf)
    cosines = centred(index.vectors[rows], index.scale.mean) @ query[:width]
    same, in_lesson = (overlaps(words.part(rows), asked, index.weights) for words in (index.triggers, index.lessons))
    parts = {
        **{form: learnt().meaning / len(FORMS) * cosines[:, at] for at, form in enumerate(FORMS)},
        "acts": index.acts[rows] @ query[width:],
        "own_words": OWN_WORDS * np.maximum(0.0, same - OWN_FROM),
    }
    shared = np.minimum(MOST_WORDS, same) + np.minimum(MOST_WORDS, in_lesson)
    return _Scored(rows, list(parts), np.column_stack(list(parts.values())), learnt().words * shared)


def _by_words(
    index: CueIndex, plan: Plan, asked: Sequence[int | None], allowed: Flags, of_file: Mapping[int, float]
) -> _Scored:
    """Returns the cues without vectors that share words or an action type with a plan."""
    rows = np.flatnonzero(allowed)
    if not len(rows):
        return _Scored(rows, (), np.zeros((0, 0)), np.zeros(0))
    same, in_lesson = (overlaps(words.part(rows), asked, index.weights) for words in (index.triggers, index.lessons))
    acts = set(index.types.names(plan.text, plan.vector))
    alike = np.array([not acts.isdisjoint(index.known[place].action_types) for place in rows.tolist()])
    parts = np.column_stack([WORDS_ALONE * np.minimum(MOST_WORDS, np.maximum(same, in_lesson)), ACTS_ALONE * alike])
    best = _best(parts.sum(axis=1), rows, list(of_file), 0.0)
    return _Scored(rows[best], ("words", "acts"), parts[best], np.zeros(len(best)))


def _matches(index: CueIndex, scored: _Scored, of_file: Mapping[int, float], most: int) -> list[Match]:
    """Returns the most relevant of scored rows."""
    files = np.array([of_file.get(place, 0.0) for place in scored.rows.tolist()])
    relevance = scored.parts.sum(axis=1) + files
    found = []
    for at in np.argsort(-relevance, kind="stable")[:most].tolist():
        place = int(scored.rows[at])
        parts = dict(zip(scored.names, scored.parts[at].tolist(), strict=True))
        if place in of_file:
            parts["file"] = of_file[place]
        vectors = index.vectors[place] if index.embedded[place] else None
        found.append(
            Match(
                cue_id=index.known[place].cue_id,
                relevance=float(relevance[at]),
                parts=parts,
                rarity=index.rarity.get("".join(index.known[place].action_types[:1]), UNKNOWN_RARITY),
                same_words=float(scored.same_words[at]),
                vectors=vectors,
            )
        )
    return found
