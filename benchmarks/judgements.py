"""How many judgements are read as their files state them, and how well issues are matched over versions."""

import argparse
import asyncio
import json
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from app.foundation.models.protocols import Vector
from app.foundation.models.providers import provider_from
from app.foundation.text.document import read_document
from app.intake.cases.extract_text import found_in_report
from app.intake.cases.issue import IssueStatement, group_statements
from app.settings import Settings
from benchmarks.figures import Figure, report
from benchmarks.stage import SHARED_DATA

PHRASINGS = Path(__file__).parents[1] / "tests" / "intake" / "cases" / "issue_phrasings.json"
ROUNDS, VERSIONS, NAMED = 60, 3, 0.6
"""Made-up histories of each case, their versions, and the share of a case's issues that each version names."""
FIELDS = ("score", "passed", "grade")


def as_stated(folder: Path) -> tuple[int, int]:
    """Returns how many judgments are read with score, passed and grade as their JSON has them, and of how many."""
    files = sorted(folder.rglob("judgment.json"))
    return sum(_is_as_stated(path, folder) for path in files), len(files)


def _is_as_stated(path: Path, folder: Path) -> bool:
    document = json.loads(path.read_text())
    found = found_in_report(PurePosixPath(path.relative_to(folder)), read_document(path.read_text(), path.suffix))
    read = [{"score": item.stated, "passed": item.passed, "grade": item.grade} for item in found]
    return read == [{name: document[name] for name in FIELDS}]


def matched(cases: Sequence[Mapping[str, Any]], vectors: Mapping[str, Vector]) -> tuple[float, float]:
    """Returns precision and recall of the pairs of statements that are told to be one issue."""
    chance = random.Random(1)
    right = wrong = missed = 0
    for case in cases:
        for _ in range(ROUNDS):
            told = list(_history(case["issues"], chance))
            found = group_statements(
                [IssueStatement(version, text) for version, _, text in told],
                np.array([vectors[text] for *_, text in told]),
            )
            for one, other in combinations(range(len(told)), 2):
                same, joined = told[one][1] == told[other][1], found[one] == found[other]
                right, wrong, missed = right + (same and joined), wrong + (joined > same), missed + (same > joined)
    return right / (right + wrong), right / (right + missed)


def _history(issues: Sequence[Sequence[str]], chance: random.Random) -> Iterator[tuple[int, int, str]]:
    """Yields statements of a made-up history: version, issue, and one of its phrasings."""
    for version in range(VERSIONS):
        for number, phrasings in enumerate(issues):
            if chance.random() < NAMED:
                yield version, number, chance.choice(phrasings)


async def matching() -> list[Figure]:
    """Returns the figures of matching, of the cases that the thresholds were chosen by and of those left out."""
    cases = json.loads(PHRASINGS.read_text())
    texts = [text for case in cases for issue in case["issues"] for text in issue]
    with tempfile.TemporaryDirectory() as folder:
        provider = provider_from(Settings(data_dir=Path(folder)))
        await provider.start()
        vectors = dict(zip(texts, await provider.embed_documents(texts), strict=True))
        await provider.close()
    figures = []
    for split, least in (("fit", None), ("held_out", 0.95)):
        precision, recall = matched([case for case in cases if case["split"] == split], vectors)
        name = split.replace("_", " ")
        figures.append(Figure(name=f"issues matched, precision, {name}", value=precision, at_least=least))
        figures.append(Figure(name=f"issues matched, recall, {name}", value=recall))
    return figures


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measure, print and return the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=Path, default=SHARED_DATA / "reports-scylla")
    options = parser.parse_args(arguments)
    figures = asyncio.run(matching())
    read, total = as_stated(options.reports)
    if total:
        figures.append(Figure(name=f"judgments read as stated, of {total}", value=read, at_least=total))
    report("judgements", figures)
    return figures


if __name__ == "__main__":
    main()
