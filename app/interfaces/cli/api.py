"""`api`: calls any route of the service, and prints its answer as tables."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shutil import get_terminal_size
from textwrap import shorten
from typing import Annotated, Any

import msgspec
import typer

from app.errors import InvalidInput
from app.interfaces.cli.client import JsonOption, PlaceOptions, bytes_of, expand_options

commands = typer.Typer()
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_WITHOUT_BODY = frozenset({"GET", "DELETE"})
_FIELD = re.compile(r"([^=:]+)(:?)=(.*)", re.DOTALL)
"""A field's name, a colon before a value in JSON, and the value."""
_PIPED_WIDTH = 140
_GAP = "  "


@commands.command()
@expand_options
def api(
    method: Annotated[str, typer.Argument(help="GET, POST, PUT, PATCH or DELETE.")],
    path: Annotated[str, typer.Argument(help="The route, such as /api/cases.")],
    fields: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FIELD=TEXT|FIELD:=JSON]…", help="Its fields; one that is given again is a list."),
    ] = None,
    *,
    from_file: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="The body as JSON; - reads it. Fields: the query's.")
    ] = None,
    owner: Annotated[
        bool, typer.Option("--owner", help="Without --url: work on the store here as its owner, who needs no key.")
    ] = False,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """Call a route of the service, and print its answer as tables: docs/reference/http.md lists the routes.

    Changes: what the route changes.
    """
    method = method.upper()
    if method not in _METHODS:
        raise typer.BadParameter(f"must be one of {', '.join(_METHODS)}; got {method!r}", param_hint="METHOD")
    given = _values(fields or ())
    sent = {} if from_file is None else {"body": _body(from_file)}
    if given:
        sent["query" if from_file or method in _WITHOUT_BODY else "body"] = given
    with place.client(owner=owner, options={}) as client:
        answer = client.call(method, f"/{path.lstrip('/')}", **sent)
    typer.echo(answer if as_json else "\n".join(readable(answer, get_terminal_size((_PIPED_WIDTH, 0)).columns)))


def _body(path: Path) -> Any:  # noqa: ANN401 - any JSON
    try:
        return msgspec.json.decode(bytes_of(path))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(str(path), f"is no JSON: {error}") from error


def _values(fields: Sequence[str]) -> dict[str, Any]:
    """Returns the values of fields by their names; of a name that is given again, a list."""
    found: dict[str, list[Any]] = {}
    for field in fields:
        parts = _FIELD.fullmatch(field)
        if parts is None:
            raise typer.BadParameter(f"must be field=text or field:=JSON; got {field!r}", param_hint="FIELD")
        name, is_json, text = parts.groups()
        found.setdefault(name, []).append(_json(field, text) if is_json else text)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def _json(field: str, text: str) -> Any:  # noqa: ANN401 - any JSON
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise typer.BadParameter(f"is no JSON: {field!r}: {error}", param_hint="FIELD") from error


def readable(answer: str, width: int) -> Iterator[str]:
    """Yields the lines of an answer as a person reads it: records as tables, a text as it is. Pure."""
    try:
        value = msgspec.json.decode(answer) if answer else None
    except msgspec.DecodeError:
        yield answer.rstrip("\n")
    else:
        yield from _lines(value, width)


def _lines(value: Any, width: int) -> Iterator[str]:  # noqa: ANN401 - any JSON
    if isinstance(value, Mapping):
        yield from _record(value, width)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        if not value:
            yield "none"
        elif all(isinstance(item, Mapping) for item in value):
            yield from _table(value, width)
        else:
            yield from map(_cell, value)
    elif value is not None:
        yield str(value)


def _record(record: Mapping[str, Any], width: int) -> Iterator[str]:
    """Yields a line a field; below them, each under its name, the fields that are records or texts of many lines."""
    shown = {name: value for name, value in record.items() if value not in (None, "", [], {})}
    long = {name: value for name, value in shown.items() if _is_long(value)}
    short = {name: _cell(value) for name, value in shown.items() if name not in long}
    names = max(map(len, short), default=0)
    for name, text in short.items():
        yield f"{name.ljust(names)}{_GAP}{shorten(text, max(width - names - len(_GAP), 20), placeholder=' …')}"
    for name, value in long.items():
        yield from ("", name, "")
        yield from _lines(value, width)
    if not shown:
        yield "none"


def _is_long(value: object) -> bool:
    """Tells whether a value is a record with fields, a list of records, or a text of many lines."""
    if isinstance(value, str):
        return "\n" in value.strip()
    return isinstance(value, Mapping) or (
        isinstance(value, Sequence) and any(isinstance(one, Mapping) for one in value)
    )


def _table(records: Sequence[Mapping[str, Any]], width: int) -> Iterator[str]:
    """Yields a line a record; where they are wider than the terminal, a line a field of each."""
    named = dict.fromkeys(
        name for record in records for name, value in record.items() if value not in (None, "", [], {})
    )
    rows = [[_cell(record.get(name)) for name in named] for record in records]
    widths = [max(len(text) for text in column) for column in zip(named, *rows, strict=True)]
    if sum(widths) + len(_GAP) * len(widths) <= width:
        for row in ([*named], *rows):
            yield _GAP.join(text.ljust(size) for text, size in zip(row, widths, strict=True)).rstrip()
        return
    for number, record in enumerate(records):
        if number:
            yield ""
        yield from _record(record, width)


def _cell(value: Any) -> str:  # noqa: ANN401 - any JSON
    """Returns a value on one line."""
    if value is None:
        return ""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, Sequence) and not any(isinstance(one, Mapping) for one in value):
        return ", ".join(map(_cell, value))
    return msgspec.json.encode(value).decode()
