"""`workspace list`, `language`, `dump`, `load`, `erase`, `examples`, `starter`."""

import gzip
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, cast

import typer
from priors_client.models import CueInput

from app.errors import ConfigurationError, InvalidInput
from app.interfaces.cli.client import (
    JsonOption,
    PlaceOptions,
    ServiceOptions,
    WorkspaceOption,
    expand_options,
    group_in,
    print_list,
    without_none,
)
from app.interfaces.cli.local import in_workspace, with_services
from app.interfaces.cli.places import settings_here
from app.operations import dump as dumps
from app.operations import examples as stored_examples
from app.operations.maintenance import Maintenance
from app.operations.status import Overview, WorkspaceStatistics
from app.recall.cues.cue import starter_cues
from app.storage.tenants.workspace import Workspace
from app.wiring import Services

if TYPE_CHECKING:
    from io import BufferedReader

commands = typer.Typer()
workspaces = group_in(
    commands,
    "workspace",
    "Count, dump, load or erase a workspace; cues to start with.\n\nChanges: as each command says.",
)
NOTHING = "nothing is stored yet"
GZIP, COMPRESSED = b"\x1f\x8b", ".gz"
_UserName = Annotated[str | None, typer.Option("--user", help="Only what belongs to this user.")]


@workspaces.command("list")
@expand_options
def list_(*, service: ServiceOptions, as_json: JsonOption = False) -> None:
    """Count what is stored, by workspace; of a service elsewhere, list its workspaces.

    Changes nothing.
    """
    if service.url or settings_here().url:
        with service.connect() as client:
            names = client.admin.workspaces()
        print_list(names, lambda item: f"{item.name} ({item.language})", nothing=NOTHING, as_json=as_json)
        return
    found = with_services(lambda services: Overview(database=services.database).statistics())
    print_list(found, _figures, nothing=NOTHING, as_json=as_json)


def _figures(item: WorkspaceStatistics) -> str:
    """Returns a workspace's figures in three lines."""
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(item.kinds.items())) or "none"
    refused = ", ".join(f"{reason} {count}" for reason, count in sorted(item.refused.items())) or "none"
    return (
        f"{item.name} ({item.language}): {item.live} memories ({kinds})\n"
        f"  sources {item.sources}, runs {item.runs}, recalls {item.recalls},"
        f" pending for a vector {item.waiting}, for links {item.pending_links}\n"
        f"  retired {item.retired}, quarantined {item.quarantined}, refused: {refused}"
    )


@workspaces.command()
def language(
    name: Annotated[str, typer.Argument(metavar="LANGUAGE", help="A name or ISO code: russian, de, …")],
    *,
    workspace: WorkspaceOption = None,
) -> None:
    """Set the text search language of a workspace.

    Changes: the language of memories and queries that name none from now on; what is stored keeps its own.
    """

    async def work(services: Services, target: Workspace) -> str:
        return (await services.workspaces.set_language(target, name)).language

    typer.echo(in_workspace(workspace, work))


@workspaces.command()
def dump(
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A file (.gz: compressed); default: standard output."),
    ] = None,
    user: _UserName = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Write a workspace, or one of its users, as lines of JSON that `priors workspace load` reads.

    Changes nothing.
    """

    async def work(services: Services, target: Workspace) -> str:
        count, line = 0, b""
        with _open_dump(output) as file:
            async for line in dumps.Dumps(database=services.database).dump(target, user=user):
                file.write(line)
                count += len(line)
        return f"{dumps.rows_of(line):,} rows, {count:,} bytes, not compressed"

    typer.echo(in_workspace(workspace, work), err=True)


@workspaces.command()
def load(
    file: Annotated[Path, typer.Argument(help="A dump, compressed or not; - reads standard input.")],
    *,
    workspace: Annotated[
        str | None, typer.Option("--workspace", "-w", help="Its name here; default: its name in the dump.")
    ] = None,
) -> None:
    """Load a dump of this or an earlier version into a workspace that holds nothing: all of it, or nothing.

    Changes: makes the workspace with everything in the dump, and the store if there is none.
    """

    async def work(services: Services) -> dumps.Loaded:
        with _read(file) as lines:
            return await dumps.Dumps(database=services.database).load(lines, name=workspace)

    found = with_services(work, makes_store=True)
    _print_counts(found.rows, f"loaded into {found.workspace}")


@workspaces.command()
def erase(
    *,
    user: _UserName = None,
    workspace: WorkspaceOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this, nothing is erased.")] = False,
) -> None:
    """Destroy a workspace, or one of its users, for good: also what is in logs, recalls and the trash.

    Changes: destroys everything of it. What stays is an entry of the audit log that it was erased.
    """

    async def work(services: Services, target: Workspace) -> tuple[str, Mapping[str, int]]:
        what = f"the workspace {target.name}" if user is None else f"the user {user} of the workspace {target.name}"
        if not yes:
            reason = f"is missing: {what} would be destroyed for good; `priors workspace dump` keeps a copy"
            raise InvalidInput("--yes", reason)
        if user is None:
            return what, await Maintenance(database=services.database).erase_workspace(target)
        return what, asdict(await Maintenance(database=services.database).forget_user(target, user=user))

    what, counts = in_workspace(workspace, work)
    _print_counts(counts, f"erased {what}" if any(counts.values()) else f"nothing is stored of {what}")


@workspaces.command()
def examples(
    *,
    remove: Annotated[bool, typer.Option("--remove", help="Take the examples away for good.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Take away the example reports, sessions and runs that the first `priors run` stored.

    Changes: destroys them with their ratings and recalls, and nothing else. Running it again changes nothing.
    """
    if not remove:
        raise typer.BadParameter("say --remove: nothing else can be done with the examples")

    async def work(services: Services, target: Workspace) -> str:
        gone = await stored_examples.Examples(services=services).remove(target)
        return f"{gone.memories} memories of {gone.files} files, and {gone.runs} runs are removed"

    typer.echo(in_workspace(workspace, work))


@workspaces.command()
@expand_options
def starter(*, place: PlaceOptions) -> None:
    """Add the first library: general cues of engineering and research, for a store that has none of its own.

    Changes: adds cues with the tag `starter`, once. Own cues on the same act take their places at the next review.
    """
    names = [name for name in CueInput.__struct_fields__ if name != "evidence"]
    cues = [CueInput(**without_none(**{name: getattr(cue, name) for name in names})) for cue in starter_cues()]
    with place.client() as client:
        answer = client.admin.store_cues(cues)
    typer.echo(f"{answer.stored} cues added, {answer.known} known")


def _print_counts(counts: Mapping[str, int], what: str) -> None:
    for name, count in counts.items():
        if count:
            typer.echo(f"{count:>10,}  {name}")
    typer.echo(what)


@contextmanager
def _open_dump(path: Path | None) -> Iterator[IO[bytes]]:
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
