"""Evidence recall on HotpotQA questions through the public HTTP API: paragraphs as memories, two of them an answer."""

import argparse
import asyncio
import json
import statistics
import sys
from collections.abc import Sequence
from typing import Any

import httpx

from app.storage.links.service import Links
from benchmarks.figures import Figure, report
from benchmarks.locomo import recall_at
from benchmarks.stage import SHARED_DATA, service, stage

QUESTIONS = SHARED_DATA / "multihop-dev" / "hotpotqa-100.json"
DEPTHS = (2, 5, 10, 20)


async def store(client: httpx.AsyncClient, documents: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Store the paragraphs; titles by memory id."""
    lines = "\n".join(
        json.dumps({"kind": "note", "title": document["title"], "body": document["text"]}) for document in documents
    )
    answer = await client.post("/api/memories:bulk?wait=true", content=lines.encode())
    answer.raise_for_status()
    stored = answer.json()
    if stored["rejected"]:
        raise RuntimeError(stored["rejected"])
    return {identity: item["title"] for identity, item in zip(stored["ids"], documents, strict=True)}


async def ask(
    client: httpx.AsyncClient, questions: Sequence[dict[str, Any]], titles: dict[str, str]
) -> list[dict[int, float]]:
    """Recall at each depth of each question."""
    found = []
    for question in questions:
        answer = await client.post("/api/search", json={"query": question["question"], "k": max(DEPTHS)})
        answer.raise_for_status()
        hits = [titles[hit["id"]] for hit in answer.json()["hits"]]
        found.append(recall_at(DEPTHS, question["evidence"], hits))
    return found


async def measure(data: dict[str, Any], documents: int | None, questions: int | None) -> list[Figure]:
    """Recall over the questions, all of them and every other one."""
    async with stage() as services:
        with service(services.settings) as (address, _):
            async with httpx.AsyncClient(base_url=address, timeout=600) as client:
                titles = await store(client, data["documents"][:documents])
                # What the service's worker does within seconds, done at once: words are counted, links are found.
                await services.statistics.refresh_all(services.database.across)
                await Links(database=services.database).link_pending(services.database.across)
                results = await ask(client, data["questions"][:questions], titles)
    halves = {"all": results, "first half": results[::2], "second half": results[1::2]}
    return [figure for name, part in halves.items() if part for figure in _figures(name, part)]


def _figures(name: str, results: Sequence[dict[int, float]]) -> list[Figure]:
    return [
        Figure(
            name=f"{name}: recall@{depth} of {len(results)} questions",
            value=statistics.mean(recall[depth] for recall in results),
            at_least=0.91 if (name, depth) == ("all", 5) else None,
        )
        for depth in DEPTHS
    ]


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measure and report; nothing where the data is absent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, help="only so many")
    parser.add_argument("--questions", type=int, help="only so many")
    given = parser.parse_args(arguments)
    if not QUESTIONS.is_file():
        print(f"HotpotQA is not at {QUESTIONS}; it is left out", file=sys.stderr)
        return []
    figures = asyncio.run(measure(json.loads(QUESTIONS.read_text()), given.documents, given.questions))
    report("multihop", figures)
    return figures


if __name__ == "__main__":
    main()
