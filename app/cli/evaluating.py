"""The command `evaluate`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.running import JsonOption, WorkspaceOption, in_workspace, print_json
from app.errors import InvalidInput

if TYPE_CHECKING:
    from app.cues.tending.probes import ProbeReport
    from app.retrieval.evaluation.evaluate import Evaluation, Fit, Row
    from app.retrieval.evaluation.measuring import Figures
    from app.wiring import Services
    from app.workspaces.workspace import Workspace

commands = typer.Typer()

MOST_CUES = 200
"""Most cues that are probed."""
WIDTH = 24
"""Characters of a ranking's name."""


@commands.command()
def evaluate(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="JSON lines: question, and ids, texts or sources.")
    ] = None,
    *,
    workspace: WorkspaceOption = None,
    most: Annotated[int, typer.Option("--most", min=1, help="Questions made at most of each sort.")] = 200,
    fit: Annotated[bool, typer.Option("--fit", help="Fit weights; store them if the left-out part gains.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Take the workspace's fitted weights away first.")] = False,
    cues: Annotated[
        bool, typer.Option("--cues", help="Measure instead how well the cues fire and keep silent.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure how well the store is searched, by preset, on your questions or on known items made from it; or, with
    --cues, whether the newest cues fire for plans of their triggers, and none for plans of other trades.

    Changes: nothing, not even the log or access counts; with --fit and --forget the weights of the workspace.
    """

    if cues:
        _show_cues(workspace, min(most, MOST_CUES), as_json=as_json)
        return

    async def work(services: "Services", target: "Workspace") -> "Evaluation":
        # SQLAlchemy and numpy: see `app.cli`.
        from app.retrieval.evaluation.evaluate import evaluate as measure  # noqa: PLC0415
        from app.retrieval.evaluation.evaluate import forget_fit  # noqa: PLC0415
        from app.retrieval.evaluation.questions import read_questions  # noqa: PLC0415

        wanted = read_questions(_read(file)) if file else ()
        return await measure(
            services.database,
            services.provider,
            workspace=await forget_fit(services.database, workspace=target) if forget else target,
            wanted=wanted,
            most=most,
            reranker=services.reranker,
            fit=fit,
            on_progress=lambda step: typer.echo(step, err=True),
        )

    found = in_workspace(workspace, work)
    if as_json:
        typer.echo(json.dumps(asdict(found), ensure_ascii=False))
    else:
        _show(found)


def _show_cues(workspace: str | None, limit: int, *, as_json: bool) -> None:
    async def work(services: "Services", target: "Workspace") -> "ProbeReport":
        from app.cues.tending.probes import run_probes  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        return await run_probes(services.database, services.provider, services.counter, workspace=target, limit=limit)

    found = in_workspace(workspace, work)
    if as_json:
        from app.api.tending import ProbeReportView  # noqa: PLC0415 - see `app.cli`

        print_json(found, ProbeReportView)
        return
    recall, precision = ("-" if value is None else f"{value:.2f}" for value in (found.recall, found.precision))
    typer.echo(f"{found.cues} cues: recall {recall}, precision {precision}, {found.stale} stale")
    typer.echo(f"{found.unrelated_fired:.0%} of {found.unrelated} unrelated plans fire a cue")
    for item in found.weak:
        typer.echo(f"{item.cue_id} {item.trigger}: {item.advice}")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(str(path), f"cannot be read: {error.strerror}") from None


def _show(found: "Evaluation") -> None:
    typer.echo(f"{found.questions} questions ({found.origin}) and {found.nothing} about nothing, of {found.workspace}")
    typer.echo(f"\n{'ranking':{WIDTH}} recall@1   @5   @10    MRR   junk  change")
    for row in found.rows:
        typer.echo(_line(row.name, row.figures) + _change(row))
    for reason in dict.fromkeys(reason for row in found.rows for reason in row.degraded):
        typer.echo(f"! {reason}", err=True)
    if found.reranker and found.reranker != "none is configured":
        typer.echo(f"! the re-ranker is not measured: {found.reranker}", err=True)
    better = next((row for row in found.rows if row.name == found.better), None)
    verdict = f"`{better.name}` would do better{_change(better)}" if better else "No ranking here is surely better."
    typer.echo(f"\n{verdict}")
    if found.fit:
        _show_fit(found.fit)


def _show_fit(fit: "Fit") -> None:
    typer.echo(f"\nFitted on {fit.questions} questions, judged on the {fit.left_out} left out:")
    typer.echo(_line("before", fit.before))
    typer.echo(f"{_line('after', fit.after)}  {fit.gain.mean:+.3f}, a gain in {fit.gain.certainty:.0%} of resamples")
    for name, value in fit.weights.items():
        typer.echo(f"  {name} {value:g}")
    typer.echo(
        "Stored as this workspace's `default`." if fit.stored else "Not stored: the left-out part does not gain."
    )


def _line(name: str, figures: "Figures") -> str:
    shares = "".join(f"{share:6.3f}" for share in figures.recall.values())
    junk = "     -" if figures.junk is None else f"{figures.junk:7.3f}"
    return f"{name:{WIDTH}}  {shares} {figures.mrr:6.3f}{junk}"


def _change(row: "Row") -> str:
    return f"  {row.gain.mean:+.3f} ({row.gain.certainty:.0%})" if row.gain else ""
