"""The verb that mines procedures: sequences of acts, run or told by agents, that several sessions share."""

import asyncio
import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import NamedTuple, TypeAlias
from uuid import UUID

import msgspec

from app.foundation.text.data import read_toml
from app.foundation.text.speech import speech_of
from app.foundation.text.words import content_words
from app.intake.sessions import store as sessions
from app.intake.sessions.artifacts import DELETED, touches_of
from app.intake.sessions.prepare import act
from app.intake.sessions.store import StoredMessage
from app.intake.sessions.transcript import ASSISTANT, USER, ToolUse, Turn
from app.recall.cues import evidence as evidence_store
from app.recall.cues import store as cues
from app.recall.cues.cue import (
    ACTIVE,
    AGENT,
    CONSEQUENCES,
    LIST_LIMIT,
    LONGEST_LESSON,
    LONGEST_TRIGGER,
    PROCEDURE,
    PROPOSED,
    Cue,
    Evidence,
    NewCue,
    cut,
)
from app.recall.cues.edit import retire_in
from app.recall.cues.keep import add_cues
from app.recall.cues.review import store
from app.recall.cues.review.review import propose
from app.recall.cues.review.rules import REPEATED, Proposal
from app.recall.cues.store import CueFilter
from app.storage.memories.remember import Door

COMPARED_SESSIONS = 40
"""Sessions that a new one is compared with: those that share most kinds of acts."""
READ_SESSIONS = 10
"""Most sessions whose turns are read for the evidence and the goal of a new procedure."""
MOST_STORED = 1_000
"""Stored procedures that are compared with those of a session, the newest."""
MOST_OF_A_TURN = 40
"""Most acts of one turn."""
MOST_WORDS = 3
"""Words of a command's name: the program and what it is told to do."""
LONGEST_NAME, LONGEST_QUOTE = 120, 300
PROMPT = re.compile(r"^\s*[$❯] (?P<command>\S.*)$", re.MULTILINE)
FENCE = re.compile(r"^```(?P<language>\w+)[ \t]*\n(?P<body>.*?)^```", re.MULTILINE | re.DOTALL)
PARTS = re.compile(r"\s*(?:&&|\|\|?|;|\n)\s*")
ASSIGNED = re.compile(r"^\w+=\S*$")
BARE = re.compile(r"^[A-Za-z][\w:-]*$")
PROGRAM = re.compile(r"^[\w.+-]*[A-Za-z][\w.+-]*$")
SCRIPT = re.compile(r"^[\w./-]+\.(?:py|sh|js|ts|rb|pl)$")
OBJECT = (
    r"(?:the |a |an |all |our |your |die |den |das |eine[nr]? |ein |alle )?(?P<object>[\w`./-]+(?: [\w`./-]+){0,2})"
)
ENDS = frozenset({
    "for", "to", "in", "of", "with", "that", "which", "and", "on", "so", "by", "from", "as", "at", "into", "für", "mit",
    "und", "auf", "zu", "aus", "для", "в", "на", "и", "с", "из", "к",
})  # fmt: skip
"""Words that end the name of a thing."""


class Act(NamedTuple):
    """Something that an agent did."""

    ordinal: int
    """The turn's place in its session."""
    name: str
    quote: str
    """The words or the call by which the turn shows it."""


class ActWords(msgspec.Struct, frozen=True):
    """The words of `acts.toml`."""

    quiet: frozenset[str]
    before: frozenset[str]
    looking: tuple[str, ...]
    shells: frozenset[str]
    interpreters: frozenset[str]
    said: dict[str, str]
    """The forms of the verbs by which somebody says that it was done, by the names of the acts."""


@functools.cache
def act_words() -> ActWords:
    """Reads the words."""
    return read_toml("app.recall.cues.review", "acts.toml", ActWords)


