"""Renders the document of a report as one HTML page that needs no other file. Pure."""

from collections.abc import Iterator, Sequence
from html import escape

from app.insight.effect.document import Block, Bullets, FigureTable, Heading, Paragraph, Plot, document, title_of
from app.insight.effect.report import Report

HEIGHT, LEFT, TOP, BOTTOM = 180, 28, 10, 26
"""Pixels of a plot, and of its margins."""
STEP, LEAST_WIDTH = 26, 240
_LABELS = 8
"""Labels below a plot at most; between them there is no room for more."""
STYLE = """
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
    title = escape(title_of(report))
    body = "\n".join(map(_block, document(report)))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}\n</body>\n</html>\n"
    )


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f"<h2>{escape(block.text)}</h2>"
        case Paragraph():
            return f"<p>{escape(block.text)}</p>"
        case Bullets():
            return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in block.items)}</ul>"
        case FigureTable():
            return _table(block)
        case Plot():
            return _figure(block)


def _table(table: FigureTable) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.head)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _figure(plot: Plot) -> str:
    width = max(LEAST_WIDTH, LEFT + STEP * len(plot.labels) + LEFT)
    parts = [*_axis(width), *_names(plot.labels)]
    for name, values in (("given", plot.given), ("without", plot.without)):
        parts += _line(name, values)
    return (
        f'<figure class="wide"><figcaption>{escape(plot.title)}'
        ' <span class="key"><b>with history</b>, <b>without</b></span></figcaption>'
        f'<svg width="{width}" height="{HEIGHT}" role="img" aria-label="{escape(plot.title)}">'
        f"{''.join(parts)}</svg></figure>"
    )


def _axis(width: int) -> Iterator[str]:
    for score in (0, 5, 10):
        y = _y(score)
        yield f'<line class="axis" x1="{LEFT}" x2="{width}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{score}</text>'


def _names(labels: Sequence[str]) -> Iterator[str]:
    every = -(-len(labels) // _LABELS)
    for place, label in enumerate(labels):
        if place % max(1, every) == 0:
            yield f'<text x="{_x(place):.1f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(label[-10:])}</text>'


def _line(name: str, values: Sequence[float | None]) -> Iterator[str]:
    points = [(_x(place), _y(value)) for place, value in enumerate(values) if value is not None]
    if len(points) > 1:
        yield f'<path class="{name}" d="M{" L".join(f"{x:.1f} {y:.1f}" for x, y in points)}"/>'
    for x, y in points:
        yield f'<circle class="{name}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'


def _x(place: int) -> float:
    return LEFT + STEP * (place + 0.5)


def _y(score: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - score / 10)
