"""Priors' own bundled model for systems that run in this process: the same weights, batches and threads for all."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from app.embeddings.local import LocalProvider
from app.embeddings.provider import Matrix, Vector

Result = TypeVar("Result")


class Embedder:
    """Texts to vectors, from any thread."""

    dimension = 384

    def __init__(self, folder: Path) -> None:
        self._provider = LocalProvider(folder)
        self._ready: dict[str, Vector] = {}
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def query(self, text: str) -> Vector:
        """The vector of a query."""
        return self._wait_for(self._provider.embed_query(text))

    def documents(self, texts: Sequence[str]) -> Matrix:
        """The vectors of many texts, those that are ready not made again."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._ready]
        if not missing:
            return np.stack([self._ready[text] for text in texts])
        made = dict(zip(missing, self._wait_for(self._provider.embed_documents(missing)), strict=True))
        return np.stack([made[text] if text in made else self._ready[text] for text in texts])

    def either(self, texts: Sequence[str]) -> Matrix:
        """For libraries that do not say which it is: one text that is not ready is a query."""
        if len(texts) == 1 and texts[0] not in self._ready:
            return self.query(texts[0])[np.newaxis]
        return self.documents(texts)

    @contextmanager
    def ready(self, texts: Sequence[str], vectors: Matrix | None) -> Iterator[None]:
        """Within this, these texts are not embedded, as these are their vectors; for libraries that take none."""
        self._ready = {} if vectors is None else dict(zip(texts, vectors, strict=True))
        yield
        self._ready = {}

    def warm_up(self) -> None:
        """Load the model's session for queries."""
        self.query("warm up")

    def _wait_for(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
