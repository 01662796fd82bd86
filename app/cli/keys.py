"""`key create`, `list`, `limit`, `revoke`, `rotate`."""

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from app.cli.running import JsonOption, print_json, with_services
from app.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.keys.key import MadeKey, StoredKey
    from app.wiring import Services

key_commands = typer.Typer(
    help="Make, list, limit, revoke and rotate API keys.\n\nChanges: the API keys of the store.",
    no_args_is_help=True,
)
SPAN = re.compile(r"(\d{1,6})([mhdw])")
UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
RequestsOption = Annotated[
    int | None,
    typer.Option("--requests-per-minute", help="Requests a minute; 0: no limit. Default: PRIORS_KEY_REQUESTS."),
]
BytesOption = Annotated[
    int | None,
    typer.Option(
        "--bytes-per-minute", help="Bytes a minute, sent and received; 0: no limit. Default: PRIORS_KEY_BYTES."
    ),
]
KeyArgument = Annotated[UUID, typer.Argument(metavar="ID", help="The id of a key, as `priors key list` shows it.")]


@key_commands.command("create")
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
    requests_per_minute: RequestsOption = None,
    bytes_per_minute: BytesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make an API key and print its secret, which is shown this once. From the first key on, each request needs one.

    Changes: the API keys of the store.
    """
    expires_at = None if expires is None else _moment(expires)

    async def work(services: "Services") -> "MadeKey":
        from app.keys.key import KeyLimits, NewKey  # noqa: PLC0415 - SQLAlchemy: see `app.cli`
        from app.operations.keys import make_key  # noqa: PLC0415 - the same

        workspaces = None if workspace is None else tuple(workspace)
        limits = KeyLimits(requests_per_minute=requests_per_minute, bytes_per_minute=bytes_per_minute)
        wanted = NewKey(
            name=name, scopes=tuple(scope or ["read"]), workspaces=workspaces, expires_at=expires_at, limits=limits
        )
        return await make_key(services.database, wanted=wanted)

    _print_made(with_services(work), as_json=as_json)


@key_commands.command("list")
def list_all(*, as_json: JsonOption = False) -> None:
    """List the API keys, the newest first, those that are revoked or expired among them.

    Changes nothing.
    """

    async def work(services: "Services") -> "Sequence[StoredKey]":
        from app.operations.keys import list_keys  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        return await list_keys(services.database)

    found = with_services(work)
    if as_json:
        from app.api.keys import KeyView  # noqa: PLC0415 - Litestar: see `app.cli`

        print_json(found, list[KeyView])
        return
    for key in found:
        typer.echo(_line(key))
    if not found:
        typer.echo("There is no API key in the store: make one with `priors key create`.", err=True)


@key_commands.command("limit")
def limit(
    key_id: KeyArgument, *, requests_per_minute: RequestsOption = None, bytes_per_minute: BytesOption = None
) -> None:
    """Limit the use of an API key. A limit that is not given is that of the settings, from now on.

    Changes: the API keys of the store.
    """

    async def work(services: "Services") -> "StoredKey":
        from app.keys.key import KeyLimits  # noqa: PLC0415 - SQLAlchemy: see `app.cli`
        from app.operations.keys import limit_key  # noqa: PLC0415 - the same

        limits = KeyLimits(requests_per_minute=requests_per_minute, bytes_per_minute=bytes_per_minute)
        return await limit_key(services.database, key_id=key_id, limits=limits)

    typer.echo(_line(with_services(work)))


@key_commands.command("revoke")
def revoke(key_id: KeyArgument) -> None:
    """Revoke an API key for good. Running services refuse it within five seconds.

    Changes: the API keys of the store.
    """

    async def work(services: "Services") -> "StoredKey":
        from app.operations.keys import revoke_key  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        return await revoke_key(services.database, key_id=key_id)

    typer.echo(_line(with_services(work)))


@key_commands.command("rotate")
def rotate(
    key_id: KeyArgument,
    *,
    overlap: Annotated[str, typer.Option("--overlap", help="Time for which the old key stays valid: 12h, 7d.")] = "1d",
    as_json: JsonOption = False,
) -> None:
    """Make a new secret for an API key; the old one stays valid for the overlap.

    Changes: the API keys of the store.
    """
    span = _span(overlap)
    if span is None:
        raise InvalidInput("--overlap", f"{overlap!r} is no span of time such as 30m, 12h or 7d")

    async def work(services: "Services") -> "MadeKey":
        from app.operations.keys import rotate_key  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        return await rotate_key(services.database, key_id=key_id, overlap=span)

    _print_made(with_services(work), as_json=as_json)


def _print_made(made: "MadeKey", *, as_json: bool) -> None:
    if as_json:
        from app.api.keys import MadeKeyView  # noqa: PLC0415 - Litestar: see `app.cli`

        print_json(made, MadeKeyView)
        return
    typer.echo(_line(made.key), err=True)
    typer.echo("Its secret is shown this once:", err=True)
    typer.echo(made.secret)


def _line(key: "StoredKey") -> str:
    served = "all workspaces" if key.workspaces is None else ", ".join(key.workspaces)
    told = [str(key.key_id), key.name, "+".join(key.scopes), served]
    if key.revoked_at is not None:
        told.append(f"revoked {key.revoked_at:%Y-%m-%d %H:%M}")
    elif key.expires_at is not None:
        word = "expires" if key.expires_at > datetime.now(UTC) else "expired"
        told.append(f"{word} {key.expires_at:%Y-%m-%d %H:%M}")
    told += [
        f"{value:,} {name} a minute" if value else f"no limit of {name}"
        for name, value in (("requests", key.requests_per_minute), ("bytes", key.bytes_per_minute))
        if value is not None
    ]
    told.append("never used" if key.last_used_at is None else f"last used {key.last_used_at:%Y-%m-%d %H:%M}")
    return "  ".join(told)


def _moment(text: str) -> datetime:
    span = _span(text)
    if span is not None:
        return _after(span)
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        reason = f"{text!r} is neither a date (2027-01-31) nor a span of time (30d, 12h)"
        raise InvalidInput("--expires", reason) from None
    return given if given.tzinfo else given.replace(tzinfo=UTC)


def _after(span: timedelta) -> datetime:
    """Returns the moment after a span, or the last one that there is; such a life is refused with its limit."""
    try:
        return datetime.now(UTC) + span
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def _span(text: str) -> timedelta | None:
    found = SPAN.fullmatch(text)
    return None if found is None else int(found[1]) * UNITS[found[2]]
