"""Measures what agents read: histories over report trees, before and after later reports change the truth."""

import argparse
import asyncio
import json
import re
import shutil
import statistics
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from app.foundation.models.protocols import TokenCounter
from app.foundation.models.tokens import BundledTokenCounter
from benchmarks.figures import Figure, report
from benchmarks.history import Client
from benchmarks.stage import SHARED_DATA, service, stage

SETS = tuple(SHARED_DATA / name for name in ("flows-dev", "real-trees-dev", "records-dev"))
STAGES = {"before": "reports", "after": "after"}
BLOCKS, BUDGET = 3, 500
RIGHT, EVIDENCE, FIRST = "right (no fault)", "needed evidence given", "first block right"
SILENT, TRUE = "silent where nothing applies", "says nothing untrue or outdated"
STILL, HOLDING = "right before, still right after later files", "blocks that hold needed evidence"
ANSWERED = "rows with evidence right"
TARGETS = {
    "flows-dev": {RIGHT: 0.90, EVIDENCE: 0.92, SILENT: 0.94, STILL: 0.95, HOLDING: 0.65, TRUE: 0.98},
    "real-trees-dev": {RIGHT: 0.70, FIRST: 0.75, SILENT: 0.80, HOLDING: 0.50, ANSWERED: 0.667},
    "records-dev": {ANSWERED: 0.73, SILENT: 0.83, HOLDING: 0.50},
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


class Asked(NamedTuple):
    """One question with its answer."""

    tree: str
    row: Mapping[str, Any]
    markdown: str
    again: bool = False
    """True if it is a question of the first stage, asked again after the later files."""


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


def holding(row: Mapping[str, Any], markdown: str) -> list[bool]:
    """Returns, for each block, whether it holds a phrase that the question needs."""
    phrases = [plain(phrase) for group in row.get("needs") or () for phrase in group]
    return [any(phrase in plain(block) for phrase in phrases) for block in blocks_of(markdown)]


def beside_passages(markdown: str, counter: TokenCounter) -> float:
    """Returns the share of the budget that the frame, fences, source lines and headings of a section take."""
    said = [
        line for block in blocks_of(markdown) for line in block.splitlines()[1:] if not line.startswith(("› ", "…"))
    ]
    return (counter.count(markdown) - counter.count("\n".join(said))) / BUDGET


def rows_of(tree: Path) -> list[Mapping[str, Any]]:
    """Returns the questions of a tree."""
    return [json.loads(line) for line in (tree / "questions.jsonl").read_text().splitlines() if line.strip()]


def store_files(trees: Sequence[Path], moment: str, address: str) -> None:
    """Stores the files of one stage of each tree, in a workspace of its own."""
    for tree in trees:
        store(files_of(tree, moment), tree.name, address)
    settle(address)


def files_of(tree: Path, moment: str) -> list[tuple[str, str]]:
    """Returns the paths and the texts of the files of one stage of a tree."""
    folder = tree / STAGES[moment]
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return [(str(file.relative_to(folder)), file.read_text(errors="replace")) for file in files]


def store(files: Sequence[tuple[str, str]], name: str, address: str) -> None:
    """Stores files in the workspace of a tree."""
    client = Client(address, f"flows-{name}")
    for path, content in files:
        client.post("/api/reports", json.dumps({"path": path, "content": content}).encode())
    client.close()


def settle(address: str) -> None:
    """Waits until vectors, links and cases are made."""
    for _ in range(3_600):
        with urllib.request.urlopen(f"{address}/ready") as answer:  # noqa: S310 - the benchmark's own server
            state = json.load(answer)
        if not state["waiting"] and not state["pending_links"]:
            break
        time.sleep(0.5)
    # A worker counts the words and matches the issues a moment after the last vector.
    time.sleep(3)


def ask(trees: Sequence[Path], moment: str, address: str, right: set[tuple[str, str]]) -> Iterator[Asked]:
    """Yields the questions of one stage with their answers; after the last stage those of before that were `right`.

    Adds the questions of the first stage that are answered rightly to `right`.
    """
    for tree in trees:
        client = Client(address, f"flows-{tree.name}")
        for row in rows_of(tree):
            again = moment == "after" and (tree.name, row["query"]) in right
            if row.get("stage", "before") != moment and not again:
                continue
            markdown = history_of(row, client)
            lasts = moment == "before" and not row.get("empty") and not row.get("changes")
            if lasts and judged(row, markdown).is_right(row):
                right.add((tree.name, row["query"]))
            yield Asked(tree.name, row, markdown, again)
        client.close()


def history_of(row: Mapping[str, Any], client: Client) -> str:
    """Returns the history that answers a question."""
    body = {"query": row["query"], "k": BLOCKS, "budget_tokens": BUDGET}
    body |= {"agent": row["agent"]} if row.get("agent") else {}
    return str(json.loads(client.post("/api/history", json.dumps(body).encode()))["markdown"])


def figures_of(name: str, answers: Sequence[Asked], counter: TokenCounter) -> list[Figure]:
    """Returns the figures of answered questions of one set, each the mean of those that it is of."""
    found: dict[str, list[float]] = defaultdict(list)
    for tree, row, markdown, again in answers:
        answer = judged(row, markdown)
        right = answer.is_right(row)
        if again:
            found[STILL].append(right)
            continue
        for group in (RIGHT, f"right, {row['style']}", f"right, {row.get('agent') or 'no agent'}", f"right, {tree}"):
            found[group].append(right)
        if row.get("empty"):
            found[SILENT].append(answer.is_empty)
        else:
            found[ANSWERED].append(right)
            found[EVIDENCE].append(answer.held)
            found[TRUE].append(not answer.untrue)
            found[HOLDING] += holding(row, markdown)
        if row.get("first"):
            found[FIRST].append(answer.first)
        if not answer.is_empty:
            found[FRAME_SHARE].append(beside_passages(markdown, counter))
    least = TARGETS.get(name, {})
    return [
        Figure(
            name=f"{group}, of {len(values)}",
            value=statistics.mean(values),
            at_least=least.get(group),
            at_most=0.15 if group == FRAME_SHARE else None,
        )
        for group, values in sorted(found.items())
        if values
    ]


async def measure(trees: Sequence[Path], kept: Path | None = None) -> list[Asked]:
    """Returns the questions of the trees with their answers.

    `kept` is a folder that has a store of each stage, or gets them, so that they are filled once.
    """
    answers: list[Asked] = []
    right: set[tuple[str, str]] = set()
    with nullcontext(kept) if kept else tempfile.TemporaryDirectory(prefix="priors-flows-") as folder:
        for moment in STAGES:
            store = Path(folder) / moment if kept else Path(folder)
            is_filled = kept is not None and store.exists()
            if kept and not is_filled:
                _copy_earlier(store)
            async with stage(store) as services:
                with service(services.settings) as (address, _):
                    if not is_filled:
                        await asyncio.to_thread(store_files, trees, moment, address)
                    answers += await asyncio.to_thread(_asked, trees, moment, address, right)
    return answers


def _copy_earlier(store: Path) -> None:
    """Makes the store of a stage from that of the stage before it."""
    earlier = store.parent / next(iter(STAGES))
    if earlier.exists():
        shutil.copytree(earlier, store, symlinks=True)
    store.mkdir(parents=True, exist_ok=True)


def _asked(trees: Sequence[Path], moment: str, address: str, right: set[tuple[str, str]]) -> list[Asked]:
    return list(ask(trees, moment, address, right))


def show_failed(answers: Sequence[Asked]) -> None:
    """Prints the answers that have a fault."""
    for tree, row, markdown, again in answers:
        answer = judged(row, markdown)
        if not answer.is_right(row):
            name = f"{tree} {row.get('id', '')}{' again' if again else ''} [{row.get('agent')}]"
            print(f"\n=== {name} {row['query']}\n{answer}")
            print(f"needs {row.get('needs')} first {row.get('first')} never {row.get('never')}\n{markdown}")


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measures and reports; returns nothing where the data is absent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, nargs="*", default=SETS, help="folders of trees with questions.jsonl")
    parser.add_argument("--kept", type=Path, help="a folder that has the stores, or gets them")
    parser.add_argument("--failed", action="store_true", help="print the answers that have a fault")
    given = parser.parse_args(arguments)
    trees = {folder: sorted(file.parent for file in folder.glob("*/questions.jsonl")) for folder in given.data}
    if not any(trees.values()):
        print(f"there are no report trees in {given.data}: the histories are not measured", file=sys.stderr)
        return []
    answers = asyncio.run(measure([tree for found in trees.values() for tree in found], given.kept))
    if given.failed:
        show_failed(answers)
    figures: list[Figure] = []
    for folder, found in trees.items():
        names = {tree.name for tree in found}
        part = figures_of(folder.name, [asked for asked in answers if asked.tree in names], BundledTokenCounter())
        report(folder.name, part)
        figures += part
    return figures


if __name__ == "__main__":
    main()
