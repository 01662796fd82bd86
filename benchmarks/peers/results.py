"""The measurements as tables, with their targets."""

import os
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.locomo import CATEGORIES
from benchmarks.peers.catalog import CLASSIC, LEFT_OUT, PRIORS, SYSTEMS
from benchmarks.peers.quality import Values
from benchmarks.peers.run import Outcome
from benchmarks.peers.speed import CLIENTS, WORKSPACES

DEVELOPMENT_SETS = Path(__file__).parents[1] / "development_sets.md"
"""The section of RESULTS.md that is written by hand: what other benchmarks measure."""
RRF = "classic-rrf"
ONE_CLIENT = "1 clients, p50 ms"
LARGE = 100_000

KNOWN_ITEMS_TEXT = """**Known items** of the report files: {count:.0f} questions made of headings and of judges'
reasons by the rule in `peers/known_items.py`; the share for which the chunk came back."""
SPEED_TEXT = """Synthetic chunks (Zipf-like words, 20 a source) with ready vectors; queries of eight random words, about
40 model tokens, their embedding included. Clients are threads that ask without a pause. `stored a second` runs from the
first byte until the last memory is found by every arm that the system has, its index built; of Priors that is one bulk
call over HTTP, each memory screened. Before questions are timed, a Postgres is vacuumed and analysed, as it does by
itself within a minute, and Priors' worker has found the links between the memories."""
SPEED_ROWS = {
    "stored a second": "memories stored a second",
    **{
        f"{way}, {clients} clients, {share}": f"{way}, {clients} clients, {share} ms"
        for way in ("unfiltered", "1 % filter")
        for clients in CLIENTS
        for share in ("p50", "p95")
    },
    "disk MB": "disk MB",
    "resident MB": "resident MB",
}
TENANT_ROWS = ("alone, p50 ms", "one of 100 workspaces, p50 ms", "one of 100 ÷ alone")
INTAKE_TEXT = """**Taking in with the model's embedding**, the same chunks through each system's public way"""
INTAKE_ROWS = {"memories a second": "memories embedded and stored a second"}
NOTES = """- Disk and memory of Priors are those of its server, the model included, and of its Postgres,
  whose write-ahead log (up to 1 GB) does not grow with the store. Of a system in this process, memory is what the
  process has more than before it was opened, the model included.
- A message's title is its speaker, so the recipe's deduplication by title is left out; scores and ratings are absent,
  so its rank is the order of similarity.
- mcp-memory-service refuses a text that its workspace has already; evidence that says the same as an earlier message
  is lost to it.
- mcp-memory-service's database is analysed after each addition: without it, recent versions of SQLite plan its keyword
  search so that it takes seconds.
- With the model's embedding, Priors embeds all of a text, in passages; the others embed its first 256 tokens. Of the
  256 texts of `intake`, 178 are longer: Priors embeds 98,664 tokens in 496 passages, the others 60,184.
- Peers embed queries by the model's exact graph, Priors by the one with integer weights (`models/encoder.py`).
- `python -m benchmarks.peers.pairs` asks the classic stack and Priors by turns in one run, so that other load falls on
  both: [README.md](README.md#comparison-with-other-systems) has its ratios. The synthetic queries and vectors have no
  hits, so reading texts is not in these figures."""

Measured = Mapping[tuple[str, str, int], Values]
"""By work, system and size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A figure of Priors against another figure of the same run."""

    name: str
    over: tuple[str, str, int, str]
    """Work, system, size and value."""
    under: tuple[str, str, int, str] | None = None
    at_least: float | None = None
    at_most: float | None = None


