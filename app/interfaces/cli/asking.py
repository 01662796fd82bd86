"""`history`, `activate`, `why`, `search` and `report`: questions to the service."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from shutil import get_terminal_size
from textwrap import fill, shorten
from typing import TYPE_CHECKING, Annotated, Any

import typer
from priors_client.models import HitView, MemoryView

from app.interfaces.cli.client import (
    AgentOption,
    FilesOption,
    JsonOption,
    LanguageOption,
    Moment,
    PlaceOptions,
    RunOption,
    UserOption,
    expand_options,
    in_utc,
    print_json,
    without_none,
)

if TYPE_CHECKING:
    from priors_client.models import HistoryView, SearchView

commands = typer.Typer()

_STORE = "store"
"""The name among the arms under which an answer says what the store lacks."""
_QueryArgument = Annotated[
    str, typer.Argument(metavar="QUERY", help="What is to be done, such as the task of a run, or a question.")
]
_KOption = Annotated[int, typer.Option("-k", help="Hits at most.")]
_NowOption = Annotated[
    datetime | None,
    typer.Option(
        "--now",
        formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"],
        help="What `last week` is told from, in UTC; the present, if not given.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _QueryOptions:
    """The options that say who asks, and choose memories and their order."""

    agent: AgentOption = None
    run_id: RunOption = None
    user: UserOption = None
    kind: Annotated[list[str] | None, typer.Option("--kind", help="Only this kind; can be given again.")] = None
    source: Annotated[str, typer.Option("--source", help="Only sources whose path matches this glob.")] = ""
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Only with this tag; can be given again.")] = None
    since: Moment = None
    until: Moment = None
    now: _NowOption = None
    preset: Annotated[str, typer.Option("--preset", help="default, ranks, classic or closest.")] = "default"
    min_probability: Annotated[
        float | None, typer.Option("--min-probability", help="Least probability of a hit, 0 to 1; 0 shows everything.")
    ] = None
    half_life: Annotated[
        float | None, typer.Option("--half-life", help="Days after which recency is half way to its floor.")
    ] = None
    language: LanguageOption = None

    def fields(self) -> dict[str, Any]:
        """Returns what the service is asked."""
        conditions = {
            "kinds": self.kind,
            "source": self.source,
            "tags": self.tag,
            "since": in_utc(self.since),
            "until": in_utc(self.until),
        }
        return without_none(
            agent=self.agent,
            run_id=self.run_id,
            user=self.user,
            filters={name: value for name, value in conditions.items() if value},
            now=in_utc(self.now),
            preset=self.preset,
            min_probability=self.min_probability,
            half_life_days=self.half_life,
            language=self.language,
        )


@commands.command()
@expand_options
def history(
    query: _QueryArgument,
    *,
    k: _KOption = 3,
    budget: Annotated[int, typer.Option("--budget", help="Model tokens at most.")] = 500,
    stable: Annotated[
        bool, typer.Option("--stable", help="Continue the run's previous stable section, byte for byte.")
    ] = False,
    options: _QueryOptions,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """Print the `## Relevant History` section for a query.

    Changes: nothing but the log of recalls.
    """
    with place.client() as client:
        answer = client.history(query, k=k, budget_tokens=budget, stable=stable, **options.fields())
    if as_json:
        print_json(answer)
    else:
        typer.echo(answer.markdown, nl=False)
        warn(answer)
        if not answer.markdown:
            typer.echo(_reason_of_nothing(answer, budget), err=True)


def _reason_of_nothing(answer: "HistoryView", budget: int) -> str:
    """Returns why a history is empty, and what shows more."""
    if answer.needed_tokens is not None:
        return f"nothing fits into {budget} tokens: the best hit needs `--budget {answer.needed_tokens}`"
    if any("holds no memories" in item.reason for item in answer.degraded):
        return "nothing is stored yet: `priors ingest FOLDER` takes in reports and logs of sessions"
    known = (
        "" if answer.probability is None else f" (probability that the store speaks to it: {answer.probability:.0%})"
    )
    return (
        f"nothing that is stored is relevant enough{known}; `--min-probability 0` shows the nearest texts all the same"
    )


def warn(answer: "HistoryView | SearchView") -> None:
    """Prints why an answer lacks an arm, or what the store lacks."""
    arms: dict[str, list[str]] = {}
    for item in answer.degraded:
        arms.setdefault(item.reason, []).append(item.arm)
    for reason, names in arms.items():
        where = "" if names == [_STORE] else f"mode {answer.mode}, {' and '.join(names)} arm: "
        typer.echo(f"{where}{reason}", err=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """The options of a plan."""

    file: FilesOption = None
    agent: AgentOption = None
    run_id: RunOption = None
    budget: Annotated[int, typer.Option("--budget", help="Model tokens at most.")] = 400
    min_score: Annotated[
        float | None, typer.Option("--min-score", help="Least probability, 0 to 1; else the consequence decides.")
    ] = None
    as_of: Moment = None
    user: UserOption = None

    def fields(self) -> dict[str, Any]:
        """Returns what the service is asked."""
        return without_none(
            files=self.file,
            agent=self.agent,
            run_id=self.run_id,
            budget_tokens=self.budget,
            min_score=self.min_score,
            as_of=in_utc(self.as_of),
            user=self.user,
        )


@commands.command()
@expand_options
def activate(
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="What you are about to do.")],
    *,
    options: PlanOptions,
    explain: Annotated[bool, typer.Option("--explain", help="Print each component of each cue's score.")] = False,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """Print the `## Before you act` section for a plan: what was learnt about it.

    Changes: nothing but the log of activations and the counts of fired cues.
    """
    with place.client() as client:
        answer = client.activate(plan=plan, **options.fields())
    if as_json:
        print_json(answer)
        return
    typer.echo(answer.markdown or "nothing that was learnt applies", nl=not answer.markdown)
    for cue in answer.cues if explain else ():
        parts = ", ".join(f"{name} {value:+.2f}" for name, value in cue.explain.items())
        typer.echo(f"\n{cue.score:.3f}  {cue.lesson}\n       {parts}")
    if answer.degraded:
        typer.echo(f"priors: {answer.degraded}", err=True)


@commands.command()
@expand_options
def why(
    subject: Annotated[str, typer.Argument(help="A question, or what was decided on, such as “API versioning”.")] = "",
    *,
    path: Annotated[str, typer.Option("--path", help="A file, or the end of its path.")] = "",
    symbol: Annotated[str, typer.Option("--symbol", help="A function or section.")] = "",
    user: UserOption = None,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """Print why something is as it is: what was decided, the reasons, what failed, and where that is said.

    Changes nothing. Says so where nothing that is stored says why.
    """
    with place.client() as client:
        answer = client.why(subject=subject, path=path, symbol=symbol, user=user or "")
    if as_json:
        print_json(answer)
        return
    typer.echo(answer.markdown)
    if subject and not answer.known:
        typer.echo(f'`priors search "{subject}" --min-probability 0` shows the nearest texts all the same', err=True)


_SHOWN = {
    "probability": "prob",
    "similarity": "sim",
    "bm25": "bm25",
    "neighbours": "nbr",
    "source": "src",
    "named": "name",
    "dated": "date",
    "phrases": "phr",
    "relevance": "rel",
    "qual_weight": "qual",
    "q_adjust": "rate",
    "recency": "rec",
}
"""The components of a score, with the headings of their columns."""
_NARROW = frozenset({"probability", "similarity", "bm25", "relevance", "qual_weight", "recency"})
"""The components that a narrow terminal shows."""
_PIPED_WIDTH = 140
EXCERPT, TEXT = 120, 300
"""Characters of a passage that are shown in the table, and of a hit's text in the list."""
_NO_HIT = "Nothing in the store is relevant to that."
TITLE_WIDTH, PART_WIDTH = 32, 6
"""Least width of a title, and width of a component, in characters."""


