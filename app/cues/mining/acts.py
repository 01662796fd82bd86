"""Tells the acts of an agent in the turns of a session: files that it wrote, commands that it ran, what it says it did.

An act has a name that is the same in every session: `edit migrations/*.py`, `run alembic upgrade`. Pure.
"""

import functools
import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from app.intake.sessions.artifacts import DELETED, touches_of
from app.intake.sessions.prepare import act
from app.intake.sessions.transcript import ASSISTANT, ToolUse, Turn
from app.text.words import content_words

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
    said: str
    """The words or the call by which the turn shows it."""


class Words(NamedTuple):
    """The words of `acts.toml`."""

    quiet: frozenset[str]
    before: frozenset[str]
    looking: tuple[str, ...]
    shells: frozenset[str]
    interpreters: frozenset[str]
    said: tuple[re.Pattern[str], ...]
    """Sentences in which somebody says that it was done; the group that matches names the act."""


@functools.cache
def words() -> Words:
    """Reads the words."""
    read: dict[str, Any] = tomllib.loads(files("app.cues.mining").joinpath("acts.toml").read_text(encoding="utf-8"))
    return Words(
        quiet=frozenset(read["quiet"]),
        before=frozenset(read["before"]),
        looking=tuple(read["looking"]),
        shells=frozenset(read["shells"]),
        interpreters=frozenset(read["interpreters"]),
        said=tuple(_told("|".join(f"(?P<{name}>{forms})" for name, forms in read["said"].items()))),
    )


def _told(forms: str) -> Iterator[re.Pattern[str]]:
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
    if name in words().shells and given:
        yield from _commands(given[-1] if isinstance(given, list) and given else str(given))
        return
    touched = touches_of(Turn(ordinal=turn.ordinal, role=turn.role, text="", tools=(tool,)))
    paths = dict.fromkeys(touch.path for touch in touched if touch.action != DELETED)
    yield from (f"edit {kind_of(path)}" for path in paths)
    if not paths and not name.startswith(words().looking) and BARE.match(name):
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
    while given and (ASSIGNED.match(given[0]) or given[0].lower() in words().before or given[0].startswith("-")):
        given = given[1:]
    if given[:2] == ["python", "-m"] or given[:2] == ["python3", "-m"]:
        given = given[2:]
    if not given:
        return ""
    program = PurePosixPath(given[0]).name.lower()
    told = [program]
    for word in given[1:]:
        script = told[-1] in words().interpreters and SCRIPT.match(word)
        if len(told) == MOST_WORDS or not (script or BARE.match(word)):
            break
        told.append(word)
    name = " ".join(told)
    quiet = {program, " ".join(told[:2])} & words().quiet
    return name if PROGRAM.match(program) and not quiet else ""


def _in_words(text: str) -> Iterator[tuple[int, str, str]]:
    """Yields the acts that a turn shows or states in words, with their places in it."""
    shown = [(match.start(), match["command"]) for match in PROMPT.finditer(text)]
    fences = [match for match in FENCE.finditer(text) if match["language"].lower() in words().shells]
    shown += [(match.start(), line) for match in fences for line in match["body"].splitlines() if line.strip()]
    for place, line in shown:
        yield from ((place, name[:LONGEST_NAME], line.strip()) for name in _commands(line.strip().removeprefix("$ ")))
    for pattern in words().said:
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
