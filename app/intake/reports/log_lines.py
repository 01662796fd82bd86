"""Counts the repeated lines of a program's log once. Pure."""

import re
from collections.abc import Sequence
from typing import NamedTuple

_BEGINS = re.compile(
    r"\W{0,4}(?:\d{4}[-/.]\d\d[-/.]\d\d|\d{1,2}[-/ ](?:\d\d|[A-Z][a-z]{2})[-/ ]\d{2,4}"
    r"|[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d|\d\d:\d\d:\d\d|[^\n]{0,40}?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d{10}(?:\d{3})?\b"
    r"|(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b"
    r"|(?:[Ee]poch|[Ss]tep|[Ii]ter(?:ation)?) ?[\[:]? ?\d)"
)
"""The beginning of a line that a program logs: a time, a level, or the count of a training's steps."""
_CONTINUES = re.compile(r"[ \t]+\S|Traceback |Caused by:|\w*(?:Error|Exception)\b")
"""A line that belongs to the entry above it, such as one of a stack."""
_VARIES = re.compile(r"(?<![\w.:+-])[\w.:+-]*\d[\w.:+-]*")
"""A part of a line in which entries of one message differ: a time, a number, an id."""
_FEWEST = 20
"""Entries in a row from which on lines are a program's log: a diary or a list of dates is shorter, or says something
else in every line."""
_FEWEST_ALIKE = 3
"""Entries of one message from which on only the first and the last are shown."""


class Condensed(NamedTuple):
    """A text whose repeated log lines are left out."""

    text: str
    repeated: int
    """Number of the entries that are left out."""


def without_repeated_lines(text: str, *, is_log: bool = False) -> Condensed:
    """Returns a text in which each run of log lines shows the first and the last entry of each message, with a count.

    Entries are of one message if they differ only in words with digits. All else stays as it is. With `is_log` all
    lines are a program's.
    """
    kept, run, repeated = list[str](), list[list[str]](), 0
    for line in text.split("\n"):
        if is_log and not line.strip():
            continue
        continues = _CONTINUES.match(line) is not None
        if _BEGINS.match(line) or (is_log and not continues):
            run.append([line])
        elif run and continues:
            run[-1].append(line)
        else:
            repeated += _end_run(run, kept)
            run = []
            kept.append(line)
    repeated += _end_run(run, kept)
    return Condensed("\n".join(kept), repeated) if repeated else Condensed(text, 0)


def _end_run(run: Sequence[Sequence[str]], kept: list[str]) -> int:
    """Adds the entries of a run to the lines that are kept; returns the number of those that are left out."""
    entries = ["\n".join(lines) for lines in run]
    if len(entries) < _FEWEST:
        kept += entries
        return 0
    messages = dict[str, list[str]]()
    for entry in entries:
        messages.setdefault(_VARIES.sub("#", entry), []).append(entry)
    left_out = 0
    for alike in messages.values():
        if len(alike) < _FEWEST_ALIKE:
            kept += alike
            continue
        left_out += len(alike) - 2
        kept += (alike[0], f"… {len(alike) - 2:,} more like it, then:", alike[-1])
    return left_out
