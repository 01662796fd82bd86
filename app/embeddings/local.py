"""temporary"""
import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from app.embeddings.bundled import write_onnx
from app.embeddings.provider import Matrix, Vector


class LocalProvider:
    model_id = "sentence-transformers/all-MiniLM-L6-v2"
    dimension = 384
    enabled = True
    def __init__(self, data_dir: Path, threads: int) -> None:
        self._dir = data_dir; self._pool = ThreadPoolExecutor(1); self._model: Any = None
    def _load(self) -> None:
        if self._model is None:
            from fastembed import TextEmbedding
            self._model = TextEmbedding(self.model_id, specific_model_path=str(write_onnx(self._dir / "models")))
    async def start(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._pool, self._load)
    def _run(self, texts: Sequence[str]) -> Matrix:
        self._load()
        if not texts: return np.zeros((0, 384), np.float32)
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        out = np.zeros((len(texts), 384), np.float32)
        for i, v in zip(order, self._model.embed([texts[i] for i in order], batch_size=32), strict=True): out[i] = v
        return out
    async def embed_query(self, text: str) -> Vector:
        return (await self.embed_documents([text]))[0]
    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._run, list(texts))
    async def close(self) -> None:
        self._pool.shutdown()
