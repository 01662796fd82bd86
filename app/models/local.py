"""A model on this machine, through fastembed."""

import asyncio
import math
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from app.errors import EmbeddingUnavailable
from app.models.bundled import DEFAULT_MODEL, WINDOW, discard, write_onnx
from app.models.bundled import DIMENSION as DEFAULT_DIMENSION
from app.models.protocols import Matrix, TokenCounter, Vector
from app.models.tokenizer import BundledTokenCounter, well_formed
from app.text.packing import batches

if TYPE_CHECKING:
    from fastembed import TextEmbedding

BATCH_TOKENS = 2_048
"""Padded tokens of a document batch, 8 full windows: larger ones take 5 % longer a token and delay queries."""
QUERIES_TOGETHER = 16
"""Queries of one run of the model; 16 short ones take as long as 4 alone."""

RETRY_SECONDS = 10.0
"""A model that cannot be loaded is not tried again for so long: a query that waits for it would wait in vain."""

DOCUMENT_THREADS = 8
"""Batches in the model at once, however many cores there are: each takes up to 60 MB while it is computed."""
THREADS_OF_A_RUN = 1
"""Two threads that share a run wait for each other busily: they take half again as much of the processor, and whatever
else holds a core for a moment holds both. Two runs of one thread are as fast alone, and faster in company. A
query on two threads is 2 ms faster itself, and makes the search after it 7 ms slower."""

Job = tuple[str, "Future[Vector]"]


