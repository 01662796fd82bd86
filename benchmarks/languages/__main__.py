"""Recall by language: a hundred memories each in English, Russian, German, Spanish and Chinese, one question a memory.

Each language is a store of its own. It is asked in its language by words, by vectors and by both, once more in
English, and once more as a store whose language was left at English. The vectors are the bundled model's, which knows
English alone; with `PRIORS_EMBEDDING_MODEL` and its folder or endpoint in the environment, as the service reads them,
they are that model's.
"""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import msgspec
from rich.console import Console
from rich.table import Table

from app.foundation.models.protocols import EmbeddingProvider
from app.foundation.models.providers import NoopProvider
from app.recall.retrieval.rank.presets import CLASSIC, DEFAULT
from app.recall.retrieval.recall import Query
from app.recall.retrieval.service import Retrieval
from app.settings import Settings, from_environment
from app.storage.memories.memory import Kind, NewMemory
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from benchmarks.ablation import known_presets
from benchmarks.figures import Figure, write
from benchmarks.outcomes import QuestionOutcome, means, outcome
from benchmarks.stage import stage, workspace_of

FOLDER = Path(__file__).parent
LANGUAGES = {"en": "English", "ru": "Russian", "de": "German", "es": "Spanish", "zh": "Chinese"}
VECTORS = replace(CLASSIC, name="vectors only", most=None, nearest=60)
"""The nearest memories and nothing else."""
DEPTH = 10


class Item(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A memory and a question that it answers."""

    kind: Kind
    title: str
    body: str
    question: str


class Store(NamedTuple):
    """A workspace with the memories of one language, in the order of their file."""

    workspace: Workspace
    ids: Sequence[UUID | None]


def items(language: str, most: int | None = None) -> list[Item]:
    """Returns the items of a language; the same line of each file says the same."""
    lines = (FOLDER / f"{language}.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Item) for line in lines[:most]]


async def measure(
    settings: Settings, languages: Sequence[str], most: int | None
) -> dict[tuple[str, str], QuestionOutcome]:
    """Returns the figures by language and by what answers its questions."""
    found: dict[tuple[str, str], QuestionOutcome] = {}
    english = [item.question for item in items("en", most)]
    with known_presets([VECTORS]):
        async with stage(settings=settings) as services:
            for language in languages:
                given = items(language, most)
                store = await _stored(services, language, given, language)
                own = [item.question for item in given]
                found[language, "words"] = await _asked(services, store, own, NoopProvider())
                found[language, "vectors"] = await _asked(services, store, own, preset=VECTORS.name)
                found[language, "both"] = await _asked(services, store, own)
                if language != "en":
                    found[language, "vectors, asked in English"] = await _asked(
                        services, store, english, preset=VECTORS.name
                    )
                    found[language, "both, asked in English"] = await _asked(services, store, english)
                    left = await _stored(services, f"{language}-left", given, "en")
                    found[language, "words, left at English"] = await _asked(services, left, own, NoopProvider())
                    found[language, "both, left at English"] = await _asked(services, left, own)
    return found


async def _stored(services: Services, name: str, given: Sequence[Item], language: str) -> Store:
    workspace = await services.workspaces.set_language(await workspace_of(services, name), language)
    memories = [NewMemory(kind=item.kind, title=item.title, body=item.body) for item in given]
    result = await services.write_gate.remember(workspace, memories)
    if result.rejected:
        raise RuntimeError(result.rejected)
    await services.embedder.embed_pending(workspace)
    await services.statistics.refresh_all(services.database.across)
    return Store(await workspace_of(services, name), result.ids)


async def _asked(
    services: Services,
    store: Store,
    questions: Sequence[str],
    provider: EmbeddingProvider | None = None,
    preset: str = DEFAULT.name,
) -> QuestionOutcome:
    outcomes = []
    for question, answer in zip(questions, store.ids, strict=True):
        query = Query(text=question, k=DEPTH, preset=preset)
        finding = await Retrieval(database=services.database, provider=provider or services.provider).find(
            store.workspace, query
        )
        outcomes.append(outcome([hit.memory.memory_id for hit in finding.hits], [frozenset(filter(None, [answer]))]))
    return means(outcomes)


def _table(model: str, found: dict[tuple[str, str], QuestionOutcome]) -> list[Figure]:
    table = Table("language", "asked", "recall@1", "@5", "MRR", title=f"100 known items a language, {model}")
    for (language, how), figure in found.items():
        table.add_row(
            LANGUAGES[language],
            how,
            *(f"{it:.2f}" for it in (figure.recall[1], figure.recall[5], figure.reciprocal_rank)),
        )
    Console(width=100).print(table)
    return [
        Figure(name=f"{LANGUAGES[language]}, {how}, {name}", value=value)
        for (language, how), figure in found.items()
        for name, value in (("@1", figure.recall[1]), ("@5", figure.recall[5]), ("MRR", figure.reciprocal_rank))
    ]


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measures and reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--language", action="append", choices=LANGUAGES, help="only this; can be given again")
    parser.add_argument("--items", type=int, help="of each language, only so many")
    given = parser.parse_args(arguments)
    settings = from_environment()
    found = asyncio.run(measure(settings, given.language or tuple(LANGUAGES), given.items))
    reported = _table(settings.embedding_model, found)
    write("languages", reported)
    return reported


if __name__ == "__main__":
    main()