def targets(size: int) -> list[Target]:
    """What is wanted, speed at that size."""
    locomo, classic = ("locomo", PRIORS, 0), ("locomo", CLASSIC, 0)
    fused = ("locomo", RRF, 0)
    unfiltered, filtered = f"unfiltered, {ONE_CLIENT}", f"1 % filter, {ONE_CLIENT}"
    ours, theirs = ("growth", PRIORS, size), ("growth", CLASSIC, size)
    at = f"{size:,} memories"
    return [
        Target(name="LoCoMo recall@5", over=(*locomo, "all @5"), at_least=0.70),
        Target(name="LoCoMo recall@10", over=(*locomo, "all @10"), at_least=0.80),
        Target(name="LoCoMo @5 ÷ classic", over=(*locomo, "all @5"), under=(*classic, "all @5"), at_least=1.55),
        Target(name="LoCoMo @10 ÷ classic", over=(*locomo, "all @10"), under=(*classic, "all @10"), at_least=1.55),
        Target(name="LoCoMo @10 ÷ classic, ranks fused", over=(*locomo, "all @10"), under=(*fused, "all @10")),
        Target(name="HotpotQA recall@5", over=("hotpotqa", PRIORS, 0, "all @5"), at_least=0.91),
        Target(
            name=f"query p50 over HTTP ÷ classic in process, {at}",
            over=(*ours, unfiltered), under=(*theirs, unfiltered), at_most=1.0,
        ),
        Target(
            name=f"the same with the 1 % filter, {at}",
            over=(*ours, filtered), under=(*theirs, filtered), at_most=0.2,
        ),
        Target(
            name=f"query p50, {at} ÷ 1,000",
            over=(*ours, unfiltered), under=("growth", PRIORS, 1_000, unfiltered), at_most=2.0,
        ),
        Target(
            name=f"query p50, one of {WORKSPACES} workspaces ÷ the same data alone, {at} in all",
            over=("tenants", PRIORS, size, "one of 100 ÷ alone"), at_most=1.3,
        ),
        Target(
            name=f"memories a second with ready vectors ÷ classic, {at}",
            over=(*ours, "memories stored a second"), under=(*theirs, "memories stored a second"), at_least=1.5,
        ),
    ]  # fmt: skip


def as_figures(outcomes: Sequence[Outcome]) -> list[Figure]:
    """The targets that were measured, at the largest size that was run, then every single value."""
    measured = _by_place(outcomes)
    ratios = (_figure(target, measured) for size in _sizes(measured)[-1:] or [LARGE] for target in targets(size))
    return [
        *(figure for figure in ratios if figure is not None),
        *(
            Figure(name=f"{outcome.task.name}: {name}", value=value)
            for outcome in outcomes
            for name, value in outcome.values.items()
        ),
    ]


def document(outcomes: Sequence[Outcome]) -> str:
    """RESULTS.md."""
    measured = _by_place(outcomes)
    found = [_quality(measured), DEVELOPMENT_SETS.read_text().strip(), _speed(measured)]
    parts = [_head(outcomes), _targets(measured), _systems(), *found, _notes(outcomes)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _by_place(outcomes: Sequence[Outcome]) -> Measured:
    return {(item.task.work, item.task.system, item.task.size): item.values for item in outcomes if item.values}


def _sizes(measured: Measured) -> list[int]:
    return sorted({size for work, system, size in measured if work == "growth" and system == PRIORS})


def _figure(target: Target, measured: Measured) -> Figure | None:
    over, under = _value(target.over, measured), 1.0
    if target.under is not None:
        under = _value(target.under, measured) or 0.0
    if over is None or not under or target.over == target.under:
        return None
    return Figure(name=target.name, value=over / under, at_least=target.at_least, at_most=target.at_most)


def _value(place: tuple[str, str, int, str], measured: Measured) -> float | None:
    work, system, size, name = place
    return measured.get((work, system, size), {}).get(name)


def _head(outcomes: Sequence[Outcome]) -> str:
    moments = sorted(item.when for item in outcomes) or [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())]
    loads = [item.load for item in outcomes] or [0.0]
    machine = (
        f"{os.cpu_count()} cores ({_processor()}), {_memory_gigabytes():.0f} GB, Python {platform.python_version()}"
    )
    return (
        "# Results against what else there is\n\n"
        "Written by `make bench-peers`; each system in a process of its own, one after the other.\n"
        f"Measured from {moments[0]} to {moments[-1]}; {machine}.\n"
        f"The load average before the single measurements was {min(loads):.1f} to {max(loads):.1f}: ratios say more\n"
        "than milliseconds. Every system has the same texts and the same all-MiniLM-L6-v2, no language model, no\n"
        "telemetry."
    )


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _memory_gigabytes() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


