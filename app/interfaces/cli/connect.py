"""`connect`: writes Priors into the settings of a program in a project, and asks a question through what it wrote."""

import difflib
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from priors_client import PriorsError as ClientError
from priors_client import Unauthorized

from app.errors import ConfigurationError, InvalidInput
from app.interfaces.cli.client import client_of
from app.interfaces.cli.edits import with_endings_of
from app.interfaces.cli.places import HEALTH_SECONDS, running_url, start
from app.interfaces.cli.programs import PROGRAMS, Connected, Program, with_hooks
from app.interfaces.cli.projects import (
    free_workspace,
    keep_programs,
    known_projects,
    own_data_dir,
    repository_of,
    root_of,
    store_project,
)
from app.settings import LOOPBACK, Settings, from_environment

commands = typer.Typer()

Name = Literal["claude-code", "codex", "cursor", "gemini-cli", "zed"]
_USER = re.compile(r"(?:[a-z]+://)?[^/?#]*@", re.IGNORECASE)
"""The beginning of a URL that names a user."""


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
    given = Connected(
        url=_without_secret(url or settings.url) or _found_url(settings) or _default_url(settings),
        workspace=workspace or free_workspace(root, known_projects()),
        has_key=bool(settings.api_key),
        command=str(Path(sys.executable).with_name("priors")),
        lessons=lessons,
    )
    if not dry_run:
        if not _answers(given.url, settings.api_key):
            _start_unless_named(url, settings, given)
        place = {"url": given.url, "data_dir": _data_dir_of(given.url, settings)}
        # The name is stored under a lock: another project may have taken it meanwhile.
        given = replace(given, workspace=store_project(root, workspace, program=program, **place).workspace)
    _write_all(root, chosen, given, dry_run=dry_run)
    if not dry_run:
        _check(root, chosen, given)


def _start_unless_named(url: str, settings: Settings, given: Connected) -> None:
    if url or settings.url:
        raise ConfigurationError(f"no service answers at {given.url}; start it, or leave --url out")
    start(_own_settings(settings).data_dir, given.url)


def _disconnect(root: Path, program: Program, *, dry_run: bool) -> None:
    _write_all(root, program, None, dry_run=dry_run)
    if not dry_run:
        keep_programs(root, [name for name in PROGRAMS if _is_connected(name, {root, repository_of(root)})])


def _check(root: Path, program: Program, given: Connected) -> None:
    # The SDK takes a second to import.
    from app.interfaces.cli.mcp_client import check_hook, check_tools  # noqa: PLC0415

    typer.echo(check_tools(program, (root / program.file).read_text(encoding="utf-8")))
    if program.hooks_file:
        typer.echo(check_hook(program, root))
    typer.echo(f"{program.title} asks Priors at {given.url}, in the workspace {given.workspace}, from now on.")
    typer.echo(f"Next: {program.next_step}.")


def _write_all(root: Path, program: Program, given: Connected | None, *, dry_run: bool) -> None:
    """Changes the files of a program: all of them, or none if one of them cannot be changed."""
    changes = dict(_changes(root, program, given))
    for path, text in changes.items():
        name = str(path.relative_to(root))
        if dry_run:
            before = _text_of(path).splitlines(keepends=True)
            typer.echo("".join(difflib.unified_diff(before, text.splitlines(keepends=True), name, name)), nl=False)
        else:
            typer.echo(f"{_replace(path, text)} {name}")
            if path.parent != root:
                # It goes if it is empty now.
                with suppress(OSError):
                    path.parent.rmdir()
    if not changes:
        typer.echo("nothing to change")


def _changes(root: Path, program: Program, given: Connected | None) -> Iterator[tuple[Path, str]]:
    """Yields the files that change, with their new text."""
    names = dict.fromkeys(filter(None, (program.file, program.hooks_file)))
    stored = {name: _text_of(root / name) for name in names}
    texts = {name: with_endings_of(stored[name], partial(_edit, program, name, given)) for name in names}
    yield from ((root / name, text) for name, text in texts.items() if text != stored[name])


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


def _text_of(path: Path) -> str:
    try:
        # Without `newline`, the line endings of Windows would be lost.
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(str(path), f"cannot be read, so nothing is changed: {error}") from error


def _replace(path: Path, text: str) -> str:
    """Replaces a file at once, or removes one of which nothing is left; returns the word for what was done.

    A link keeps leading to its file.
    """
    target = path.resolve()
    if not text.strip(" \r\n{}"):
        target.unlink(missing_ok=True)
        return "removed"
    part = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part.touch(mode=0o600)
        part.write_text(text, encoding="utf-8", newline="")
        part.chmod(target.stat().st_mode if target.exists() else 0o644)
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InvalidInput(str(path), f"cannot be written: {error.strerror or error}") from error
    return "changed"


def _default_url(settings: Settings) -> str:
    host = settings.host if settings.host in LOOPBACK else "127.0.0.1"
    return f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"


def _found_url(settings: Settings) -> str:
    """Returns the URL of the service that runs on the data directory, of this folder or of this user; "" if none."""
    return running_url(settings) or running_url(_own_settings(settings))


def _own_settings(settings: Settings) -> Settings:
    """Returns the settings of a service for all projects of this user, unless a data directory is named or here."""
    if "PRIORS_DATA_DIR" in os.environ or settings.data_dir.is_dir():
        return settings
    return replace(settings, data_dir=own_data_dir())


def _data_dir_of(url: str, settings: Settings) -> str:
    """Returns the data directory of the service at a URL; "" if it is on another machine."""
    here = (settings, _own_settings(settings))
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
