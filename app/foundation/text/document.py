"""Reads the text of a report: front matter and body of Markdown, the value of JSON, the records of JSON lines. Pure."""

import codecs
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from datetime import date
from typing import Any

import frontmatter
import yaml

from app.errors import InvalidInput
from app.foundation.values import frozen

_ENCODINGS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Encodings by the mark that begins a file. That of UTF-32 begins with that of UTF-16, so it is tried first."""
_JSON, _RECORDS = ".json", ".jsonl"
_DEEPEST = 64
"""The deepest nesting that is read. The keys of a deeper document would leave no room for values."""
_DIGITS = 300
"""Most digits of an integer; a longer one exceeds every float, and is kept as text."""
_SCALARS = (str, int, float, date, type(None))
_NOT_YAML = (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError)
"""The errors of YAML's reader."""
_MOST_VALUES = 10_000
"""Most values of front matter: aliases of a few lines may stand for billions."""
_BLOCK = re.compile(
    r"\A\s*-{3,}[ \t]*\n(?P<block>.{0,20000}?)(?:\A|(?<=\n))-{3,}[ \t]*(?:\n|\Z)(?P<body>.*)", re.DOTALL
)
_FIELD = re.compile(r"(?P<key>[^\W\d_][\w .-]{0,60}?)[ \t]*:(?:[ \t]+(?P<value>.*))?")
_LISTED = re.compile(r"[ \t]*-[ \t]+(?P<value>.*)")
_OPENED = re.compile(r"[|>][+-]?")
"""The value of a key whose text is in the lines below it."""


@frozen
class Document:
    """The content of a report: JSON, or Markdown, which a plain text is too."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    """The values of the front matter, by key."""
    body: str = ""
    """The text below the front matter; "" for JSON."""
    is_json: bool = False
    value: Any = None
    """The value of the JSON; of JSON lines, the list of their values."""
    notes: tuple[str, ...] = ()
    """Remarks for a person on how the content was read."""
    skipped: tuple[str, ...] = ()
    """Lines that could not be read, each with its reason."""


def utf8(content: bytes) -> bytes:
    """Returns a file's content as UTF-8, if a mark at its beginning tells another encoding.

    Raises:
        InvalidInput: the content does not have the encoding that its mark tells.
    """
    encoding = next((name for mark, name in _ENCODINGS.items() if content.startswith(mark)), "")
    if not encoding:
        return content
    try:
        return content.decode(encoding).encode()
    except UnicodeError as error:
        message = (
            f"begins with the mark of {encoding.upper()}, and is not {encoding.upper()}: {error}; save it as UTF-8"
        )
        raise InvalidInput("", message) from None


def decode(content: bytes) -> str:
    """Returns the text of a content that is UTF-8.

    Raises:
        InvalidInput: it is another encoding, or no text at all.
    """
    if b"\0" in content:
        raise InvalidInput("", f"is binary: a NUL byte at {content.index(0)}; only text can be taken in")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput("", f"is not UTF-8: byte {error.start} cannot be read; save it as UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_document(text: str, suffix: str) -> Document:
    """Reads a text as a file's suffix says.

    Raises:
        InvalidInput: it is not JSON, or is nested too deep; of JSON lines, none is JSON.
    """
    if suffix == _JSON:
        return Document(is_json=True, value=_load(text))
    if suffix == _RECORDS:
        return _read_records(text)
    return _read_markdown(text)


def _load(text: str) -> Any:  # noqa: ANN401 - any JSON value
    too_deep = f"is JSON nested too deep; at most {_DEEPEST} levels are read"
    try:
        return _storable(json.loads(text, parse_int=_integer, parse_constant=str), 0)
    except json.JSONDecodeError as error:
        raise InvalidInput("", f"is not JSON: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise InvalidInput("", too_deep) from None


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= _DIGITS else digits


def _storable(value: Any, depth: int) -> Any:  # noqa: ANN401 - any JSON value
    """Returns the value without NUL and halves of surrogate pairs, which no database column holds."""
    if depth > _DEEPEST:
        raise RecursionError
    match value:
        case str():
            return value.replace("\0", "\ufffd").encode(errors="replace").decode()
        case dict():
            return {_storable(key, depth): _storable(item, depth + 1) for key, item in value.items()}
        case list():
            return [_storable(item, depth + 1) for item in value]
    return value


def _read_records(text: str) -> Document:
    """Reads JSON lines; a line that is not JSON is named and left out, unless all are."""
    found, skipped = list[Any](), list[str]()
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            found += [_load(line)] if line.strip() else []
        except InvalidInput as error:
            skipped.append(f"line {number}: {error}")
    if skipped and not found:
        raise InvalidInput("", f"has no line that is JSON; {skipped[0]}")
    return Document(is_json=True, value=found, skipped=tuple(skipped))


def _read_markdown(text: str) -> Document:
    block = _BLOCK.match(text)
    if block is None:
        return Document(body=text)
    notes: tuple[str, ...] = ()
    try:
        facts, body = _parse_yaml(text)
    except _NOT_YAML as error:
        facts, body = dict(_fields_by_line(block["block"])), block["body"]
        notes = (f"its front matter is not valid YAML ({_place(error)}); it was read line by line",)
    # Two rulers with a text between them are no front matter.
    if not facts and block["block"].strip():
        return Document(body=text)
    return Document(facts=facts, body=body, notes=notes)


def _parse_yaml(text: str) -> tuple[Mapping[str, Any], str]:
    """Returns the front matter and the text below it; raises ValueError if its aliases stand for too much."""
    facts, body = frontmatter.parse(text)
    pending, read = list[Any]([facts]), 0
    while pending:
        value, read = pending.pop(), read + 1
        pending += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        if read > _MOST_VALUES:
            raise ValueError("its aliases stand for too many values")
    return facts, body


def _place(error: Exception) -> str:
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None) or str(error)
    return f"line {mark.line + 1}: {problem}" if mark is not None else problem


def _fields_by_line(block: str) -> Iterator[tuple[str, Any]]:
    """Yields the fields of a block that begins with `key: value`; lists and texts below a key are its value."""
    found = dict[str, list[str]]()
    values = list[str]()
    for line in block.split("\n"):
        match, item = _FIELD.fullmatch(line), _LISTED.fullmatch(line)
        if match:
            value = (match["value"] or "").strip()
            values = found[match["key"]] = [] if not value or _OPENED.fullmatch(value) else [value]
        elif not line.strip() or line.startswith("#"):
            continue
        elif not found:
            return
        elif item or not values:
            values.append((item["value"] if item else line).strip())
        else:
            values[-1] += f" {line.strip()}"
    yield from ((key, _value(values)) for key, values in found.items() if values)


def _value(texts: Sequence[str]) -> Any:  # noqa: ANN401 - any YAML value
    values = [_scalar(text) for text in texts]
    return values[0] if len(values) == 1 else values


def _scalar(text: str) -> Any:  # noqa: ANN401 - any YAML value
    """Returns the value that YAML reads from a text, if that is a scalar or a list of scalars, or else the text."""
    try:
        value = yaml.safe_load(text)
    except _NOT_YAML:
        return text.strip("\"'`")
    flat = value if isinstance(value, list) else [value]
    return value if all(isinstance(item, _SCALARS) for item in flat) else text
