"""Evidence recall on LoCoMo conversations through the public HTTP API: messages as memories, one source a session."""

import argparse
import asyncio
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from app.storage.links.service import Links
from benchmarks.figures import Figure, report
from benchmarks.stage import SHARED_DATA, service, stage

CONVERSATIONS = SHARED_DATA / "locomo-dev"
DATE = "%I:%M %p on %d %B, %Y"
DEPTHS = (5, 10, 20)
TARGETS = {("all", 5): 0.70, ("all", 10): 0.80}
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}


def messages(conversation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each message's name in the evidence, and the memory that it becomes."""
    for session in conversation["sessions"]:
        source = {"kind": "session", "uri": f"session-{session['session']}"}
        moment = datetime.strptime(session["date_time"], DATE).isoformat()  # noqa: DTZ007 - the data names no zone
        for ordinal, message in enumerate(session["messages"]):
            caption = f" [{message['image_caption']}]" if message.get("image_caption") else ""
            yield (
                message["id"],
                {
                    "kind": "message",
                    "title": message["speaker"],
                    "body": message["text"] + caption,
                    "source": source,
                    "ordinal": ordinal,
                    "occurred_at": moment,
                },
            )


async def store(client: httpx.AsyncClient, conversation: dict[str, Any]) -> dict[str, str]:
    """Store a conversation; the evidence's name by memory id."""
    named = list(messages(conversation))
    lines = "\n".join(json.dumps(memory) for _, memory in named)
    answer = await client.post("/api/memories:bulk?wait=true", content=lines.encode())
    answer.raise_for_status()
    stored = answer.json()
    if stored["rejected"]:
        raise RuntimeError(stored["rejected"])
    return {identity: name for identity, (name, _) in zip(stored["ids"], named, strict=True)}


async def ask(
    client: httpx.AsyncClient, conversation: dict[str, Any], names: dict[str, str], questions: int | None
) -> list[tuple[int, dict[int, float]]]:
    """Category and recall at each depth of each question that has evidence."""
    known = set(names.values())
    found = []
    for question in conversation["questions"][:questions]:
        evidence = set(question["evidence"]) & known
        if not evidence:
            continue
        answer = await client.post("/api/search", json={"query": question["question"], "k": max(DEPTHS)})
        answer.raise_for_status()
        hits = [names[hit["id"]] for hit in answer.json()["hits"]]
        found.append((question["category"], recall_at(DEPTHS, evidence, hits)))
    return found


def recall_at(depths: Sequence[int], evidence: Collection[str], hits: Sequence[str]) -> dict[int, float]:
    """The share of the evidence among the first hits, at each depth."""
    return {depth: len(set(evidence) & set(hits[:depth])) / len(evidence) for depth in depths}


async def measure(files: Sequence[Path], questions: int | None) -> list[Figure]:
    """Recall over these conversations, each in a workspace of its own."""
    results: list[tuple[int, dict[int, float]]] = []
    async with stage() as services:
        with service(services.settings) as (address, _):
            for file in files:
                conversation = json.loads(file.read_text())
                headers = {"X-Workspace": file.stem}
                async with httpx.AsyncClient(base_url=address, headers=headers, timeout=600) as client:
                    names = await store(client, conversation)
                    # What the service's worker does within seconds, done at once: words are counted, links are found.
                    await services.statistics.refresh_all(services.database.across)
                    await Links(database=services.database).link_pending(services.database.across)
                    results += await ask(client, conversation, names, questions)
    return [*_figures("all", results), *_by_category(results)]


def _figures(name: str, results: Sequence[tuple[int, dict[int, float]]]) -> list[Figure]:
    return [
        Figure(
            name=f"{name}: recall@{depth} of {len(results)} questions",
            value=statistics.mean(recall[depth] for _, recall in results),
            at_least=TARGETS.get((name, depth)),
        )
        for depth in DEPTHS
    ]


def _by_category(results: Sequence[tuple[int, dict[int, float]]]) -> list[Figure]:
    groups: dict[str, list[tuple[int, dict[int, float]]]] = defaultdict(list)
    for category, recall in results:
        groups[CATEGORIES[category]].append((category, recall))
    return [figure for name in sorted(groups) for figure in _figures(name, groups[name])]


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measure and report; nothing where the data is absent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conversations", type=int, help="only so many")
    parser.add_argument("--questions", type=int, help="of each, only so many")
    given = parser.parse_args(arguments)
    files = sorted(CONVERSATIONS.glob("*.json"))[: given.conversations]
    if not files:
        print(f"LoCoMo is not at {CONVERSATIONS}; it is left out", file=sys.stderr)
        return []
    figures = asyncio.run(measure(files, given.questions))
    report("locomo", figures)
    return figures


if __name__ == "__main__":
    main()
