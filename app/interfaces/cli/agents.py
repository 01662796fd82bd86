"""`mcp` and `hook`: the door for agents over standard input and output, and the answers to their client's events."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from socket import socket
from subprocess import DEVNULL, Popen
from time import sleep
from typing import Annotated

import typer

from app.errors import ConfigurationError
from app.interfaces.cli import hooks
from app.interfaces.cli.client import AgentOption, PlaceOptions, WorkspaceOption, expand_options
from app.interfaces.cli.places import answers, check_store, needed_url, running_url, settings_here, workspace_here
from app.interfaces.cli.relay import pass_on, refusal
from app.settings import Settings

commands = typer.Typer()

STARTS = (
    "priors mcp: no service runs on this data directory, so this process starts one for as long as it runs, which takes"
    " some seconds; beside `priors run` it answers at once"
)
_HERE, _LOOK_SECONDS = "127.0.0.1", 0.1
"""The address of a service of this process's own, and the time between two looks at one that starts."""
UrlOption = Annotated[
    str,
    typer.Option(
        "--url",
        help="Ask the service at this address, such as http://127.0.0.1:8000, with the key PRIORS_API_KEY; default"
        " PRIORS_URL, else the one that runs on the data directory; without any, one is started here.",
    ),
]


@commands.command()
@expand_options
def hook(
    *,
    place: PlaceOptions,
    agent: AgentOption = None,
    no_lessons: Annotated[bool, typer.Option(hooks.NO_LESSONS, help="Ask no agent that stops for lessons.")] = False,
) -> None:
    """Answer an event of the hooks of a coding program, which comes on standard input, by the running service.

    Changes: the end of a session stores its transcript, and so do a compaction and an agent's stop, which also notes
    that the session was asked for lessons; a prompt, and an act that a lesson is told about, change nothing but the
    logs. What cannot be stored is noted, and named when the next session starts. The exit code
    is 0 whatever happens, so that no work is ever held up; the reason is on standard error.
    """
    given = {"--url": place.url, "--key": place.key, "--workspace": place.workspace or "", "--agent": agent or ""}
    hooks.answer(_place(given)._replace(lessons=not no_lessons))


def _place(options: Mapping[str, str]) -> hooks.Destination:
    """Returns the place that options name; one without a value is left out."""
    found = hooks.place_of([word for pair in options.items() if pair[1] for word in pair])
    assert found is not None, "these are its options"  # noqa: S101
    return found


@commands.command()
def mcp(*, url: UrlOption = "", workspace: WorkspaceOption = None) -> None:
    """Serve agents over standard input and output, as MCP clients start it.

    Changes: what the agents' calls ask for. Where no service runs, it starts one, which ends with it.
    """
    settings, workspace = settings_here(), workspace or workspace_here() or None
    own: Popen[bytes] | None = None
    if not (where := url or settings.url or running_url(settings) or needed_url(settings)):
        check_store(settings)
        typer.echo(STARTS, err=True)
        own, where = _start_own(settings)
    try:
        place = _place({"--url": where, "--workspace": workspace or ""})
        if reason := refusal(place):
            raise ConfigurationError(reason)
        pass_on(lambda: place)
    finally:
        if own is not None:
            own.terminate()
            own.wait()


def _start_own(settings: Settings) -> tuple[Popen[bytes], str]:
    """Starts a service on the store here that ends with this process; returns it and its URL once it answers.

    No other process is told of it: one that asked it would lose it.
    """
    command = [str(Path(sys.executable).with_name("priors")), "serve", "--stop-with-parent", "--private"]
    with socket() as free:
        free.bind((_HERE, 0))
        port = str(free.getsockname()[1])
    given = {"PRIORS_DATA_DIR": str(settings.data_dir), "PRIORS_HOST": _HERE, "PRIORS_PORT": port}
    service = Popen(command, env={**os.environ, **given}, stdin=DEVNULL, stdout=DEVNULL)  # noqa: S603 - this program itself
    while not answers(where := f"http://{_HERE}:{port}"):
        if service.poll() is not None:
            raise ConfigurationError("the service of this process does not start")
        sleep(_LOOK_SECONDS)
    return service, where