def _targets(measured: Measured) -> str:
    figures = [_figure(target, measured) for size in _sizes(measured) or [LARGE] for target in targets(size)]
    unique = {figure.name: figure for figure in figures if figure is not None}
    verdicts = {True: "met", False: "**missed**", None: ""}
    rows = [[item.name, f"{item.value:.3g}", item.target, verdicts[item.met]] for item in unique.values()]
    return "\n\n".join(
        ["## Against the targets", table(["figure", "value", "target", ""], rows), *_below_the_target_size(measured)]
    )


def _below_the_target_size(measured: Measured) -> list[str]:
    largest = max(_sizes(measured), default=0)
    if largest >= LARGE:
        return []
    said = f"The targets of speed are set for {LARGE:,} memories, which this run did not measure: it had {largest:,}."
    return [said]


def _systems() -> str:
    rows = [
        [item.shown, ", ".join(f"{package} {_version(package)}" for package in item.packages), item.about]
        for item in SYSTEMS
    ]
    left_out = "\n".join(f"- {name} {reason}." for name, reason in LEFT_OUT.items())
    return (
        "## What was compared\n\n"
        + table(["system", "versions", "how"], rows)
        + "\n\nTried and left out:\n\n"
        + left_out
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except ModuleNotFoundError:
        return "not installed"


def _quality(measured: Measured) -> str:
    groups = ["all", *sorted(CATEGORIES.values())]
    found = _alike(f"{group} @{depth}" for group in groups for depth in (5, 10, 20))
    counted, asked = _any(measured, "locomo"), _any(measured, "reports")
    counts = ", ".join(f"{group} {counted.get(f'{group}: questions', 0):.0f}" for group in groups)
    items = _alike(f"{way} @{depth}" for way in ("word for word", "paraphrased") for depth in (1, 5, 10))
    parts = [
        "## What is found",
        f"**LoCoMo dev**, the mean share of a question's evidence messages among the first k\n(questions: {counts}).",
        _by_system(measured, "locomo", 0, found),
        "**HotpotQA dev**, paragraphs as memories, the share of the two that are needed together.",
        _by_system(measured, "hotpotqa", 0, _alike(f"all @{depth}" for depth in (5, 10, 20))),
        KNOWN_ITEMS_TEXT.format(count=asked.get("paraphrased: questions", 0)),
        _by_system(measured, "reports", 0, items),
    ]
    return "\n\n".join(parts)


def _any(measured: Measured, work: str) -> Values:
    return next((values for place, values in measured.items() if place[0] == work), {})


def _alike(names: Iterable[str]) -> dict[str, str]:
    return {name: name for name in names}


def _speed(measured: Measured) -> str:
    parts = ["## How fast, and for how much", SPEED_TEXT]
    for size in _sizes_of(measured, "growth"):
        parts += [f"**{size:,} memories**, milliseconds", _by_system(measured, "growth", size, SPEED_ROWS)]
    for size in _sizes_of(measured, "tenants"):
        share = f"{WORKSPACES} workspaces of {size // WORKSPACES:,} memories"
        parts += [f"**{share}**, one of them asked, and the same data alone, by turns"]
        parts += [_by_system(measured, "tenants", size, _alike(TENANT_ROWS))]
    return "\n\n".join([*parts, INTAKE_TEXT, _by_system(measured, "intake", 0, INTAKE_ROWS)])


def _sizes_of(measured: Measured, work: str) -> list[int]:
    return sorted({size for place, _, size in measured if place == work})


def _notes(outcomes: Sequence[Outcome]) -> str:
    failures = [f"- {item.task.name}: {item.failure}" for item in outcomes if item.failure]
    return "\n".join(["## Notes", "", NOTES, *failures])


def _by_system(measured: Measured, work: str, size: int, rows: Mapping[str, str]) -> str:
    """A table with a column a system that did this work."""
    there = [(item.shown, measured[work, item.name, size]) for item in SYSTEMS if (work, item.name, size) in measured]
    if not there:
        return "Not measured."
    lines = [[shown, *(_shown(values.get(name)) for _, values in there)] for shown, name in rows.items()]
    return table(["", *(shown for shown, _ in there)], lines)


def _shown(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
