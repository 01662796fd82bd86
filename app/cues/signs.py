"""Signs of a cue in the words of a turn: the expressions that each language's file lists, compiled. Pure."""

import functools
import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files

OPENING = "open_"
"""Prefix of a sign that is looked for at the beginning of a text only."""
LONGEST = 3_000
"""Characters of a text that are read: what a person says to an agent is shorter."""


def signs_of(text: str, table: str) -> frozenset[str]:
    """Returns the names of the signs of a table that a text has."""
    low = text[:LONGEST].lower().replace("’", "'")
    return frozenset(name for name, pattern in patterns(table).items() if pattern.search(low))


@functools.cache
def patterns(table: str) -> Mapping[str, re.Pattern[str]]:
    """Reads the expressions of a table in all languages; a language is added by adding its file."""
    found: dict[str, list[str]] = {}
    folder = files("app.cues.extraction").joinpath("languages")
    for path in sorted(folder.iterdir(), key=lambda item: item.name):
        if path.name.endswith(".toml"):
            for name, expressions in tomllib.loads(path.read_text(encoding="utf-8"))[table].items():
                found.setdefault(name, []).extend(expressions)
    return {name: _compiled(name, expressions) for name, expressions in found.items()}


def _compiled(name: str, expressions: list[str]) -> re.Pattern[str]:
    start = r"^\W*" if name.startswith(OPENING) else r"(?<!\w)"
    return re.compile(f"{start}(?:{'|'.join(expressions)})(?!\\w)")
