"""Finds procedures: sequences of the tools that agents use, which several sessions share. Pure."""

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import PurePosixPath
from typing import NamedTuple, TypeAlias

import msgspec

from app.foundation.text.data import read_toml
from app.foundation.text.prose import speech_of
from app.intake.sessions.artifacts import DELETED, touches_of
from app.intake.sessions.prepare import act
from app.intake.sessions.store import StoredMessage
from app.intake.sessions.transcript import ASSISTANT, USER, ToolUse, Turn
from app.recall.cues.commands import words_of_commands
from app.recall.cues.cue import (
    LONGEST_TRIGGER,
    Evidence,
    cut,
)

MOST_OF_A_TURN = 40
MOST_WORDS = 3
LONGEST_NAME, LONGEST_QUOTE = 120, 300
BARE = re.compile(r"^[A-Za-z][\w:-]*$")
PROGRAM = re.compile(r"^[\w.+-]*[A-Za-z][\w.+-]*$")
SCRIPT = re.compile(r"^[\w./-]+\.(?:py|sh|js|ts|rb|pl)$")


class Act(NamedTuple):
    """Something that an agent did in a turn."""

    ordinal: int
    name: str
    quote: str
    """The call by which the turn shows it."""


class ActWords(msgspec.Struct, frozen=True):
    """The words of `acts.toml`."""

    quiet: frozenset[str]
    before: frozenset[str]
    looking: tuple[str, ...]
    shells: frozenset[str]
    interpreters: frozenset[str]


@functools.cache
def act_words() -> ActWords:
    """Reads the words."""
    return read_toml("app.recall.cues.review", "acts.toml", ActWords)


def acts_of(turns: Iterable[Turn | StoredMessage]) -> list[Act]:
    """Returns what the agent did in a session, in its order; an act that it did again at once is one."""
    found = list[Act]()
    for turn in turns:
        for item in islice(_of_turn(turn), MOST_OF_A_TURN):
            if not found or found[-1].name != item.name:
                found.append(item)
    return found


def _of_turn(turn: Turn | StoredMessage) -> Iterator[Act]:
    for tool in turn.tools:
        for name in _by_tool(tool):
            yield Act(turn.ordinal, name[:LONGEST_NAME], act(tool)[:LONGEST_QUOTE])


def _by_tool(tool: ToolUse) -> Iterator[str]:
    name = tool.name.lower().rpartition("__")[2]
    given = tool.input.get("command") or tool.input.get("cmd") or tool.input.get("script")
    if name in act_words().shells and given:
        yield from _commands(given[-1] if isinstance(given, list) else str(given))
        return
    touched = touches_of(Turn(ordinal=0, role=ASSISTANT, text="", tools=(tool,)))
    paths = dict.fromkeys(touch.path for touch in touched if touch.action != DELETED)
    yield from (f"edit {kind_of(path)}" for path in paths)
    if not paths and not name.startswith(act_words().looking) and BARE.match(name):
        yield f"use {name}"


def kind_of(path: str) -> str:
    """Returns the kind of a file: its folder and ending, or its name if there is one such file in a project."""
    pure = PurePosixPath(path)
    if pure.stem.isupper() or len(pure.parts) == 1:
        return pure.name
    folder = pure.parent if not pure.is_absolute() else PurePosixPath(*pure.parts[-3:-1])
    return f"{folder}/*{pure.suffix}"


def _commands(text: str) -> Iterator[str]:
    words = (words for line in text.splitlines() for words in words_of_commands(line))
    return (f"run {name}" for name in map(command_name, words) if name)


def command_name(words: Sequence[str]) -> str:
    """Returns the program of a command and what it is told to do: `git commit`; "" for one that only looks."""
    known, given = act_words(), [word.strip("\"'()") for word in words]
    while given and (given[0].lower() in known.before or given[0].startswith("-")):
        given = given[1:]
    if given[:2] in (["python", "-m"], ["python3", "-m"]):
        given = given[2:]
    told = [PurePosixPath(word).name.lower() for word in given[:1]]
    for word in given[1:]:
        script = told[-1] in known.interpreters and SCRIPT.match(word)
        if len(told) == MOST_WORDS or not (script or BARE.match(word)):
            break
        told.append(word)
    is_quiet = {told[0], " ".join(told[:2])} & known.quiet if told else True
    return "" if is_quiet or not PROGRAM.match(told[0]) else " ".join(told)


