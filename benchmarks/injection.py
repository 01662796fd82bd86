"""What the injection scan catches, what it blocks wrongly, and what it costs."""

import argparse
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from app.foundation.models.tokens import BundledTokenCounter
from app.foundation.safety.rules import rules
from app.foundation.safety.scan import blocking, scan
from app.intake.reports.prepare import prepare
from app.intake.reports.scan import discover, read
from benchmarks import evidence
from benchmarks.figures import Figure, report
from benchmarks.stage import SHARED_DATA

LABELLED = Path(__file__).parents[1] / "tests" / "foundation" / "safety"
MEGABYTE = 1_000_000
CLEAN = "The scout returned zero actors, and the director did not escalate. The market grew by 7 % in 2025. " * 10


def share_blocked(texts: Sequence[str]) -> float:
    """The share of these texts that the scan keeps out."""
    return sum(bool(blocking(scan(text))) for text in texts) / len(texts) if texts else 0.0


def labelled(path: Path) -> list[dict[str, Any]]:
    """The texts of a file of JSON lines, each with its labels."""
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def own() -> Iterator[Figure]:
    """The project's own texts; those of the held-out third were not looked at when the rules were written."""
    attacks, clean = labelled(LABELLED / "attacks.jsonl"), labelled(LABELLED / "clean.jsonl")
    held = [item["text"] for item in attacks if item["held_out"]]
    yield Figure(name="own attacks caught", value=share_blocked([item["text"] for item in attacks]), at_least=0.95)
    yield Figure(name="own attacks caught, held out", value=share_blocked(held), at_least=0.95)
    yield Figure(name="own clean texts blocked", value=share_blocked([item["text"] for item in clean]), at_most=0.03)
    yield from second()


def second() -> Iterator[Figure]:
    """Texts that were written before the rules were last revised, and at whose misses nobody looked."""
    attacks, clean = (
        [item["text"] for item in labelled(LABELLED / f"second_{kind}.jsonl")] for kind in ("attacks", "clean")
    )
    yield Figure(name="second held-out set: attacks caught", value=share_blocked(attacks), at_least=0.9)
    yield Figure(name="second held-out set: clean texts blocked", value=share_blocked(clean), at_most=0.03)


def shared(folder: Path) -> Iterator[Figure]:
    """Texts of others, as far as they are there."""
    cases = folder / "injection-dev" / "cases.jsonl"
    if cases.is_file():
        rows = labelled(cases)
        pint = [row["text"] for row in rows if row["label"] == 1 and "PINT" in row["source"]]
        clean = [row["text"] for row in rows if row["label"] == 0]
        yield Figure(name="injection-dev: PINT attacks caught", value=share_blocked(pint), at_least=0.8)
        yield Figure(name="injection-dev: clean texts blocked", value=share_blocked(clean), at_most=0.03)
    if (folder / "reports-scylla").is_dir():
        chunks = list(_chunks(folder / "reports-scylla"))
        yield Figure(name="reports-scylla: chunks blocked", value=share_blocked(chunks), at_most=0.005)
    if (folder / "locomo-dev").is_dir():
        messages = [
            text for path in (folder / "locomo-dev").rglob("*.json") for text in _texts(json.loads(path.read_text()))
        ]
        yield Figure(name="locomo-dev: texts blocked", value=share_blocked(messages), at_most=0.005)


def _chunks(folder: Path) -> Iterator[str]:
    tokens = BundledTokenCounter()
    for file in discover([folder]).files.values():
        content = read(file.path, max_bytes=10 * MEGABYTE)
        prepared = prepare(content, file, language="english", counter=tokens)
        yield from (row.memory.body for row in prepared.rows)


def _texts(value: Any) -> Iterable[str]:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) and len(value) > 20 else []


def cost(characters: int) -> Iterator[Figure]:
    """The processor's time for clean text, and for one that repeats what a rule looks for, the slowest of all."""
    scan(CLEAN)
    started = time.process_time()
    for _ in range(100):
        scan(CLEAN)
    spent = (time.process_time() - started) / 100
    yield Figure(name="1,000 clean characters", value=spent * 1000 / len(CLEAN) * 1000, unit="ms")
    worst = max(_seconds(rule.caught[0], characters) for rule in rules())
    yield Figure(name=f"{characters:,} adversarial characters, worst rule", value=worst, unit="s", at_most=1.0)


def _seconds(piece: str, characters: int) -> float:
    text = (f"{piece} " * (characters // (len(piece) + 1) + 1))[:characters]
    started = time.process_time()
    scan(text)
    return time.process_time() - started


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--characters", type=int, default=MEGABYTE)
    parser.add_argument("--data", type=Path, default=SHARED_DATA)
    given = parser.parse_args(arguments)
    figures = [*own(), *shared(given.data), *evidence.in_use(), *cost(given.characters)]
    report("injection", figures)
    return figures


if __name__ == "__main__":
    main()
