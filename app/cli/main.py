"""The `priors` command: its commands, and the messages of their errors."""

import sys
from typing import Annotated

import typer

from app.cli import (
    agents,
    audit,
    cases,
    context,
    cues,
    database,
    dumping,
    evaluating,
    hooks,
    ingestion,
    keys,
    learning,
    recalls,
    remote,
    serving,
    sessions,
    tending,
    why,
)
from app.db.actor import Actor, acting_as, note_operation
from app.errors import PriorsError
from app.settings import VERSION

USAGE = 2
INTERRUPTED = 130

app = typer.Typer(
    name="priors",
    help="The memory service for agent pipelines. Settings are environment variables, PRIORS_…; the README lists them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for room in (
    serving,
    ingestion,
    sessions,
    recalls,
    cases,
    cues,
    why,
    agents,
    hooks,
    learning,
    evaluating,
    database,
    dumping,
    audit,
):
    app.registered_commands += room.commands.registered_commands


def _note_command(call: typer.Context) -> None:
    """Names a command of a group in the audit log."""
    note_operation(f"priors {call.info_name} {call.invoked_subcommand}")


app.add_typer(context.context_commands, name="context", callback=_note_command)
app.add_typer(cues.cue_commands, name="cue", callback=_note_command)
app.add_typer(tending.cues_commands, name="cues", callback=_note_command)
app.add_typer(keys.key_commands, name="key", callback=_note_command)


def _show_version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(VERSION)
        raise typer.Exit


@app.callback()
def _options(
    call: typer.Context,
    *,
    url: Annotated[str, typer.Option("--url", help="Ask the service there; not all commands can.")] = "",
    key: Annotated[str, typer.Option("--key", help="Its API key; default PRIORS_API_KEY.")] = "",
    _version: Annotated[
        bool, typer.Option("--version", callback=lambda value: _show_version(wanted=value), is_eager=True)
    ] = False,
) -> None:
    """The memory service for agent pipelines."""
    call.with_resource(acting_as(Actor("cli", operation=f"priors {call.invoked_subcommand or ''}")))
    remote.given(call.invoked_subcommand or "", url, key)


def main() -> None:
    """Runs a command; reports an error in one line on standard error and by exit code 2."""
    try:
        app()
    except PriorsError as error:
        typer.echo(f"priors: {error}", err=True)
        sys.exit(USAGE)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
