"""Lays a report out as headings, paragraphs, lists, tables and plots, and renders these as Markdown or as HTML. Pure.

The page needs no other file.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from html import escape

from msgspec import Struct

from app.foundation.text.words import count_noun
from app.insight.effect.report import Contrast, MeanOfRuns, Measure, Named, Report
from app.storage.effects import MemoryEffect

_NAMES: dict[Named, str] = {
    "score": "final score", "cost": "cost", "tokens": "tokens", "duration": "duration, s", "rounds": "rounds",
    "repeats": "repeated issues a judged run",
}  # fmt: skip
_DIGITS: dict[Named, int] = {"score": 2, "cost": 4, "tokens": 0, "duration": 1, "rounds": 2, "repeats": 2}
_NOTHING = "–"
NO_INTERVAL = (
    "“No interval” stands where a group has too few runs to tell how much chance does, or where all of its values are"
    " the same."
)
_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~])")
"""Characters that Markdown could read as more than themselves: titles of memories are not trusted."""
_BAR = 30
"""Characters of a bar for the score 10."""
_BASES = {"experimental": "draws", "observational": "comparison only"}


class Heading(Struct, frozen=True):
    """A heading of a part."""

    text: str


class Paragraph(Struct, frozen=True):
    """A paragraph."""

    text: str


class Bullets(Struct, frozen=True):
    """A list."""

    items: Sequence[str]


class FigureTable(Struct, frozen=True):
    """A table; all columns but the first hold numbers."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


class Plot(Struct, frozen=True):
    """The mean score of both groups over labels, 0 to 10; None where a group has no scored run."""

    title: str
    labels: Sequence[str]
    given: Sequence[float | None]
    without: Sequence[float | None]


Block = Heading | Paragraph | Bullets | FigureTable | Plot


def _title_of(report: Report) -> str:
    """Returns the title of a report's document."""
    return f"What memory did to the runs of {report.workspace}"


def _document(report: Report) -> Iterator[Block]:
    """Yields the blocks of a report."""
    yield Paragraph(_summary(report))
    yield Heading("What cannot be concluded")
    yield Bullets(report.limits)
    if report.alerts:
        yield Heading("Alerts: severe issues that come back")
        yield Bullets([
            f"{item.severity} “{item.title}” of {item.case}: named in {', '.join(item.versions)}; {item.state}"
            for item in report.alerts
        ])  # fmt: skip
    if not report.runs:
        return
    yield Heading("Runs with history and without it")
    yield from _contrast_table(report.history, "with history", "without")
    if report.draws is not None:
        yield Heading("By draws: all that was found, or one memory withheld")
        yield from _contrast_table(report.draws, "all shown", "one withheld")
    for name, parts in (("week", report.weeks), ("version", report.versions), ("task type", report.task_types)):
        if parts:
            yield Heading(f"By {name}")
            yield _plot(f"Mean score by {name}", parts)
            yield _parts_table(name, parts)
    yield from _memories(report)


def _summary(report: Report) -> str:
    period = [
        *([f"from {_day(report.since)}"] if report.since else []),
        *([f"until {_day(report.until)}"] if report.until else []),
        *([f"of the task type {report.task_type}"] if report.task_type else []),
    ]
    head = " ".join([count_noun(report.runs, "finished run"), *period])
    if report.runs == 1:
        head += f", {'with' if report.scored else 'without'} a score."
    else:
        head += f", {report.scored:,} of them with a score."
    if not report.runs:
        return head
    history = report.history
    shown, others = (f"{side:,} {'was' if side == 1 else 'were'}" for side in (history.given, history.without))
    head = f"{head} {shown} shown memories, {others} not."
    score = history.measure("score")
    if score.difference is None:
        return head
    return f"{head} The mean score of runs with history minus that of runs without it is {_difference(score, 2)}."