@commands.command()
@expand_options
def search(
    query: _QueryArgument,
    *,
    k: _KOption = 10,
    around: Annotated[
        int, typer.Option("--around", min=0, max=2, help="Show so many turns before and after each hit, too.")
    ] = 0,
    options: _QueryOptions,
    explain: Annotated[bool, typer.Option("--explain", help="Print the components of each score, as a table.")] = False,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """Print what a query finds; `--explain` shows the scores.

    Changes: nothing but the log of recalls.
    """
    with place.client() as client:
        answer = client.search(query, k=k, around=around, **options.fields())
    if as_json:
        print_json(answer)
        return
    if explain:
        _table(answer.hits)
    else:
        width = get_terminal_size((_PIPED_WIDTH, 0)).columns
        typer.echo("\n\n".join(_item(place, hit, width) for place, hit in enumerate(answer.hits, start=1)) or _NO_HIT)
    warn(answer)


def _item(number: int, hit: HitView, width: int) -> str:
    """Returns a hit as a list shows it: what it is, where it is from, and its text."""
    start, end = _number(hit, "passage_starts"), _number(hit, "passage_ends")
    source = (hit.source and (hit.source.title or hit.source.uri)) or hit.kind
    day = "" if hit.occurred_at is None else f"{hit.occurred_at:%Y-%m-%d}"
    score = "" if hit.final_score is None else f"{hit.final_score:.1f}/10"
    heading = hit.title or shorten(hit.body, width - len(f"{number}. "), placeholder=" …")
    facts = " · ".join(filter(None, (source, str(hit.metadata.get("role", "")), day, score)))
    texts = [shorten(hit.body[start : end or None][: 2 * TEXT], TEXT, placeholder=" …")]
    texts = [text for text in texts if text != heading]
    texts += [f"{'>' if memory.id == hit.id else ' '} {_beginning(memory)}" for memory in _in_order(hit)]
    lines = [fill(text, width, initial_indent="   ", subsequent_indent="   ") for text in texts if text]
    return "\n".join([f"{number}. {heading}", f"   {facts}", *lines])


def _beginning(memory: HitView | MemoryView) -> str:
    said = " ".join((memory.title or memory.body)[:200].split())
    return f"{memory.metadata.get('role', '')} {said}".strip()


def _parts(hits: Sequence[HitView], room: int) -> list[str]:
    """Returns the components of the score that differ from 0 for these hits, as many as fit beside the titles."""
    telling = [part for part in _SHOWN if any(hit.explain.get(part) for hit in hits)]
    return telling if len(telling) <= room else [part for part in telling if part in _NARROW][: max(0, room)]


def _table(hits: "Sequence[HitView]") -> None:
    # rich's tables: see `app.interfaces.cli`.
    from rich import box  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    # Output into a pipe or a file is not cut to the width of a terminal.
    console = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else _PIPED_WIDTH)
    parts = _parts(hits, (console.width - TITLE_WIDTH) // PART_WIDTH - 1)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), expand=True)
    for name in ("score", *(_SHOWN[part] for part in parts)):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("memory", ratio=1, no_wrap=True, overflow="ellipsis")
    for hit in hits:
        values = [hit.explain.get(part) for part in parts]
        numbers = ["-" if value is None else f"{value:.2f}" for value in values]
        source = (hit.source and (hit.source.title or hit.source.uri)) or hit.kind
        # Stored text is not markup: its brackets are shown as they are.
        table.add_row(f"{hit.score:.3f}", *numbers, Text(f"{hit.title or hit.body[:80]}\n  {source}"))
        if hit.explain.get("passage"):
            # It is folded, because its beginning alone says too little.
            table.add_row("", *("" for _ in parts), Text(_passage(hit), no_wrap=False, overflow="fold"))
        for memory in _in_order(hit):
            mark = ">" if memory.id == hit.id else " "
            table.add_row("", *("" for _ in parts), Text(f"  {mark} {_beginning(memory)}"))
    console.print(table if hits else _NO_HIT)


def _passage(hit: HitView) -> str:
    """Returns the number of the hit's nearest passage with its beginning; a title may be a passage of its own."""
    names = ("passage", "passages", "passage_starts", "passage_ends")
    number, passages, starts, ends = (_number(hit, name) for name in names)
    said = shorten((hit.body[starts:ends] or hit.title)[: 2 * EXCERPT], EXCERPT, placeholder=" …")
    return f"passage {number} of {passages}: {said}"


def _number(hit: HitView, name: str) -> int:
    """Returns a whole number that explains a hit; 0 where there is none."""
    value = hit.explain.get(name)
    return int(value) if isinstance(value, int | float) else 0


def _in_order(hit: HitView) -> list[HitView | MemoryView]:
    """Returns a hit among the memories around it; nothing where there are none."""
    return sorted([hit, *hit.around], key=lambda item: item.ordinal or 0) if hit.around else []


class Form(StrEnum):
    """The forms of a report."""

    markdown = "markdown"
    html = "html"
    json = "json"


@commands.command()
@expand_options
def report(
    *,
    place: PlaceOptions,
    since: Moment = None,
    until: Moment = None,
    task_type: Annotated[str, typer.Option(help="Runs of this task type.")] = "",
    versions: Annotated[int, typer.Option(min=2, help="An open P0 or P1 of so many versions is an alert.")] = 3,
    form: Annotated[Form, typer.Option("--format", help="markdown, html or json.")] = Form.markdown,
) -> None:
    """Print what memory did to the runs of a workspace, and what cannot be concluded.

    Changes nothing.
    """
    asked = without_none(since=in_utc(since), until=in_utc(until))
    with place.client() as client:
        found = client.admin.effect(**asked, task_type=task_type, versions=versions, format=form.value)
    if form is Form.json:
        print_json(found)
    else:
        typer.echo(found.document, nl=False)
