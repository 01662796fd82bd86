"""The chart and the table of a demonstration: its scores, repeated faults and tokens by version."""

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

from examples.pipeline.play import Version

Arm = Sequence[Sequence[Version]]
"""The versions of each seed."""
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, GAP = 760, 300, 44, 20, 52, 44, 56
WITH, WITHOUT, INK, GRID = "#1b7f5c", "#b4552d", "#4a4f57", "#d8dbe0"
LARGE = 100
"""Numbers from here on are shown without decimals."""
STYLE = 'font-family="system-ui, sans-serif" font-size="12"'


def mean(arm: Arm, number: int, value: Callable[[Version], float]) -> float:
    """Returns the mean of a value over the seeds, of one version."""
    return fmean(value(version) for played in arm for version in played if version.number == number)


def numbers(arm: Arm) -> list[int]:
    """Returns the numbers of the versions."""
    return [version.number for version in arm[0]]


def table(without: Arm, given: Arm) -> str:
    """Returns the means of both arms as a Markdown table, with the sums of all versions."""
    values: tuple[Callable[[Version], float], ...] = (
        lambda version: version.score,
        lambda version: version.repeats,
        lambda version: version.tokens,
    )
    lines = [
        "| version | score without | score with | repeats without | repeats with | tokens without | tokens with |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for number in numbers(given):
        cells = [mean(arm, number, value) for value in values for arm in (without, given)]
        lines.append(f"| v{number} | {_cells(cells)} |")
    whole = [[fmean(mean(arm, n, value) for n in numbers(arm)) for arm in (without, given)] for value in values]
    lines.append(f"| mean | {_cells([cell for pair in whole for cell in pair])} |")
    return "\n".join(lines)


def _cells(cells: Sequence[float]) -> str:
    return " | ".join(f"{cell:,.0f}" if cell >= LARGE else f"{cell:.1f}" for cell in cells)


def chart(without: Arm, given: Arm) -> str:
    """Returns the chart as SVG: scores on the left, repeated faults on the right."""
    half = (WIDTH - LEFT - RIGHT - GAP) / 2
    parts = [
        *_panel("Score of the judge, 0 to 10", LEFT, half, 10.0, without, given, lambda version: version.score),
        *_panel(
            "Faults that an earlier version had", LEFT + half + GAP, half, 4.0, without, given, lambda v: v.repeats
        ),
        *_legend(len(given)),
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" {STYLE}>'
    title = "<title>A toy pipeline over ten versions, with Priors and without</title>"
    return (
        "\n".join([head, title, f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>', *parts, "</svg>"]) + "\n"
    )


def _panel(
    title: str, left: float, width: float, top: float, without: Arm, given: Arm, value: Callable[[Version], float]
) -> Iterator[str]:
    versions = numbers(given)

    def place(number: int, height: float) -> str:
        across = left + width * (number - versions[0]) / max(1, versions[-1] - versions[0])
        return f"{across:.1f},{HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * height / top:.1f}"

    yield f'<text x="{left:.1f}" y="{TOP - 14}" fill="{INK}" font-weight="600">{title}</text>'
    for step in range(5):
        height = top * step / 4
        start, end = place(versions[0], height), place(versions[-1], height)
        yield f'<polyline points="{start} {end}" stroke="{GRID}" fill="none"/>'
        down = float(start.split(",")[1]) + 4
        yield f'<text x="{left - 8:.1f}" y="{down:.1f}" text-anchor="end" fill="{INK}">{height:g}</text>'
    for number in versions:
        across = place(number, 0).split(",")[0]
        yield f'<text x="{across}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="{INK}">v{number}</text>'
    for arm, colour in ((without, WITHOUT), (given, WITH)):
        for played in arm:
            points = " ".join(place(version.number, value(version)) for version in played)
            yield f'<polyline points="{points}" stroke="{colour}" stroke-opacity="0.3" fill="none"/>'
        points = " ".join(place(number, mean(arm, number, value)) for number in versions)
        yield f'<polyline points="{points}" stroke="{colour}" stroke-width="2.5" fill="none"/>'


def _legend(seeds: int) -> Iterator[str]:
    for left, colour, name in ((LEFT, WITH, "with Priors"), (LEFT + 110, WITHOUT, "without")):
        yield f'<rect x="{left}" y="10" width="14" height="4" fill="{colour}"/>'
        yield f'<text x="{left + 20}" y="16" fill="{INK}">{name}</text>'
    yield (
        f'<text x="{WIDTH - RIGHT}" y="16" text-anchor="end" fill="{INK}">'
        f"thick: mean of {seeds} seeds; thin: each seed</text>"
    )
