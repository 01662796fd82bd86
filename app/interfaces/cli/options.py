"""The options that commands share, groups of commands, and what commands read and print."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import msgspec
import typer

from app.errors import InvalidInput, check
from app.foundation.db.audit import note_operation
from app.foundation.text.data import read_json

_T = TypeVar("_T")
UserOption = Annotated[
    str | None,
    typer.Option(
        "--user",
        help="The end user whom it is for, by your own id; this user's memories and shared ones are seen.",
    ),
]
AgentOption = Annotated[str | None, typer.Option("--agent", help="Who asks: director, scout, …")]
RunOption = Annotated[str | None, typer.Option("--run-id", help="The run that it is for.")]
WorkspaceOption = Annotated[str | None, typer.Option("--workspace", "-w", help="Workspace; default PRIORS_WORKSPACE.")]
LanguageOption = Annotated[
    str | None, typer.Option("--language", help="Text search language: russian, de, …; default: the workspace's.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
FilesOption = Annotated[
    list[str] | None, typer.Option("--file", help="A file that it touches or is about; can be given again.")
]
Moment = Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"], help="In UTC.")]


def in_utc(moment: datetime | None) -> datetime | None:
    """Returns a moment from the command line, which has no time zone, as UTC."""
    return None if moment is None else moment.replace(tzinfo=UTC)


def without_none(**values: Any) -> dict[str, Any]:  # noqa: ANN401 - values of any option
    """Returns the options that are given: the service has defaults for the others."""
    return {name: value for name, value in values.items() if value is not None}


def expand_options(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the fields of a dataclass as options, in place of the parameter that takes the dataclass."""
    groups: dict[str, Any] = {name: kind for name, kind in get_type_hints(command).items() if is_dataclass(kind)}

    @wraps(command)
    def call_with_values(**values: object) -> None:
        for name, kind in groups.items():
            values[name] = kind(**{item.name: values.pop(item.name) for item in fields(kind)})
        command(**values)

    options: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        options += signature(groups[name]).parameters.values() if name in groups else [parameter]
    call_with_values.__signature__ = Signature([item.replace(kind=Parameter.KEYWORD_ONLY) for item in options])  # type: ignore[attr-defined]  # typer reads it
    call_with_values.__annotations__ = {item.name: item.annotation for item in options}
    return call_with_values


def group_in(commands: typer.Typer, name: str, about: str) -> typer.Typer:
    """Returns a new group of commands, which the audit log names with the command."""

    def note(call: typer.Context) -> None:
        note_operation(f"priors {call.info_name} {call.invoked_subcommand}")

    group = typer.Typer(help=about, no_args_is_help=True, rich_markup_mode=None)
    commands.add_typer(group, name=name, callback=note)
    return group


def print_json(answer: object) -> None:
    """Prints an answer as JSON, as the service gives it."""
    typer.echo(msgspec.json.encode(answer).decode())


def print_list(found: Sequence[_T], line: Callable[[_T], str], *, nothing: str, as_json: bool) -> None:
    """Prints a line for each item, or `nothing` where there is none; with `as_json` all of them as JSON."""
    if as_json:
        print_json(found)
    else:
        typer.echo("\n".join(map(line, found)) or nothing)


def bytes_of(path: Path) -> bytes:
    """Returns the content of a file, or with `-` of standard input."""
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise InvalidInput(str(path), f"cannot be read: {error.strerror or error}") from error


def text_of(path: Path) -> str:
    """Returns the text of a file, or with `-` of standard input."""
    try:
        return bytes_of(path).decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(str(path), f"cannot be read: {error}") from error


def values_of(path: Path, kind: type[msgspec.Struct], *, ignored: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the fields of a JSON object in a file, which `kind` has, without those ignored.

    Raises:
        InvalidInput: it is none, or a field is missing or unknown. The service checks the values.
    """
    read = read_json(bytes_of(path), dict[str, Any])
    if isinstance(read, str):
        raise InvalidInput(str(path), read)
    values = {name: value for name, value in read.items() if name not in ignored}
    fields_of_kind = {field.encode_name: field.required for field in msgspec.structs.fields(kind)}
    check(f"{name}: is not a field" for name in values if name not in fields_of_kind)
    check(f"{name}: is missing" for name, required in fields_of_kind.items() if required and name not in values)
    return values