class LocalProvider:
    """One session, each run of it on one thread: queries have a thread of their own, so that none waits for the end of
    an ingestion, and the batches of documents are spread over one a core."""

    enabled = True

    def __init__(
        self,
        data_dir: Path,
        *,
        model: str = DEFAULT_MODEL,
        dimension: int = DEFAULT_DIMENSION,
        threads: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.model_id, self.dimension = model, dimension
        self._folder, self._threads = data_dir / "models", threads or min(usable_cores(), DOCUMENT_THREADS)
        self._model: TextEmbedding | None = None
        self._counter: TokenCounter | None = None
        self._loading = threading.Lock()
        self._clock, self._refusing_until, self._refusal = clock, 0.0, ""
        self._documents = ThreadPoolExecutor(self._threads, thread_name_prefix="embed-documents")
        self._running: set[asyncio.Future[Any]] = set()
        self._queries: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._asking: threading.Thread | None = None

    async def start(self) -> None:
        """Write the bundled model if need be, load it, and warm it up.

        Raises:
            EmbeddingUnavailable: it cannot be written, downloaded or loaded.
        """
        await asyncio.to_thread(self._loaded)

    async def embed_query(self, text: str) -> Vector:
        """The vector of one query. Whatever waits while the model is busy goes into its next run together.

        Raises:
            EmbeddingUnavailable: the model cannot be loaded.
        """
        self._begin_asking()
        future: Future[Vector] = Future()
        self._queries.put((text, future))
        return await asyncio.wrap_future(future)

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """The vectors of many texts, in their order; batched by length, because padding costs like text.

        Raises:
            EmbeddingUnavailable: the model cannot be loaded.
        """
        given = list(texts)
        result = np.zeros((len(given), self.dimension), np.float32)
        if given:
            working = asyncio.ensure_future(self._fill(result, given))
            self._running.add(working)
            working.add_done_callback(self._running.discard)
            await working
        return result

    async def close(self) -> None:
        """End the threads; running work is finished first."""
        self._queries.put(None)
        await asyncio.gather(*self._running, return_exceptions=True)
        await asyncio.to_thread(self._documents.shutdown)

    async def _fill(self, result: Matrix, texts: Sequence[str]) -> None:
        """Batches are taken one by one, longest first, so that callers take turns and no thread ends long before."""
        in_thread = asyncio.get_running_loop().run_in_executor
        remaining = await in_thread(self._documents, self._batches, texts)

        async def work() -> None:
            for places in remaining:
                result[places] = await in_thread(self._documents, self._run, [texts[place] for place in places])

        try:
            await asyncio.gather(*(work() for _ in range(self._threads)))
        finally:
            # Where one failed or was abandoned the others stop after the batch that they have.
            deque(remaining, maxlen=0)

    def _batches(self, texts: Sequence[str]) -> Iterator[list[int]]:
        """Positions in batches for each thread's share, longest first."""
        self._loaded()
        assert self._counter is not None, "loaded above"  # noqa: S101
        lengths = [min(count, WINDOW) for count in self._counter.count_many(texts)]
        share = math.ceil(sum(lengths) / self._threads)
        return reversed(list(batches(lengths, min(BATCH_TOKENS, share))))

    def _begin_asking(self) -> None:
        if self._asking is None:
            self._asking = threading.Thread(target=self._answer_queries, name="embed-queries", daemon=True)
            self._asking.start()

    def _answer_queries(self) -> None:
        while (first := self._queries.get()) is not None:
            jobs = [first, *self._queued()]
            wanted = [job for job in jobs if job[1].set_running_or_notify_cancel()]
            try:
                vectors = self._run([text for text, _ in wanted]) if wanted else ()
                for (_, future), vector in zip(wanted, vectors, strict=True):
                    future.set_result(vector)
            except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to those who asked
                for _, future in wanted:
                    future.set_exception(error)

    def _queued(self) -> Iterable[Job]:
        for _ in range(QUERIES_TOGETHER - 1):
            try:
                job = self._queries.get_nowait()
            except queue.Empty:
                return
            if job is None:
                self._queries.put(None)
                return
            yield job

    def _run(self, texts: Sequence[str]) -> Matrix:
        model = self._loaded()
        try:
            vectors = np.stack(list(model.embed([well_formed(text) for text in texts], batch_size=len(texts))))
        except Exception as error:
            raise EmbeddingUnavailable(f"{self.model_id} failed: {error}") from error
        return _unit(vectors.astype(np.float32, copy=False))

    def _loaded(self) -> "TextEmbedding":
        """The model, loaded at its first use."""
        with self._loading:
            if self._model is None:
                self._model = self._load_or_refuse()
                self._counter = self._counter or BundledTokenCounter()
            return self._model

    def _load_or_refuse(self) -> "TextEmbedding":
        if self._clock() < self._refusing_until:
            raise EmbeddingUnavailable(self._refusal)
        try:
            return self._load()
        except EmbeddingUnavailable as error:
            self._refusing_until, self._refusal = self._clock() + RETRY_SECONDS, str(error)
            raise

    def _load(self) -> "TextEmbedding":
        if self.model_id != DEFAULT_MODEL:
            return self._made(lambda: {"cache_dir": str(self._folder)})
        try:
            return self._made(self._bundled)
        except EmbeddingUnavailable:
            # The files may have been damaged since they were written; they can be made again.
            discard(self._folder)
            return self._made(self._bundled)

    def _bundled(self) -> dict[str, Any]:
        return {"specific_model_path": str(write_onnx(self._folder))}

    def _made(self, options: Callable[[], dict[str, Any]]) -> "TextEmbedding":
        from fastembed import TextEmbedding  # noqa: PLC0415 - takes a second to import

        given = options()
        try:
            model = TextEmbedding(self.model_id, threads=THREADS_OF_A_RUN, **given)
            width = len(next(iter(model.embed(["warm up"]))))
        except Exception as error:
            raise EmbeddingUnavailable(
                f"{self.model_id} cannot be loaded: {error}; name a model that fastembed knows and can reach"
            ) from error
        if width != self.dimension:
            raise EmbeddingUnavailable(
                f"{self.model_id} gives {width} numbers a vector: set PRIORS_EMBEDDING_DIMENSION={width}"
            )
        return model


def _unit(vectors: Matrix) -> Matrix:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.divide(vectors, norms, out=vectors, where=norms > 0)
    return vectors


CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


def usable_cores(groups: Path = CGROUPS, membership: Path = MEMBERSHIP) -> int:
    """Cores that this process may use: those it is bound to, or as many as its container's share of time is worth.

    A container with `cpus: 1` sees every core of its host, and a thread for each of them would share one.
    """
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(bound, _quota(groups, membership))))


def _quota(groups: Path, membership: Path) -> float:
    """Cores' worth of time that its control groups leave to this process (cgroup v2); infinite without a limit."""
    try:
        own = next(line for line in membership.read_text().splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):
        return math.inf
    folder = groups / own.removeprefix("0::").lstrip("/")
    return min(_limit(place / "cpu.max") for place in (folder, *folder.parents) if place.is_relative_to(groups))


def _limit(file: Path) -> float:
    """`cpu.max` holds microseconds a period, or `max`, and the period."""
    try:
        quota, period = file.read_text().split()
        return math.inf if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf
