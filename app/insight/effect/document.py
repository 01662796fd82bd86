"""Writes a report as Markdown, and as a page that is made of it and needs no other file. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from html import escape

from markdown_it import MarkdownIt

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
_MARKS = re.compile(r"(^- (?:\d+(?=[.)](?!\S))|(?=[-+=])))|(?=[\\`*_{}\[\]<>#|~&])")
"""Places before characters that Markdown could read as more than themselves: titles of memories are not trusted. At the
beginning of a list's item, these are also the characters that would begin a block there."""
_PART_HEAD = (
    "runs with", "without", "score with", "without", "cost with", "without", "tokens with", "without",
    "duration with", "without", "repeated with", "without",
)  # fmt: skip
_PARSER = MarkdownIt("commonmark", {"html": False}).enable("table")
_BASES = {"experimental": "draws", "observational": "comparison only"}


def _title_of(report: Report) -> str:
    """Returns the title of a report's document."""
    return f"What memory did to the runs of {report.workspace}"


def _blocks(report: Report) -> Iterator[str]:
    """Yields the blocks of a report below its title, in Markdown."""
    yield escape_marks(_summary(report))
    yield "## What cannot be concluded"
    yield _list(report.limits)
    if report.alerts:
        yield "## Alerts: severe issues that come back"
        yield _list(
            f"{item.severity} “{item.title}” of {item.case}: named in {', '.join(item.versions)}; {item.state}"
            for item in report.alerts
        )
    if not report.runs:
        return
    yield "## Runs with history and without it"
    yield from _contrast_table(report.history, "with history", "without")
    if report.draws is not None:
        yield "## By draws: all that was found, or one memory withheld"
        yield from _contrast_table(report.draws, "all shown", "one withheld")
    for name, parts in (("week", report.weeks), ("version", report.versions), ("task type", report.task_types)):
        if parts:
            yield f"## By {name}"
            yield _table((name, *_PART_HEAD), map(_part, parts))
    yield from _memories(report)


def _list(items: Iterable[str]) -> str:
    return "\n".join(escape_marks(f"- {item}") for item in items)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table; all columns but the first hold numbers."""
    written = [f"| {' | '.join(map(escape_marks, row))} |" for row in (head, *rows)]
    return "\n".join([written[0], f"| --- |{' ---: |' * (len(head) - 1)}", *written[1:]])


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


def _contrast_table(item: Contrast, given: str, without: str) -> Iterator[str]:
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
    yield _table(heads, rows)
    if any(measure.difference is not None and measure.difference.low is None for measure in item.measures):
        yield NO_INTERVAL


def _part(item: Contrast) -> list[str]:
    names: tuple[Named, ...] = ("score", "cost", "tokens", "duration")
    means = [
        _NOTHING if side is None else _number(side.mean, _DIGITS[name])
        for name in names
        for side in (item.measure(name).given, item.measure(name).without)
    ]
    rates = (_share(item.repeat_rate), _share(item.repeat_rate_without))
    return [item.label, f"{item.given:,}", f"{item.without:,}", *means, *rates]


def _memories(report: Report) -> Iterator[str]:
    yield "## Memories that helped and that harmed"
    if report.estimated_at is None:
        yield "No effects were estimated yet. A worker does it once an hour, after a scored run has changed."
        return
    used = "count" if report.uses_effects else "do not count"
    yield f"Estimated on {_day(report.estimated_at)}. They {used} in the ranking of this workspace."
    for name, found in (("helpful", report.helpful), ("harmful", report.harmful)):
        if found:
            yield f"The most {name}, the surest first:"
            yield _list(map(_memory, found))
        else:
            yield f"No memory is known well enough to be called {name}."


def _memory(item: MemoryEffect) -> str:
    mark = " It is proposed for deletion on the desk." if item.flagged else ""
    return f"{item.title} ({item.kind}, by {_BASES[item.basis]}). {item.why}{mark}"


def _mean(value: MeanOfRuns | None, digits: int) -> str:
    return _NOTHING if value is None else _with_interval(value, digits, "", count_noun(value.runs, "run"))


def _difference(measure: Measure, digits: int) -> str:
    return _NOTHING if measure.difference is None else _with_interval(measure.difference, digits, "+", "no interval")


def _with_interval(value: MeanOfRuns, digits: int, sign: str, instead: str) -> str:
    """Returns a mean with the ends of its interval in brackets; with another remark where it has none."""
    if value.low is not None and value.high is not None:
        instead = f"{_number(value.low, digits, sign)} to {_number(value.high, digits, sign)}"
    return f"{_number(value.mean, digits, sign)} ({instead})"


def _number(value: float, digits: int, sign: str = "") -> str:
    return f"{value:{sign}z,.{digits}f}"


def _share(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:.0%}"


def _day(moment: datetime) -> str:
    return f"{moment.date()}"


def markdown(report: Report) -> str:
    """Returns the report as Markdown."""
    return "\n\n".join([f"# {escape_marks(_title_of(report))}", *_blocks(report)]) + "\n"


def escape_marks(text: str) -> str:
    """Returns a text in one line that Markdown shows as it is."""
    return _MARKS.sub(r"\1\\", " ".join(text.split()))


_STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --line: #d5dae2; --ground: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --line: #3a424f; --ground: #15191f; } }
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--ground); }
table { display: block; overflow-x: auto; border-collapse: collapse; font-size: 0.9rem; }
th, td { border-bottom: 1px solid var(--line); padding: 0.25rem 0.6rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
"""


def page(report: Report) -> str:
    """Returns the report as an HTML page."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(_title_of(report))}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"{_PARSER.render(markdown(report))}</body>\n</html>\n"
    )
