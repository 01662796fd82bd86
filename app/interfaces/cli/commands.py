"""The `priors` command: its commands, and the messages of their errors."""

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from app.errors import PriorsError
from app.foundation.db.audit import Actor, acting_as
from app.settings import VERSION

_USAGE = 2
_INTERRUPTED = 130
COMMANDS: Mapping[str, tuple[str, str]] = {
    "run": ("serving", "Bring everything up and serve in the foreground."),
    "serve": ("serving", "Serve HTTP in the foreground, on a database that is migrated."),
    "worker": ("serving", "Run background jobs: embedding, cues, links, statistics, indexes."),
    "ingest": ("ingestion", "Take in every report and every log of a session."),
    "import": ("ingestion", "Take in what an earlier harness stored."),
    "history": ("asking", "Print the `## Relevant History` section for a query."),
    "activate": ("asking", "Print the `## Before you act` section for a plan."),
    "why": ("asking", "Print why something is as it is."),
    "search": ("asking", "Print what a query finds; `--explain` shows the scores."),
    "status": ("status", "Print what memory did this week, what waits, and what failed."),
    "report": ("asking", "Print what memory did to the runs of a workspace."),
    "forget": ("forget", "List everything that names a subject, and with `--yes` remove it."),
    "api": ("api", "Call a route of the service, and print its answer as tables."),
    "workspace": ("workspace", "Count, dump, load or erase a workspace; cues to start with."),
    "key": ("keys", "Make, list, revoke and rotate API keys."),
    "store": ("store", "Migrate, check, back up and maintain the store."),
    "connect": ("connect", "Connect a coding program to the memory of this project."),
    "mcp": ("agents", "Serve agents over standard input and output."),
    "hook": ("agents", "Answer an event of the hooks of a coding program."),
}
"""Each command with its module and its line in the list of commands."""

_WANTED: Mapping[str, str] = {
    "int_parsing": "a whole number",
    "float_parsing": "a number",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "uuid_parsing": "an id, such as 0198c0de-7b1c-7e21-9f3a-5d2c8e4b6a10",
    "datetime": "a day or a time in UTC, such as 2026-03-01 or 2026-03-01T12:00:00",
}
"""The words for what a value must be, by the kind of the fault: pydantic's, and typer's of a date."""

# httpx imports its own command line with rich and pygments, 0.2 s of a core, unless this import fails.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None makes an import fail, as Python's reference says


class Commands(TyperGroup):
    """The commands. The module of one is imported when it is asked for."""

    def __init__(self, **given: Any) -> None:  # noqa: ANN401 - the library's own
        """Takes the library's values; the names of the commands are what it suggests for a mistyped one."""
        super().__init__(**given)
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]  # `get_command` imports them

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - the library's type is private
        """Runs a command; says what is wrong with a value in plain words."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = _plain(error)
            raise

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002 - the library's type is private
        """Returns the names of the commands."""
        return [*COMMANDS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401, ARG002 - the same
        """Returns a command by its name."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"app.interfaces.cli.{COMMANDS[cmd_name][0]}")
        module.commands.rich_markup_mode = None
        return typer.main.get_group(module.commands).commands[cmd_name]

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002 - the same
        """Writes the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


def _plain(error: typer.BadParameter) -> str:
    """Returns what is wrong with a value, without the words of the library that read it."""
    faults: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
    if not faults:
        return error.message
    fault = faults[0]
    kind = "datetime" if "does not match the formats" in fault["msg"] else fault["type"]
    if kind in _WANTED:
        return f"must be {_WANTED[kind].format(**fault.get('ctx', {}))}; got {fault['input']!r}"
    return error.message.removeprefix("Value error, ")


app = typer.Typer(
    name="priors",
    cls=Commands,
    help="The memory service for agent pipelines. Settings are variables, PRIORS_…: docs/reference/commands.md.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(VERSION)
        raise typer.Exit


@app.callback()
def _options(
    call: typer.Context,
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=lambda value: _show_version(wanted=value), is_eager=True)
    ] = False,
) -> None:
    """The memory service for agent pipelines."""
    call.with_resource(acting_as(Actor("cli", operation=f"priors {call.invoked_subcommand or ''}")))


def run_command() -> None:
    """Runs a command; reports an error in one line on standard error and by exit code 2."""
    try:
        app()
    except PriorsError as error:
        typer.echo(f"priors: {error}", err=True)
        sys.exit(_USAGE)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
