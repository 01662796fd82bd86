"""Measures answers to questions why: how many hold what they should, and how many are given where nothing is known.

The questions are those of lessons-dev and ours (`why_questions.jsonl`): on its sessions, on those of cues-dev, and on
the decision records of this project, each with questions about things of the field that the project never had. Each
store is also asked the questions of the others.
"""

import asyncio
import json
import re
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from app.intake.sessions.transcript import ToolUse, Transcript, Turn
from app.recall.cues.why.why import Why
from app.storage.index.indexing import refresh_statistics
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from benchmarks.figures import Figure, report
from benchmarks.stage import SHARED_DATA, stage, workspace_of

HERE = Path(__file__).parent
RECORDS, NOWHERE = "decision records", "none"
SESSIONS = ("lessons-dev", "cues-dev")
HOLD = {"lessons-dev": 0.65, "cues-dev": 0.6, RECORDS: 0.6}
"""Least share of the answers that hold all that they should."""
EMPTY = 0.85
MARKUP = re.compile(r"[*`#>]")


class Question(NamedTuple):
    """A question with the groups of strings of which an answer holds one each; without groups nothing answers it."""

    text: str
    groups: Sequence[Sequence[str]]

    def is_held(self, answer: str) -> bool:
        """Tells if an answer holds a string of each group."""
        text = " ".join(MARKUP.sub("", answer.casefold()).split())
        return all(any(" ".join(one.casefold().split()) in text for one in group) for group in self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The answers of one store."""

    held: list[bool] = field(default_factory=list)
    near: list[bool] = field(default_factory=list)
    """True for each question about something that the project never had which gets no answer."""
    elsewhere: list[bool] = field(default_factory=list)
    """The same for the questions of other stores."""
    tokens: list[int] = field(default_factory=list)
    took: list[float] = field(default_factory=list)


def questions() -> Mapping[str, list[Question]]:
    """Returns the questions by store."""
    found: dict[str, list[Question]] = {name: [] for name in (*SESSIONS, RECORDS, NOWHERE)}
    for row in _rows(SHARED_DATA / "lessons-dev" / "questions.jsonl"):
        found["lessons-dev"].append(Question(row["question"], row["answer"]))
    for row in _rows(HERE / "why_questions.jsonl"):
        found[row["store"]].append(Question(row["question"], row["answer"]))
    return found


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


async def _filled(services: Services, store: str) -> Workspace:
    """Returns the workspace of a store with its sessions, or records, embedded."""
    workspace = await workspace_of(services, store.replace(" ", "-"))
    if store == RECORDS:
        await services.ingestions.ingest(workspace, [HERE.parent / "docs" / "adr"])
    else:
        for row in _rows(SHARED_DATA / store / "sessions.jsonl"):
            await services.session_intake.take_in(workspace, _transcript(row))
    await services.embedder.embed_pending(workspace)
    async with services.database.session(workspace) as session:
        await refresh_statistics(session)
    return workspace


def _transcript(row: Mapping[str, Any]) -> Transcript:
    turns = tuple(
        Turn(ordinal=ordinal, role=turn["role"], text=turn["text"], tools=tuple(map(_tool, turn.get("tools") or ())))
        for ordinal, turn in enumerate(turn for turn in row["messages"] if turn["text"].strip())
    )
    started_at = datetime.fromisoformat(row["started_at"])
    return Transcript(session_id=row.get("id") or row["session"], started_at=started_at, format="plain", turns=turns)


def _tool(given: Mapping[str, Any]) -> ToolUse:
    used = given.get("input")
    return ToolUse(
        name=given["name"],
        input=used if isinstance(used, dict) else {"input": str(used)},
        result=str(given.get("output") or ""),
    )


async def measure() -> list[Figure]:
    """Asks each store its own questions, and those of the others."""
    asked, found = questions(), dict[str, Answers]()
    async with stage() as services:
        for store in (*SESSIONS, RECORDS):
            workspace, answers = await _filled(services, store), found.setdefault(store, Answers())
            for owner, own in asked.items():
                for question in own:
                    started = time.perf_counter()
                    answer = await services.reasons.ask(workspace, subject=question.text)
                    answers.took.append(1_000 * (time.perf_counter() - started))
                    _note(answers, question, answer, is_own=owner == store)
                    answers.tokens.append(services.counter.count(answer.markdown))
    return list(_figures(found))


def _note(answers: Answers, question: Question, answer: Why, *, is_own: bool) -> None:
    if is_own and question.groups:
        answers.held.append(answer.known and question.is_held(answer.markdown))
    else:
        (answers.near if is_own else answers.elsewhere).append(not answer.known)


def _figures(found: Mapping[str, Answers]) -> Iterator[Figure]:
    for store, answers in found.items():
        yield Figure(name=f"{store}: answers that hold all", value=statistics.fmean(answers.held), at_least=HOLD[store])
        yield Figure(name="… about what it never had, left empty", value=statistics.fmean(answers.near))
        yield Figure(name="… of others, left empty", value=statistics.fmean(answers.elsewhere), at_least=EMPTY)
        yield Figure(name="… tokens, most", value=max(answers.tokens))
        yield Figure(name="… p50", value=statistics.median(answers.took), unit="ms")


def main(_arguments: Sequence[str] | None = None) -> None:
    """Prints the figures and writes them."""
    report("why", asyncio.run(measure()))


if __name__ == "__main__":
    main()
