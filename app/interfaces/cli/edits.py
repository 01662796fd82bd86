"""Edits the settings files of other programs, in JSONC and TOML. Everything else in them stays as it is. Pure."""

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from app.errors import InvalidInput

_BLANK = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
"""Blanks and comments of JSONC."""
COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|(//[^\n]*|/\*.*?\*/)', re.DOTALL)
"""A string, or a comment as its group."""
_SCALAR = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s,\]}/]+', re.DOTALL)
_TRAILING_COMMA = re.compile(r",(?=\s*[\]}])")
_INDENT = "  "
TABLE = re.compile(r"(?m)^[ \t]*\[")
_TOML_VALUE = r"""(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[\[{](?:"(?:[^"\\\n]|\\.)*"|[^"'#\[\]{}\n])*[\]}])"""
"""A string, a flat table or a flat list of TOML, on one line."""


class _Member(NamedTuple):
    """A member of an object, by its places in the text."""

    starts: int
    value_starts: int
    ends: int


class _Reader:
    """Finds the members of objects in a text of JSONC that `read_jsonc` has accepted."""

    def __init__(self, text: str) -> None:
        self.text = text

    def blank(self, place: int) -> int:
        found = _BLANK.match(self.text, place)
        return found.end() if found else place

    def end_of(self, place: int) -> int:
        """Returns the end of the value at a place."""
        if self.text[place] == "{":
            return self.members(place)[1]
        if self.text[place] != "[":
            scalar = _SCALAR.match(self.text, place)
            return scalar.end() if scalar else place + 1
        place = self.blank(place + 1)
        while self.text[place] != "]":
            place = self.blank(self.end_of(place))
            place = self.blank(place + 1) if self.text[place] == "," else place
        return place + 1

    def members(self, place: int) -> tuple[dict[str, _Member], int]:
        """Returns the members of the object at a place, and its end."""
        found: dict[str, _Member] = {}
        place = self.blank(place + 1)
        while self.text[place] != "}":
            starts, name_ends = place, self.end_of(place)
            value = self.blank(self.blank(name_ends) + 1)
            ends = self.end_of(value)
            found[json.loads(self.text[starts:name_ends])] = _Member(starts, value, ends)
            place = self.blank(ends)
            place = self.blank(place + 1) if self.text[place] == "," else place
        return found, place + 1


def read_jsonc(text: str, name: str) -> dict[str, Any]:
    """Returns the object of a text, of which comments and commas at the end are no part; {} of an empty one.

    Raises:
        InvalidInput: it is no JSON object.
    """
    plain = COMMENT.sub(lambda found: " " if found[1] else found[0], text)
    without_commas = "".join(
        part if place % 2 else _TRAILING_COMMA.sub("", part)
        for place, part in enumerate(re.split(r'("(?:[^"\\]|\\.)*")', plain))
    )
    try:
        found = json.loads(without_commas or "{}") if without_commas.strip() else {}
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
    if wanted == before or (value is None and not _is_there(before, path)):
        return text
    after = _edit(_with_object(text), path, value)
    if read_jsonc(after, name) != wanted or _comments(after) != _comments(text):
        raise InvalidInput(name, f"cannot be changed without losing what stands in {'.'.join(path)}; edit it by hand")
    return after


def _is_there(given: object, path: Sequence[str]) -> bool:
    return not path or (isinstance(given, Mapping) and path[0] in given and _is_there(given[path[0]], path[1:]))


def _with_object(text: str) -> str:
    """Returns the text with an empty object at its end, if it has comments and blanks only."""
    if _Reader(text).blank(0) < len(text):
        return text
    return f"{text}\n{{}}\n" if text.strip() and not text.endswith("\n") else f"{text}{{}}\n"


def _comments(text: str) -> list[str]:
    return [found[1] for found in COMMENT.finditer(text) if found[1]]