Names: TypeAlias = tuple[str, ...]
FEWEST_SESSIONS = 3
"""Sessions from which on a sequence is no coincidence."""
FEWEST_STEPS, MOST_STEPS = 3, 12
BETWEEN = 6
"""Other acts between two steps, on average, at most."""
IN_ORDER = 0.7
"""Least share, of the sessions with all acts of a sequence, of those that have them in its order."""
ALIKE = 0.6
"""Share of the shorter one's steps that are in the other one, from which two are one procedure."""
MOST_FOUND = 3
MOST_COMPARED = 200
"""Acts of a session that are compared, of those that enough sessions have, the first ones."""


class Sequenced(NamedTuple):
    """A sequence of acts, and the sessions that have it."""

    steps: Names
    sessions: tuple[int, ...]


def sequences_with(new: Names, others: Sequence[Names]) -> list[Sequenced]:
    """Returns the sequences that a new session shares with two others or more, the best first; it has the place 0."""
    tracks = [new, *others]
    usual = [name for name in new if sum(name in track for track in tracks) >= FEWEST_SESSIONS]
    kept = list[Sequenced]()
    found = filter(None, [_find_sessions(steps, tracks) for steps in _in_a_row(tuple(usual[:MOST_COMPARED]))])
    for item in sorted(found, key=lambda item: (-len(item.sessions) * (len(item.steps) - 1), item.steps)):
        if len(kept) < MOST_FOUND and not any(are_one_procedure(item.steps, other.steps) for other in kept):
            kept.append(item)
    return kept


def _in_a_row(track: Names) -> set[Names]:
    """Returns each row of acts of a session in which none stands twice."""
    rows = {track[start : start + size] for size in range(FEWEST_STEPS, MOST_STEPS + 1) for start in range(len(track))}
    return {row for row in rows if len(row) >= FEWEST_STEPS and len(set(row)) == len(row)}


def _find_sessions(steps: Names, tracks: Sequence[Names]) -> Sequenced | None:
    """Returns a sequence with its sessions; None if too few have it, or too many have its acts in another order."""
    having = [at for at, track in enumerate(tracks) if set(steps) <= set(track)]
    ordered = [at for at in having if places_of(tracks[at], steps)]
    return Sequenced(steps, tuple(ordered)) if len(ordered) >= max(FEWEST_SESSIONS, IN_ORDER * len(having)) else None


def places_of(track: Names, steps: Names) -> list[int] | None:
    """Returns the places of these steps in a session; None if it does not have them in this order, near enough."""
    own = [place for place, name in enumerate(track) if name in steps]
    for start in range(len(own) - len(steps) + 1):
        places = own[start : start + len(steps)]
        is_near = places[-1] - places[0] <= (BETWEEN + 1) * (len(steps) - 1)
        if is_near and tuple(track[place] for place in places) == steps:
            return places
    return None


def are_one_procedure(one: Names, other: Names) -> bool:
    """Tells whether two sequences are one procedure."""
    return len(set(one) & set(other)) >= ALIKE * min(len(one), len(other))


class ActedSession(NamedTuple):
    """A session with what its agent did."""

    session_id: str
    acts: Sequence[Act]
    messages: Sequence[StoredMessage]

    @property
    def names(self) -> Names:
        return tuple(item.name for item in self.acts)

    def proof(self, steps: Names) -> Evidence | None:
        """Returns the turn at which it begins these steps; None if it does not take them."""
        places = places_of(self.names, steps)
        if places is None:
            return None
        first = self.acts[places[0]]
        return Evidence(session=self.session_id, ordinal=first.ordinal, quote=first.quote)

    def request(self, proof: Evidence) -> str:
        """Returns what a person asked for before these steps; "" if nothing."""
        before = [item for item in self.messages if item.role == USER and item.ordinal < (proof.ordinal or 0)]
        spoken = [" ".join(speech_of(item.text).text.split()) for item in before]
        return cut(next(filter(None, reversed(spoken)), ""), LONGEST_TRIGGER)
