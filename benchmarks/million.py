"""One million memories: how fast they come in, how fast they are asked, and what each arm finds of what it should."""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from app.foundation.db.session import Session
from app.recall.retrieval import arms
from app.recall.retrieval.arms import Shape
from app.recall.retrieval.candidates import ArmQuery, shape_of, values_of
from app.storage.index.vectors import as_literal
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from benchmarks.bulk import Bulk, build_word_index, copy_texts, copy_vectors, copy_words, sizes
from benchmarks.corpus import Corpus, fill, until_indexed, vacuum
from benchmarks.figures import Figure, percentile, report
from benchmarks.history import Client, question
from benchmarks.linking import linking
from benchmarks.stage import service, stage, workspace_of

SIZE = 1_000_000
ROUNDS = 100
WARM_UP = 20
READING = 1_500
"""Questions that both arms answer before anything is timed."""
FIRST = 12
"""Places in which an arm is compared with the truth."""
WORKSPACE = "million"
SCANS = ("seqscan", "bitmapscan", "indexonlyscan")


TRUE_BM25 = f"""
SELECT memory_id FROM (
    SELECT l.memory_id, l.weights <#> %(weights)s::sparsevec AS score FROM lexical l
    WHERE l.workspace_id = %(workspace_id)s OFFSET 0
) AS scored WHERE score < 0 ORDER BY score, memory_id LIMIT {FIRST}
"""  # noqa: S608 - a number


class Found(NamedTuple):
    """The hits of an arm for a query, compared with the true ones."""

    share: float
    """Share of the true first places that it has among its own."""
    milliseconds: float


async def measure(
    size: int, rounds: int, kept: Path | None = None, *, copied: bool = False, linked: int = 0
) -> list[Figure]:
    """Fill a store, then ask it; one that is `kept`, and was filled, is only asked, the same as any time before.

    If `linked` is given, recalls are measured beside a worker that finds the links of so many memories, and nothing
    else is.

    The server is started anew in between, because what memory it takes follows the size of the store.
    """
    corpus = Corpus()
    figures = [Figure(name="memories", value=size)]
    with nullcontext(kept) if kept else tempfile.TemporaryDirectory(prefix="priors-benchmark-") as folder:
        mark = Path(folder) / f"filled-with-{size}"
        if not mark.exists():
            figures += await (_copied if copied else _filled)(Path(folder), corpus, size)
            mark.touch()
        async with stage(Path(folder)) as services:
            workspace = await workspace_of(services, WORKSPACE)
            if linked:
                return [*figures, *await linking(services, workspace, corpus, linked, rounds)]
            return [*figures, *await asked(services, workspace, corpus, size, rounds)]


async def _filled(folder: Path, corpus: Corpus, size: int) -> list[Figure]:
    async with stage(folder) as services:
        started = time.perf_counter()
        await fill(services, corpus, await workspace_of(services, WORKSPACE), size)
        rate = size / (time.perf_counter() - started)
    return [Figure(name="stored, indexed and vacuumed", value=rate, unit="memories/s")]


async def _copied(folder: Path, corpus: Corpus, size: int) -> list[Figure]:
    """Fill the tables by COPY, then build the indexes; the seconds of each step, and what it takes on disk."""
    async with stage(folder) as services:
        workspace = await workspace_of(services, WORKSPACE)
        model = await services.embedder.serving_model()
        assert model is not None, "the bundled model is on"  # noqa: S101
        into = Bulk(services.settings.database_url, workspace.workspace_id, model, size)
        steps: dict[str, Callable[[], Awaitable[object]]] = {
            "texts by COPY": lambda: asyncio.to_thread(copy_texts, into, corpus),
            "vectors by COPY": lambda: asyncio.to_thread(copy_vectors, into, corpus),
            "words": lambda: asyncio.to_thread(copy_words, into),
            "index of words": lambda: asyncio.to_thread(build_word_index, into),
            "statistics": partial(services.statistics.refresh_all, services.database.across),
            "index of vectors": lambda: until_indexed(services.database),
            "vacuum": lambda: vacuum(services),
        }
        figures = [Figure(name=name, value=await _seconds(step), unit="s") for name, step in steps.items()]
        return [*figures, *(Figure(name=name, value=megabytes, unit="MB") for name, megabytes in sizes(into))]


