"""One system at one work, in a process of its own; prints what it measured as JSON."""

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.peers import quality, speed
from benchmarks.peers.catalog import entry
from benchmarks.peers.embedder import Embedder
from benchmarks.peers.quality import Values
from benchmarks.peers.system import Opener, System

# Whatever the peers would tell anybody, or fetch.
QUIET = {
    "ANONYMIZED_TELEMETRY": "False",
    "MEM0_TELEMETRY": "False",
    "LANGSMITH_TRACING": "false",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}

QUALITY: dict[str, Callable[[System, argparse.Namespace], Values]] = {
    "locomo": quality.conversations,
    "hotpotqa": quality.paragraphs,
    "reports": quality.reports,
}
SPEED: dict[str, Callable[[Opener, argparse.Namespace], Values]] = {"growth": speed.growth, "tenants": speed.tenants}
INTAKE: dict[str, Callable[[Opener, argparse.Namespace], Values]] = {"intake": speed.intake}


def measure(given: argparse.Namespace) -> Values:
    """What was measured."""
    opener = entry(given.system).open()
    if given.work in SPEED | INTAKE:
        return (SPEED | INTAKE)[given.work](opener, given)
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder) / "store"
        room.mkdir()
        embedder = Embedder(Path(folder), known=given.vectors)
        with opener(room, embedder) as system:
            values = QUALITY[given.work](system, given)
        embedder.save()
        return values


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system")
    parser.add_argument("work", choices=[*QUALITY, *INTAKE, *SPEED])
    parser.add_argument("--size", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--questions", type=int)
    parser.add_argument("--conversations", type=int)
    parser.add_argument("--vectors", type=Path, help="file of vectors that works of quality share")
    parser.add_argument("--into", type=Path, required=True, help="file for the JSON")
    given = parser.parse_args(arguments)
    given.into.write_text(json.dumps(measure(given), indent=2) + "\n")


if __name__ == "__main__":
    os.environ |= QUIET
    main()
