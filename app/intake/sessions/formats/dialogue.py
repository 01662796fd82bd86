"""Reads Markdown transcripts in which a heading or a bold name stands above what each speaker says. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from app.foundation.text.prose import open_fence
from app.foundation.text.scores import moment_of
from app.intake.sessions.transcript import (
    ASSISTANT,
    CALLER,
    NAMES,
    SYSTEM,
    TOOL,
    USER,
    WRITTEN_AT,
    Log,
    Transcript,
    Turns,
)

_HEAD = re.compile(
    r"(?P<mark>#{1,6})[ \t]+(?P<heading>\S.{0,100}?)[ \t]*#*|\[(?P<bracketed>[A-Za-z]{2,20})\]|"
    r"\*\*(?P<bold>[^*\n]{1,60}?)(?::\*\*|\*\*[ \t]*:|\*\*(?=[ \t]*$))[ \t]*(?P<rest>.*)"
)
"""A line that may name a speaker; after a bold name the speech may begin in the same line."""
_WORDS = NAMES["dialogue"]
_OTHERS = {"tool": TOOL, "tools": TOOL, "system": SYSTEM}
_MOST_NAMES = 3
_WORD = re.compile(r"[^\W\d_]+")
_IN_BRACKETS = re.compile(r"[(\[].*?[)\]]")
_THOUGHT = re.compile(r"<(think(?:ing)?)>.*?(?:</\1>|\Z)", re.DOTALL)
_RULER_BELOW = re.compile(r"\n[ \t]*-{3,}\Z")
_FEWEST, _DOZEN = 3, 12
"""Changes of the speaker by which a transcript is known: of a user and an agent, and of any two."""
_MOST = 0.8
"""Share of the headings that name two speakers whose names say nothing."""
_FOREWORD, _MOST_ABOVE = 500, 0.1
"""Most characters above the first speaker, and the most of all: a document that quotes a dialogue has more."""
_BOLD = "**"
"""The form of a bold name. Reports set off fields like this ("**Purpose**: … **Files**: …"), so that two names which
are not known are no speakers: three of 1,128 files of real trees have such pairs."""


class _Head(NamedTuple):
    """A line that may name a speaker."""

    line: int
    form: str
    """The mark of its heading, or _BOLD."""
    name: str
    at: str
    rest: str


def read_dialogue(text: str, session_id: str) -> Log | None:
    """Reads a transcript; returns None for a text that is none.

    A user and an agent are known by their names. Of two others that take turns a dozen times, one must be known; who
    takes turns with an agent, and is not named as a user, is a caller: nobody knows that it is a person.

    Raises:
        ValueError: any other two take turns a dozen times, so that it is not known who is a person.
    """
    lines = text.splitlines()
    heads = list(_heads(lines))
    for form in dict.fromkeys(head.form for head in heads):
        named = [head for head in heads if head.form == form]
        roles = _roles(named)
        spoken = [head for head in named if head.name in roles]
        if spoken and len("\n".join(lines[: spoken[0].line])) <= max(_FOREWORD, _MOST_ABOVE * len(text)):
            return Log(transcripts=(_session(lines, spoken, roles, session_id),), notes=_notes(roles))
    return None


def _heads(lines: Sequence[str]) -> Iterator[_Head]:
    fence = ""
    for number, line in enumerate(lines):
        match = None if fence else _HEAD.fullmatch(line.rstrip())
        if match is not None:
            label = match["heading"] or match["bracketed"] or match["bold"]
            at = WRITTEN_AT.search(label)
            name = _name(WRITTEN_AT.sub("", label))
            yield _Head(number, match["mark"] or _BOLD, name, at[0] if at else "", match["rest"] or "")
        fence = open_fence(line, fence)


def _name(label: str) -> str:
    """Returns the name in a label: `user` of `👤 User (turn 3)`; "" for a label of more words."""
    words = [word for word in _WORD.findall(_IN_BRACKETS.sub("", label).lower()) if word not in _WORDS["fillers"]]
    return " ".join(words) if len(words) <= _MOST_NAMES else ""


def _role(name: str) -> str:
    words = set(name.split())
    known = [(USER, _WORDS["persons"]), (ASSISTANT, _WORDS["agents"])]
    found = [role for role, names in known if words & names and (role == ASSISTANT or words <= names)]
    return found[0] if found else _OTHERS.get(name, "")


def _roles(heads: Sequence[_Head]) -> dict[str, str]:
    """Returns the roles of the speakers of a transcript, by name; empty for a text that is none.

    Raises:
        ValueError: two take turns, and it is not known who is a person.
    """
    roles = {head.name: role for head in heads if (role := _role(head.name))}
    if _changes([roles[head.name] for head in heads if roles.get(head.name) in {USER, ASSISTANT}]) >= _FEWEST:
        return roles
    turns = Counter(
        frozenset({one, other})
        for one, other in pairwise(head.name for head in heads)
        if one and other and one != other
    )
    pair, count = next(iter(turns.most_common(1)), (frozenset[str](), 0))
    known = {name: roles[name] for name in pair if roles.get(name) in {USER, ASSISTANT}}
    share = sum(head.name in pair for head in heads) / max(len(heads), 1)
    if count < _DOZEN or share < _MOST or pair & _WORDS["document"] or len(known) == len(pair):
        return {}
    if not known and heads[0].form == _BOLD:
        return {}
    if not known:
        shown = " and ".join(repr(name) for name in sorted(pair))
        raise ValueError(f"{shown} take turns in it; name them User and Assistant, to say who is a person")
    ((name, role),) = known.items()
    (other,) = pair - {name}
    return {**roles, other: CALLER if role == ASSISTANT else ASSISTANT}


def _notes(roles: Mapping[str, str]) -> tuple[str, ...]:
    callers = [name for name, role in roles.items() if role == CALLER]
    return tuple(f"{name!r} is taken for a caller; if it is a person, name it User" for name in callers)


def _changes(roles: Sequence[str]) -> int:
    return sum(one != other for one, other in pairwise(roles))


def _session(lines: Sequence[str], heads: Sequence[_Head], roles: dict[str, str], session_id: str) -> Transcript:
    found = Turns()
    ends = [*(head.line for head in heads[1:]), len(lines)]
    for head, end in zip(heads, ends, strict=True):
        role, body = roles[head.name], "\n".join([head.rest, *lines[head.line + 1 : end]])
        said = _THOUGHT.sub("", body) if role == ASSISTANT else body
        said = _RULER_BELOW.sub("", said.rstrip()).strip()
        if said:
            found.say(role, said, moment_of(head.at) if head.at else None)
    above = [line.lstrip("# ").strip() for line in lines[: heads[0].line] if line.startswith("# ")]
    return found.transcript(session_id, title=above[0] if above else "", format="markdown")
