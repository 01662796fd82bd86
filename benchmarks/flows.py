"""Measures what agents read: histories over report trees, before and after later reports change the truth."""

import argparse
import asyncio
import json
import re
import statistics
import sys
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from app.foundation.models.protocols import TokenCounter
from app.foundation.models.tokens import BundledTokenCounter
from benchmarks.figures import Figure, report
from benchmarks.history import Client
from benchmarks.stage import SHARED_DATA, service, stage

FLOWS = SHARED_DATA / "flows-dev"
STAGES = {"before": "reports", "after": "after"}
BLOCKS, BUDGET = 3, 500
TARGETS = {
    "right (no fault)": 0.80,
    "needed evidence given": 0.88,
    "first block right": 0.80,
    "silent where nothing applies": 0.93,
    "says nothing untrue or outdated": 0.98,
}
FRAME_SHARE = "tokens beside passages, as a share of the budget"
"""The section's frame, source lines, headings, fences and marks."""


class Answer(NamedTuple):
    """What is right of one answer."""

    is_empty: bool
    held: float
    """Share of the needed evidence that it holds; 1 where none is needed."""
    first: bool
    untrue: bool
    """True if it says what must not be said."""

    def is_right(self, row: Mapping[str, Any]) -> bool:
        """Returns True if the answer has no fault."""
        if row.get("empty"):
            return self.is_empty
        return not self.is_empty and self.held == 1 and self.first and not self.untrue


def plain(text: str) -> str:
    """Returns a text without case, markup and repeated blanks, as phrases are compared."""
    return re.sub(r"[\s*_`#>|]+", " ", text).lower()


def blocks_of(markdown: str) -> list[str]:
    """Returns the texts of the fenced blocks."""
    return [match[2] for match in re.finditer(r"(?ms)^(`{3,})\n(.*?)\n\1$", markdown)]


def judged(row: Mapping[str, Any], markdown: str) -> Answer:
    """Judges an answer by the phrases of its question."""
    text, blocks = plain(markdown), blocks_of(markdown)
    needs = [any(plain(phrase) in text for phrase in group) for group in row.get("needs") or ()]
    first = row.get("first") or ()
    return Answer(
        is_empty=not blocks,
        held=statistics.mean(needs) if needs else 1.0,
        first=not first or bool(blocks and any(plain(phrase) in plain(blocks[0]) for phrase in first)),
        untrue=any(plain(phrase) in text for phrase in row.get("never") or ()),
    )


def beside_passages(markdown: str, counter: TokenCounter) -> float:
    """Returns the share of the budget that the frame, fences, source lines and headings of a section take."""
    said = [
        line for block in blocks_of(markdown) for line in block.splitlines()[1:] if not line.startswith(("› ", "…"))
    ]
    return (counter.count(markdown) - counter.count("\n".join(said))) / BUDGET


def asked(tree: Path, address: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Stores a tree in a workspace of its own and yields its questions with their answers."""
    rows = [json.loads(line) for line in (tree / "questions.jsonl").read_text().splitlines() if line.strip()]
    client = Client(address, f"flows-{tree.name}")
    for moment, folder in STAGES.items():
        for file in sorted(path for path in (tree / folder).rglob("*") if path.is_file()):
            content = {"path": str(file.relative_to(tree / folder)), "content": file.read_text()}
            client.post("/api/reports", json.dumps(content).encode())
        _settle(address)
        for row in rows:
            if row.get("stage", "before") == moment:
                body = {"query": row["query"], "k": BLOCKS, "budget_tokens": BUDGET}
                body |= {"agent": row["agent"]} if row.get("agent") else {}
                yield row, json.loads(client.post("/api/history", json.dumps(body).encode()))["markdown"]
    client.close()


def _settle(address: str) -> None:
    """Waits until vectors, links and cases are made."""
    for _ in range(600):
        with urllib.request.urlopen(f"{address}/ready") as answer:  # noqa: S310 - the benchmark's own server
            state = json.load(answer)
        if not state["waiting"] and not state["pending_links"]:
            break
        time.sleep(0.5)
    # A worker counts the words and matches the issues a moment after the last vector.
    time.sleep(3)


def figures_of(answers: Sequence[tuple[Mapping[str, Any], str]], counter: TokenCounter) -> list[Figure]:
    """Returns the figures of answered questions, each the mean of those that it is of."""
    found: dict[str, list[float]] = defaultdict(list)
    for row, markdown in answers:
        answer = judged(row, markdown)
        right = answer.is_right(row)
        for name in ("right (no fault)", f"right, {row['style']}", f"right, {row.get('agent') or 'no agent'}"):
            found[name].append(right)
        if row.get("empty"):
            found["silent where nothing applies"].append(answer.is_empty)
        else:
            found["needed evidence given"].append(answer.held)
            found["says nothing untrue or outdated"].append(not answer.untrue)
        if row.get("first"):
            found["first block right"].append(answer.first)
        if not answer.is_empty:
            found[FRAME_SHARE].append(beside_passages(markdown, counter))
    least = {**dict.fromkeys((name for name in found if name.startswith("right,")), 0.75), **TARGETS}
    return [
        Figure(
            name=f"{name}, of {len(values)}",
            value=statistics.mean(values),
            at_least=least.get(name),
            at_most=0.15 if name == FRAME_SHARE else None,
        )
        for name, values in sorted(found.items())
    ]


async def measure(trees: Sequence[Path]) -> list[tuple[Mapping[str, Any], str]]:
    """Returns the questions of the trees with their answers, from a service over an empty store."""
    async with stage() as services:
        with service(services.settings) as (address, _):
            return await asyncio.to_thread(lambda: [answer for tree in trees for answer in asked(tree, address)])


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measures and reports; returns nothing where the data is absent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=FLOWS, help="a folder of trees with questions.jsonl")
    given = parser.parse_args(arguments)
    trees = sorted(file.parent for file in given.data.glob("*/questions.jsonl"))
    if not trees:
        print(f"there are no report trees in {given.data}: the histories are not measured", file=sys.stderr)
        return []
    figures = figures_of(asyncio.run(measure(trees)), BundledTokenCounter())
    report("flows", figures)
    return figures


if __name__ == "__main__":
    main()
