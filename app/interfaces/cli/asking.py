"""`history`, `activate` and `why`, and the options of a query."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.interfaces.cli.options import (
    AgentOption,
    FilesOption,
    JsonOption,
    LanguageOption,
    Moment,
    RunOption,
    UserOption,
    expand_options,
    in_utc,
    print_json,
    without_none,
)
from app.interfaces.cli.service import PlaceOptions

if TYPE_CHECKING:
    from priors_client.models import HistoryView, SearchView

commands = typer.Typer()

_STORE = "store"
"""The name among the arms under which an answer says what the store lacks."""
QueryArgument = Annotated[
    str, typer.Argument(metavar="QUERY", help="What is to be done, such as the task of a run, or a question.")
]
KOption = Annotated[int, typer.Option("-k", help="Hits at most.")]
NowOption = Annotated[
    datetime | None,
    typer.Option(
        "--now",
        formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"],
        help="What `last week` is told from, in UTC; the present, if not given.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOptions:
    """The options that say who asks, and choose memories and their order."""

    agent: AgentOption = None
    run_id: RunOption = None
    user: UserOption = None
    kind: Annotated[list[str] | None, typer.Option("--kind", help="Only this kind; can be given again.")] = None
    source: Annotated[str, typer.Option("--source", help="Only sources whose path matches this glob.")] = ""
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Only with this tag; can be given again.")] = None
    since: Moment = None
    until: Moment = None
    now: NowOption = None
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
    query: QueryArgument,
    *,
    k: KOption = 3,
    budget: Annotated[int, typer.Option("--budget", help="Model tokens at most.")] = 500,
    stable: Annotated[
        bool, typer.Option("--stable", help="Continue the run's previous stable section, byte for byte.")
    ] = False,
    options: QueryOptions,
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
