"""Recall on every development set beside its target, through the public HTTP API, with one set of defaults for all."""

import asyncio
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
import msgspec

from app.storage.links.service import Links
from app.storage.memories.gate import INJECTION
from app.storage.memories.memory import NewMemory
from app.wiring import Services
from benchmarks.ablation import DEPTHS, SHOWN, Recalls, Work, asked_for
from benchmarks.figures import Figure, report
from benchmarks.locomo import recall_at
from benchmarks.stage import service, stage

TARGETS: Mapping[tuple[str, int], float] = {
    ("conversations", 5): 0.75,
    ("conversations", 10): 0.83,
    ("chats", 5): 0.54,
    ("chats", 10): 0.61,
    ("duplicates", 5): 0.44,
    ("paragraphs", 5): 0.93,
    ("reports, paraphrased", 5): 0.80,
}
"""Least recall, by set and depth. It is wanted of development sets; other halves of the sets decide."""
FIELDS = ("kind", "title", "body", "source", "ordinal", "occurred_at")
SECONDS = 1_800
"""Longest wait for an answer: a call that stores long reports returns when they are embedded."""


async def measure(given: Sequence[Work]) -> list[Figure]:
    """Stores each set in workspaces of its own, and asks its questions."""
    found: Recalls = defaultdict(list)
    async with stage() as services:
        with service(services.settings) as (address, _):
            for work in given:
                headers = {"X-Workspace": work.workspace}
                async with httpx.AsyncClient(base_url=address, headers=headers, timeout=SECONDS) as client:
                    await _ask(client, work, await _stored(client, services, work), found)
    return [
        Figure(
            name=f"{SHOWN[group, 5].removesuffix(' @5')}: recall@{depth} of {len(found[group, depth])} questions",
            value=statistics.mean(recalls),
            at_least=TARGETS.get((group, depth)),
        )
        for (group, depth), recalls in found.items()
        if (group, 5) in SHOWN
    ]


async def _stored(client: httpx.AsyncClient, services: Services, work: Work) -> dict[str, str]:
    """Stores the memories of a set; returns their names by id."""
    lines = b"\n".join(msgspec.json.encode(_fields(memory)) for _, memory in work.memories)
    answer = await client.post("/api/memories:bulk?wait=true", content=lines)
    answer.raise_for_status()
    stored = answer.json()
    if any(item["code"] != INJECTION for item in stored["rejected"]):
        raise RuntimeError(stored["rejected"])
    # What the service's worker does within seconds, done at once: words are counted, links are found.
    await services.statistics.refresh_all(services.database.across)
    await Links(database=services.database).link_pending(services.database.across)
    return {identity: name for identity, (name, _) in zip(stored["ids"], work.memories, strict=True) if identity}


def _fields(memory: NewMemory) -> dict[str, Any]:
    return {name: value for name in FIELDS if (value := getattr(memory, name)) is not None}


async def _ask(client: httpx.AsyncClient, work: Work, names: Mapping[str, str], found: Recalls) -> None:
    for question in work.questions:
        asked = {"query": question.text, "k": max(DEPTHS)} | ({"now": question.now.isoformat()} if question.now else {})
        answer = await client.post("/api/search", json=asked)
        answer.raise_for_status()
        hits = [name for hit in answer.json()["hits"] if (name := names[hit["id"]]) != question.exclude]
        for depth, recall in recall_at(DEPTHS, question.evidence, hits).items():
            for group in question.groups:
                found[group, depth].append(recall)


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measures and reports; returns nothing where the data is absent."""
    if not (found := asked_for(arguments, __doc__)):
        return []
    figures = asyncio.run(measure(found))
    report("targets", figures)
    return figures


if __name__ == "__main__":
    main()
