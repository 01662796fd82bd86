"""Edits the settings files of other programs, in JSONC and TOML. Everything else in them stays as it is. Pure."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tomlkit
from tomlkit.exceptions import TOMLKitError

from app.errors import InvalidInput

_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|(//[^\n]*|/\*.*?\*/)', re.DOTALL)
"""A string, or a comment as its group."""
_LAST_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|(,)(?=\s*[\]}])', re.DOTALL)
"""A string, or as its group a comma that nothing follows."""
_BLANK = re.compile(r"\s*")
_HEADING = re.compile(r"(?m)^[ \t]*\[")
"""The beginning of a table's heading in TOML."""
_INDENT = "  "


class _Member(NamedTuple):
    """A member of an object, by its places in the text."""

    starts: int
    value_starts: int
    ends: int


class _Reader:
    """Finds the members of objects in a text of JSONC that `read_jsonc` has accepted."""

    def __init__(self, text: str) -> None:
        self.text = _blank_out(_COMMENT, text)
        self._plain = _blank_out(_LAST_COMMA, self.text)

    def blank(self, place: int) -> int:
        """Returns the place of what follows blanks and comments."""
        found = _BLANK.match(self.text, place)
        return found.end() if found else place

    def members(self, place: int) -> tuple[dict[str, _Member], int]:
        """Returns the members of the object at a place, and the place of its end."""
        found, read = dict[str, _Member](), json.JSONDecoder().raw_decode
        place = self.blank(place + 1)
        while self.text[place] != "}":
            name, name_ends = read(self._plain, place)
            value = self.blank(self.blank(name_ends) + 1)
            _, ends = read(self._plain, value)
            found[name] = _Member(place, value, ends)
            place = self.blank(ends)
            place = self.blank(place + 1) if self.text[place] == "," else place
        return found, place


def _blank_out(pattern: re.Pattern[str], text: str) -> str:
    """Returns a text of the same length in which what the pattern's group finds is blank."""
    return pattern.sub(lambda found: re.sub(r"\S", " ", found[0]) if found[1] else found[0], text)


def read_jsonc(text: str, name: str) -> dict[str, Any]:
    """Returns the object of a text, of which comments and commas at the end are no part; {} of an empty one.

    Raises:
        InvalidInput: it is no JSON object.
    """
    plain = _blank_out(_LAST_COMMA, _blank_out(_COMMENT, text))
    try:
        found = json.loads(plain) if plain.strip() else {}
    except ValueError as error:
        raise InvalidInput(name, f"is no JSON, so nothing is changed: {error}; mend it first") from error
    if not isinstance(found, dict):
        raise InvalidInput(name, "is no JSON object, so nothing is changed")
    return found


def with_value(text: str, path: Sequence[str], value: object, name: str) -> str:
    """Returns a text of JSONC with another value at a path of names; None takes the member away.

    Raises:
        InvalidInput: the text is no JSON object, or the change would lose a comment or something else.
    """
    before = read_jsonc(text, name)
    wanted = _change(before, path, value, name)
    if wanted == before:
        return text
    whole = _with_object(text)
    after = _remove(whole, path) if value is None else _insert(whole, path, value)
    if read_jsonc(after, name) != wanted or _comments(after) != _comments(text):
        raise InvalidInput(name, f"cannot be changed without losing what stands in {'.'.join(path)}; edit it by hand")
    return after


def _with_object(text: str) -> str:
    """Returns the text with an empty object at its end, if it has comments and blanks only."""
    if _Reader(text).blank(0) < len(text):
        return text
    return f"{text}\n{{}}\n" if text.strip() and not text.endswith("\n") else f"{text}{{}}\n"


def _comments(text: str) -> list[str]:
    return [found[1] for found in _COMMENT.finditer(text) if found[1]]


def _change(given: Mapping[str, Any], path: Sequence[str], value: object, name: str) -> dict[str, Any]:
    """Returns an object with another value at a path; objects that lose their last member go, too."""
    first, rest = path[0], path[1:]
    if rest:
        inner = given.get(first, {})
        if not isinstance(inner, dict):
            raise InvalidInput(name, f"has a {first} that is no object, so nothing is changed")
        changed = _change(inner, rest, value, name)
        if changed == inner:
            return dict(given)
        value = changed or None
    if value is None:
        return {key: item for key, item in given.items() if key != first}
    return {**given, first: value}


