"""Measures how often a question about something else gets an answer, beside the recall of each store's questions."""

import argparse
import asyncio
import random
import statistics
import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from app.wiring import Services
from benchmarks.ablation import WORKS, Question, Work, hits_of, stored, works
from benchmarks.figures import Figure, report
from benchmarks.locomo import recall_at
from benchmarks.stage import stage, workspace_of

ASKED = 200
"""Questions about something else for each store."""
DEPTHS = (5, 10)
ELSEWHERE: Mapping[str, Sequence[str]] = {
    "conversations": ("paragraphs", "duplicates"),
    "chats": ("paragraphs", "duplicates"),
    "paragraphs": ("conversations", "duplicates"),
    "reports": ("conversations", "paragraphs"),
    "duplicates": ("conversations", "paragraphs"),
}
"""The sets whose questions have nothing to do with a set. Conversations and chats ask about the same things of life."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The answers of the stores of one set."""

    hits: list[int] = field(default_factory=list)
    """Number of hits of each question about something else."""
    recalls: list[dict[int, float]] = field(default_factory=list)
    """Recall of each question about what is stored, by depth."""
    empty: list[bool] = field(default_factory=list)
    """True for each of these that has no hit."""


def set_of(work: Work) -> str:
    """Returns the set of a store, by the columns of its questions."""
    return next(name for name in WORKS if work.questions[0].groups[0].startswith(name))


def questions_elsewhere(given: Sequence[Work], work: Work, most: int) -> list[str]:
    """Returns questions of the other sets for a store, evenly of each and always the same."""
    order = random.Random(work.workspace)
    found = []
    for name in ELSEWHERE[set_of(work)]:
        texts = [
            item.text for other in given if set_of(other) == name for item in other.questions if item.groups[0] == name
        ]
        found += order.sample(texts, min(most // 2, len(texts)))
    return found


async def measure(given: Sequence[Work], wanted: Container[str], most: int) -> list[Figure]:
    """Asks each wanted store questions of other sets, and its own."""
    found: dict[str, Answers] = {}
    async with stage() as services:
        for work in given:
            if set_of(work) in wanted:
                await _ask(
                    services, work, questions_elsewhere(given, work, most), found.setdefault(set_of(work), Answers())
                )
    return list(_figures(found))


async def _ask(services: Services, work: Work, elsewhere: Sequence[str], answers: Answers) -> None:
    workspace = await workspace_of(services, work.workspace)
    names = await stored(services, workspace, work)
    for text in elsewhere:
        question = Question(text=text, evidence=frozenset(), groups=())
        answers.hits.append(len(await hits_of(services, workspace, question)))
    for question in work.questions:
        hits = [names[hit] for hit in await hits_of(services, workspace, question)]
        found = [name for name in hits if name != question.exclude]
        answers.recalls.append(recall_at(DEPTHS, question.evidence, found))
        answers.empty.append(not hits)


def _figures(found: Mapping[str, Answers]) -> Iterator[Figure]:
    for name, answers in found.items():
        answered = statistics.mean(number > 0 for number in answers.hits)
        yield Figure(name=f"{name}: answers to {len(answers.hits)} questions about something else", value=answered)
        yield Figure(name=f"{name}: hits of such a question", value=statistics.mean(answers.hits))
        yield Figure(name=f"{name}: own questions without an answer", value=statistics.mean(answers.empty))
        for depth in DEPTHS:
            recall = statistics.mean(item[depth] for item in answers.recalls)
            yield Figure(name=f"{name}: recall@{depth} of {len(answers.recalls)} questions", value=recall)


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measures and reports; returns nothing where the data is absent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--asked", type=int, default=ASKED, help="questions about something else, for each store")
    parser.add_argument("--questions", type=int, help="of each store's own, only so many")
    parser.add_argument("--work", action="append", choices=WORKS, help="only these sets; can be given again")
    given = parser.parse_args(arguments)
    found = list(works(WORKS, None, given.questions))
    if not found:
        print("there is no evaluation data; it is left out", file=sys.stderr)
        return []
    figures = asyncio.run(measure(found, given.work or WORKS, given.asked))
    report("abstention", figures)
    return figures


if __name__ == "__main__":
    main()
