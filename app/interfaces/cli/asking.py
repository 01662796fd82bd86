"""`history`, `activate`, `why`, `search` and `report`: questions to the service."""

from shutil import get_terminal_size
from textwrap import fill, shorten
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from priors_client.models import HitView

from app.foundation.values import frozen
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


@frozen
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
    min_probability: Annotated[
        float | None, typer.Option("--min-probability", help="Least probability of a hit, 0 to 1; 0 shows everything.")
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
            min_probability=self.min_probability,
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


@frozen
class PlanOptions:
    """The options of a plan."""

    file: FilesOption = None
    agent: AgentOption = None
    run_id: RunOption = None
    budget: Annotated[int, typer.Option("--budget", help="Model tokens at most.")] = 400
    min_score: Annotated[
        float | None, typer.Option("--min-score", help="Least probability, 0 to 1; else the consequence decides.")
    ] = None
    user: UserOption = None

    def fields(self) -> dict[str, Any]:
        """Returns what the service is asked."""
        return without_none(
            files=self.file,
            agent=self.agent,
            run_id=self.run_id,
            budget_tokens=self.budget,
            min_score=self.min_score,
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


_PIPED_WIDTH = 140
TEXT = 300
"""Characters that are shown of a hit's text."""
_NO_HIT = "Nothing in the store is relevant to that."


@commands.command()
@expand_options
def search(
    query: _QueryArgument,
    *,
    k: _KOption = 10,
    options: _QueryOptions,
    explain: Annotated[bool, typer.Option("--explain", help="Print the components of each score, too.")] = False,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """Print what a query finds; `--explain` shows the scores.

    Changes: nothing but the log of recalls.
    """
    with place.client() as client:
        answer = client.search(query, k=k, **options.fields())
    if as_json:
        print_json(answer)
        return
    width = get_terminal_size((_PIPED_WIDTH, 0)).columns
    shown = (_item(place, hit, width, explain=explain) for place, hit in enumerate(answer.hits, start=1))
    typer.echo("\n\n".join(shown) or _NO_HIT)
    warn(answer)


def _item(place: int, hit: HitView, width: int, *, explain: bool) -> str:
    """Returns a hit as a list shows it: what it is, where it is from, its text and, if so asked, its score."""
    start, end = _number(hit, "passage_starts"), _number(hit, "passage_ends")
    source = (hit.source and (hit.source.title or hit.source.uri)) or hit.kind
    day = "" if hit.occurred_at is None else f"{hit.occurred_at:%Y-%m-%d}"
    score = "" if hit.final_score is None else f"{hit.final_score:.1f}/10"
    heading = hit.title or shorten(hit.body, width - len(f"{place}. "), placeholder=" …")
    facts = " · ".join(filter(None, (source, str(hit.metadata.get("role", "")), day, score)))
    texts = [shorten(hit.body[start : end or None][: 2 * TEXT], TEXT, placeholder=" …")]
    texts = [text for text in texts if text != heading]
    if explain:
        number = _number(hit, "passage")
        passage = f"passage {number} of {_number(hit, 'passages')}: {texts.pop(0)}" if number and texts else ""
        texts = [_score(hit), passage, *texts]
    lines = [fill(text, width, initial_indent="   ", subsequent_indent="   ") for text in texts if text]
    return "\n".join([f"{place}. {heading}", f"   {facts}", *lines])


def _score(hit: HitView) -> str:
    """Returns a hit's score, and its components that differ from 0."""
    parts = [(name, value) for name, value in hit.explain.items() if isinstance(value, float) and value]
    return ", ".join(f"{name} {value:.2f}" for name, value in parts if not name.startswith("passage"))


def _number(hit: HitView, name: str) -> int:
    """Returns a whole number that explains a hit; 0 where there is none."""
    value = hit.explain.get(name)
    return int(value) if isinstance(value, int | float) else 0


@commands.command()
@expand_options
def report(
    *,
    place: PlaceOptions,
    since: Moment = None,
    until: Moment = None,
    task_type: Annotated[str, typer.Option(help="Runs of this task type.")] = "",
    versions: Annotated[int, typer.Option(min=2, help="An open P0 or P1 of so many versions is an alert.")] = 3,
    form: Annotated[Literal["markdown", "html", "json"], typer.Option("--format")] = "markdown",
) -> None:
    """Print what memory did to the runs of a workspace, and what cannot be concluded.

    Changes nothing.
    """
    asked = without_none(since=in_utc(since), until=in_utc(until))
    with place.client() as client:
        found = client.admin.effect(**asked, task_type=task_type, versions=versions, format=form)
    if form == "json":
        print_json(found)
    else:
        typer.echo(found.document, nl=False)
