"""The command line of the chaos harness: `python -m chaos --points 100 --seed 1`."""

import argparse
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from chaos.faults import DISK, FAULTS
from chaos.machine import NotRecovered, running
from chaos.points import Outcome, tried
from tests.fakes.embeddings import Endpoint

DISK_BYTES = 1 << 30
"""Size of the small disk: Postgres' own files, its log, and the points' data."""


def main(arguments: list[str]) -> int:
    """Tries the points and prints a table; returns 1 if anything was lost."""
    given = _parser().parse_args(arguments)
    faults = given.faults or list(FAULTS)
    endpoint, console = Endpoint(), Console()
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="priors-chaos-") as folder, _disk(Path(folder), faults) as (data, possible):
        if len(possible) < len(faults):
            console.print(f"left out: {DISK} (mounting a small disk needs root)")
        try:
            with running(data, endpoint.url) as machine:
                for number in range(given.first, given.first + given.points):
                    rng = random.Random(f"{given.seed}:{number}")
                    outcome = tried(machine, number, rng, possible)
                    outcomes.append(outcome)
                    _tell(console, outcome)
        except NotRecovered as failure:
            console.print(f"[red]{failure}")
            console.print((data / "processes.log").read_text()[-4000:], markup=False)
            return 1
        finally:
            endpoint.close()
    console.print(_table(outcomes))
    return int(any(outcome.losses for outcome in outcomes))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--points", type=int, default=100, help="points to try; default 100")
    parser.add_argument("--first", type=int, default=0, help="the number of the first point; default 0")
    parser.add_argument("--seed", default="1", help="the same seed gives the same works, faults and moments")
    parser.add_argument("--fault", dest="faults", action="append", choices=list(FAULTS), help="only this; repeatable")
    return parser


@contextmanager
def _disk(folder: Path, faults: list[str]) -> Iterator[tuple[Path, list[str]]]:
    """Yields a data directory on a small disk and the faults that are possible there."""
    if DISK not in faults:
        yield folder, faults
        return
    options = ["-t", "tmpfs", "-o", f"size={DISK_BYTES}"]
    if subprocess.run(["mount", *options, "tmpfs", folder], check=False, capture_output=True).returncode:
        yield folder, [fault for fault in faults if fault != DISK]
        return
    try:
        folder.chmod(0o755)
        yield folder, faults
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def _tell(console: Console, outcome: Outcome) -> None:
    state = "[red]LOST" if outcome.losses else "whole"
    console.print(
        f"{outcome.number:4} {outcome.work}: {outcome.fault} after {outcome.moment:.1f} s; "
        f"{outcome.acknowledged} acknowledged, {outcome.interrupted} interrupted, "
        f"ready again after {outcome.recovered:.1f} s: {state}"
    )
    for loss in outcome.losses:
        console.print(f"       {loss}", markup=False)


def _table(outcomes: list[Outcome]) -> Table:
    """Returns a row for each fault: points, requests, recovery and losses."""
    table = Table("fault", "points", "acknowledged", "interrupted", "longest recovery, s", "points with losses")
    for fault in FAULTS:
        of_fault = [outcome for outcome in outcomes if outcome.fault == fault]
        if of_fault:
            table.add_row(
                fault,
                str(len(of_fault)),
                str(sum(outcome.acknowledged for outcome in of_fault)),
                str(sum(outcome.interrupted for outcome in of_fault)),
                f"{max(outcome.recovered for outcome in of_fault):.1f}",
                str(sum(bool(outcome.losses) for outcome in of_fault)),
            )
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
