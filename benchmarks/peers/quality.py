"""What a system finds: evidence in conversations, paragraphs that answer together, report chunks asked for."""

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.locomo import CATEGORIES, CONVERSATIONS, messages, recall_at
from benchmarks.peers.known_items import chunks, questions
from benchmarks.peers.system import Memory, System
from benchmarks.stage import SHARED_DATA

PARAGRAPHS = SHARED_DATA / "multihop-dev" / "hotpotqa-100.json"
REPORTS = SHARED_DATA / "reports-scylla"
DEPTHS = (1, 5, 10, 20)
KNOWN_ITEMS = 200

Values = dict[str, float]


class Asking:
    """Asks a system, and keeps the recall of every question by its group."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._recalls: dict[str, list[dict[int, float]]] = defaultdict(list)

    def ask(self, query: str, evidence: set[str], groups: Sequence[str], workspace: str) -> None:
        """Ask one question."""
        hits = self._system.search(query, max(DEPTHS), workspace=workspace)
        for group in groups:
            self._recalls[group].append(recall_at(DEPTHS, evidence, hits))

    def values(self) -> Values:
        """The mean recall of each group at each depth."""
        found: Values = {}
        for group, recalls in self._recalls.items():
            found[f"{group}: questions"] = len(recalls)
            for depth in DEPTHS:
                found[f"{group} @{depth}"] = statistics.mean(recall[depth] for recall in recalls)
        return found


def conversations(system: System, given: argparse.Namespace) -> Values:
    """LoCoMo: messages as memories, a source a session, a workspace a conversation."""
    asking = Asking(system)
    for file in sorted(CONVERSATIONS.glob("*.json"))[: given.conversations]:
        conversation = json.loads(file.read_text())
        memories = [_message(name, memory) for name, memory in messages(conversation)]
        system.add(memories, workspace=file.stem)
        for question, evidence in _answerable(conversation, {memory.key for memory in memories}, given.questions):
            asking.ask(question["question"], evidence, ("all", CATEGORIES[question["category"]]), file.stem)
    return asking.values()


def paragraphs(system: System, given: argparse.Namespace) -> Values:
    """HotpotQA: the two paragraphs that are needed together."""
    data = json.loads(PARAGRAPHS.read_text())
    system.add([Memory(key=item["title"], title=item["title"], body=item["text"]) for item in data["documents"]])
    asking = Asking(system)
    for question in data["questions"][: given.questions]:
        asking.ask(question["question"], set(question["evidence"]), ("all",), "default")
    return asking.values()


def reports(system: System, given: argparse.Namespace) -> Values:
    """Known items, in the chunk's own words and in others."""
    memories = chunks(REPORTS)
    system.add(memories)
    asking = Asking(system)
    for question in questions(memories, given.questions or KNOWN_ITEMS):
        asking.ask(question.exact, {question.key}, ("word for word",), "default")
        asking.ask(question.paraphrased, {question.key}, ("paraphrased",), "default")
    return asking.values()


def _message(key: str, given: dict[str, Any]) -> Memory:
    return Memory(
        key=key,
        kind=given["kind"],
        title=given["title"],
        body=given["body"],
        source=given["source"]["uri"],
        ordinal=given["ordinal"],
        occurred_at=given["occurred_at"],
    )


def _answerable(
    conversation: dict[str, Any], known: set[str], most: int | None
) -> Iterator[tuple[dict[str, Any], set[str]]]:
    for question in conversation["questions"][:most]:
        if evidence := set(question["evidence"]) & known:
            yield question, evidence


def needed(work: str) -> Path | None:
    """The data that a work needs and that do not come with the project."""
    return {"locomo": CONVERSATIONS, "hotpotqa": PARAGRAPHS, "reports": REPORTS}.get(work)
