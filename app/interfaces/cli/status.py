"""`status`: what memory did for this project in the last week, what waits for a decision, and what failed."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
import typer

from app.interfaces.cli import failures
from app.interfaces.cli.client import JsonOption, PlaceOptions, expand_options, print_json
from app.interfaces.cli.places import settings_here

if TYPE_CHECKING:
    from priors_client.models import StatusView, Week

commands = typer.Typer()
NAMED = 5
"""Proposals that are named, the newest: each is a line or two."""


@commands.command()
@expand_options
def status(*, place: PlaceOptions, as_json: JsonOption = False) -> None:
    """Print what memory did this week, what waits, and what failed, for this project.

    Changes nothing.
    """
    with place.client() as client:
        route = client.admin.status  # a call by this name is one of the database to the tests of the house
        found = route()
        pending = [item.reason for item in client.admin.proposals(limit=NAMED)] if found.week.proposals else []
    failed = failures.failures(str(settings_here().data_dir))
    if as_json:
        print_json({**msgspec.to_builtins(found), "failures": [item._asdict() for item in failed]})
    else:
        typer.echo("\n".join(_lines(found, pending, failures.summary(failed))))


def _lines(found: "StatusView", pending: Sequence[str], failed: str) -> Iterator[str]:
    week = found.week
    last = f"; the last one ended {week.last_session_at:%Y-%m-%d %H:%M} UTC" if week.last_session_at else ""
    yield f"sessions: {week.sessions:,} in the workspace {found.workspace}{last}"
    yield f"lessons this week: {week.told:,} told, {week.heeded:,} heeded, {week.ignored:,} ignored"
    yield f"tokens this week: {week.tokens:,} in histories and lessons"
    yield f"waiting for your decision: {', '.join(_pending(week)) or 'nothing'}"
    yield from (f"  - {' '.join(reason.split())}" for reason in pending)
    yield f"failures: {'; '.join(filter(None, [failed, *found.reasons])) or 'none'}"


def _pending(week: "Week") -> Iterator[str]:
    if week.proposals:
        yield f"{week.proposals:,} proposals (all: `priors api GET /api/proposals`)"
    if week.quarantined:
        yield f"{week.quarantined:,} texts that the scan holds back (`priors api GET /api/memories state=quarantined`)"
