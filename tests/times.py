"""Writes down how long each file's tests took, and prints it by tier: `python -m tests.times` prints the last run."""

import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.tiers import TIERS

LAST = Path(__file__).parents[1] / ".pytest_cache" / "seconds.json"
"""Seconds by file of the last run."""
SHOWN = 40
"""Files that are printed."""


class Times:
    """Adds up the seconds of a run, those of fixtures included."""

    def __init__(self) -> None:
        self.by_file: defaultdict[str, float] = defaultdict(float)
        self.by_tier: defaultdict[str, float] = defaultdict(float)
        self.tests: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the time of one phase of a test."""
        tier = next((tier for tier in TIERS if tier in report.keywords), "")
        self.by_file[report.nodeid.partition("::")[0]] += report.duration
        self.by_tier[tier] += report.duration
        self.tests[tier] += report.when == "call"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the tiers and store the files."""
        for tier in TIERS:
            if self.tests[tier]:
                terminalreporter.write_line(f"{tier}: {self.tests[tier]} tests, {self.by_tier[tier]:.0f} s")
        LAST.parent.mkdir(exist_ok=True)
        LAST.write_text(json.dumps(self.by_file))


def pytest_configure(config: pytest.Config) -> None:
    """Measure, in the process that sees all reports."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Times())


if __name__ == "__main__":
    if not LAST.is_file():
        raise SystemExit("no run has been measured yet; run `make test`")
    seconds: dict[str, float] = json.loads(LAST.read_text())
    longest = sorted(seconds, key=lambda file: -seconds[file])
    for file in longest[:SHOWN]:
        print(f"{seconds[file]:8.1f} s  {file}")
    print(f"{sum(seconds.values()):8.1f} s  in all, of {len(seconds)} files")
