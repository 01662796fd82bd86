"""Embeds with models on this machine, through fastembed."""

import asyncio
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from app.errors import EmbeddingUnavailable
from app.foundation.models.bundled import DEFAULT_MODEL, SPECIAL_TOKENS, discard, must_fetch, write_onnx
from app.foundation.models.bundled import DIMENSION as DEFAULT_DIMENSION
from app.foundation.models.late import TokenCodes
from app.foundation.models.protocols import Matrix, QueryVectors, Vector, Window
from app.foundation.models.tokens import well_formed
from app.foundation.text.passages import batches

if TYPE_CHECKING:
    from app.foundation.models.runtime import TextModel

BATCH_TOKENS = 2_048
"""Padded tokens of a document batch, 8 full windows. Larger batches take 5 % longer a token and delay queries."""
_MOST_QUERIES = 16
"""Queries of one run of the model; 16 short ones together take as long as 4 alone."""
_ADAPTED_AT_ONCE = 8
"""Texts of one run of a model with an adapter: with whole windows as many tokens as a batch of documents has. They are
of like length, because padding costs as much as text, and other callers' runs come between."""

RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 10.0, 320.0
"""Time after a failed load in which queries are refused at once, because they would wait in vain. It doubles with each
failure up to the longest: a machine without a network would start an installer every 10 s."""

_DOCUMENT_THREADS = 8
"""Most batches that are computed at the same time, on any number of cores: each takes up to 60 MB."""

_Job = tuple[str, "Future[QueryVectors]"]
_T = TypeVar("_T")


def _well_formed(texts: Sequence[str]) -> list[str]:
    return [well_formed(text) for text in texts]


