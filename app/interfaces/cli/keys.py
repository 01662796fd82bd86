"""`key create`, `list`, `revoke`, `rotate`."""

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from app.errors import InvalidInput
from app.interfaces.cli.client import JsonOption, ServiceOptions, expand_options, group_in, print_json

if TYPE_CHECKING:
    from priors_client.models import MadeKey, StoredKey

commands = typer.Typer()
keys = group_in(commands, "key", "Make, list, revoke and rotate API keys.\n\nChanges: the API keys of the store.")
_SPAN = re.compile(r"(\d{1,4})([mhdw])")
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_KeyArgument = Annotated[UUID, typer.Argument(metavar="ID", help="The id of a key, as `priors key list` shows it.")]


@keys.command()
@expand_options
def create(
    name: Annotated[str, typer.Argument(help="A name that tells it from other keys.")],
    *,
    scope: Annotated[
        list[str] | None, typer.Option("--scope", help="read, write, rate or admin; can be given again. Default: read.")
    ] = None,
    workspace: Annotated[
        list[str] | None,
        typer.Option("--workspace", "-w", help="A workspace that it serves; can be given again. Default: all."),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option("--expires", help="A date (2027-01-31) or a span (30d, 12h). Default: never."),
    ] = None,
    requests_per_minute: Annotated[
        int | None,
        typer.Option("--requests-per-minute", help="Requests a minute; 0: no limit. Default: PRIORS_KEY_REQUESTS."),
    ] = None,
    service: ServiceOptions,
    as_json: JsonOption = False,
) -> None:
    """Make an API key and print its secret, which is shown this once. From the first key on, each request needs one.

    Changes: the API keys of the store.
    """
    expires_at = None if expires is None else _moment(expires)
    with service.connect(owner=True) as client:
        answer = client.admin.add_keys(
            name=name,
            scopes=scope or ["read"],
            workspaces=workspace,
            expires_at=expires_at,
            requests_per_minute=requests_per_minute,
        )
    _print_new(answer, as_json=as_json)


@keys.command("list")
@expand_options
def list_(*, service: ServiceOptions, as_json: JsonOption = False) -> None:
    """List the API keys, the newest first, those that are revoked or expired among them.

    Changes nothing.
    """
    with service.connect(owner=True) as client:
        found = client.admin.keys()
    if as_json:
        print_json(found)
        return
    for key in found:
        typer.echo(_line(key))
    if not found:
        typer.echo("There is no API key in the store: make one with `priors key create`.", err=True)


@keys.command()
@expand_options
def revoke(key_id: _KeyArgument, *, service: ServiceOptions) -> None:
    """Revoke an API key for good. Running services refuse it within five seconds.

    Changes: the API keys of the store.
    """
    with service.connect(owner=True) as client:
        typer.echo(_line(client.admin.delete_key(key_id)))


@keys.command()
@expand_options
def rotate(
    key_id: _KeyArgument,
    *,
    overlap: Annotated[str, typer.Option("--overlap", help="Time for which the old key stays valid: 12h, 7d.")] = "1d",
    service: ServiceOptions,
    as_json: JsonOption = False,
) -> None:
    """Make a new secret for an API key; the old one stays valid for the overlap.

    Changes: the API keys of the store.
    """
    span = _span(overlap)
    if span is None:
        raise InvalidInput("--overlap", f"{overlap!r} is no span of time such as 30m, 12h or 7d")
    with service.connect(owner=True) as client:
        answer = client.admin.rotate_key(key_id, overlap_seconds=span.total_seconds())
    _print_new(answer, as_json=as_json)


def _print_new(answer: "MadeKey", *, as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    typer.echo(f"{_line(answer.key)}\nIts secret is shown this once:", err=True)
    typer.echo(answer.secret)


def _line(key: "StoredKey") -> str:
    served = "all workspaces" if key.workspaces is None else ", ".join(key.workspaces)
    parts = [str(key.id), key.name, "+".join(key.scopes), served]
    if key.revoked_at is not None:
        parts.append(f"revoked {key.revoked_at:%Y-%m-%d %H:%M}")
    elif key.expires_at is not None:
        word = "expires" if key.expires_at > datetime.now(UTC) else "expired"
        parts.append(f"{word} {key.expires_at:%Y-%m-%d %H:%M}")
    if (most := key.requests_per_minute) is not None:
        parts.append(f"{most:,} requests a minute" if most else "no limit of requests")
    parts.append("never used" if key.last_used_at is None else f"last used {key.last_used_at:%Y-%m-%d %H:%M}")
    return "  ".join(parts)


def _moment(text: str) -> datetime:
    span = _span(text)
    if span is not None:
        return datetime.now(UTC) + span
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        reason = f"{text!r} is neither a date (2027-01-31) nor a span of time (30d, 12h)"
        raise InvalidInput("--expires", reason) from None
    return given if given.tzinfo else given.replace(tzinfo=UTC)


def _span(text: str) -> timedelta | None:
    found = _SPAN.fullmatch(text)
    return None if found is None else int(found[1]) * _UNITS[found[2]]
