"""Runs that keep storing what they were given: the store must grow with what is new, not with the runs."""

import argparse
import asyncio
import random
from collections.abc import Callable, Sequence

from app.foundation.text.passages import FRAME, HEADING
from app.intake.runs.observations.observation import Outcome
from app.operations.status import Overview
from app.recall.retrieval.recall import Query
from app.storage.memories.memory import NewMemory
from app.storage.memories.service import Memories
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from benchmarks.figures import Figure, report
from benchmarks.stage import stage, workspace_of

NEW_EVERY = 20
"""Every so many runs one finds something new."""
CITIES = ("Kazan", "Perm", "Omsk", "Tver", "Sochi", "Ufa", "Samara", "Tomsk", "Kursk", "Pskov")


SHAPES: Sequence[Callable[[list[str]], str]] = (
    "\n\n".join,
    " ".join,
    lambda texts: "From memory I know:\n\n" + "\n".join(f"- {text}" for text in texts),
    lambda texts: "\n\n".join([HEADING, FRAME, *(f"```\n### A title\n\n{text}\n```" for text in texts)]),
)
"""Paragraphs, one paragraph, a list, and the section as it was given."""


def finding(number: int) -> str:
    """A new piece of knowledge, different from every other."""
    city, share = CITIES[number % len(CITIES)], 3 + number * 7 % 89
    return (
        f"In survey {number} the pharmacies of {city} sold {share} % of all food supplements, after {share + 11} % in"
        f" the year before. The register of {city} names {number * 13 + 5} producers; {number + 2} lost their licence."
    )


async def replay(services: Services, runs: int) -> tuple[int, int]:
    """Returns the memories in the store after that many runs, and how many of them found something new."""
    workspace = await workspace_of(services, "gate")
    chance = random.Random(7)
    new = 0
    for number in range(runs):
        run_id = f"run-{number}"
        given = await services.histories.get(
            workspace,
            Query(text=f"supplements in {chance.choice(CITIES)}", k=5, run_id=run_id, purpose="history"),
            budget_tokens=800,
        )
        told = [hit.body for hit in given.recall.hits]
        if number % NEW_EVERY == 0:
            told.append(finding(new))
            new += 1
        if told:
            await _store(services, workspace, number, run_id, told, chance)
    return len(await _stored(services, workspace)), new


async def _store(
    services: Services, workspace: Workspace, number: int, run_id: str, told: list[str], chance: random.Random
) -> None:
    """One run in two notes what it was given, the other writes it into its output, each a little edited."""
    edited = [text.replace("the year before", chance.choice(["the year before", "the previous year"])) for text in told]
    if number % 2:
        notes = [NewMemory(kind="note", body=text, run_id=run_id) for text in edited]
        await services.write_gate.remember(workspace, notes)
        return
    output = chance.choice(SHAPES)(edited)
    outcome = Outcome(task="Supplements in Russia", output=output, run_id=run_id)
    observation_id = await services.observations.request(workspace, outcome)
    await services.observations.make(workspace, observation_id)


async def _stored(services: Services, workspace: Workspace) -> list[str]:
    found: list[str] = []
    before = None
    while page := await Memories(database=services.database).list_live(workspace, limit=200, before=before):
        found += [memory.body for memory in page]
        before = (page[-1].created_at, page[-1].memory_id)
    return found


async def measure(runs: int) -> list[Figure]:
    """The figures of a replay."""
    async with stage() as services:
        stored, new = await replay(services, runs)
        (statistics,) = await Overview(database=services.database).statistics()
    return [
        Figure(name="runs", value=runs),
        Figure(name="new findings", value=new),
        Figure(name="memories stored", value=stored),
        Figure(name="memories ÷ new findings", value=stored / new, at_most=1.2),
        Figure(name="refused as echoes", value=statistics.refused.get("echo", 0)),
    ]


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000)
    given = parser.parse_args(arguments)
    figures = asyncio.run(measure(given.runs))
    report("write_gate", figures)
    return figures


if __name__ == "__main__":
    main()
