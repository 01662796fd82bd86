"""What each idea of the ranking brings: recall with the defaults, and with the defaults without it.

Conversations, chats of real people, paragraphs that answer together, report chunks and long reports of one issue are
asked through the verb; an idea is left out by a preset that is the default without it. `halves` are the conversations'
figures on either half of them: an idea that helps one half alone was tuned to it. `told` are those questions which name
a month or a day, asked as somebody asks who says `last month` or `yesterday` two weeks or a day later.
"""

import argparse
import asyncio
import json
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from rich.console import Console
from rich.table import Table

from app.foundation.text.dates import periods
from app.recall.retrieval.rank.features import Blend, TextFeatures
from app.recall.retrieval.rank.presets import DEFAULT, PRESETS, Preset
from app.recall.retrieval.recall import Query
from app.recall.retrieval.service import Retrieval
from app.storage.links.service import Links
from app.storage.memories.gate import INJECTION
from app.storage.memories.memory import NewMemory, SourceReference
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from benchmarks.figures import Figure, write
from benchmarks.locomo import CONVERSATIONS, messages, recall_at
from benchmarks.peers.known_items import chunks, questions
from benchmarks.peers.quality import KNOWN_ITEMS, PARAGRAPHS, REPORTS
from benchmarks.peers.system import Memory
from benchmarks.stage import SHARED_DATA, stage, workspace_of

WORKS = ("conversations", "chats", "paragraphs", "reports", "duplicates")
CHATS, DUPLICATES = SHARED_DATA / "realtalk-dev", SHARED_DATA / "duplicates-dev"
DEPTHS = (5, 10, 20)
SHOWN = {
    ("conversations", 5): "LoCoMo @5", ("conversations", 10): "@10", ("conversations", 20): "@20",
    ("first half", 5): "first @5", ("first half", 10): "@10", ("second half", 5): "second @5",
    ("second half", 10): "@10", ("told", 5): "told @5", ("told", 10): "@10", ("paragraphs", 5): "HotpotQA @5",
    ("reports, exact", 5): "reports @5", ("reports, paraphrased", 5): "reworded @5",
    ("chats", 5): "REALTALK @5", ("chats", 10): "@10", ("duplicates", 5): "duplicates @5", ("duplicates", 10): "@10",
}  # fmt: skip
"""The columns, as the table calls them."""
FIRST_HALF = 3
"""Conversations; they have 383 of the 760 questions."""
ON_A_DAY = re.compile(r"\bon (?:(?:\d{1,2}(?:th|st)? [A-Z][a-z]+)|(?:[A-Z][a-z]+ \d{1,2})),? ?20\d\d")
IN_A_MONTH = re.compile(r"\b[iI]n ([A-Z][a-z]+),? 20\d\d")
LONG_AGO = datetime(2030, 1, 1, tzinfo=UTC)


