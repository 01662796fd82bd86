"""Measures if answers stay right while a tree of reports grows, file by file in the order of time."""

import argparse
import asyncio
import re
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, report
from benchmarks.flows import STAGES, files_of, history_of, judged, rows_of, settle, store
from benchmarks.history import Client
from benchmarks.stage import SHARED_DATA, service, stage

TREE = SHARED_DATA / "real-trees-dev" / "rlm"
STEPS, QUESTIONS = 10, 20
_DATE = re.compile(r"20\d\d-\d\d-\d\d")


def in_time(tree: Path) -> list[tuple[str, str]]:
    """Returns the files of a tree, the oldest first, by the latest date that each names in its path or first lines."""
    return [
        file
        for moment in STAGES
        for file in sorted(
            files_of(tree, moment), key=lambda file: max(_DATE.findall(f"{file[0]} {file[1][:400]}"), default="")
        )
    ]


async def measure(tree: Path) -> list[list[bool]]:
    """Returns, after each tenth of the files, which of the questions are answered rightly."""
    questions = [
        row
        for row in rows_of(tree)
        if row.get("stage", "before") == "before" and not row.get("changes") and not row.get("empty")
    ][:QUESTIONS]
    files = in_time(tree)
    found: list[list[bool]] = []
    async with stage() as services:
        with service(services.settings) as (address, _):
            for step in range(STEPS):
                part = files[len(files) * step // STEPS : len(files) * (step + 1) // STEPS]
                found.append(await asyncio.to_thread(_step, part, tree.name, questions, address))
    return found


def _step(
    files: Sequence[tuple[str, str]], name: str, questions: Sequence[Mapping[str, Any]], address: str
) -> list[bool]:
    store(files, name, address)
    settle(address)
    client = Client(address, f"flows-{name}")
    right = [judged(row, history_of(row, client)).is_right(row) for row in questions]
    client.close()
    print(f"{sum(right):3} of {len(right)} right  {'█' * sum(right)}", flush=True)
    return right


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measures and reports; returns nothing where the data is absent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path, default=TREE, help="a folder with questions.jsonl, reports and after")
    given = parser.parse_args(arguments)
    if not (given.tree / "questions.jsonl").exists():
        print(f"there is no report tree in {given.tree}: the drift is not measured", file=sys.stderr)
        return []
    found = asyncio.run(measure(given.tree))
    lost = sum(
        before and not now for earlier, later in pairwise(found) for before, now in zip(earlier, later, strict=True)
    )
    figures = [
        Figure(name=f"right after {10 * (step + 1)} % of the files, of {len(right)}", value=sum(right))
        for step, right in enumerate(found)
    ]
    figures.append(Figure(name="right answers lost by later files", value=lost, at_most=0))
    report(f"drift-{given.tree.name}", figures)
    return figures


if __name__ == "__main__":
    main()
