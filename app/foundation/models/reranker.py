"""Re-ranks with a model on this machine, through fastembed."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.errors import RerankerUnavailable
from app.foundation.models.protocols import Reranker
from app.foundation.models.tokens import well_formed
from app.settings import Settings

if TYPE_CHECKING:
    from fastembed.rerank.cross_encoder import TextCrossEncoder

_QUERY_CHARACTERS, _TEXT_CHARACTERS = 1_000, 2_000
"""Characters that are read of the query and of each text: together about the 512 tokens that usual models read."""
LONGEST_WAIT = 2.0
"""Seconds that a recall waits for the model: loading it takes about one, a download takes more."""
RERANKER_RETRY_SECONDS = 60.0
"""Time after a failed load in which the model is not loaded again."""


class CrossEncoder:
    """Loads its model with the first query, in a thread of its own. A query that waits too long goes on without it."""

    def __init__(
        self, data_dir: Path, *, model: str, folder: str = "", clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`folder` holds the model's files; without it, fastembed takes them from the data directory or the hub."""
        self._model, self._folder, self._cache = model, folder, data_dir / "models"
        self._clock, self._retry_at = clock, 0.0
        self._loading: Future[TextCrossEncoder] | None = None
        self._work = ThreadPoolExecutor(1, thread_name_prefix="rerank")

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Scores each text for the query.

        Raises:
            RerankerUnavailable: the model is still loading, cannot be loaded, or fails.
        """
        encoder = await self._ready_model()
        asked = well_formed(query[:_QUERY_CHARACTERS])
        read = [well_formed(text[:_TEXT_CHARACTERS]) for text in texts]

        def run() -> list[float]:
            return [float(score) for score in encoder.rerank(asked, read, batch_size=max(1, len(read)))]

        try:
            return await asyncio.get_running_loop().run_in_executor(self._work, run)
        except Exception as error:
            raise RerankerUnavailable(f"{self._model} failed: {error}") from error

    async def close(self) -> None:
        """Ends the scoring thread; a thread that still loads a model ends with the process."""
        await asyncio.to_thread(self._work.shutdown)

    async def _ready_model(self) -> "TextCrossEncoder":
        loading = asyncio.wrap_future(self._start_loading())
        done, _ = await asyncio.wait({loading}, timeout=LONGEST_WAIT)
        if not done:
            # asyncio logs an exception that nobody reads; later queries see the outcome in the shared future.
            loading.add_done_callback(lambda future: future.cancelled() or future.exception())
            raise RerankerUnavailable(f"{self._model} is still being loaded")
        return await loading

    def _start_loading(self) -> "Future[TextCrossEncoder]":
        loading = self._loading
        failed = loading is not None and loading.done() and loading.exception() is not None
        if loading is None or (failed and self._clock() >= self._retry_at):
            loading = self._loading = Future()
            threading.Thread(target=self._load, args=(loading,), name="load-reranker", daemon=True).start()
        return loading

    def _load(self, loading: "Future[TextCrossEncoder]") -> None:
        try:
            from fastembed.rerank.cross_encoder import TextCrossEncoder  # noqa: PLC0415 - takes a second to import

            options: dict[str, Any] = {"specific_model_path": self._folder} if self._folder else {}
            encoder = TextCrossEncoder(self._model, cache_dir=str(self._cache), **options)
            list(encoder.rerank("warm up", ["warm up"]))
        except Exception as error:  # noqa: BLE001 - every error belongs to the callers
            self._retry_at = self._clock() + RERANKER_RETRY_SECONDS
            reason = f"{self._model} cannot be loaded: {error}; name a model that fastembed knows and can reach"
            loading.set_exception(RerankerUnavailable(reason))
        else:
            loading.set_result(encoder)


def reranker_from(settings: Settings) -> Reranker | None:
    """Builds the configured re-ranker, which loads its model with the first query; None if none is configured."""
    if not settings.reranker:
        return None
    folder = settings.data_dir / "reranker"
    return CrossEncoder(settings.data_dir, model=settings.reranker, folder=str(folder) if folder.is_dir() else "")
