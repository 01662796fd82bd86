"""Extracts the cues of session logs in public repositories, and compares them with what readers said of their turns.

The logs are not part of this repository. `public_turns.jsonl` names each by repository, commit and path, with the turns
of persons that were read, drawn at random among those below and above the threshold, and the verdicts. Readers had the
sentences of a turn and the end of the agent's turn before it, and no sight of the rules. `useful` is a turn with a
sentence that a colleague would write down for later sessions, `harmless` one that is true and lasting but changes
nothing; all others are junk. Two readers of the same 168 turns called 33 turns useful each, 31 of them both.

No weight is fitted to these logs, so that they tell what rules do on projects that nobody has seen.
"""

import argparse
import json
import subprocess  # reads files out of clones
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from app.intake.sessions.formats.detect import read_log
from app.recall.cues.cue import PERSON
from app.recall.cues.extraction.extract import extract, ordinal_of
from benchmarks.figures import Figure, report

TURNS = Path(__file__).parent / "public_turns.jsonl"
USEFUL, HARMLESS, JUNK = "useful", "harmless", "junk"
ACTIVE, CANDIDATE, SILENT = "active cues", "candidates", "turns without a cue"


def read() -> list[Mapping[str, Any]]:
    """Reads the sessions with their verdicts."""
    return [json.loads(line) for line in TURNS.read_text(encoding="utf-8").splitlines()]


def content_of(row: Mapping[str, Any], folder: Path) -> bytes:
    """Returns a log as it stands in its commit.

    Raises:
        SystemExit: the clone is absent or lacks the commit.
    """
    clone = folder / row["repository"]
    command = ["git", "-C", str(clone), "show", f"{row['commit']}:{row['path']}"]
    shown = subprocess.run(command, capture_output=True, check=False)
    if shown.returncode:
        raise SystemExit(f"{shown.stderr.decode('utf-8', 'replace').strip()}\n{row['repository']} belongs into {clone}")
    return shown.stdout


def judged(row: Mapping[str, Any], content: bytes) -> Iterator[tuple[str, str]]:
    """Yields what the rules make of each turn that was read, and the reader's verdict."""
    log = read_log(content, suffix=Path(row["path"]).suffix, session_id=row["path"])
    turns = log.transcripts[row["session"]].turns if log else []
    made = {ordinal_of(cue): CANDIDATE if cue.is_candidate else ACTIVE for cue in extract(turns) if cue.trust == PERSON}
    for ordinal in row["read"]:
        verdict = next((name for name in (USEFUL, HARMLESS) if ordinal in row[name]), JUNK)
        yield made.get(ordinal, SILENT), verdict


def figures(found: Sequence[tuple[str, str]]) -> Iterator[Figure]:
    """Yields the verdicts on what the rules find, and the share of the useful turns that they find."""
    counts = Counter(found)
    useful = sum(counts[made, USEFUL] for made in (ACTIVE, CANDIDATE, SILENT))
    yield Figure(name="turns that were read", value=counts.total())
    yield Figure(name="… that are useful", value=useful)
    for made in (ACTIVE, CANDIDATE, SILENT):
        every = sum(counts[made, verdict] for verdict in (USEFUL, HARMLESS, JUNK))
        yield Figure(name=made, value=every)
        aim = 0.7 if made == ACTIVE else None
        yield Figure(name="… useful", value=counts[made, USEFUL] / max(1, every), at_least=aim)
        yield Figure(name="… of the useful turns", value=counts[made, USEFUL] / max(1, useful))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures the rules in use on logs of public repositories."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="clones of the repositories, each in OWNER/NAME")
    given = parser.parse_args(arguments)
    rows = read()
    found = [pair for row in rows for pair in judged(row, content_of(row, given.folder))]
    projects = len({row["repository"] for row in rows})
    report(f"cues of persons, {len(rows)} public sessions of {projects} projects", list(figures(found)))


if __name__ == "__main__":
    main()
