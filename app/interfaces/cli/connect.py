"""`connect`: writes Priors into the settings of a program in a project, and asks a question through what it wrote."""

import difflib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import which
from typing import Annotated, Literal

import typer
from priors_client import PriorsError as ClientError
from priors_client import Unauthorized

from app.errors import ConfigurationError, InvalidInput
from app.interfaces.cli.client import client_of
from app.interfaces.cli.places import HEALTH_SECONDS, running_url, start
from app.interfaces.cli.programs import PROGRAMS, Connected, Program, with_hooks
from app.interfaces.cli.projects import (
    Project,
    free_workspace,
    keep_programs,
    known_projects,
    own_data_dir,
    repository_of,
    root_of,
    store_project,
)
from app.interfaces.cli.settings_files import SettingsChange, change_by, write
from app.interfaces.cli.take_in_past import offer_past
from app.settings import LOOPBACK, Settings, from_environment
from app.storage.tenants.workspace import NAME, NAME_RULE

commands = typer.Typer()

Name = Literal["claude-code", "codex", "cursor", "gemini-cli", "zed"]
_USER = re.compile(r"(?:[a-z]+://)?[^/?#]*@", re.IGNORECASE)
"""The beginning of a URL that names a user."""
_COMMAND = Path(sys.executable).with_name("priors")


