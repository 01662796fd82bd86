"""Mines the sequences of acts that several sessions share: in one order, with other acts between them. Pure.

It grows sequences from their first act on, those of the most sessions first (PrefixSpan with a limit to the other acts
between two steps and to the sequences of a length), and keeps those that no longer one says as well.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

Names: TypeAlias = tuple[str, ...]
Ends: TypeAlias = Mapping[int, Sequence[int]]
"""The places at which a sequence ends, by session."""
FEWEST_SESSIONS = 3
"""Sessions from which on a sequence is no coincidence."""
FEWEST_STEPS, MOST_STEPS = 3, 12
BETWEEN = 6
"""Most other acts between two steps."""
KEPT_OF_A_LENGTH = 40
"""Sequences of one length that are grown further."""
IN_ORDER = 0.7
"""Least share, of the sessions with all acts of a sequence, of those that have them in its order."""
ALIKE = 0.6
"""Share of the shorter one's steps that are in the other one in the same order, from which two are one procedure."""
MOST_FOUND = 3
"""Most sequences that one new session brings."""


class Sequenced(NamedTuple):
    """A sequence of acts, and the sessions that have it."""

    steps: Names
    sessions: tuple[int, ...]
    """The places of the sessions in the given ones."""


def found_with(new: Names, others: Sequence[Names]) -> list[Sequenced]:
    """Returns the sequences that a new session shares with others, the best first; session 0 is the new one."""
    tracks = [new, *others]
    grown = list[Sequenced]()
    level = [Sequenced((name,), _having(tracks, (name,))) for name in dict.fromkeys(new)]
    level = [item for item in level if len(item.sessions) >= FEWEST_SESSIONS]
    alphabet = [item.steps[0] for item in level]
    ends: dict[Names, Ends] = {
        item.steps: {at: _all(tracks[at], item.steps[0]) for at in item.sessions} for item in level
    }
    while level and len(level[0].steps) < MOST_STEPS:
        level, ends = _longer(level, ends, tracks, alphabet)
        grown += [item for item in level if len(item.steps) >= FEWEST_STEPS]
    return _best(item for item in grown if _in_order(item, tracks))


def _longer(
    level: Sequence[Sequenced], ends: Mapping[Names, Ends], tracks: Sequence[Names], alphabet: Sequence[str]
) -> tuple[list[Sequenced], dict[Names, Ends]]:
    found, reached = list[Sequenced](), dict[Names, Ends]()
    for item in level:
        for name in alphabet:
            if name in item.steps:
                continue
            steps = (*item.steps, name)
            places = {at: _next(tracks[at], name, ends[item.steps][at]) for at in item.sessions}
            having = tuple(at for at, last in places.items() if last)
            if len(having) >= FEWEST_SESSIONS and 0 in having:
                found.append(Sequenced(steps, having))
                reached[steps] = {at: places[at] for at in having}
    found.sort(key=lambda item: (-len(item.sessions), item.steps))
    return found[:KEPT_OF_A_LENGTH], reached


def _all(track: Names, name: str) -> list[int]:
    return [place for place, other in enumerate(track) if other == name]


def _next(track: Names, name: str, ends: Sequence[int]) -> list[int]:
    """Returns the places of an act that follow one of these ends with at most BETWEEN others between."""
    return [place for place in _all(track, name) if any(0 < place - end <= BETWEEN + 1 for end in ends)]


def _having(tracks: Sequence[Names], steps: Names) -> tuple[int, ...]:
    return tuple(at for at, track in enumerate(tracks) if places_of(track, steps) is not None)


def places_of(track: Names, steps: Names) -> list[int] | None:
    """Returns the places of these steps in a session; None if it does not have them in this order, near enough."""
    paths = [[place] for place in _all(track, steps[0])]
    for step in steps[1:]:
        paths = [
            [*next(path for path in paths if 0 < place - path[-1] <= BETWEEN + 1), place]
            for place in _next(track, step, [path[-1] for path in paths])
        ]
    return paths[0] if paths else None


def _in_order(item: Sequenced, tracks: Sequence[Names]) -> bool:
    acts = set(item.steps)
    return len(item.sessions) >= IN_ORDER * sum(acts <= set(track) for track in tracks)


def _best(found: Iterable[Sequenced]) -> list[Sequenced]:
    kept = list[Sequenced]()
    for item in sorted(found, key=lambda item: (-len(item.sessions) * (len(item.steps) - 1), item.steps)):
        if len(kept) < MOST_FOUND and not any(alike(item.steps, other.steps) for other in kept):
            kept.append(item)
    return kept


def alike(one: Names, other: Names) -> bool:
    """Tells whether two sequences are one procedure."""
    lengths = [0] * (len(other) + 1)
    for step in one:
        before = 0
        for place, name in enumerate(other, 1):
            here = lengths[place]
            lengths[place] = before + 1 if step == name else max(here, lengths[place - 1])
            before = here
    return lengths[-1] >= ALIKE * min(len(one), len(other))