async def _seconds(step: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await step()
    return time.perf_counter() - started


async def asked(services: Services, workspace: Workspace, corpus: Corpus, size: int, rounds: int) -> list[Figure]:
    """The figures of a store that is filled from this corpus, once all of it has been read."""
    async with services.database.session(workspace, transaction=False) as session:
        await _warm(session, corpus)
        vector = [await _vector_found(session, corpus) for _ in range(WARM_UP + rounds)][WARM_UP:]
        lexical = [await _lexical_found(session, corpus) for _ in range(WARM_UP + rounds)][WARM_UP:]
    whole, embedding = await _over_http(services, workspace.name, corpus, rounds)
    beyond = percentile(whole, 50) - percentile(embedding, 50)
    return [
        Figure(name=f"vector recall@{FIRST} against exact", value=_mean(vector), at_least=0.95),
        Figure(name="vector arm, p50", value=_p50(vector), unit="ms"),
        Figure(
            name=f"lexical overlap@{FIRST} with true BM25",
            value=_mean(lexical),
            at_least=0.97 if size <= SIZE // 10 else 0.90,
        ),
        Figure(name="lexical arm, p50", value=_p50(lexical), unit="ms", at_most=10 if size <= SIZE // 10 else 15),
        Figure(name="search over HTTP, p50", value=percentile(whole, 50), unit="ms"),
        Figure(name="search over HTTP, p95", value=percentile(whole, 95), unit="ms"),
        Figure(name="the query's embedding, p50", value=percentile(embedding, 50), unit="ms"),
        Figure(name="search beyond its query's embedding, p50", value=beyond, unit="ms", at_most=30),
    ]


async def _warm(session: Session, corpus: Corpus) -> None:
    """Read all tables and most of the indexes, as a service has that runs for a day: no disk is to be measured.

    Tables by an index, because a sequential scan keeps nothing of a large one in the server's memory; indexes by
    questions.
    """
    for setting in SCANS:
        await session.execute(f"SET enable_{setting} = off")
    for table in ("memories", "lexical", "embeddings"):
        await session.execute(f"SELECT count(*) FROM {table} WHERE workspace_id = %(workspace_id)s")  # noqa: S608 - constants
    for setting in SCANS:
        await session.execute(f"RESET enable_{setting}")
    for query, vector in zip(corpus.queries(READING), corpus.vectors(READING), strict=True):
        asked = replace(await question(session, query), vector=as_literal(vector))
        shape = shape_of(asked)
        for arm in (arms.vector_arm(shape), arms.lexical_arm(shape)):
            await _first(session, arm, values_of(asked))


async def _vector_found(session: Session, corpus: Corpus) -> Found:
    """A query of one of the corpus' topics, as questions about what is stored are."""
    vector = as_literal(corpus.vectors(1)[0])
    asked = replace(await question(session, corpus.queries(1)[0]), vector=vector)
    shape = shape_of(asked)
    exact = Shape(
        model=shape.model, vector_workspace=None, lexical=False, kept=False, clauses=(), scanned=(), limit=FIRST,
        has_passages=shape.has_passages, linked=False,
    )  # fmt: skip
    return await _compared(session, asked, arms.vector_arm(shape), arms.vector_arm(exact))


async def _lexical_found(session: Session, corpus: Corpus) -> Found:
    """True BM25 scores every memory of the workspace."""
    asked = await question(session, corpus.queries(1)[0])
    return await _compared(session, asked, arms.lexical_arm(shape_of(asked)), TRUE_BM25)


async def _compared(session: Session, question: ArmQuery, arm: str, exact: str) -> Found:
    values = values_of(question)
    started = time.perf_counter()
    found = await _first(session, arm, values)
    milliseconds = (time.perf_counter() - started) * 1000
    true = await _first(session, exact, values)
    return Found(len(found & true) / max(1, len(true)), milliseconds)


async def _first(session: Session, statement: str, values: dict[str, Any]) -> set[Any]:
    rows = await session.tuples(statement, values)
    return {row[0] for row in rows[:FIRST]}


async def _over_http(
    services: Services, workspace: str, corpus: Corpus, rounds: int
) -> tuple[list[float], list[float]]:
    """Milliseconds of searches and of bare embeddings of other queries, in turn; no worker finds links meanwhile."""
    whole, embedding = [], []
    with service(replace(services.settings, embedded_worker=False)) as (address, _):
        client = Client(address, workspace)
        for query, other in zip(corpus.queries(WARM_UP + rounds), corpus.queries(WARM_UP + rounds), strict=True):
            started = time.perf_counter()
            await asyncio.to_thread(client.post, "/api/search", json.dumps({"query": query, "k": 10}).encode())
            answered = time.perf_counter()
            await services.provider.embed_query(other)
            whole.append((answered - started) * 1000)
            embedding.append((time.perf_counter() - answered) * 1000)
        client.close()
    return whole[WARM_UP:], embedding[WARM_UP:]


def _mean(found: Sequence[Found]) -> float:
    return sum(item.share for item in found) / len(found)


def _p50(found: Sequence[Found]) -> float:
    return percentile([item.milliseconds for item in found], 50)


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--copy", action="store_true", help="fill the tables by COPY, not by the service's intake")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the store stays, to be asked again")
    parser.add_argument(
        "--linking", type=int, default=0, metavar="N", help="measure recalls while N memories are being linked"
    )
    given = parser.parse_args(arguments)
    if given.keep and given.keep.exists() and not (given.keep / f"filled-with-{given.size}").exists():
        parser.error(f"{given.keep} was not filled with {given.size:,} memories; name a folder that does not exist yet")
    figures = asyncio.run(measure(given.size, given.rounds, given.keep, copied=given.copy, linked=given.linking))
    report("million", figures)
    return figures


if __name__ == "__main__":
    main()
