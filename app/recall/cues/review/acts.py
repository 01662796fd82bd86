"""Finds the acts of an agent in the turns of a session, and the sequences of acts that several sessions share. Pure."""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple, TypeAlias

from app.foundation.text.data import read_toml
from app.foundation.text.words import content_words
from app.intake.sessions.artifacts import DELETED, touches_of
from app.intake.sessions.prepare import act
from app.intake.sessions.transcript import ASSISTANT, ToolUse, Turn

MOST_OF_A_TURN = 40
"""Most acts of one turn."""
MOST_WORDS = 3
"""ActWords of a command's name: the program and what it is told to do."""
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
"""ActWords that end the name of a thing."""


class Act(NamedTuple):
    """Something that an agent did."""

    ordinal: int
    """The turn's place in its session."""
    name: str
    quote: str
    """The words or the call by which the turn shows it."""


class ActWords(NamedTuple):
    """The words of `acts.toml`."""

    quiet: frozenset[str]
    before: frozenset[str]
    looking: tuple[str, ...]
    shells: frozenset[str]
    interpreters: frozenset[str]
    said: tuple[re.Pattern[str], ...]
    """Sentences in which somebody says that it was done; the group that matches names the act."""


@functools.cache
def act_words() -> ActWords:
    """Reads the words."""
    read = read_toml("app.recall.cues.review", "acts.toml", dict[str, Any])
    return ActWords(
        quiet=frozenset(read["quiet"]),
        before=frozenset(read["before"]),
        looking=tuple(read["looking"]),
        shells=frozenset(read["shells"]),
        interpreters=frozenset(read["interpreters"]),
        said=tuple(_sentences("|".join(f"(?P<{name}>{forms})" for name, forms in read["said"].items()))),
    )


def _sentences(forms: str) -> Iterator[re.Pattern[str]]:
    """Yields the patterns of a sentence with one of these verbs, by the order of its words."""
    for pattern in (
        rf"\bI(?:'ve|’ve| have)? (?:\w+ly |also |now |then )?(?:{forms})\b[: ]+{OBJECT}",
        rf"(?:^|[.!?]\s+|[-*]\s+)(?:{forms})\b[: ]+{OBJECT}",
        rf"\bhabe (?:ich )?(?:\w+ ){{0,2}}?{OBJECT} (?:{forms})\b",
        rf"(?:^|\bя |[.!?]\s+)(?:{forms})\b\s+{OBJECT}",
    ):
        yield re.compile(pattern, re.IGNORECASE | re.MULTILINE)


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
    for pattern in act_words().said:
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