@functools.cache
def _sentences() -> tuple[re.Pattern[str], ...]:
    """Returns the patterns of a sentence with one of the verbs, by the order of its words; its group names the act."""
    forms = "|".join(f"(?P<{name}>{own})" for name, own in act_words().said.items())
    patterns = (
        rf"\bI(?:'ve|’ve| have)? (?:\w+ly |also |now |then )?(?:{forms})\b[: ]+{OBJECT}",
        rf"(?:^|[.!?]\s+|[-*]\s+)(?:{forms})\b[: ]+{OBJECT}",
        rf"\bhabe (?:ich )?(?:\w+ ){{0,2}}?{OBJECT} (?:{forms})\b",
        rf"(?:^|\bя |[.!?]\s+)(?:{forms})\b\s+{OBJECT}",
    )
    return tuple(re.compile(pattern, re.IGNORECASE | re.MULTILINE) for pattern in patterns)


def acts_of(turns: Iterable[Turn]) -> list[Act]:
    """Returns what the agent did in a session, in its order; an act that it did again at once is one."""
    found = list[Act]()
    for turn in turns:
        if turn.role == ASSISTANT or turn.tools:
            for item in list(_of_turn(turn))[:MOST_OF_A_TURN]:
                if not found or found[-1].name != item.name:
                    found.append(item)
    return found


def _of_turn(turn: Turn) -> Iterator[Act]:
    if turn.role == ASSISTANT:
        for place in sorted(_in_words(turn.text)):
            yield Act(turn.ordinal, place[1], place[2][:LONGEST_QUOTE])
    for tool in turn.tools:
        for name in _by_tool(turn, tool):
            yield Act(turn.ordinal, name[:LONGEST_NAME], act(tool)[:LONGEST_QUOTE])


def _by_tool(turn: Turn, tool: ToolUse) -> Iterator[str]:
    name = tool.name.lower().rpartition("__")[2]
    given = tool.input.get("command") or tool.input.get("cmd") or tool.input.get("script")
    if name in act_words().shells and given:
        yield from _commands(given[-1] if isinstance(given, list) and given else str(given))
        return
    touched = touches_of(Turn(ordinal=turn.ordinal, role=turn.role, text="", tools=(tool,)))
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
    """Yields the names of the commands that a line of a shell runs, but for those that only look."""
    for part in PARTS.split(text):
        if name := command_name(part):
            yield f"run {name}"


def command_name(text: str) -> str:
    """Returns the program of a command and what it is told to do: `git commit`; "" for one that only looks."""
    given = [word.strip("\"'()") for word in text.split()]
    while given and (ASSIGNED.match(given[0]) or given[0].lower() in act_words().before or given[0].startswith("-")):
        given = given[1:]
    if given[:2] == ["python", "-m"] or given[:2] == ["python3", "-m"]:
        given = given[2:]
    if not given:
        return ""
    program = PurePosixPath(given[0]).name.lower()
    told = [program]
    for word in given[1:]:
        script = told[-1] in act_words().interpreters and SCRIPT.match(word)
        if len(told) == MOST_WORDS or not (script or BARE.match(word)):
            break
        told.append(word)
    name = " ".join(told)
    quiet = {program, " ".join(told[:2])} & act_words().quiet
    return name if PROGRAM.match(program) and not quiet else ""


def _in_words(text: str) -> Iterator[tuple[int, str, str]]:
    """Yields the acts that a turn shows or states in words, with their places in it."""
    shown = [(match.start(), match["command"]) for match in PROMPT.finditer(text)]
    fences = [match for match in FENCE.finditer(text) if match["language"].lower() in act_words().shells]
    shown += [(match.start(), line) for match in fences for line in match["body"].splitlines() if line.strip()]
    for place, line in shown:
        yield from ((place, name[:LONGEST_NAME], line.strip()) for name in _commands(line.strip().removeprefix("$ ")))
    for pattern in _sentences():
        for match in pattern.finditer(text):
            verb = next(name for name, form in match.groupdict().items() if form and name != "object")
            if thing := _thing(match["object"]):
                yield match.start(), f"{verb} {thing}"[:LONGEST_NAME], match[0].strip(" .!?-*\n")


def _thing(text: str) -> str:
    """Returns the name of a thing: its last two words before one that leads on, as stems."""
    kept = list[str]()
    for word in text.lower().replace("`", "").split():
        if word in ENDS:
            break
        kept.append(word.strip(".,:"))
    return " ".join(kept[-2:]) if kept and content_words(" ".join(kept)) else ""


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


