"""Reads data (the TOML files of a package, JSON), and finds the faults of values and the remedies. Pure.

msgspec stops at the first fault and names no allowed value. The walk over a value is taken only where msgspec has
refused; it names each part that does not have its type, or that no database can hold.
"""

import difflib
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from importlib.resources import files
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

import msgspec
from msgspec import Struct, inspect

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
_EXAMPLES: Mapping[type, tuple[Any, str]] = {
    inspect.DateTimeType: (datetime, "a time, such as 2026-03-01T12:00:00Z"),
    inspect.DateType: (date, "a day, such as 2026-03-01"),
    inspect.UUIDType: (UUID, f"an id, such as {UUID_EXAMPLE}"),
    inspect.BoolType: (bool, "true or false"),
}
_KINDS: Mapping[type, str] = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
}
_MUST, _GOT = "must be ", "; got "
"""The text before and after the words for what would be taken."""
MOST_FAULTS = 50
_MOST_SHOWN = 40
"""Characters of the longest text that a message shows."""
DEEPEST = 32
"""Most levels of a JSON value in a field."""


class FieldError(Struct, frozen=True):
    """An error of one field."""

    field: str
    message: str


def _field_error(text: str) -> FieldError:
    """Returns the field and the message of one of msgspec's validation errors."""
    match = _AT.match(text)
    assert match is not None, "every part of the pattern is optional"  # noqa: S101
    return FieldError(field=match["field"] or "", message=match["message"])


def faults_of(value: Any, kind: Any, refused: str, *, strict: bool = True, field: str = "") -> tuple[FieldError, ...]:  # noqa: ANN401 - any JSON value and type
    """Returns every fault of a value that msgspec has `refused` as one of this type; at least the one it names."""
    found = list(islice(_walk(value, inspect.type_info(kind), field, strict), MOST_FAULTS))
    if found:
        return tuple(found)
    first = _field_error(refused)
    return (FieldError(first.field or field, first.message),)