def _contrast_table(item: Contrast, given: str, without: str) -> Iterator[Block]:
    rows = [
        [_NAMES[measure.name], *(_mean(side, _DIGITS[measure.name]) for side in (measure.given, measure.without)),
         _difference(measure, _DIGITS[measure.name])]
        for measure in item.measures if measure.given or measure.without
    ]  # fmt: skip
    if item.repeat_rate is not None or item.repeat_rate_without is not None:
        rows.append(
            ["issues that had been named before", _share(item.repeat_rate), _share(item.repeat_rate_without), ""]
        )
    sides = ((given, item.given), (without, item.without))
    heads = ("measure", *(f"{name} ({count_noun(runs, 'run')})" for name, runs in sides), "difference (95 %)")
    yield FigureTable(heads, rows)
    if any(measure.difference is not None and measure.difference.low is None for measure in item.measures):
        yield Paragraph(NO_INTERVAL)


def _parts_table(name: str, parts: Sequence[Contrast]) -> FigureTable:
    head = (name, "runs with", "without", "score with", "without", "cost with", "without", "tokens with", "without",
            "duration with", "without", "repeated with", "without")  # fmt: skip
    return FigureTable(head, [_part(item) for item in parts])


def _part(item: Contrast) -> list[str]:
    names: tuple[Named, ...] = ("score", "cost", "tokens", "duration")
    means = [
        _NOTHING if side is None else _number(side.mean, _DIGITS[name])
        for name in names
        for side in (item.measure(name).given, item.measure(name).without)
    ]
    rates = (_share(item.repeat_rate), _share(item.repeat_rate_without))
    return [item.label, f"{item.given:,}", f"{item.without:,}", *means, *rates]


def _plot(title: str, parts: Sequence[Contrast]) -> Plot:
    scores = [item.measure("score") for item in parts]
    given, without = ([side.mean if side else None for side in sides] for sides in (
        [score.given for score in scores], [score.without for score in scores],
    ))  # fmt: skip
    return Plot(title, [item.label for item in parts], given, without)


def _memories(report: Report) -> Iterator[Block]:
    yield Heading("Memories that helped and that harmed")
    if report.estimated_at is None:
        yield Paragraph("No effects were estimated yet. A worker does it once an hour, after a scored run has changed.")
        return
    used = "count" if report.uses_effects else "do not count"
    yield Paragraph(f"Estimated on {_day(report.estimated_at)}. They {used} in the ranking of this workspace.")
    for name, found in (("helpful", report.helpful), ("harmful", report.harmful)):
        if found:
            yield Paragraph(f"The most {name}, the surest first:")
            yield Bullets([_memory(item) for item in found])
        else:
            yield Paragraph(f"No memory is known well enough to be called {name}.")


def _memory(item: MemoryEffect) -> str:
    mark = " It is proposed for deletion on the desk." if item.flagged else ""
    return f"{item.title} ({item.kind}, by {_BASES[item.basis]}). {item.why}{mark}"


def _mean(value: MeanOfRuns | None, digits: int) -> str:
    if value is None:
        return _NOTHING
    if value.low is None or value.high is None:
        return f"{_number(value.mean, digits)} ({count_noun(value.runs, 'run')})"
    return f"{_number(value.mean, digits)} ({_number(value.low, digits)} to {_number(value.high, digits)})"


def _difference(measure: Measure, digits: int) -> str:
    value = measure.difference
    if value is None:
        return _NOTHING
    if value.low is None or value.high is None:
        return f"{_number(value.mean, digits, '+')} (no interval)"
    low, high = (_number(end, digits, "+") for end in (value.low, value.high))
    return f"{_number(value.mean, digits, '+')} ({low} to {high})"


def _number(value: float, digits: int, sign: str = "") -> str:
    return f"{value:{sign}z,.{digits}f}"


def _share(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:.0%}"


def _day(moment: datetime) -> str:
    return moment.date().isoformat()


def markdown(report: Report) -> str:
    """Returns the report as Markdown."""
    parts = ["# " + escape_marks(_title_of(report)), *map(_block, _document(report))]
    return "\n\n".join(parts) + "\n"


def escape_marks(text: str) -> str:
    """Returns a text in one line that Markdown shows as it is."""
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f"## {escape_marks(block.text)}"
        case Paragraph():
            return escape_marks(block.text)
        case Bullets():
            return "\n".join(f"- {escape_marks(item)}" for item in block.items)
        case FigureTable():
            return _table(block)
        case Plot():
            return "\n".join(["```text", block.title, *_bars(block), "```"])