def sequences_with(new: Names, others: Sequence[Names]) -> list[Sequenced]:
    """Returns the sequences that a new session shares with others, the best first; session 0 is the new one."""
    tracks = [new, *others]
    alphabet = [name for name in dict.fromkeys(new) if sum(name in track for track in tracks) >= FEWEST_SESSIONS]
    level: Mapping[Names, Ends] = {
        (name,): {at: places for at, track in enumerate(tracks) if (places := _all(track, name))} for name in alphabet
    }
    grown = list[Sequenced]()
    for length in range(2, MOST_STEPS + 1):
        level = _longer(level, tracks, alphabet)
        if length >= FEWEST_STEPS:
            grown += [Sequenced(steps, tuple(ends)) for steps, ends in level.items()]
    return _best(item for item in grown if _in_order(item, tracks))


def _longer(level: Mapping[Names, Ends], tracks: Sequence[Names], alphabet: Sequence[str]) -> Mapping[Names, Ends]:
    """Returns the sequences that are one act longer and that enough sessions have, the new one among them."""
    found = dict[Names, Ends]()
    for steps, ends in level.items():
        for name in alphabet:
            places = {at: after for at, last in ends.items() if (after := _next(tracks[at], name, last))}
            if name not in steps and len(places) >= FEWEST_SESSIONS and 0 in places:
                found[*steps, name] = places
    kept = sorted(found, key=lambda steps: (-len(found[steps]), steps))
    return {steps: found[steps] for steps in kept[:KEPT_OF_A_LENGTH]}


def _all(track: Names, name: str) -> list[int]:
    return [place for place, other in enumerate(track) if other == name]


def _next(track: Names, name: str, ends: Sequence[int]) -> list[int]:
    """Returns the places of an act that follow one of these ends with at most BETWEEN others between."""
    return [place for place in _all(track, name) if any(0 < place - end <= BETWEEN + 1 for end in ends)]


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
        if len(kept) < MOST_FOUND and not any(are_one_procedure(item.steps, other.steps) for other in kept):
            kept.append(item)
    return kept


def are_one_procedure(one: Names, other: Names) -> bool:
    """Tells whether two sequences are one procedure."""
    lengths = [0] * (len(other) + 1)
    for step in one:
        before = 0
        for place, name in enumerate(other, 1):
            here = lengths[place]
            lengths[place] = before + 1 if step == name else max(here, lengths[place - 1])
            before = here
    return lengths[-1] >= ALIKE * min(len(one), len(other))


@dataclass(frozen=True, slots=True, kw_only=True)
class _ActedSession:
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


async def mine_procedures(door: Door, session_id: str) -> list[UUID]:
    """Proposes the procedures that a session shares with others; returns those that it has.

    Acts that FEWEST_SESSIONS have in the same order, with others between them, are proposed as a procedure, with its
    evidence in each of them. A procedure that was found before gets, or loses, its evidence in this session; one that
    nobody has accepted, and that too few sessions support now, is withdrawn.
    """
    async with door.database.session(door.workspace, transaction=False) as session:
        known = await sessions.known_session(session, session_id, revive=False)
        if known is None:
            return []
        messages = [] if known.deleted else await sessions.messages(session, known.source_id)
    acted = await _find_acts(session_id, messages)
    async with door.database.session(door.workspace) as session:
        await evidence_store.save_acts(session, known.source_id, acted.names)
        others = await evidence_store.sessions_sharing(
            session, known.source_id, acted.names, fewest=FEWEST_STEPS, limit=COMPARED_SESSIONS
        )
        stored = await cues.page(session, CueFilter(kinds=(PROCEDURE,)), after=None, limit=MOST_STORED)
        procedures = [cue for cue in stored if cue.origin == PROPOSED]
        await evidence_store.forget_proofs(session, known.source_id, [cue.cue_id for cue in procedures])
    supported = [item for item in procedures if acted.proof(_steps(item)) and item.state in {ACTIVE, PROPOSED}]
    if supported:
        await add_cues(door, [_with_proof(item, acted) for item in supported])
    await _withdraw(door, [item for item in procedures if item not in supported])
    found = await asyncio.to_thread(sequences_with, acted.names, list(others.values()))
    new = [item for item in found if not any(are_one_procedure(item.steps, _steps(cue)) for cue in procedures)]
    ids = [known.source_id, *others]
    proposed = [await _propose(door, acted, item.steps, [ids[at] for at in item.sessions[1:]]) for item in new]
    return [*(cue.cue_id for cue in supported), *filter(None, proposed)]