def _remove(text: str, path: Sequence[str]) -> str:
    """Returns the text without the member at a path, and without the objects that have no other."""
    reader, place = _Reader(text), _Reader(text).blank(0)
    levels: list[dict[str, _Member]] = []
    for name in path:
        levels.append(reader.members(place)[0])
        place = levels[-1][name].value_starts
    depth = len(path) - 1
    while depth and len(levels[depth]) == 1:
        depth -= 1
    return _without(text, reader, levels[depth], path[depth])


def _insert(text: str, path: Sequence[str], value: object) -> str:
    reader, place, depth = _Reader(text), _Reader(text).blank(0), 0
    members, end = reader.members(place)
    while depth < len(path) - 1 and path[depth] in members:
        place, depth = members[path[depth]].value_starts, depth + 1
        members, end = reader.members(place)
    for outer in reversed(path[depth + 1 :]):
        value = {outer: value}
    name, indent = path[depth], _INDENT * (depth + 1)
    written = json.dumps(value, indent=2, ensure_ascii=False).replace("\n", f"\n{indent}")
    if name in members:
        return text[: members[name].value_starts] + written + text[members[name].ends :]
    entry = f"\n{indent}{json.dumps(name)}: {written}\n{_INDENT * depth}{text[end:]}"
    if not members:
        return text[: place + 1] + entry
    last = max(member.ends for member in members.values())
    comma = reader.blank(last)
    # A comment behind the last member stays there.
    between = text[comma + 1 : end] if text[comma] == "," else text[last:end]
    return f"{text[:last]},{between.rstrip()}{entry}"


def _without(text: str, reader: _Reader, members: Mapping[str, _Member], name: str) -> str:
    """Returns the text without a member and the comma beside it."""
    starts, _, ends = members[name]
    after = reader.blank(ends)
    if text[after] == ",":
        return text[:starts] + text[after + 1 :].lstrip(" \t\n")
    earlier = text[:starts].rstrip()
    return earlier.removesuffix(",") + text[ends:]


def with_endings_of(text: str, edit: Callable[[str], str]) -> str:
    """Returns an edited text: it is edited with the line endings of Unix, and keeps those of Windows if it has them."""
    if "\r\n" not in text or text.count("\n") != text.count("\r\n"):
        return edit(text)
    return edit(text.replace("\r\n", "\n")).replace("\n", "\r\n")


def with_table(text: str, path: tuple[str, str], fields: Mapping[str, object] | None, name: str) -> str:
    """Returns a text of TOML whose table `[path.path]` has these fields; other fields stay. None takes the table away.

    Raises:
        InvalidInput: the text is no TOML, or has something else in the table's place.
    """
    starts, ends = _comments_behind(text, path)
    own, between, others = text[:starts], text[starts:ends], text[ends:]
    edited = _edit_table(own + others, path, fields, name)
    if not edited.endswith(others):
        # What looked like a heading stands in a value.
        return _edit_table(text, path, fields, name)
    if fields is None:
        between = between.lstrip("\n")
    return edited[: len(edited) - len(others)] + between + others


def _comments_behind(text: str, path: tuple[str, str]) -> tuple[int, int]:
    """Returns the place of the blank lines and comments between a table and the next: they are about what follows."""
    heading, place = re.compile(rf"(?m)^[ \t]*\[{re.escape('.'.join(path))}[.\]]"), 0
    while found := heading.search(text, place):
        place = found.end()
    following = _HEADING.search(text, place) if place else None
    starts = ends = following.start() if following else len(text)
    for line in reversed(text[place:ends].splitlines(keepends=True) if place else ()):
        if line.strip() and not line.lstrip().startswith("#"):
            break
        starts -= len(line)
    return starts, ends


def _edit_table(text: str, path: tuple[str, str], fields: Mapping[str, object] | None, name: str) -> str:
    outer, inner = path
    try:
        read = tomlkit.parse(text)
    except TOMLKitError as error:
        raise InvalidInput(name, f"is no TOML, so nothing is changed: {error}; mend it first") from error
    tables: Any = read.get(outer, {})
    if fields is None and inner not in tables:
        return text
    try:
        if fields is not None:
            tables = read.setdefault(outer, tomlkit.table(is_super_table=True))
            tables.setdefault(inner, tomlkit.table()).update(fields)
        else:
            del tables[inner]
            if not tables:
                del read[outer]
    except (AttributeError, TypeError) as error:
        raise InvalidInput(name, f"has a {outer}.{inner} that is no table, so nothing is changed") from error
    return read.as_string()
