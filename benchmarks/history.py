"""History over HTTP against its raw parts: the query's embedding and the bare SQL of both arms."""

import asyncio
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from app.foundation.db.session import Session
from app.recall.retrieval import arms
from app.recall.retrieval.candidates import ArmQuery, question_of, shape_of, survey, values_of
from app.recall.retrieval.rank.presets import DEFAULT
from app.recall.retrieval.recall import Query
from app.storage.index.vectors import as_literal
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from benchmarks.corpus import Corpus, fill
from benchmarks.figures import Figure, by_size, percentile
from benchmarks.stage import service, stage, workspace_of

SIZES = (10_000, 100_000)
ROUNDS = 200
CLIENTS = 16
HISTORY = "/api/history"
HITS = 3
"""Memories that a history has where nothing else is asked for."""


class Client:
    """One session, kept open."""

    def __init__(self, address: str, workspace: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(address).netloc)
        self._headers = {"content-type": "application/json", "x-workspace": workspace}

    def ask(self, query: str, path: str = HISTORY) -> None:
        """Ask once."""
        self.post(path, json.dumps({"query": query}).encode())

    def post(self, path: str, body: bytes | Iterator[bytes], **headers: str) -> bytes:
        """The answer's body. A connection that the server has ended, being idle for seconds, is opened again."""
        try:
            answer = self._sent(path, body, headers)
        except ConnectionError:
            self._connection.close()
            answer = self._sent(path, body, headers)
        given = answer.read()
        if answer.status != 200:
            raise RuntimeError(given.decode())
        return given

    def _sent(self, path: str, body: bytes | Iterator[bytes], headers: Mapping[str, str]) -> http.client.HTTPResponse:
        self._connection.request("POST", path, body, {**self._headers, **headers})
        return self._connection.getresponse()

    def close(self) -> None:
        """Close it."""
        self._connection.close()


async def question(session: Session, query: str) -> ArmQuery:
    """Returns the question of a query as the arms take it, without its vector."""
    asked = Query(text=query, k=HITS)
    found = await survey(session, query, filters=asked.filters, language=None)
    if found is None:
        raise RuntimeError("the corpus is not there")
    return question_of(found, asked, DEFAULT)


async def raw_parts(services: Services, workspace: Workspace, query: str) -> tuple[float, float]:
    """Returns milliseconds of the query's embedding and of both arms' bare SQL, the survey not counted."""
    async with services.database.session(workspace, transaction=False) as session:
        wordy = await question(session, query)
        started = time.perf_counter()
        vector = await services.provider.embed_query(query)
        embedded = time.perf_counter()
        both = replace(wordy, vector=as_literal(vector))
        shape, values = shape_of(both), values_of(both)
        asking = time.perf_counter()
        for arm in (arms.vector_arm(shape), arms.lexical_arm(shape)):
            await session.tuples(arm, values)
        asked = time.perf_counter()
    return (embedded - started) * 1000, (asked - asking) * 1000


async def latencies(
    services: Services, address: str, workspace: Workspace, corpus: Corpus, rounds: int
) -> tuple[list[float], list[float], list[float]]:
    """Milliseconds of whole, embedding and arms, taken in turn so that the machine's drift falls on all."""
    client = Client(address, workspace.name)
    whole, embedding, sql = [], [], []
    for place, query in enumerate(corpus.queries(2 * rounds + 40)):
        if place % 2:
            one, other = await raw_parts(services, workspace, query)
            embedding.append(one)
            sql.append(other)
        else:
            started = time.perf_counter()
            await asyncio.to_thread(client.ask, query)
            whole.append((time.perf_counter() - started) * 1000)
    client.close()
    return whole[20:], embedding[20:], sql[20:]


def throughput(address: str, workspace: str, queries: Sequence[str], clients: int, path: str = HISTORY) -> float:
    """Answers a second with so many clients at once."""
    shares = [queries[start::clients] for start in range(clients)]

    def ask(share: Sequence[str]) -> Callable[[], None]:
        def run() -> None:
            client = Client(address, workspace)
            for query in share:
                client.ask(query, path)
            client.close()

        return run

    threads = [threading.Thread(target=ask(share)) for share in shares]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(queries) / (time.perf_counter() - started)


def resident_megabytes(pid: int) -> float:
    """Resident memory of a process; 0 where the system does not tell."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return 0.0
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


async def measure(size: int, rounds: int) -> list[Figure]:
    """The figures at one size."""
    corpus = Corpus()
    async with stage() as services:
        workspace = await workspace_of(services, "benchmark")
        await fill(services, corpus, workspace, size)
        # A worker would look for links between all that has just been stored, beside the questions.
        with service(replace(services.settings, embedded_worker=False)) as (address, pid):
            whole, embedding, sql = await latencies(services, address, workspace, corpus, rounds)
            p50, raw = percentile(whole, 50), percentile(embedding, 50) + percentile(sql, 50)
            alone = await asyncio.to_thread(throughput, address, workspace.name, corpus.queries(2 * rounds), 1)
            together = await asyncio.to_thread(throughput, address, workspace.name, corpus.queries(4 * rounds), CLIENTS)
            resident = resident_megabytes(pid)
    name = f"{size:,} chunks"
    return [
        Figure(name=f"{name}: history over HTTP, p50", value=p50, unit="ms"),
        Figure(name=f"{name}: query embedding, p50", value=percentile(embedding, 50), unit="ms"),
        Figure(name=f"{name}: both arms' SQL, p50", value=percentile(sql, 50), unit="ms"),
        Figure(name=f"{name}: history ÷ (embedding + SQL)", value=p50 / raw, at_most=1.5),
        Figure(name=f"{name}: p95 ÷ p50", value=percentile(whole, 95) / p50, at_most=3.0),
        Figure(name=f"{name}: one client", value=alone, unit="answers/s"),
        Figure(name=f"{name}: {CLIENTS} clients ÷ one", value=together / alone, at_least=1.6),
        Figure(name=f"{name}: resident memory of the API", value=resident, unit="MB", at_most=600),
    ]


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measure and report."""
    return by_size("history", __doc__ or "", measure, arguments, sizes=SIZES, rounds=ROUNDS)


if __name__ == "__main__":
    main()