def ideas() -> dict[str, Preset]:
    """The defaults without one idea each, by the idea."""
    blend, features = Blend(), TextFeatures()
    without = {
        "words beside meaning": replace(DEFAULT, blend=replace(blend, lexical=0.0, source_lexical=0.0)),
        "meaning beside words": replace(DEFAULT, blend=replace(blend, lexical=1.0, source_vector=0.0)),
        "neighbours": replace(DEFAULT, blend=replace(blend, next=0.0, second=0.0)),
        "source": replace(DEFAULT, blend=replace(blend, source_lexical=0.0, source_vector=0.0)),
        "repeated": replace(DEFAULT, blend=replace(blend, repeated=0.0)),
        "named": replace(DEFAULT, blend=replace(blend, named=0.0)),
        "dated": replace(DEFAULT, blend=replace(blend, dated=0.0)),
        "links": replace(DEFAULT, blend=replace(blend, links={})),
        "phrases": replace(DEFAULT, text_features=replace(features, phrases=0.0)),
        "time": replace(DEFAULT, text_features=replace(features, time=0.0)),
        "own": replace(DEFAULT, text_features=replace(features, own=0.0)),
        "turn": replace(DEFAULT, text_features=replace(features, asks=0.0, answers=0.0)),
        "short": replace(DEFAULT, text_features=replace(features, short=0.0)),
        "all that is read of texts": replace(DEFAULT, text_features=None),
    }
    return {idea: replace(preset, name=f"without {idea}") for idea, preset in without.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, when, and the names of what must come back."""

    text: str
    evidence: frozenset[str]
    groups: tuple[str, ...]
    """The columns that it counts in."""
    now: datetime | None = None
    exclude: str | None = None
    """The name of the memory that the question was made from, which is no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Memories of one workspace, and what is asked of them."""

    workspace: str
    memories: Sequence[tuple[str, NewMemory]]
    """Each with its name in the evidence."""
    questions: Sequence[Question]


def works(wanted: Sequence[str], most_conversations: int | None, most_questions: int | None) -> Iterator[Work]:
    """Those for which there is data."""
    files = sorted(CONVERSATIONS.glob("*.json"))[:most_conversations] if "conversations" in wanted else []
    for number, file in enumerate(files):
        half = "first half" if number < FIRST_HALF else "second half"
        yield _conversation(file, half, most_questions)
    if "paragraphs" in wanted and PARAGRAPHS.exists():
        yield _paragraphs(most_questions)
    if "reports" in wanted and REPORTS.is_dir():
        yield _reports(most_questions)
    if "chats" in wanted:
        yield from _of_folder(CHATS, "chats", _turn, most_questions)
    if "duplicates" in wanted:
        yield from _of_folder(DUPLICATES, "duplicates", _note, most_questions)


def _conversation(file: Path, half: str, most: int | None) -> Work:
    conversation = json.loads(file.read_text())
    stored = [(name, _message(memory)) for name, memory in messages(conversation)]
    known = {name for name, _ in stored}
    asked = [
        Question(text=item["question"], evidence=evidence, groups=("conversations", half))
        for item in conversation["questions"][:most]
        if (evidence := frozenset(item["evidence"]) & known)
    ]
    return Work(workspace=file.stem, memories=stored, questions=[*asked, *filter(None, map(told, asked))])


def told(question: Question) -> Question | None:
    """The same, asked a day after the day, or two weeks after the month, that it names; None where it names none."""
    named = periods(question.text, LONG_AGO)
    for pattern, words, later in (
        (ON_A_DAY, "yesterday", timedelta(0)),
        (IN_A_MONTH, "last month", timedelta(days=14)),
    ):
        if len(named) == 1 and pattern.search(question.text):
            return Question(
                text=pattern.sub(words, question.text, count=1),
                evidence=question.evidence,
                groups=("told",),
                now=named[0].until + later + timedelta(hours=12),
            )
    return None


def _message(given: dict[str, Any]) -> NewMemory:
    return NewMemory(
        kind=given["kind"],
        title=given["title"],
        body=given["body"],
        source=SourceReference(**given["source"]),
        ordinal=given["ordinal"],
        occurred_at=datetime.fromisoformat(given["occurred_at"]),
    )


def _of_folder(
    folder: Path, group: str, memory_of: Callable[[dict[str, Any]], NewMemory], most: int | None
) -> Iterator[Work]:
    """Yields the stores of a folder with `corpus.jsonl` and `queries.jsonl`; none if it is absent."""
    stores: dict[str, list[tuple[str, NewMemory]]] = defaultdict(list)
    for row in _rows(folder / "corpus.jsonl"):
        stores[row["corpus"]].append((row["id"], memory_of(row)))
    asked: dict[str, list[Question]] = defaultdict(list)
    for row in _rows(folder / "queries.jsonl"):
        known = {name for name, _ in stores[row["corpus"]]}
        if evidence := frozenset(row["gold"]) & known:
            question = Question(text=row["text"], evidence=evidence, groups=(group,), exclude=row.get("exclude"))
            asked[row["corpus"]].append(question)
    for name, memories in stores.items():
        yield Work(workspace=f"{group}-{name}".lower(), memories=memories, questions=asked[name][:most])


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if path.is_file():
        with path.open() as file:
            yield from map(json.loads, file)


def _note(row: dict[str, Any]) -> NewMemory:
    return NewMemory(kind="note", body=row["text"])


def _turn(row: dict[str, Any]) -> NewMemory:
    return NewMemory(
        kind="message",
        title=row["title"],
        body=row["text"],
        source=SourceReference(kind="session", uri=f"session-{row['session']}"),
        ordinal=row["ordinal"],
        occurred_at=datetime.fromisoformat(row["at"]),
    )


def _paragraphs(most: int | None) -> Work:
    data = json.loads(PARAGRAPHS.read_text())
    return Work(
        workspace="paragraphs",
        memories=[
            (item["title"], NewMemory(kind="note", title=item["title"], body=item["text"]))
            for item in data["documents"]
        ],
        questions=[
            Question(text=item["question"], evidence=frozenset(item["evidence"]), groups=("paragraphs",))
            for item in data["questions"][:most]
        ],
    )


def _reports(most: int | None) -> Work:
    made = chunks(REPORTS)
    asked = [
        Question(text=text, evidence=frozenset({item.key}), groups=(f"reports, {how}",))
        for item in questions(made, most or KNOWN_ITEMS)
        for how, text in (("exact", item.exact), ("paraphrased", item.paraphrased))
    ]
    return Work(workspace="reports", memories=[(chunk.key, _chunk(chunk)) for chunk in made], questions=asked)


def _chunk(given: Memory) -> NewMemory:
    source = SourceReference(kind="report", uri=given.source)
    return NewMemory(kind="chunk", title=given.title, body=given.body, source=source, ordinal=given.ordinal)


Recalls = dict[tuple[str, int], list[float]]
"""The recall of each question, by column and depth."""


async def measure(given: Sequence[Work]) -> dict[str, Recalls]:
    """The recalls with the defaults and without each idea."""
    presets = {"": DEFAULT, **ideas()}
    found: dict[str, Recalls] = {idea: defaultdict(list) for idea in presets}
    with known_presets(presets.values()):
        async with stage() as services:
            for work in given:
                workspace = await workspace_of(services, work.workspace)
                names = await stored(services, workspace, work)
                for question in work.questions:
                    for idea, preset in presets.items():
                        hits = await hits_of(services, workspace, question, preset.name)
                        found_names = [names[hit] for hit in hits if names[hit] != question.exclude]
                        for depth, recall in recall_at(DEPTHS, question.evidence, found_names).items():
                            for group in question.groups:
                                found[idea][group, depth].append(recall)
    return found


async def hits_of(
    services: Services, workspace: Workspace, question: Question, preset: str = DEFAULT.name
) -> list[UUID]:
    """Returns the memories that answer a question, best first."""
    query = Query(text=question.text, k=max(DEPTHS), preset=preset, now=question.now)
    finding = await Retrieval(database=services.database, provider=services.provider).find(workspace, query)
    return [hit.memory.memory_id for hit in finding.hits]


@contextmanager
def known_presets(presets: Iterable[Preset]) -> Iterator[None]:
    """A query can name these presets for as long as this is open."""
    added = {preset.name: preset for preset in presets if preset.name not in PRESETS}
    PRESETS.update(added)
    try:
        yield
    finally:
        for name in added:
            del PRESETS[name]


async def stored(services: Services, workspace: Workspace, work: Work) -> dict[UUID, str]:
    """Stores the memories, embeds and links them; returns their names. The scan refuses eight reports of attacks."""
    memories = [memory for _, memory in work.memories]
    result = await services.write_gate.remember(workspace, memories)
    if any(item.code != INJECTION for item in result.rejected):
        raise RuntimeError(result.rejected)
    await services.embedder.embed_pending(workspace)
    await services.statistics.refresh_all(services.database.across)
    await Links(database=services.database).link_pending(services.database.across)
    named = zip(result.ids, work.memories, strict=True)
    return {memory_id: name for memory_id, (name, _) in named if memory_id is not None}


def _table(found: dict[str, Recalls]) -> list[Figure]:
    """Prints the defaults' recall, and below it by how much each idea's absence changes it."""
    columns = [key for key in SHOWN if key in found[""]]
    table = Table("", *(SHOWN[key] for key in columns), title="recall, and its change without an idea")
    base = {key: statistics.mean(values) for key, values in found[""].items()}
    table.add_row("questions", *(str(len(found[""][key])) for key in columns))
    table.add_row("the defaults", *(f"{base[key]:.3f}" for key in columns))
    figures = [Figure(name=f"{group} @{depth}", value=value) for (group, depth), value in base.items()]
    for idea, recalls in found.items():
        if not idea:
            continue
        change = {key: statistics.mean(values) - base[key] for key, values in recalls.items()}
        table.add_row(f"without {idea}", *(f"{100 * change[key]:+.1f}" for key in columns))
        figures += [Figure(name=f"without {idea}: {group} @{depth}", value=v) for (group, depth), v in change.items()]
    Console(width=200).print(table)
    return figures


def asked_for(arguments: Sequence[str] | None, description: str | None) -> list[Work]:
    """Returns the works that a command's arguments select; none, with a message, where the data is absent."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--conversations", type=int, help="only so many")
    parser.add_argument("--questions", type=int, help="of each store, only so many")
    parser.add_argument("--work", action="append", choices=WORKS, help="only these sets; can be given again")
    given = parser.parse_args(arguments)
    found = list(works(given.work or WORKS, given.conversations, given.questions))
    if not found:
        print(f"no evaluation data below {CONVERSATIONS.parent}; it is left out", file=sys.stderr)
    return found


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measures and reports; returns nothing where the data is absent."""
    if not (found := asked_for(arguments, __doc__)):
        return []
    figures = _table(asyncio.run(measure(found)))
    write("ablation", figures)
    return figures


if __name__ == "__main__":
    main()
