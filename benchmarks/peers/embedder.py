"""Priors' own bundled model for systems that run in this process: the same weights, batches and threads for all.

Queries are embedded by the exact graph, in the caller's thread; the graph with integer weights is a part of Priors.
"""

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from fastembed import TextEmbedding

from app.foundation.models.bundled import DEFAULT_MODEL, write_onnx
from app.foundation.models.local import LocalProvider
from app.foundation.models.protocols import Matrix, Vector
from app.foundation.models.runtime import THREADS_A_RUN

Result = TypeVar("Result")


class Embedder:
    """Texts to vectors, from any thread."""

    dimension = 384

    def __init__(self, folder: Path, *, known: Path | None = None) -> None:
        """`known` is a file of vectors that were made before, for works in which the making is not measured."""
        self._provider = LocalProvider(folder)
        self._exact = TextEmbedding(DEFAULT_MODEL, threads=THREADS_A_RUN, specific_model_path=str(write_onnx(folder)))
        self._ready: dict[str, Vector] = {}
        self._file, self._known = known, _read(known)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def query(self, text: str) -> Vector:
        """The vector of a query."""
        if text in self._known:
            return self._known[text]
        made: Vector = np.array(list(self._exact.query_embed(text)), np.float32)[0]
        made /= np.linalg.norm(made)
        if self._file is not None:
            self._known[text] = made
        return made

    def documents(self, texts: Sequence[str]) -> Matrix:
        """The vectors of many texts, those that are ready or known not made again."""
        there = self._ready or self._known
        missing = [text for text in dict.fromkeys(texts) if text not in there]
        made = self._made(missing) if missing else {}
        return np.stack([made[text] if text in made else there[text] for text in texts])

    def save(self) -> None:
        """Write the vectors that are known by now."""
        if self._file is not None and self._known:
            np.savez(self._file, texts=np.array(list(self._known)), vectors=np.stack(list(self._known.values())))

    def _made(self, texts: Sequence[str]) -> dict[str, Vector]:
        made = dict(zip(texts, self._wait_for(self._provider.embed_documents(texts)), strict=True))
        if self._file is not None:
            self._known |= made
        return made

    def either(self, texts: Sequence[str]) -> Matrix:
        """For libraries that do not say which it is: one text that is not ready is a query."""
        if len(texts) == 1 and texts[0] not in self._ready and texts[0] not in self._known:
            return self.query(texts[0])[np.newaxis]
        return self.documents(texts)

    @contextmanager
    def ready(self, texts: Sequence[str], vectors: Matrix | None) -> Iterator[None]:
        """Within this, these texts are not embedded, as these are their vectors; for libraries that take none."""
        self._ready = {} if vectors is None else dict(zip(texts, vectors, strict=True))
        yield
        self._ready = {}

    def _wait_for(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _read(known: Path | None) -> dict[str, Vector]:
    if known is None or not known.exists():
        return {}
    with np.load(known) as stored:
        return dict(zip(stored["texts"].tolist(), stored["vectors"], strict=True))
