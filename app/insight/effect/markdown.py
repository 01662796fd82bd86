"""Renders the document of a report as Markdown. Pure."""

import re
from collections.abc import Iterator

from app.insight.effect.document import Block, Bullets, FigureTable, Heading, Paragraph, Plot, document, title_of
from app.insight.effect.report import Report

MARKS = re.compile(r"([\\`*_{}\[\]<>#|~])")
"""Characters that Markdown could read as more than themselves: titles of memories are not trusted."""
BAR = 30
"""Characters of a bar for the score 10."""


def markdown(report: Report) -> str:
    """Returns the report as Markdown."""
    parts = ["# " + escape_marks(title_of(report)), *map(_block, document(report))]
    return "\n\n".join(parts) + "\n"


def escape_marks(text: str) -> str:
    """Returns a text in one line that Markdown shows as it is."""
    return MARKS.sub(r"\\\1", " ".join(text.split()))


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
    return "no scored run" if value is None else f"{'█' * max(1, round(value / 10 * BAR))} {value:.1f}"