def _table(table: FigureTable) -> str:
    rule = ["---", *["---:"] * (len(table.head) - 1)]
    rows = (table.head, rule, *table.rows)
    return "\n".join(f"| {' | '.join(cell if row is rule else escape_marks(cell) for cell in row)} |" for row in rows)


def _bars(plot: Plot) -> Iterator[str]:
    width = max(map(len, plot.labels), default=0)
    for label, given, without in zip(plot.labels, plot.given, plot.without, strict=True):
        shown = label.replace("`", "'").ljust(width)
        yield f"{shown}  with     {_bar(given)}"
        yield f"{' ' * len(shown)}  without  {_bar(without)}"


def _bar(value: float | None) -> str:
    return "no scored run" if value is None else f"{'█' * max(1, round(value / 10 * _BAR))} {value:.1f}"


_HEIGHT, _LEFT, _TOP, _BOTTOM = 180, 28, 10, 26
"""Pixels of a plot, and of its margins."""
_STEP, _LEAST_WIDTH = 26, 240
_LABELS = 8
"""Labels below a plot at most; between them there is no room for more."""
_STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5c6675; --line: #d5dae2; --given: #2f6fb0;
  --without: #b0622f; --ground: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --soft: #9aa4b2; --line: #3a424f; --given: #74aee6;
  --without: #e0a070; --ground: #15191f; } }
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--ground); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9rem; }
th, td { border-bottom: 1px solid var(--line); padding: 0.25rem 0.6rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
svg text { fill: var(--soft); font-size: 11px; }
svg .axis { stroke: var(--line); }
.given { stroke: var(--given); fill: var(--given); } .without { stroke: var(--without); fill: var(--without); }
path.given, path.without { fill: none; stroke-width: 2; }
.key { color: var(--soft); font-size: 0.9rem; } .key b:first-child { color: var(--given); }
.key b:last-child { color: var(--without); }
"""


def page(report: Report) -> str:
    """Returns the report as an HTML page."""
    title = escape(_title_of(report))
    body = "\n".join(map(_block_in_html, _document(report)))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}\n</body>\n</html>\n"
    )


def _block_in_html(block: Block) -> str:
    match block:
        case Heading():
            return f"<h2>{escape(block.text)}</h2>"
        case Paragraph():
            return f"<p>{escape(block.text)}</p>"
        case Bullets():
            return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in block.items)}</ul>"
        case FigureTable():
            return _table_in_html(block)
        case Plot():
            return _figure(block)


def _table_in_html(table: FigureTable) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.head)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _figure(plot: Plot) -> str:
    width = max(_LEAST_WIDTH, _LEFT + _STEP * len(plot.labels) + _LEFT)
    parts = [*_axis(width), *_names(plot.labels)]
    for name, values in (("given", plot.given), ("without", plot.without)):
        parts += _line(name, values)
    return (
        f'<figure class="wide"><figcaption>{escape(plot.title)}'
        ' <span class="key"><b>with history</b>, <b>without</b></span></figcaption>'
        f'<svg width="{width}" height="{_HEIGHT}" role="img" aria-label="{escape(plot.title)}">'
        f"{''.join(parts)}</svg></figure>"
    )


def _axis(width: int) -> Iterator[str]:
    for score in (0, 5, 10):
        y = _y(score)
        yield f'<line class="axis" x1="{_LEFT}" x2="{width}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{score}</text>'


def _names(labels: Sequence[str]) -> Iterator[str]:
    every = -(-len(labels) // _LABELS)
    for place, label in enumerate(labels):
        if place % max(1, every) == 0:
            yield f'<text x="{_x(place):.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(label[-10:])}</text>'


def _line(name: str, values: Sequence[float | None]) -> Iterator[str]:
    points = [(_x(place), _y(value)) for place, value in enumerate(values) if value is not None]
    if len(points) > 1:
        yield f'<path class="{name}" d="M{" L".join(f"{x:.1f} {y:.1f}" for x, y in points)}"/>'
    for x, y in points:
        yield f'<circle class="{name}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'


def _x(place: int) -> float:
    return _LEFT + _STEP * (place + 0.5)


def _y(score: float) -> float:
    return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - score / 10)