@commands.command()
def connect(
    program: Annotated[Name, typer.Argument(metavar="PROGRAM", help=", ".join(PROGRAMS))],
    *,
    url: Annotated[
        str, typer.Option("--url", help="The service; default: the one that runs here, else a new one.")
    ] = "",
    workspace: Annotated[
        str, typer.Option("--workspace", "-w", help="Workspace; default: one of this project, named after its folder.")
    ] = "",
    lessons: Annotated[
        bool, typer.Option("--lessons", help="Ask the agent for lessons once in a session, as it stops.")
    ] = False,
    sessions: Annotated[
        bool | None,
        typer.Option("--sessions/--no-sessions", help="Take in earlier sessions of this project; default: ask."),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take away what this command wrote.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the changes, and make none.")] = False,
) -> None:
    """Connect a coding program to the memory of this project: its tools, and its hooks if it has any.

    Changes: the program's settings in the project, and nothing else that stands there. Starts the service if none
    runs. At the end it asks one question through the settings that it wrote.
    """
    chosen, root, settings = PROGRAMS[program], root_of(Path.cwd()), from_environment()
    if remove:
        _disconnect(root, chosen, dry_run=dry_run)
        return
    here = (settings, _own_settings(settings))
    place = _without_secret(url or settings.url) or next(filter(None, map(running_url, here)), _default_url(settings))
    name = _check_name(workspace) or free_workspace(root, known_projects())
    given = Connected(has_key=bool(settings.api_key), command=str(_COMMAND), lessons=lessons)
    if dry_run:
        _write_all(root, chosen, given, dry_run=True)
        return
    # What cannot be written is said before anything is.
    dict(_changes(root, chosen, given))
    _link_on_path()
    if not _answers(place, settings.api_key):
        if url or settings.url:
            raise ConfigurationError(f"no service answers at {place}; start it, or leave --url out")
        start(here[1].data_dir, place)
    # A name that was given is stored; another project may have taken a free one meanwhile.
    stored = store_project(root, workspace and name, url=place, data_dir=_data_dir_of(place, here), program=program)
    _write_all(root, chosen, given, dry_run=False)
    _check(root, chosen, stored)
    offer_past(stored, settings.api_key, program=program, wanted=sessions)
    typer.echo(f"Next: {chosen.next_step}.")


def _check_name(workspace: str) -> str:
    if workspace and not NAME.fullmatch(workspace):
        raise InvalidInput("--workspace", NAME_RULE)
    return workspace


def _link_on_path() -> None:
    """Links the command where programs find it, unless they do: files that a team commits name no path of a machine.

    Raises:
        ConfigurationError: there is no folder for it, or something else stands in its place.
    """
    if which(_COMMAND.name):
        return
    link = Path.home() / ".local" / "bin" / _COMMAND.name
    if str(link.parent) not in os.environ.get("PATH", "").split(os.pathsep):
        advice = f"link it into one of its folders, such as: ln -s {_COMMAND} /usr/local/bin/"
        raise ConfigurationError(f"programs start `priors` by its name, and it is not on the PATH; {advice}")
    if link.exists():
        advice = f"move it away, or link {_COMMAND} into another folder of the PATH"
        raise ConfigurationError(f"{link} is in the place of the command, and cannot be run; {advice}")
    link.parent.mkdir(parents=True, exist_ok=True)
    # Only a link to nothing can be there, such as to a clone that was moved.
    link.unlink(missing_ok=True)
    link.symlink_to(_COMMAND)
    typer.echo(f"linked {link} to {_COMMAND}: files that a team commits name no path of a machine")


def _disconnect(root: Path, program: Program, *, dry_run: bool) -> None:
    _write_all(root, program, None, dry_run=dry_run)
    if not dry_run:
        keep_programs(root, [name for name in PROGRAMS if _is_connected(name, {root, repository_of(root)})])


def _check(root: Path, program: Program, project: Project) -> None:
    # The SDK takes a second to import.
    from app.interfaces.cli.mcp_client import check_hook, check_tools  # noqa: PLC0415

    typer.echo(check_tools(program, root))
    if program.hooks_file:
        typer.echo(check_hook(program, root))
    typer.echo(f"{program.title} asks Priors at {project.url}, in the workspace {project.workspace}, from now on.")


def _write_all(root: Path, program: Program, given: Connected | None, *, dry_run: bool) -> None:
    """Changes the files of a program: all of them, or none if one of them cannot be changed."""
    changes = dict(_changes(root, program, given))
    for path, change in changes.items():
        name = str(path.relative_to(root))
        if dry_run:
            before, after = (text.splitlines(keepends=True) for text in (change.before, change.after or ""))
            typer.echo("".join(difflib.unified_diff(before, after, name, name)), nl=False)
        else:
            typer.echo(f"{write(path, change)} {name}")
            if path.parent != root:
                # It goes if it is empty now.
                with suppress(OSError):
                    path.parent.rmdir()
    if not changes:
        typer.echo("nothing to change")


def _changes(root: Path, program: Program, given: Connected | None) -> Iterator[tuple[Path, SettingsChange]]:
    """Yields the files that change."""
    for name in dict.fromkeys(filter(None, (program.file, program.hooks_file))):
        change = change_by(root / name, partial(_edit, program, name, given))
        if change.before != change.after:
            yield root / name, change


def _edit(program: Program, name: str, given: Connected | None, text: str) -> str:
    """Returns the text of a program's file with the server, the hooks, or both."""
    if name == program.file:
        text = program.with_entry(text, given)
    return with_hooks(program, text, given) if name == program.hooks_file else text


def _is_connected(program: str, roots: set[Path]) -> bool:
    """Tells whether a file of a program in a project names Priors; a file that cannot be changed may do so."""
    try:
        return any(next(_changes(root, PROGRAMS[program], None), None) for root in roots)
    except InvalidInput:
        return True


def _without_secret(url: str) -> str:
    """Returns a URL as it is written into files, which may be committed.

    Raises:
        InvalidInput: it has a user or a password.
    """
    if _USER.match(url):
        advice = "leave them out, and set PRIORS_API_KEY to the key of the service"
        raise InvalidInput("--url", f"the URL has a user or a password, and would be written into files; {advice}")
    return url.rstrip("/")


def _default_url(settings: Settings) -> str:
    host = settings.host if settings.host in LOOPBACK else "127.0.0.1"
    return f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"


def _own_settings(settings: Settings) -> Settings:
    """Returns the settings of a service for all projects of this user, unless a data directory is named or here."""
    if "PRIORS_DATA_DIR" in os.environ or settings.data_dir.is_dir():
        return settings
    return replace(settings, data_dir=Path(own_data_dir()))


def _data_dir_of(url: str, here: Sequence[Settings]) -> str:
    """Returns the data directory of the service at a URL; "" if it is on another machine."""
    return next((str(place.data_dir.absolute()) for place in here if running_url(place) == url), "")


def _answers(url: str, key: str) -> bool:
    """Tells whether a service of Priors answers at a URL.

    Raises:
        ConfigurationError: it refuses the key.
    """
    try:
        with client_of(url, key, "", HEALTH_SECONDS, retries=0) as client:
            return bool(client.admin.status().version)
    except Unauthorized as error:
        raise ConfigurationError(f"the service at {url} asks for its API key: set PRIORS_API_KEY to it") from error
    except ClientError:
        return False
