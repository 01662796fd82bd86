"""What extractive compression costs beyond embedding, and that no model is needed for it."""

import argparse
import asyncio
import time
from collections.abc import Sequence

from app.foundation.text.prose import sentences
from app.intake.runs.observations.compress import compress_outcome, extract_outcome, most_central
from app.intake.runs.observations.observation import Outcome
from benchmarks.figures import Figure, report
from benchmarks.stage import stage

TOWNS = ("Kazan", "Perm", "Omsk", "Tver", "Sochi", "Ufa", "Samara", "Tomsk", "Kursk", "Pskov")


def output_of(size: int) -> str:
    """A Markdown report of about so many characters, no two sentences alike."""
    parts = ["# Market of supplements"]
    number = 0
    while sum(map(len, parts)) < size:
        town = TOWNS[number % len(TOWNS)]
        parts.append(
            f"## {town}, part {number}\n\nThe pharmacies of {town} sold {number + 3} % more in 2025 than in the year"
            f" before. The register names {number * 7 + 5} producers there. It was a quiet year for the importers."
        )
        number += 1
    return "\n\n".join(parts)


async def measure(size: int, rounds: int) -> list[Figure]:
    """The figures for an output of that size."""
    outcome = Outcome(task="Market of supplements in Russia", output=output_of(size))
    async with stage() as services:
        chosen = most_central(sentences(outcome.output), 400)
        matrix = await services.provider.embed_documents([outcome.task, *(item.text for item in chosen)])
        spent = []
        for _ in range(rounds):
            started = time.perf_counter()
            extract_outcome(outcome, most_central(sentences(outcome.output), 400), matrix[1:], matrix[0])
            spent.append(time.perf_counter() - started)
        made = await compress_outcome(outcome, services.provider, None, evaluator="wiggum")
    return [
        Figure(name="characters of the output", value=len(outcome.output)),
        Figure(name="sentences embedded", value=len(chosen)),
        Figure(name="facts", value=len(made.facts)),
        Figure(name="extraction beyond embedding", value=sorted(spent)[rounds // 2] * 1000, unit="ms", at_most=150),
    ]


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args(arguments)
    figures = asyncio.run(measure(given.size, given.rounds))
    report("compression", figures)
    return figures


if __name__ == "__main__":
    main()
