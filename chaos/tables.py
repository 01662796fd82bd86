"""The tables of what was tried."""

from collections.abc import Callable, Iterable

from rich.box import MARKDOWN
from rich.table import Table

from chaos.points import Outcome

Key = Callable[[Outcome], str]
COLUMNS = ("points", "acknowledged", "interrupted", "lost", "doubled", "points that failed", "longest recovery, s")


def tables(outcomes: list[Outcome]) -> Iterable[Table]:
    """Yields what was tried by work and fault, by fault, and by work."""
    keys: dict[str, Key] = {
        "work: fault": lambda outcome: f"{outcome.work}: {outcome.fault}",
        "fault": lambda outcome: outcome.fault,
        "work": lambda outcome: outcome.work,
    }
    for title, key in keys.items():
        yield _table(title, key, outcomes)


def _table(title: str, key: Key, outcomes: list[Outcome]) -> Table:
    table = Table(title, *COLUMNS, show_footer=True, box=MARKDOWN)
    rows = {name: [outcome for outcome in outcomes if key(outcome) == name] for name in sorted(set(map(key, outcomes)))}
    for name, group in rows.items():
        table.add_row(name, *_figures(group))
    for column, figure in zip(table.columns, ["all", *_figures(outcomes)], strict=True):
        column.footer = figure
    return table


def _figures(group: list[Outcome]) -> list[str]:
    return [
        str(len(group)),
        str(sum(outcome.acknowledged for outcome in group)),
        str(sum(outcome.interrupted for outcome in group)),
        str(sum(outcome.lost for outcome in group)),
        str(sum(outcome.doubled for outcome in group)),
        str(sum(bool(outcome.losses) for outcome in group)),
        f"{max((outcome.recovered for outcome in group), default=0.0):.1f}",
    ]