class LocalProvider:
    """One model session, in which each run uses one thread. Queries have a thread of their own, so that they never wait
    for an ingestion to end; batches of documents use one thread a core."""

    enabled = True

    def __init__(
        self,
        data_dir: Path,
        *,
        model: str = DEFAULT_MODEL,
        dimension: int = DEFAULT_DIMENSION,
        given: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`given` is the folder of the model's files; without it, they are bundled, or in fastembed's cache or hub."""
        self.model_id, self.dimension = model, dimension
        self._folder, self._threads = data_dir / "models", min(usable_cores(), _DOCUMENT_THREADS)
        self._given = given
        self._model: TextModel | None = None
        self._loading = threading.Lock()
        self._clock, self._retry_at, self._refusal = clock, 0.0, ""
        self._pause, self._fetching, self._stop = RETRY_SECONDS, False, threading.Event()
        self._documents = ThreadPoolExecutor(self._threads, thread_name_prefix="embed-documents")
        self._running: set[asyncio.Future[Any]] = set()
        self._queued: deque[_Job] = deque()
        self._queries = ThreadPoolExecutor(1, thread_name_prefix="embed-queries")

    async def start(self) -> None:
        """Writes the bundled model if it is missing, loads the model and warms it up.

        Raises:
            EmbeddingUnavailable: it cannot be written, downloaded or loaded.
        """
        await asyncio.to_thread(self._ready_model)

    async def embed_query(self, text: str) -> Vector:
        """Embeds one query.

        Raises:
            EmbeddingUnavailable: the model cannot be loaded, or its weights are being fetched.
        """
        vector, _ = await self.embed_words(text)
        return vector

    async def embed_words(self, query: str) -> QueryVectors:
        """Embeds one query and its words. Queries that arrive while the model is busy share its next run.

        Raises:
            EmbeddingUnavailable: the model cannot be loaded, or its weights are being fetched.
        """
        self._refuse_while_fetching()
        future: Future[QueryVectors] = Future()
        self._queued.append((query, future))
        self._queries.submit(self._answer_queries)
        return await asyncio.wrap_future(future)

    async def window(self) -> Window | None:
        """Returns the window of the model.

        Raises:
            EmbeddingUnavailable: the model cannot be loaded.
        """
        return (await asyncio.to_thread(self._ready_model)).window

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Embeds many texts, in batches of similar length, because padding costs as much as text.

        Raises:
            EmbeddingUnavailable: the model cannot be loaded.
        """
        vectors, _ = await self._embed(texts, words=False)
        return vectors

    async def embed_tokens(self, texts: Sequence[str]) -> tuple[Matrix, Sequence[TokenCodes | None]]:
        """Does the same, and returns the codes of each text's tokens beside the vectors.

        Raises:
            EmbeddingUnavailable: the model cannot be loaded.
        """
        return await self._embed(texts, words=True)

    async def _embed(self, texts: Sequence[str], *, words: bool) -> tuple[Matrix, Sequence[TokenCodes | None]]:
        given = list(texts)
        vectors = np.zeros((len(given), self.dimension), np.float32)
        tokens: list[TokenCodes | None] = [None] * len(given)
        if given:
            filling = asyncio.ensure_future(self._fill(vectors, tokens, given, words=words))
            self._running.add(filling)
            filling.add_done_callback(self._running.discard)
            await filling
        return vectors, tokens

    async def embed_adapted(self, texts: Sequence[str], adapter: str, *, queries: bool) -> Matrix | None:
        """Returns what the model with an adapter gives for texts; None if it has none.

        Raises:
            EmbeddingUnavailable: the model cannot be loaded, or its weights are being fetched.
        """
        self._refuse_while_fetching()
        pool = self._queries if queries else self._documents
        in_thread = asyncio.get_running_loop().run_in_executor
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        found: list[Matrix] = []
        for first in range(0, len(order), _ADAPTED_AT_ONCE):
            part = [texts[place] for place in order[first : first + _ADAPTED_AT_ONCE]]
            rows = await in_thread(pool, self._run_adapted, part, adapter)
            if rows is None:
                return None
            found.append(rows)
        return np.concatenate(found)[np.argsort(order)]

    async def close(self) -> None:
        """Ends the threads after the running calls are done, and a fetch of the weights at once."""
        self._stop.set()
        self._queries.shutdown(wait=False)
        await asyncio.gather(*self._running, return_exceptions=True)
        await asyncio.to_thread(self._documents.shutdown)

    def _refuse_while_fetching(self) -> None:
        if self._fetching:
            raise EmbeddingUnavailable(f"the weights of {self.model_id} are being fetched")

    async def _fill(
        self, vectors: Matrix, tokens: list[TokenCodes | None], texts: Sequence[str], *, words: bool
    ) -> None:
        """Embeds batch after batch, longest first, so that callers alternate and no thread ends long before another."""
        in_thread = asyncio.get_running_loop().run_in_executor
        remaining = await in_thread(self._documents, self._batches, texts)
        run = partial(self._run, words=words)

        async def work() -> None:
            for places in remaining:
                vectors[places], codes = await in_thread(self._documents, run, [texts[place] for place in places])
                for place, its in zip(places, codes, strict=True):
                    tokens[place] = its

        try:
            await asyncio.gather(*(work() for _ in range(self._threads)))
        finally:
            # If one fails or is cancelled, the others stop after their current batch.
            deque(remaining, maxlen=0)

    def _batches(self, texts: Sequence[str]) -> Iterator[list[int]]:
        """Divides the positions of texts into batches of at most one thread's share, longest texts first."""
        window = self._ready_model().window
        lengths = [min(count, window.tokens) + SPECIAL_TOKENS for count in window.counts(texts)]
        share = math.ceil(sum(lengths) / self._threads)
        return reversed(list(batches(lengths, min(BATCH_TOKENS, share))))

    def _answer_queries(self) -> None:
        """Embeds queued queries together; does nothing if an earlier call has taken them all."""
        taken = [self._queued.popleft() for _ in range(min(len(self._queued), _MOST_QUERIES))]
        jobs = [job for job in taken if job[1].set_running_or_notify_cancel()]
        try:
            found = self._run_queries([text for text, _ in jobs]) if jobs else ()
            for (_, future), vectors in zip(jobs, found, strict=True):
                future.set_result(vectors)
        except Exception as error:  # noqa: BLE001 - every error belongs to the callers
            for _, future in jobs:
                future.set_exception(error)

    def _run(self, texts: Sequence[str], *, words: bool) -> tuple[Matrix, Sequence[TokenCodes | None]]:
        return self._ask(lambda model: model.embed_documents(_well_formed(texts), words=words))

    def _run_queries(self, texts: Sequence[str]) -> list[QueryVectors]:
        return self._ask(lambda model: model.embed_queries(_well_formed(texts)))

    def _run_adapted(self, texts: Sequence[str], adapter: str) -> Matrix | None:
        return self._ask(lambda model: model.embed_adapted(_well_formed(texts), adapter))

    def _ask(self, run: "Callable[[TextModel], _T]") -> _T:
        model = self._ready_model()
        try:
            return run(model)
        except Exception as error:
            raise EmbeddingUnavailable(f"{self.model_id} failed: {error}") from error

    def _ready_model(self) -> "TextModel":
        """Returns the model, and loads it at the first use."""
        with self._loading:
            if self._model is None:
                self._model = self._load_or_refuse()
            return self._model

    def _load_or_refuse(self) -> "TextModel":
        if self._clock() < self._retry_at:
            raise EmbeddingUnavailable(self._refusal)
        try:
            return self._load()
        except EmbeddingUnavailable as error:
            self._retry_at, self._refusal = self._clock() + self._pause, str(error)
            self._pause = min(2 * self._pause, _LONGEST_RETRY_SECONDS)
            raise

    def _load(self) -> "TextModel":
        is_bundled = self.model_id == DEFAULT_MODEL and self._given is None
        if is_bundled and must_fetch(self._folder):
            self._fetch()
        from app.foundation.models.runtime import load_bundled, load_model  # noqa: PLC0415 - takes a second to import

        if not is_bundled:
            return load_model(self.model_id, self.dimension, given=self._given, cache=self._folder)
        try:
            return load_bundled(write_onnx(self._folder, self._stop), self.dimension)
        except EmbeddingUnavailable:
            if self._stop.is_set():
                raise
            # The files may have been damaged since they were written.
            discard(self._folder)
            return load_bundled(write_onnx(self._folder, self._stop), self.dimension)

    def _fetch(self) -> None:
        self._fetching = True
        try:
            write_onnx(self._folder, self._stop)
        finally:
            self._fetching = False


_CGROUPS = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")


def usable_cores(groups: Path = _CGROUPS, membership: Path = _MEMBERSHIP) -> int:
    """Counts the cores that this process may use: those it is bound to, or fewer if its container's quota is smaller.

    A container with `cpus: 1` sees every core of its host; with a thread for each, all would share one core.
    """
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(bound, _quota(groups, membership))))


def _quota(groups: Path, membership: Path) -> float:
    """Returns the processor time, in cores, that the control groups (cgroup v2) allow; infinity without a limit."""
    try:
        own = next(line for line in membership.read_text().splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):
        return math.inf
    folder = groups / own.removeprefix("0::").lstrip("/")
    return min(_limit(place / "cpu.max") for place in (folder, *folder.parents) if place.is_relative_to(groups))


def _limit(file: Path) -> float:
    """Reads `cpu.max`: microseconds a period, or `max`, and the period."""
    try:
        quota, period = file.read_text().split()
        return math.inf if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf
