"""Evidence recall on LongMemEval through the public HTTP API: `make bench-longmemeval FILE=longmemeval_s_cleaned.json`.

The file is one of those that https://github.com/xiaowu0162/LongMemEval publishes. Each question has a chat history of
its own, which becomes a workspace: a turn is a memory, and a session its source. No language model takes part.
Questions of abstention have no evidence, and are left out as the authors leave them out.
"""

import argparse
import asyncio
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from app.storage.links.service import Links
from benchmarks.figures import Figure, report
from benchmarks.stage import service, stage

DEPTHS = (5, 10)
DATE = "%Y/%m/%d (%a) %H:%M"
MOST_HITS = 200
"""Hits of a search at most: among them are the first ten sessions, unless one session has all of them."""
ABSTENTION = "_abs"
FIELDS = ("question_id", "question", "question_type", "haystack_session_ids", "haystack_dates", "haystack_sessions")
PEERS = (
    ("agentmemory, words and vectors (all-MiniLM-L6-v2)", "session", 5, 0.952, "rohitg00/agentmemory, LONGMEMEVAL.md"),
    ("agentmemory, words and vectors (all-MiniLM-L6-v2)", "session", 10, 0.986, "rohitg00/agentmemory, LONGMEMEVAL.md"),
    ("MemPalace, raw: ChromaDB with its default embedder", "session", 5, 0.966, "doobidoo/mcp-memory-service, README"),
    ("mcp-memory-service, sessions stored whole", "session", 5, 0.860, "doobidoo/mcp-memory-service, README"),
    ("mcp-memory-service, turns", "session", 5, 0.804, "doobidoo/mcp-memory-service, README"),
)
"""What peers publish of retrieval without a language model, and where: the share of questions of which any evidence
was among the first k. They took longmemeval_s; agentmemory counts all 500 questions, the others do not say."""


class Unreadable(Exception):
    """The file is none of LongMemEval's."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, what answers it, and what a search found, best first."""

    kind: str
    sessions: frozenset[str]
    turns: frozenset[tuple[str, int]]
    found: tuple[tuple[str, int], ...]

    @property
    def found_sessions(self) -> tuple[str, ...]:
        """The sessions of the hits, each at its best hit."""
        return tuple(dict.fromkeys(session for session, _ in self.found))


def read(file: Path, most: int | None = None) -> list[dict[str, Any]]:
    """Reads the questions that have evidence; `most` takes so many of them, evenly spread over the file.

    Raises:
        Unreadable: the file has another form.
    """
    try:
        instances = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise Unreadable(f"{file} cannot be read: {error}") from error
    if not isinstance(instances, list) or not all(isinstance(item, dict) for item in instances):
        raise Unreadable(f"{file} is no list of questions; take a file such as longmemeval_s_cleaned.json")
    for number, item in enumerate(instances):
        if lacking := [name for name in (*FIELDS, "answer_session_ids") if name not in item]:
            raise Unreadable(f"{file}: question {number} lacks {', '.join(lacking)}")
    kept = [item for item in instances if ABSTENTION not in item["question_id"]]
    if most is None or most >= len(kept):
        return kept
    return [kept[place * len(kept) // most] for place in range(most)]


def turns_of(instance: Mapping[str, Any]) -> Iterator[tuple[tuple[str, int], dict[str, Any]]]:
    """Yields each turn of a history that has words: its session and number, and the memory that it becomes."""
    sessions = zip(
        instance["haystack_session_ids"], instance["haystack_dates"], instance["haystack_sessions"], strict=True
    )
    for session, date, turns in sessions:
        moment = datetime.strptime(date, DATE).isoformat()  # noqa: DTZ007 - the data names no zone
        for ordinal, turn in enumerate(turns):
            if turn["content"].strip():
                memory = {
                    "kind": "message",
                    "title": turn["role"],
                    "body": turn["content"],
                    "source": {"kind": "session", "uri": session},
                    "ordinal": ordinal,
                    "occurred_at": moment,
                }
                yield (session, ordinal), memory


async def store(client: httpx.AsyncClient, instance: Mapping[str, Any]) -> dict[str, tuple[str, int]]:
    """Stores a history and returns the turn of each memory. A turn that the write gate refuses is found by nobody."""
    named = list(turns_of(instance))
    lines = "\n".join(json.dumps(memory) for _, memory in named)
    answer = await client.post("/api/memories:bulk?wait=true", content=lines.encode())
    answer.raise_for_status()
    ids = answer.json()["ids"]
    return {identity: name for identity, (name, _) in zip(ids, named, strict=True) if identity is not None}


async def ask(client: httpx.AsyncClient, instance: Mapping[str, Any], names: Mapping[str, tuple[str, int]]) -> Asked:
    """Asks a question as of its date."""
    moment = datetime.strptime(instance["question_date"], DATE).isoformat()  # noqa: DTZ007 - the data names no zone
    query = {"query": instance["question"], "k": MOST_HITS, "now": f"{moment}Z"}
    answer = await client.post("/api/search", json=query)
    answer.raise_for_status()
    evidence = {
        (session, ordinal)
        for session, turns in zip(instance["haystack_session_ids"], instance["haystack_sessions"], strict=True)
        for ordinal, turn in enumerate(turns)
        if turn.get("has_answer")
    }
    return Asked(
        kind=instance["question_type"],
        sessions=frozenset(instance["answer_session_ids"]),
        turns=frozenset(evidence),
        found=tuple(names[hit["id"]] for hit in answer.json()["hits"]),
    )


async def measure(instances: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """Measures recall over these questions, each with its history in a workspace of its own."""
    results = []
    async with stage() as services:
        with service(services.settings) as (address, _):
            for number, instance in enumerate(instances):
                headers = {"X-Workspace": f"question-{number}"}
                async with httpx.AsyncClient(base_url=address, headers=headers, timeout=3600) as client:
                    names = await store(client, instance)
                    # What the service's worker does within seconds, done at once: words are counted, links are found.
                    await services.statistics.refresh_all(services.database.across)
                    await Links(database=services.database).link_pending(services.database.across)
                    results.append(await ask(client, instance, names))
                print(f"\r{number + 1} of {len(instances)} questions", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return figures_of(results)


def figures_of(results: Sequence[Asked]) -> list[Figure]:
    """Returns the shares of questions of which any evidence, and all of it, was found: overall and by type."""
    kinds: dict[str, list[Asked]] = defaultdict(list)
    for asked in results:
        kinds[asked.kind].append(asked)
    groups = {"all": list(results), **dict(sorted(kinds.items()))}
    return [figure for name, group in groups.items() for figure in _figures(name, group)]


def _figures(name: str, group: Sequence[Asked]) -> Iterator[Figure]:
    with_turns = [asked for asked in group if asked.turns]
    for depth in DEPTHS:
        sessions = [_found(asked.sessions, asked.found_sessions, depth) for asked in group]
        yield from _shares(f"{name}: session", sessions, depth)
        turns = [_found(asked.turns, asked.found, depth) for asked in with_turns]
        yield from _shares(f"{name}: turn", turns, depth)


def _found(evidence: Collection[Any], hits: Sequence[Any], depth: int) -> tuple[bool, bool]:
    """Tells if any of the evidence is among the first hits, and if all of it is."""
    first = set(hits[:depth])
    return any(piece in first for piece in evidence), all(piece in first for piece in evidence)


def _shares(name: str, found: Sequence[tuple[bool, bool]], depth: int) -> Iterator[Figure]:
    if found:
        for place, word in enumerate(("any", "all")):
            share = statistics.mean(pair[place] for pair in found)
            yield Figure(name=f"{name} recall_{word}@{depth} of {len(found)}", value=share)


def show_peers() -> None:
    """Prints what peers publish, with the sources."""
    table = Table("published by peers", "by", "k", "any", "source", title="recall_any@k, no language model")
    for name, level, depth, share, source in PEERS:
        table.add_row(name, level, str(depth), f"{share:.3f}", source)
    Console(width=130).print(table)
    print(
        "mem0 (0.934, its README) and Hindsight (0.914, arXiv 2512.12818) publish shares of right answers, which a\n"
        "language model wrote and judged: these do not compare with what is found."
    )


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measures the given file and reports beside the figures of peers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="longmemeval_s_cleaned.json, longmemeval_oracle.json …")
    parser.add_argument("--questions", type=int, help="only so many, evenly spread over the file")
    given = parser.parse_args(arguments)
    try:
        instances = read(given.file, given.questions)
    except Unreadable as error:
        parser.error(str(error))
    figures = asyncio.run(measure(instances))
    report("longmemeval", figures)
    show_peers()
    return figures


if __name__ == "__main__":
    main()
