"""A command as a client: the options that commands share, the service that it asks, and what it reads and prints."""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import httpx
import msgspec
import typer
from priors_client import Client, ProblemError, Unauthorized
from priors_client import PriorsError as ClientError

from app.errors import ConfigurationError, InvalidInput, PriorsError
from app.foundation.db.audit import note_operation
from app.foundation.values import frozen
from app.interfaces.cli.notes import place_name
from app.interfaces.cli.places import needed_url, running_url, settings_here, workspace_here
from app.settings import LOOPBACK

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
WorkspaceOption = Annotated[
    str | None,
    typer.Option("--workspace", "-w", help="Workspace; default PRIORS_WORKSPACE, or the project's."),
]
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


_PATIENCE_SECONDS = 600.0
"""Longest silence of a service: `POST /api/cues:tend` asks a language model up to 20 times before it answers."""
_RETRIES = 3
NO_KEY, FAILED = 401, 500
_CONNECT_SECONDS = 10.0
"""Longest wait for a connection to a service."""
WORDS = {"`X-Workspace`": "`--workspace`", "X-Workspace": "--workspace"}
"""The words of the service for what the command line calls otherwise."""
_OPTIONS: Mapping[str, str] = {
    "k": "-k",
    "min_probability": "--min-probability",
    "min_score": "--min-score",
    "language": "--language",
    "run_id": "--run-id",
    "files": "--file",
    "budget_tokens": "--budget",
    "filters.kinds": "--kind",
    "filters.source": "--source",
    "filters.tags": "--tag",
}
"""The options whose values the service checks, by its names for them. Other fields are of arguments, or of a file."""
_INDEX = re.compile(r"\[\d+\]$")

UrlOption = Annotated[
    str,
    typer.Option(
        "--url",
        help="The service; default PRIORS_URL, or the project's, or the one that runs here.",
    ),
]


@frozen
class ServiceOptions:
    """The options that name the service."""

    url: UrlOption = ""
    key: Annotated[str, typer.Option("--key", help="Its API key; default PRIORS_API_KEY.")] = ""

    @contextmanager
    def connect(
        self,
        workspace: str = "",
        *,
        owner: bool = False,
        makes_store: bool = False,
        options: Mapping[str, str] = _OPTIONS,
    ) -> Iterator[Client]:
        """Yields a client of the service, in a workspace or its default.

        For the `owner` of the store it works in this process unless a URL is given: no service asks for a key then.
        Where no service is, `makes_store` makes a store that is lacking.
        `options` are the command's, by the service's names for their values.

        Raises:
            PriorsError: there is no store, or the service cannot be reached, or it refuses.
        """
        settings = settings_here()
        url = self.url or settings.url or ("" if owner else running_url(settings) or needed_url(settings))
        key = self.key or settings.api_key
        if self.key and not url:
            raise ConfigurationError("--key is for a service, and none runs here: name it by --url, or leave --key out")
        try:
            if url:
                with client_of(url, key, workspace, _PATIENCE_SECONDS) as client:
                    yield client
            else:
                # Litestar and SQLAlchemy: see `app.interfaces.cli`.
                from app.interfaces.cli.local import client_in_process  # noqa: PLC0415

                with client_in_process(settings, workspace, makes_store=makes_store) as client:
                    yield client
        except ProblemError as error:
            raise PriorsError(_reason(error, url, key, options)) from error
        except ClientError as error:
            raise PriorsError(str(error)) from error


@frozen
class PlaceOptions(ServiceOptions):
    """The options that name the service and the workspace."""

    workspace: WorkspaceOption = None

    def client(self, **how: Any) -> AbstractContextManager[Client]:  # noqa: ANN401 - as `connect` takes it
        """Returns a client of the service in this workspace, as `connect` does."""
        return self.connect(self.workspace or workspace_here(), **how)

    def name(self) -> str:
        """Returns the name of the service and the workspace in notes, as `place_name` returns it."""
        settings = settings_here()
        url = self.url or settings.url
        data_dir = "" if url else str(settings.data_dir.absolute())
        return place_name(url, self.workspace or workspace_here(), data_dir=data_dir)


def client_of(url: str, key: str, workspace: str, seconds: float, *, retries: int = _RETRIES) -> Client:
    """Returns a client of the service at a URL.

    Raises:
        ConfigurationError: it is no URL, or its proxy cannot be used.
    """
    if not url.startswith(("http://", "https://")):
        raise ConfigurationError(f"{url} does not begin with http:// or https://")
    timeout = httpx.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS))
    try:
        # A client with a transport of its own reads no proxy from the environment.
        transport = httpx.HTTPTransport() if httpx.URL(url).host in LOOPBACK else None
        address = url.rstrip("/")
        return Client(address, key=key, workspace=workspace, timeout=timeout, retries=retries, transport=transport)
    except (httpx.InvalidURL, ImportError, ValueError) as error:
        raise ConfigurationError(f"{url}: {error}") from error


def _reason(error: ProblemError, url: str, key: str, options: Mapping[str, str]) -> str:
    """Returns why the service refuses, in words of the command line."""
    if isinstance(error, Unauthorized) and error.status == NO_KEY:
        refused = "refuses this API key: it is wrong, revoked or expired" if key else "asks for an API key"
        return f"the service at {url} {refused}; set PRIORS_API_KEY, or give --key"
    named = ((options.get(_INDEX.sub("", item.field), item.field), item.message) for item in error.problem.errors)
    fields = "; ".join(f"{name}: {message}" if name else message for name, message in named)
    reason = fields or error.problem.detail or error.problem.title
    if not fields and error.status >= FAILED and error.problem.request_id:
        reason = f"{reason} ({error.problem.request_id})"
    for word, option in WORDS.items():
        reason = reason.replace(word, option)
    return reason
