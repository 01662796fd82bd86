"""Extracts the cues of session logs in public repositories, and compares them with what readers said of their turns.

The logs are not part of this repository. `public_turns.jsonl` names each by repository, commit and path, with the turns
of persons that were read, drawn at random above and below the threshold of then, and the verdicts;
`public_turns_held_out.jsonl` does so for repositories that the adapter of lessons has not seen. Readers had the
sentences of a turn and the end of the agent's turn before it, and no sight of the rules. `useful` names the turns with
a sentence that a colleague would write down for later sessions, and these sentences by their digests; `harmless` turns
are true and lasting but change nothing; all others are junk. Two readers of the same 168 turns called 33 turns useful
each, 31 of them both.
"""

import argparse
import hashlib
import subprocess  # reads files out of clones
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from app.intake.sessions.formats.detect import read_log
from app.intake.sessions.transcript import Turn
from app.recall.cues.cue import PERSON
from app.recall.cues.extraction.extract import extract, ordinal_of
from app.recall.cues.signs import TurnModel
from benchmarks.figures import Figure, report
from benchmarks.reading import read_spoken
from benchmarks.stage import rows_of

TURNS = Path(__file__).parent / "public_turns.jsonl"
HELD_OUT = Path(__file__).parent / "public_turns_held_out.jsonl"
"""Turns of other repositories: the adapter is not trained on them; the function beside it is fitted to them."""
USEFUL, HARMLESS, JUNK = "useful", "harmless", "junk"
ACTIVE, CANDIDATE, SILENT = "active cues", "candidates", "turns without a cue"


def read(path: Path = TURNS) -> list[Mapping[str, Any]]:
    """Reads the sessions with their verdicts."""
    return rows_of(path)


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


def turns_of(row: Mapping[str, Any], folder: Path) -> Sequence[Turn]:
    """Returns the turns of a session."""
    log = read_log(content_of(row, folder), suffix=Path(row["path"]).suffix, session_id=row["path"])
    return log.transcripts[row["session"]].turns if log else ()


def digest(sentence: str) -> str:
    """Returns the name of a sentence in `public_turns.jsonl`."""
    return hashlib.blake2b(sentence.encode(), digest_size=4).hexdigest()


def verdict(row: Mapping[str, Any], ordinal: int) -> str:
    """Returns what a reader said of a turn."""
    return USEFUL if str(ordinal) in row["useful"] else HARMLESS if ordinal in row["harmless"] else JUNK


def judged(row: Mapping[str, Any], turns: Sequence[Turn], model: TurnModel | None = None) -> Iterator[tuple[str, str]]:
    """Yields what the rules make of each turn that was read, and the reader's verdict."""
    found = [cue for cue in extract(read_spoken(turns), model) if cue.trust == PERSON]
    made = {ordinal_of(cue): CANDIDATE if cue.is_candidate else ACTIVE for cue in found}
    yield from ((made.get(ordinal, SILENT), verdict(row, ordinal)) for ordinal in row["read"])


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
    """Measures the rules in use on logs of public repositories, which they have seen in part: see `benchmarks.cues`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="clones of the repositories, each in OWNER/NAME")
    given = parser.parse_args(arguments)
    for name, path in (("that the adapter is trained on", TURNS), ("that the weights are fitted to", HELD_OUT)):
        found = [pair for row in read(path) for pair in judged(row, turns_of(row, given.folder))]
        report(f"cues of persons, public logs {name}", list(figures(found)))


if __name__ == "__main__":
    main()
