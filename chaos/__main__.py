"""The command line of the chaos harness: `python -m chaos --points 100 --seed 1`."""

import argparse
import random
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from rich.console import Console

from chaos.faults import FAULTS, Needs
from chaos.ground import Ground, lacking
from chaos.points import Outcome, tried
from chaos.progress import NotRecovered
from chaos.tables import tables
from chaos.works import WORKS
from tests.fakes.embeddings import DIMENSION, Endpoint, Reply, answered

ROOT = Path(__file__).parents[1]
WIDTH = 140
"""Characters of a line of the tables."""
SHOWN = 8
"""Losses of a point that are told."""


def main(arguments: list[str]) -> int:
    """Tries the points and prints tables; returns 1 if anything was lost."""
    given = _parser().parse_args(arguments)
    console = Console(width=WIDTH)
    if given.recorded:
        return _shown(console, [outcome for path in given.recorded for outcome in _recorded(path)])
    works = given.works or list(WORKS)
    faults = _possible(given.faults or list(FAULTS), console, before=bool(given.before))
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="priors-chaos-") as folder, _checkout(given.before) as before:
        Path(folder).chmod(0o755)
        endpoint = Endpoint()
        endpoint.reply = _by_numbers
        ground = Ground(Path(folder), endpoint.url, faults, before)
        try:
            for number in range(given.first, given.first + given.points):
                outcome = _point(ground, number, random.Random(f"{given.seed}:{number}"), works, faults)
                _tell(console, outcome)
                outcomes.append(outcome)
                _record(given.record, outcome)
        except NotRecovered as failure:
            console.print(str(failure), markup=False)
            return 1
        finally:
            ground.close()
            endpoint.close()
    return _shown(console, outcomes)


def _shown(console: Console, outcomes: list[Outcome]) -> int:
    """Prints the tables of these outcomes; returns 1 if anything was lost."""
    for table in tables(outcomes):
        console.print(table)
    return int(any(outcome.losses for outcome in outcomes))


def _recorded(path: Path) -> list[Outcome]:
    try:
        return [msgspec.json.decode(line, type=Outcome) for line in path.read_bytes().splitlines()]
    except (OSError, msgspec.DecodeError) as error:
        raise SystemExit(f"{path} has no recorded points: {error}") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--points", type=int, default=100, help="points to try; default 100")
    parser.add_argument("--first", type=int, default=0, help="the number of the first point; default 0")
    parser.add_argument("--seed", default="1", help="the same seed gives the same works, faults and moments")
    parser.add_argument("--work", dest="works", action="append", choices=list(WORKS), help="only this; repeatable")
    parser.add_argument("--fault", dest="faults", action="append", choices=list(FAULTS), help="only this; repeatable")
    parser.add_argument("--before", default="", help="the Git revision of the version before, for upgrades")
    parser.add_argument("--record", default="", help="a file that gets a line of JSON for each point")
    parser.add_argument(
        "--recorded", type=Path, action="append", help="only print the tables of the points in this file; repeatable"
    )
    return parser


def _possible(faults: list[str], console: Console, *, before: bool) -> list[str]:
    """Returns the faults that this computer can make, and tells which it cannot."""
    reasons = lacking(before=before)
    for fault in faults:
        if reason := reasons.get(FAULTS[fault].needs):
            console.print(f"left out: {fault} ({reason})")
    return [fault for fault in faults if FAULTS[fault].needs not in reasons]


@contextmanager
def _checkout(revision: str) -> Iterator[Path | None]:
    """Yields a checkout of a revision of this repository; None without one."""
    if not revision:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="priors-before-") as folder:
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", "--force", folder, revision], check=True, capture_output=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run([*git, "remove", "--force", folder], check=True, capture_output=True)


def _by_numbers(texts: list[str]) -> Reply:
    """Returns one vector for all texts with the same numbers, so that the cues of a pair alone are near-duplicates."""
    drawn = (random.Random(" ".join(sorted(set(re.findall(r"\d+", text))))) for text in texts)
    return answered([[rng.gauss(0, 1) for _ in range(DIMENSION)] for rng in drawn])


def _point(ground: Ground, number: int, rng: random.Random, works: list[str], faults: list[str]) -> Outcome:
    work, fault = WORKS[rng.choice(works)](), rng.choice(faults)
    machine = ground.machine_for(fault)
    outcome = tried(machine, number, rng, work, fault)
    if outcome.losses or FAULTS[fault].needs is Needs.BEFORE:
        ground.drop(machine)
    return outcome


def _record(path: str, outcome: Outcome) -> None:
    if path:
        with Path(path).open("ab") as file:
            file.write(msgspec.json.encode(outcome) + b"\n")


def _tell(console: Console, outcome: Outcome) -> None:
    console.print(
        f"{outcome.number:4} {outcome.work}: {outcome.fault} after {outcome.moment:.1f} s; "
        f"{outcome.acknowledged} acknowledged, {outcome.interrupted} interrupted, "
        f"ready again after {outcome.recovered:.1f} s: {'[red]LOST' if outcome.losses else 'whole'}"
    )
    for loss in outcome.losses[:SHOWN]:
        console.print(f"       {loss}", markup=False)


if __name__ == "__main__":
    # An ended harness takes its processes, its disk and its namespace away.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main(sys.argv[1:]))
