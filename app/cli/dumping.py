"""The commands `dump`, `load` and `erase`."""

import gzip
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, cast

import typer

from app.cli.running import WorkspaceOption, in_workspace, with_services
from app.errors import ConfigurationError, InvalidInput

if TYPE_CHECKING:
    from io import BufferedReader

    from app.operations.dump import Loaded
    from app.wiring import Services
    from app.workspaces.workspace import Workspace

commands = typer.Typer()
GZIP, COMPRESSED = b"\x1f\x8b", ".gz"
UserName = Annotated[str | None, typer.Option("--user", help="Only what belongs to this user.")]


@commands.command()
def dump(
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A file (.gz: compressed); default: standard output."),
    ] = None,
    user: UserName = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Write a workspace, or one of its users, as lines of JSON that `priors load` reads.

    Changes nothing.
    """

    async def work(services: "Services", target: "Workspace") -> str:
        from app.operations.dump import dump as dumped  # noqa: PLC0415 - SQLAlchemy: see `app.cli`
        from app.operations.dump import rows_of  # noqa: PLC0415 - the same

        count, line = 0, b""
        with _written(output) as file:
            async for line in dumped(services.database, workspace=target, user=user):
                file.write(line)
                count += len(line)
        return f"{rows_of(line):,} rows, {count:,} bytes, not compressed"

    typer.echo(in_workspace(workspace, work), err=True)


@commands.command()
def load(
    file: Annotated[Path, typer.Argument(help="A dump, compressed or not; - reads standard input.")],
    *,
    workspace: Annotated[
        str | None, typer.Option("--workspace", "-w", help="Its name here; default: its name in the dump.")
    ] = None,
) -> None:
    """Load a dump of this or an earlier version into a workspace that holds nothing: all of it, or nothing.

    Changes: makes the workspace with everything in the dump.
    """

    async def work(services: "Services") -> "Loaded":
        from app.operations.dump import load as loaded  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        with _read(file) as lines:
            return await loaded(services.database, lines=lines, name=workspace)

    found = with_services(work)
    _print_counts(found.rows, f"loaded into {found.workspace}")


@commands.command()
def erase(
    *,
    user: UserName = None,
    workspace: WorkspaceOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this, nothing is erased.")] = False,
) -> None:
    """Destroy a workspace, or one of its users, for good: also what is in logs, recalls and the trash.

    Changes: destroys everything of it. What stays is an entry of the audit log that it was erased.
    """

    async def work(services: "Services", target: "Workspace") -> tuple[str, Mapping[str, int]]:
        from app.operations.maintenance import erase_workspace, forget_user  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        what = f"the workspace {target.name}" if user is None else f"the user {user} of the workspace {target.name}"
        if not yes:
            raise InvalidInput("--yes", f"is missing: {what} would be destroyed for good; `priors dump` keeps a copy")
        if user is None:
            return what, await erase_workspace(services.database, workspace=target)
        return what, asdict(await forget_user(services.database, workspace=target, user=user))

    what, counts = in_workspace(workspace, work)
    _print_counts(counts, f"erased {what}" if any(counts.values()) else f"nothing is stored of {what}")


def _print_counts(counts: Mapping[str, int], what: str) -> None:
    for name, count in counts.items():
        if count:
            typer.echo(f"{count:>10,}  {name}")
    typer.echo(what)


@contextmanager
def _written(path: Path | None) -> Iterator[IO[bytes]]:
    """Opens the file of a dump, for its owner alone. One that is not written to its end does not stay."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    part = path.with_name(f"{path.name}.part")
    try:
        part.unlink(missing_ok=True)
        part.touch(mode=0o600, exist_ok=False)
        with part.open("wb") if path.suffix != COMPRESSED else gzip.open(part, "wb") as file:
            yield file  # type: ignore[misc]  # both are files of bytes
        part.replace(path)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _read(path: Path) -> Iterator[Iterator[bytes]]:
    try:
        with sys.stdin.buffer if str(path) == "-" else path.open("rb") as file:
            buffered = cast("BufferedReader", file)
            yield _lines(gzip.GzipFile(fileobj=buffered) if buffered.peek(2)[:2] == GZIP else buffered)
    except OSError as error:
        raise InvalidInput(str(path), f"cannot be read: {error.strerror or error}") from error


def _lines(file: Iterable[bytes]) -> Iterator[bytes]:
    try:
        yield from file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidInput("", f"the dump is damaged or cut off: {error}") from error