async def _find_acts(session_id: str, messages: Sequence[StoredMessage]) -> _ActedSession:
    turns = [Turn(ordinal=item.ordinal, role=item.role, text=item.text, tools=item.tools) for item in messages]
    return _ActedSession(session_id=session_id, acts=await asyncio.to_thread(acts_of, turns), messages=messages)


def _steps(cue: Cue) -> Names:
    return tuple(cue.details.get("steps") or ())


def _with_proof(cue: Cue, acted: _ActedSession) -> NewCue:
    """Returns a procedure as it is stored, with its evidence in one more session."""
    proof = acted.proof(_steps(cue))
    assert proof is not None, "the caller has looked"  # noqa: S101
    others = {item.session for item in cue.evidence} | {acted.session_id}
    new = _procedure(_steps(cue), (proof,), cue.trigger, len(others))
    return replace(new, lesson=cue.lesson, action_types=cue.action_types)


async def _withdraw(door: Door, lost: Sequence[Cue]) -> None:
    """Retires the procedures that nobody has accepted, and that too few sessions support."""
    undecided = [cue.cue_id for cue in lost if cue.state == PROPOSED]
    async with door.database.session(door.workspace) as session:
        now = await cues.read(session, undecided)
        gone = [cue_id for cue_id, cue in now.items() if len({item.session for item in cue.evidence}) < FEWEST_SESSIONS]
        await retire_in(session, gone)
        await store.withdraw(session, REPEATED, gone)


async def _propose(door: Door, acted: _ActedSession, steps: Names, others: Sequence[UUID]) -> UUID | None:
    """Stores a procedure and proposes it; returns None if it cannot be stored."""
    shown = [acted, *await _read(door, others[: READ_SESSIONS - 1])]
    proofs = [(item, proof) for item in shown if (proof := item.proof(steps)) is not None]
    goal = _goal([item.request(proof) for item, proof in proofs]) or f"work that begins with: {steps[0]}"
    count = 1 + len(others)
    new = _procedure(steps, tuple(proof for _, proof in proofs)[:LIST_LIMIT], goal, count)
    (cue_id,) = (await add_cues(door, [new])).ids
    if cue_id is None:
        return None
    reason = f"the same {len(steps)} steps in {count} sessions: {' → '.join(steps)}"
    await propose(door, [Proposal(change=REPEATED, cue_ids=(), target_id=cue_id, reason=reason)])
    return cue_id


async def _read(door: Door, ids: Sequence[UUID]) -> list[_ActedSession]:
    async with door.database.session(door.workspace, transaction=False) as session:
        names = await evidence_store.session_names(session, ids)
        read = [(names[source_id], await sessions.messages(session, source_id)) for source_id in ids]
    return [await _find_acts(session_id, messages) for session_id, messages in read]


def _procedure(steps: Names, proofs: tuple[Evidence, ...], goal: str, count: int) -> NewCue:
    """Returns a procedure of so many sessions: with a confidence of 0.6 for three of them, and of 0.83 for ten."""
    numbered = " ".join(f"({number}) {step}" for number, step in enumerate(steps, 1))
    return NewCue(
        kind=PROCEDURE,
        trigger=goal,
        lesson=cut(f"Take these steps in this order: {numbered}", LONGEST_LESSON),
        details={"goal": goal, "steps": list(steps)},
        confidence=count / (count + 2),
        consequence=CONSEQUENCES["low"],
        quote=proofs[0].quote,
        evidence=proofs,
        trust=AGENT,
        origin=PROPOSED,
    )


def _goal(requests: Sequence[str]) -> str:
    """Returns the request that has most words in common with the others; "" if they have none in common."""
    words = {text: content_words(text) for text in requests if text}
    common = Counter(word for text in requests for word in words.get(text, ()))
    shared = {word for word, count in common.items() if count > len(requests) / 2}
    fitting = [text for text, own in words.items() if own & shared]
    return min(fitting, key=lambda text: (-len(words[text] & shared), len(words[text])), default="")
