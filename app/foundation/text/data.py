"""Reads data (the TOML files of a package, JSON), and finds the faults of values and the remedies. Pure.

msgspec stops at the first fault and names no allowed value. Where it has refused a value, each field is asked alone.
"""

import difflib
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from importlib.resources import files
from itertools import islice
from typing import Any, Literal, TypeVar, get_args, get_origin
from uuid import UUID

import msgspec
from msgspec import Struct, structs

from app.errors import check

_T = TypeVar("_T")


def read_toml(package: str, name: str, kind: type[_T]) -> _T:
    """Reads a TOML file that stands beside the modules of a package."""
    return msgspec.toml.decode(files(package).joinpath(name).read_bytes(), type=kind)


def read_json(text: bytes | str, kind: type[_T]) -> _T | str:
    """Returns the value of a JSON text, or the reason why it is none of this kind."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        return str(error)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"is not JSON: {error}"


def json_lines(lines: Iterable[bytes], kind: type[_T], *, longest: int | None = None) -> Iterator[tuple[int, _T | str]]:
    """Yields the number, from 1, and the value of each line that is not blank, or the reason why it has none."""
    for number, line in enumerate(lines, start=1):
        if longest is not None and len(line) > longest:
            yield number, f"is longer than {longest:,} bytes"
        elif line.strip():
            yield number, read_json(line.removeprefix(BOM_UTF8) if number == 1 else line, kind)


_AT = re.compile(r"^(?P<message>.*?)(?: - at `(?:key in )?\$?\.?(?P<field>.*?)`)?$", re.DOTALL)
"""The place of a value as msgspec writes it: ``Expected `str`, got `int` - at `$.body` ``."""
_LEAST_ALIKE = 0.6
"""Least likeness (difflib's ratio) of an unknown field to the known one that is proposed in its place."""
_OTHER_NAMES: Mapping[str, str] = {
    "task": "query",
    "text": "body",
    "content": "body",
    "score": "final_score",
    "k": "limit",
}
"""Names that callers try, and the name that a field of the same meaning has."""
UUID_EXAMPLE = "0198c0de-7b1c-7e21-9f3a-5d2c8e4b6a10"
_INVALID = "Invalid enum value "
MOST_FAULTS = 50
DEEPEST = 32
"""Most levels of a JSON value in a field."""


class FieldError(Struct, frozen=True):
    """An error of one field."""

    field: str
    message: str


def faults_of(value: Any, kind: Any, refused: str, *, strict: bool = True, field: str = "") -> tuple[FieldError, ...]:  # noqa: ANN401 - any JSON value and type
    """Returns every fault of a value that msgspec has `refused` as one of this type; at least the one it names."""
    found = tuple(islice(_walk(value, kind, field, strict), MOST_FAULTS))
    return found or (_fault(refused, kind),)


def faults_of_json(body: bytes, kind: Any, refused: str) -> tuple[FieldError, ...]:  # noqa: ANN401 - any type
    """Returns every fault of a JSON text; the one that was found first where it is no JSON."""
    try:
        return faults_of(msgspec.json.decode(body), kind, refused)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return (_fault(refused, kind),)


def sentence_of(errors: Sequence[FieldError]) -> str:
    """Returns all faults in one line."""
    return "; ".join(f"{item.field}: {item.message}" if item.field else item.message for item in errors)


def check_value(value: Struct, within: str = "") -> None:
    """Checks that a value keeps the limits that its type states, and has only texts and moments that can be stored.

    msgspec checks what it decodes, and not what a caller makes. `within` stands before the names of the fields.

    Raises:
        InvalidInput: a field cannot be taken.
    """
    check(faults_in(value, within))


def faults_in(value: Struct, within: str = "") -> Iterator[str]:
    """Yields the reasons for which `check_value` refuses a value."""
    plain = msgspec.to_builtins(value, builtin_types=(bytes, date, datetime, UUID))
    try:
        msgspec.convert(plain, type(value))
    except msgspec.ValidationError as error:
        faults = faults_of(plain, type(value), str(error), field=within)
        yield from (f"{fault.field}: {fault.message}" for fault in faults)
    yield from unstorable(value, within)


def unstorable(value: Any, field: str = "", depth: int = 0) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    """Yields a reason for each part of a value that Postgres cannot hold: NUL, half of a surrogate pair, a year 0."""
    if depth > DEEPEST:
        yield f"{field}: is nested deeper than {DEEPEST} levels"
        return
    if isinstance(value, str):
        yield from _unstorable_text(value, field)
        return
    if isinstance(value, datetime) and not _in_calendar(value):
        yield f"{field}: is outside the years 1 to 9999"
    if isinstance(value, Mapping):
        yield from (reason for key in value for reason in _unstorable_text(key, field or "key"))
    for at, item in _parts(value, field):
        # A part of a struct is a field of its own.
        yield from unstorable(item, at, 0 if isinstance(value, Struct) else depth + 1)


def _parts(value: Any, field: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - as above
    """Yields the parts of a value, each with the name that a reason gives it."""
    match value:
        case Struct():
            yield from ((_below(field, name), getattr(value, name)) for name in value.__struct_fields__)
        case Mapping():
            yield from ((_below(field, key), item) for key, item in value.items())
        case list() | tuple():
            yield from (
                (f"{field}[{place}]" if isinstance(item, Struct) else field, item) for place, item in enumerate(value)
            )


def _unstorable_text(text: str, field: str) -> Sequence[str]:
    if "\0" in text:
        return (f"{field}: contains a NUL character, which cannot be stored",)
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        return (f"{field}: contains half of a surrogate pair, which is no character",)
    return ()


def _in_calendar(moment: datetime) -> bool:
    try:
        moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (OverflowError, ValueError):
        return False
    return True


def _walk(value: Any, kind: Any, at: str, strict: bool) -> Iterator[FieldError]:  # noqa: ANN401, FBT001 - as above
    try:
        msgspec.convert(value, kind, strict=strict)
    except (msgspec.ValidationError, OverflowError) as error:
        own, struct = _fault(str(error), kind), _struct_in(kind)
        is_below = bool(own.field) or own.message.startswith("Object ")
        if struct is None or not is_below:
            yield FieldError(at + own.field if own.field.startswith("[") else _below(at, own.field), own.message)
        elif isinstance(value, dict):
            yield from _of_struct(value, struct, at, strict)
        else:
            for place, item in enumerate(value):
                yield from _walk(item, struct, f"{at}[{place}]", strict)


def _of_struct(value: Mapping[str, Any], kind: type[Struct], at: str, strict: bool) -> Iterator[FieldError]:  # noqa: FBT001 - as above
    known = {field.encode_name: field for field in structs.fields(kind)}
    for name, given in value.items():
        if name in known:
            yield from _walk(given, known[name].type, _below(at, name), strict)
        elif kind.__struct_config__.forbid_unknown_fields:
            yield FieldError(_below(at, name), _unknown(str(name), list(known)))
    for name, field in known.items():
        if field.required and name not in value:
            yield FieldError(_below(at, name), "is missing")


def _struct_in(kind: Any) -> type[Struct] | None:  # noqa: ANN401 - any type
    """Returns the struct that a type is, or that its list or optional value is of."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        return kind
    return None if get_origin(kind) is dict else next(filter(None, map(_struct_in, get_args(kind))), None)


def _fault(refused: str, kind: Any) -> FieldError:  # noqa: ANN401 - any type
    """Returns the fault that msgspec names of a value of this type."""
    match = _AT.match(refused)
    assert match is not None, "every part of the pattern is optional"  # noqa: S101
    return FieldError(match["field"] or "", with_choices(match["message"], kind))


def with_choices(message: str, kind: Any) -> str:  # noqa: ANN401 - any type
    """Returns msgspec's message, with the values that a type takes where it refuses one of them."""
    if not message.startswith(_INVALID):
        return message
    allowed = ", ".join(filter(None, sorted(map(str, _choices(kind)))))
    return f"must be one of {allowed}; got {message.removeprefix(_INVALID)}"


def _choices(kind: Any) -> Iterator[object]:  # noqa: ANN401 - any type
    for part in get_args(kind):
        if get_origin(kind) is Literal:
            yield part
        else:
            yield from _choices(part)


def _unknown(name: str, known: Sequence[str]) -> str:
    other = _OTHER_NAMES.get(name, "")
    near = [other] if other in known else difflib.get_close_matches(name, known, n=1, cutoff=_LEAST_ALIKE)
    meant = f"did you mean `{near[0]}`? The" if near else "the"
    return f"is no known field; {meant} fields are {', '.join(known)}"


def _below(at: str, name: object) -> str:
    return f"{at}.{name}" if at and name else at or str(name)
