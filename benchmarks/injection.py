"""What the injection scan catches, what it blocks wrongly, and what it costs."""

import argparse
import itertools
import json
import random
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from app.foundation.models.tokens import BundledTokenCounter
from app.foundation.safety.rules import rules
from app.foundation.safety.scan import FLAG, blocking, scan, scan_all
from app.intake.reports.prepare import prepare
from app.intake.reports.scan import discover, read
from benchmarks import evidence
from benchmarks.figures import Figure, report
from benchmarks.stage import SHARED_DATA

LABELLED = Path(__file__).parents[1] / "tests" / "foundation" / "safety"
MEGABYTE = 1_000_000
DOCUMENTS = {".md", ".mdx", ".mdc", ".mediawiki", ".txt"}
MOST_PARAGRAPHS, SHORTEST_PARAGRAPH = 1_000, 40
"""Paragraphs of one repository that are scanned, and the characters of the shortest."""
ADDRESSES = ("maria.lopez@fabrikam.com", "j.chen@contoso.org", "team@northwind.example", "support@my-company.de")
REAL = ("real-trees-dev/rlm", "real-trees-dev/sparsek", "records-dev/cometbft", "records-dev/hydra", "reports-scylla")
"""Repositories among the shared data."""
_FENCED = re.compile(r"(?ms)^[ \t]*(```|~~~).*?^[ \t]*\1[ \t]*$")
_EMPTY_LINE = re.compile(r"\n\s*\n")
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


def innocent(folders: Sequence[Path]) -> Iterator[Figure]:
    """Paragraphs of real public documents, as they are and with an address in them: how many no history would show."""
    counts = {False: 0, True: 0}
    total = 0
    for folder in folders:
        paragraphs = _paragraphs(folder)
        total += len(paragraphs)
        if not paragraphs:
            continue
        held = {with_address: _held_back(_with_addresses(paragraphs) if with_address else paragraphs)
                for with_address in counts}  # fmt: skip
        for with_address, number in held.items():
            counts[with_address] += number
        yield Figure(name=f"… {folder.name}: held back, of {len(paragraphs):,}", value=held[False] / len(paragraphs))
    if total:
        name = f"real documents: paragraphs held back, of {total:,}"
        yield Figure(name=name, value=counts[False] / total, at_most=0.005)
        yield Figure(name="the same with an e-mail address", value=counts[True] / total, at_most=0.01)


def _held_back(texts: Sequence[str]) -> int:
    found = scan_all([(text, 0) for text in texts])
    return sum(any(finding.severity != FLAG for finding in findings) for findings in found)


def _paragraphs(folder: Path) -> list[str]:
    """Returns at most MOST_PARAGRAPHS paragraphs of a repository's documents, without code, drawn by chance."""
    files = (path for path in sorted(folder.rglob("*")) if path.suffix in DOCUMENTS and path.is_file())
    texts = (_FENCED.sub("", path.read_text(errors="replace")) for path in files)
    parts = dict.fromkeys(part.strip() for text in texts for part in _EMPTY_LINE.split(text))
    found = [part for part in parts if len(part) >= SHORTEST_PARAGRAPH]
    random.Random(0).shuffle(found)
    return found[:MOST_PARAGRAPHS]


def _with_addresses(texts: Sequence[str]) -> list[str]:
    """Returns each text with an invented address, in one of the ways in which documents name one."""
    ways = itertools.product((" ({}).", " Contact: {}.", " Reported by {}."), ADDRESSES)
    return [text + way.format(address) for text, (way, address) in zip(texts, itertools.cycle(ways), strict=False)]


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
    parser.add_argument("--documents", type=Path, help="a folder with a folder of documents for each public repository")
    given = parser.parse_args(arguments)
    real = [given.data / name for name in REAL]
    real += [folder for folder in sorted(given.documents.iterdir()) if folder.is_dir()] if given.documents else []
    figures = [*own(), *shared(given.data), *innocent(real), *evidence.in_use(), *cost(given.characters)]
    report("injection", figures)
    return figures


if __name__ == "__main__":
    main()
