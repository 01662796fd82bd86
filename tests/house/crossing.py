"""Which modules a request crosses, in order: a real service, traced in a process and a database of its own."""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.house.source import House, room_of

SCRIPT = Path(__file__).with_name("traced.py")
INGEST = "priors ingest"
INTAKE = "reports"
"""The room of ingestion."""
TIME_LIMIT = 300
"""Seconds for one process."""


class Call(NamedTuple):
    """A function that started."""

    module: str
    function: str
    caller: str | None
    """The module that called it; None for a task or a thread."""


@dataclass(frozen=True)
class Crossing:
    """The calls of one request."""

    calls: Sequence[Call]

    @property
    def modules(self) -> list[str]:
        """The modules that ran, in the order of their first call."""
        return list(dict.fromkeys(call.module for call in self.calls))

    @property
    def passing(self) -> list[str]:
        """The modules that the request passes through: those that call another one in their turn."""
        callers = {call.caller for call in self.calls if call.caller != call.module}
        return [module for module in self.modules if module in callers]

    @property
    def entries(self) -> Mapping[str, int]:
        """How often each module is entered: called by another one, or started as a task or a thread."""
        return Counter(call.module for call in self.calls if call.caller != call.module)


def crossings(house: House) -> dict[str, Crossing]:
    """Runs the checkout's service and returns what a history, a report and an ingested file cross.

    Raises:
        RuntimeError: the service does not run; with the end of what it said.
    """
    with tempfile.TemporaryDirectory(prefix="house-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "traced.md").write_text("# Traced\n\n## Findings\n\nThe margin was 13 % in 2025.\n")
        served = _traced(house, folder, "serve")
        ingested = _traced(house, folder, "ingest", str(folder / "traced.md"))
    return {**served, INGEST: _trimmed(ingested[INGEST])}


def _traced(house: House, folder: Path, *arguments: str) -> dict[str, Crossing]:
    result = folder / f"{arguments[0]}.json"
    command = [_python(house.repository), "-P", str(SCRIPT), arguments[0], str(result), *arguments[1:]]
    done = subprocess.run(
        command,
        cwd=house.repository,
        env=_environment(house.repository, folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=TIME_LIMIT,
    )
    if not result.is_file():
        raise RuntimeError(f"{' '.join(arguments[:1])}: {' '.join(done.stderr.split()[-40:])}")
    traced = json.loads(result.read_text())
    return {name: Crossing([Call(*call) for call in calls]) for name, calls in traced.items()}


def _python(repository: Path) -> str:
    own = repository / ".venv" / "bin" / "python"
    return str(own) if own.exists() else sys.executable


def _environment(repository: Path, folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PRIORS_")}
    given = {"DATA_DIR": str(folder / "data"), "EMBEDDED_WORKER": "false", "LOG_LEVEL": "error"}
    return {**kept, "PYTHONPATH": str(repository), **{f"PRIORS_{name}": value for name, value in given.items()}}


def _trimmed(crossing: Crossing) -> Crossing:
    """Leaves out the start and the end of the process: keeps what runs from the first to the last call of intake."""
    places = [number for number, call in enumerate(crossing.calls) if room_of(call.module) == INTAKE]
    return Crossing(crossing.calls[places[0] : places[-1] + 1]) if places else crossing
