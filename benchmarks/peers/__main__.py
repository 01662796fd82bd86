"""`python -m benchmarks.peers`: run the comparison, write RESULTS.md and JSON."""

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import figures
from benchmarks.peers.catalog import SYSTEMS
from benchmarks.peers.results import as_figures, document
from benchmarks.peers.run import WORKS, kept, plan, run

SIZES = (1_000, 10_000, 100_000)
OUTPUT = Path(__file__).parents[1] / "RESULTS.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and report; 1 where a task failed."""
    given = _parser().parse_args(arguments)
    folder: Path = given.results or figures.RESULTS / "peers"
    if not given.keep:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    options = [f"--{name}={value}" for name in ("rounds", "questions", "conversations") if (value := vars(given)[name])]
    failed = False
    for task in plan(given.work or WORKS, given.system or [item.name for item in SYSTEMS], given.size or SIZES):
        outcome = run(task, folder, options)
        failed = failed or bool(outcome.failure)
        print(f"{outcome.when} {task.name}: {outcome.failure or 'done'}", file=sys.stderr, flush=True)
    outcomes = kept(folder)
    given.output.write_text(document(outcomes))
    packages = {package: None for item in SYSTEMS for package in item.packages}
    figures.report("peers", as_figures(outcomes), parts=[*figures.PARTS, *packages])
    return int(failed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", action="append", choices=WORKS, help="only this one; can be given again")
    parser.add_argument(
        "--system", action="append", choices=[item.name for item in SYSTEMS], help="only this one; can be given again"
    )
    parser.add_argument("--size", type=int, action="append", help="memories; can be given again")
    parser.add_argument("--rounds", type=int, help="questions of a measurement of speed")
    parser.add_argument("--questions", type=int, help="of each quality data set, only so many")
    parser.add_argument("--conversations", type=int, help="only so many")
    parser.add_argument("--keep", action="store_true", help="keep what an earlier run measured, and add to it")
    parser.add_argument("--results", type=Path, help="folder of the single measurements")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where the tables are written")
    return parser


if __name__ == "__main__":
    sys.exit(main())
