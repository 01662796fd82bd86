"""Tells what a person said in a turn from what was pasted into it, and splits it into sentences. Pure."""

import re
from typing import NamedTuple

FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
QUOTED = re.compile(r"^\s*>(?!\s*$)")
"""A line that quotes an earlier message."""
PASTED = re.compile(
    r"^\s*(?:[❯$%»→✓✗✔×]|\w+@[\w.-]+[:~]|at\s+\S+\s*\(|File \"|Traceback|(?:\w+\.)*\w*(?:Error|Exception)\b\s*[:(]|"
    r"\d+\s*\||[-+*#|]{3,}|npm |error(?:\[\w+\])?:|warning:|\[\d|\{|\}|<\/?\w+|\d{4}-\d\d-\d\d[T ]|\S+:\d+:\d+)",
    re.IGNORECASE,
)
"""A line of a terminal, a log, a stack or a data file."""
MESSAGE = re.compile(
    r"(?:Uncaught\s+)?(?:\b\w*(?:Error|Exception|ERR!)\s*[:\]]|\[eslint\]|\bERROR in\b|\bnpm (?:warn|error)\b).*"
)
"""A program's message, up to the end of its line."""
SYNTAX = re.compile(r"[{}\[\]<>=;|\\/_$]")
MOST_SYNTAX = 0.12
"""Share of such characters in a line from which on it is no speech."""
SHORT = 25
"""Characters of a line that is always taken for speech if it is not PASTED: `make it bun` is no code."""
BREAK = re.compile(r"(?<=[.!?。！？])\s+|\n+")
ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.):])\s+")


class Speech(NamedTuple):
    """A turn's own words, and how much else stands in it."""

    text: str
    pasted: float
    """Share of the turn's characters that were pasted, 0 to 1."""
    quotes: bool
    """True if the turn quotes an earlier message."""


def speech_of(turn: str) -> Speech:
    """Separates a turn's own words from quotes, logs and code."""
    kept, quotes = [], False
    for line in FENCE.sub("\n", turn).split("\n"):
        if QUOTED.match(line):
            quotes = True
        elif not _is_pasted(line):
            kept.append(MESSAGE.sub("", line))
    text = "\n".join(kept).strip()
    length = len(turn.strip())
    return Speech(text=text, pasted=1 - len(text) / length if length else 0.0, quotes=quotes)


def _is_pasted(line: str) -> bool:
    if PASTED.match(line):
        return True
    return len(line) > SHORT and len(SYNTAX.findall(line)) / len(line) > MOST_SYNTAX


def sentences_in(text: str) -> list[str]:
    """Splits a text into its sentences and lines, each verbatim, without list marks."""
    parts = (ITEM.sub("", part).strip() for part in BREAK.split(text))
    return [part for part in parts if part]