def faults_of_json(body: bytes, kind: Any, refused: str) -> tuple[FieldError, ...]:  # noqa: ANN401 - any type
    """Returns every fault of a JSON text; the one that was found first where it is no JSON."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return (_field_error(refused),)
    return faults_of(value, kind, refused)


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


def _walk(value: Any, info: inspect.Type, at: str, strict: bool) -> Iterator[FieldError]:  # noqa: ANN401, FBT001 - as above
    match info:
        case inspect.Metadata():
            yield from _walk(value, info.type, at, strict)
        case inspect.UnionType():
            yield from _union(value, info, at, strict)
        case inspect.StructType():
            yield from _struct(value, info, at, strict)
        case inspect.ListType() | inspect.VarTupleType():
            yield from _list(value, info, at, strict)
        case inspect.DictType():
            yield from _dict(value, info, at, strict)
        case _:
            message = _leaf(value, info, strict=strict)
            if message:
                yield FieldError(at, message)


def _struct(value: Any, info: inspect.StructType, at: str, strict: bool) -> Iterator[FieldError]:  # noqa: ANN401, FBT001 - as above
    if not isinstance(value, dict):
        yield FieldError(at, f"must be an object; got {_quote(value)}")
        return
    known = {field.encode_name: field for field in info.fields}
    for name, given in value.items():
        if name in known:
            yield from _walk(given, known[name].type, _below(at, name), strict)
        elif info.forbid_unknown_fields:
            yield FieldError(_below(at, name), _unknown(str(name), list(known)))
    for name, field in known.items():
        if field.required and name not in value:
            yield FieldError(_below(at, name), "is missing")


def _unknown(name: str, known: Sequence[str]) -> str:
    other = _OTHER_NAMES.get(name, "")
    near = [other] if other in known else difflib.get_close_matches(name, known, n=1, cutoff=_LEAST_ALIKE)
    meant = f"did you mean `{near[0]}`? The" if near else "the"
    return f"is no known field; {meant} fields are {', '.join(known)}"


def _list(value: Any, info: inspect.ListType | inspect.VarTupleType, at: str, strict: bool) -> Iterator[FieldError]:  # noqa: ANN401, FBT001 - as above
    if not isinstance(value, list | tuple):
        yield FieldError(at, f"must be a list; got {_quote(value)}")
        return
    yield from (FieldError(at, message) for message in _length(len(value), info, "items"))
    # A list that is too long may hold a million items; the length is its fault then.
    for place, item in enumerate(islice(value, info.max_length)):
        yield from _walk(item, info.item_type, f"{at}[{place}]", strict)


def _dict(value: Any, info: inspect.DictType, at: str, strict: bool) -> Iterator[FieldError]:  # noqa: ANN401, FBT001 - as above
    if not isinstance(value, dict):
        yield FieldError(at, f"must be an object; got {_quote(value)}")
        return
    for name, item in value.items():
        yield from _walk(item, info.value_type, _below(at, name), strict)


def _union(value: Any, info: inspect.UnionType, at: str, strict: bool) -> Iterator[FieldError]:  # noqa: ANN401, FBT001 - as above
    """Yields the faults by the member that the value is nearest to, the one with the fewest; else what any takes."""
    members = [one for one in info.types if not isinstance(one, inspect.NoneType)]
    if value is None and len(members) < len(info.types):
        return
    tried = [list(islice(_walk(value, one, at, strict), MOST_FAULTS)) for one in members]
    deep = [faults for faults in tried if not faults or faults[0].field != at or len(faults) > 1]
    said = [faults[0].message for faults in tried if faults]
    if deep or not all(message.startswith(_MUST) for message in said):
        yield from min(deep or tried, key=len)
    else:
        wanted = dict.fromkeys(message.removeprefix(_MUST).partition(_GOT)[0] for message in said)
        yield FieldError(at, f"{_MUST}{', or '.join(wanted)}{_GOT}{_quote(value)}")


def _leaf(value: Any, info: inspect.Type, *, strict: bool) -> str:  # noqa: ANN401 - as above
    """Returns what is wrong with a value that has no parts; empty if nothing is."""
    match info:
        case inspect.LiteralType() if value not in info.values and (strict or str(value) not in map(str, info.values)):
            return f"must be one of {', '.join(filter(None, sorted(map(str, info.values))))}; got {_quote(value)}"
        case inspect.StrType() if not isinstance(value, str):
            return f"must be a text; got {_quote(value)}"
        case inspect.StrType():
            return next(_text(value, info), "")
        case inspect.IntType() | inspect.FloatType():
            return _number(value, info, strict=strict)
    if type(info) in _EXAMPLES:
        kind, example = _EXAMPLES[type(info)]
        return "" if _is(value, kind, strict=strict) else f"must be {example}; got {_quote(value)}"
    return ""


def _number(value: Any, info: inspect.IntType | inspect.FloatType, *, strict: bool) -> str:  # noqa: ANN401 - as above
    whole = isinstance(info, inspect.IntType)
    name = "a whole number" if whole else "a number"
    limits = [
        f"{word} {limit:,}"
        for word, limit in (("from", info.ge), ("above", info.gt), ("to", info.le), ("below", info.lt))
        if limit is not None
    ]
    wanted = (
        " ".join([name, *limits])
        if info.ge is not None or info.gt is not None
        else f"{name} {' '.join(limits)}".strip()
    )
    try:
        number = msgspec.convert(value, int if whole else float, strict=strict)
    except (msgspec.ValidationError, OverflowError):
        return f"must be {wanted}; got {_quote(value)}"
    below = (info.ge is not None and number < info.ge) or (info.gt is not None and number <= info.gt)
    above = (info.le is not None and number > info.le) or (info.lt is not None and number >= info.lt)
    return f"must be {wanted}; got {_quote(value)}" if below or above else ""


def _length(length: int, info: inspect.StrType | inspect.ListType | inspect.VarTupleType, unit: str) -> Iterator[str]:
    if info.max_length is not None and length > info.max_length:
        yield f"has {length:,} {unit}; at most {info.max_length:,} are taken"
    if info.min_length is not None and length < info.min_length:
        yield "is empty" if not length else f"has {length:,} {unit}; at least {info.min_length:,} are needed"


def _text(value: str, info: inspect.StrType) -> Iterator[str]:
    yield from _length(len(value), info, "characters")
    if info.pattern and not re.search(info.pattern, value):
        yield f"must have the form {info.pattern}; got {_quote(value)}"


def _is(value: Any, kind: Any, *, strict: bool) -> bool:  # noqa: ANN401 - as above
    try:
        msgspec.convert(value, kind, strict=strict)
    except (msgspec.ValidationError, OverflowError):
        return False
    return True


def _below(at: str, name: object) -> str:
    return f"{at}.{name}" if at else str(name)


def _quote(value: Any) -> str:  # noqa: ANN401 - as above
    """Returns a value as a message shows it: short ones whole, others by their kind."""
    if isinstance(value, str) and len(value) > _MOST_SHOWN:
        return f"a text of {len(value):,} characters"
    if (
        isinstance(value, str | int | float)
        and not isinstance(value, bool)
        and len(said := repr(value)) <= 2 * _MOST_SHOWN
    ):
        return said
    return "nothing" if value is None else _KINDS.get(type(value), type(value).__name__)
