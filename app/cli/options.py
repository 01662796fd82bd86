"""Options that several commands share."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

WorkspaceOption = Annotated[str | None, typer.Option("--workspace", "-w", help="Workspace; default PRIORS_WORKSPACE.")]
LanguageOption = Annotated[
    str | None, typer.Option("--language", help="Text search language: russian, de, …; default: the workspace's.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
PathsArgument = Annotated[list[Path], typer.Argument(metavar="PATH…", help="Folders or files.")]
Moment = Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"], help="In UTC.")]


def in_utc(moment: datetime | None) -> datetime | None:
    """What was typed, which names no zone, is UTC."""
    return None if moment is None else moment.replace(tzinfo=UTC)
