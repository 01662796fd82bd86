"""Names the functions, classes and sections in which two texts differ. Pure."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import PurePosixPath

SYMBOL_CHARACTERS = 200
MOST_LINES = 5_000
"""Most lines of a text that is compared; a longer one takes seconds."""
SYMBOL = re.compile(
    r"""^[ \t]*
    (?:export\s+|default\s+|public\s+|private\s+|protected\s+|static\s+|abstract\s+|async\s+|pub(?:\([a-z]+\))?\s+)*
    (?:def|class|function\*?|func(?:\s*\([^)]*\))?|fn|interface|struct|enum|trait|impl|type|module|namespace)
    \s+(?P<named>[A-Za-z_$][\w$]*)
    |^[ \t]*(?:export\s+)?(?:const|let|var)\s+(?P<bound>[A-Za-z_$][\w$]*)\s*=\s*(?:async\s*)?(?:\([^)]*\)|\w+)\s*=>
    |^\#{1,6}\ +(?P<section>\S.{0,120}?)\s*$""",
    re.MULTILINE | re.VERBOSE,
)
"""A definition, or a heading of Markdown."""
MARKDOWN = frozenset({".md", ".mdx", ".mdc", ".markdown", ".rst", ".txt"})


def symbols_in(text: str, path: str) -> list[str]:
    """Returns the functions, classes and sections that a text defines, each once."""
    found = (_name(match, path) for match in SYMBOL.finditer(text))
    return list(dict.fromkeys(name for name in found if name))


def _name(match: re.Match[str], path: str) -> str:
    sections = PurePosixPath(path).suffix.lower() in MARKDOWN
    return (match["section"] if sections else match["named"] or match["bound"] or "")[:SYMBOL_CHARACTERS]


def changed_symbols(before: str, after: str, path: str) -> list[str]:
    """Returns the functions, classes and sections in which these texts differ, each once.

    A changed line belongs to the nearest definition above it that is indented less, or to the section that it is in.
    """
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > MOST_LINES:
        return []
    found = dict[str, None]()
    for kind, i, j, k, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            found |= dict.fromkeys([*_around(old, i, j, path), *_around(new, k, end, path)])
    return list(found)


def _around(lines: Sequence[str], start: int, end: int, path: str) -> Iterator[str]:
    """Yields what these lines define, and what encloses the first of them that says something."""
    changed = lines[start:end]
    said = next((line for line in changed if line.strip()), None)
    if said is None:
        return
    defined = symbols_in("\n".join(changed), path)
    if not (symbols_in(said, path) and _indent(said) == 0) and (name := _enclosing(lines[:start], _indent(said), path)):
        yield name
    yield from defined


def _enclosing(above: Sequence[str], indent: int, path: str) -> str:
    sections = PurePosixPath(path).suffix.lower() in MARKDOWN
    for line in reversed(above):
        match = SYMBOL.match(line)
        if match and (name := _name(match, path)) and (sections or _indent(line) < indent):
            return name
    return ""


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