def _change(given: Mapping[str, Any], path: Sequence[str], value: object, name: str) -> dict[str, Any]:
    """Returns an object with another value at a path; objects that lose their last member go, too."""
    first, rest = path[0], path[1:]
    inner = given.get(first, {} if rest else None)
    if rest and not isinstance(inner, dict):
        raise InvalidInput(name, f"has a {first} that is no object, so nothing is changed")
    fresh = _change(inner, rest, value, name) or None if rest and isinstance(inner, dict) else value
    kept = {key: item for key, item in given.items() if key != first}
    if fresh is None:
        return kept
    return {**given, first: fresh}


def _edit(text: str, path: Sequence[str], value: object) -> str:
    return _remove(text, path) if value is None else _insert(text, path, value)


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
    entry = f"\n{indent}{json.dumps(name)}: {written}\n{_INDENT * depth}{text[end - 1 :]}"
    if not members:
        return text[: place + 1] + entry
    last = max(member.ends for member in members.values())
    comma = reader.blank(last)
    # A comment behind the last member stays there.
    between = text[comma + 1 : end - 1] if text[comma] == "," else text[last : end - 1]
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


def with_table(
    text: str, path: tuple[str, str], fields: Mapping[str, str] | None, own: Sequence[str], name: str
) -> str:
    """Returns a text of TOML whose table `[path.path]` has these fields, each a name and a value in TOML.

    Comments and fields that are not among the `own` stay. None takes the table away.

    Raises:
        InvalidInput: the text is no TOML, or the change would lose something else.
    """
    outer, inner = path
    before = _toml(text, name)
    after = _edit_table(text, f"[{outer}.{inner}]", fields, own)
    servers = before.get(outer, {})
    others = {key: value for key, value in servers.items() if key != inner}
    stored = servers.get(inner, {})
    foreign = {key: value for key, value in stored.items() if key not in own} if isinstance(stored, dict) else {}
    if fields is None and foreign:
        reason = f"has {', '.join(foreign)} in {outer}.{inner}, which Priors did not write; take the table away by hand"
        raise InvalidInput(name, reason)
    fresh = {} if fields is None else {inner: {**foreign, **tomllib.loads("\n".join(_lines(fields)))}}
    wanted = {key: value for key, value in before.items() if key != outer}
    if tables := {**others, **fresh}:
        wanted[outer] = tables
    try:
        found = tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        found = None
    if found is None or {key: value for key, value in found.items() if value != {}} != wanted:
        raise InvalidInput(name, f"has {outer}.{inner} in a form that cannot be changed safely; edit it by hand")
    return after


def _toml(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(name, f"is no TOML, so nothing is changed: {error}; mend it first") from error


def _lines(fields: Mapping[str, str]) -> list[str]:
    return [f"{name} = {value}" for name, value in fields.items()]


def _edit_table(text: str, heading: str, fields: Mapping[str, str] | None, own: Sequence[str]) -> str:
    """Returns the text with other own lines below a heading; a table that is not there is added at the end.

    A field in another form than one line without a comment stays, so that the caller finds it twice and refuses.
    """
    found = re.search(rf"(?m)^[ \t]*{re.escape(heading)}[ \t]*(#.*)?(?:\n|\Z)", text)
    if found is None:
        added = [] if fields is None else [heading, *_lines(fields), ""]
        return text if not added else "\n".join([*([text.rstrip("\n"), ""] if text.strip() else []), *added])
    following = TABLE.search(text, found.end())
    ends = following.start() if following else len(text)
    names = "|".join(map(re.escape, filter(None, own)))
    kept = re.sub(rf"(?m)^[ \t]*(?:{names})[ \t]*=[ \t]*{_TOML_VALUE}[ \t]*(?:\n|\Z)", "", text[found.end() : ends])
    if fields is None:
        before = text[: found.start()] + (found[0] if found[1] else "")
        rest = kept.lstrip("\n") + text[ends:]
        return before + rest if rest else before.rstrip("\n") + "\n"
    top = found[0] if found[0].endswith("\n") else f"{found[0]}\n"
    return text[: found.start()] + top + "".join(f"{line}\n" for line in _lines(fields)) + kept + text[ends:]
