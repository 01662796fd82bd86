"""The classic stack: Chroma on disk (cosine) beside SQLite's FTS5, merged by the classic recipe."""

import re
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import chromadb
from bm25s.stopwords import STOPWORDS_EN
from chromadb.config import Settings

from app.foundation.models.protocols import Matrix
from benchmarks.peers.embedder import Embedder
from benchmarks.peers.system import DEFAULT, Memory
from benchmarks.peers.systems.local import Local

NEAREST = 12
"""The recipe's: as many as the vector arm brings."""
TERMS = 8
"""The recipe's: content terms of a lexical query at most."""
POOL = 50
"""Of each arm, where ranks are fused."""
RANK_CONSTANT = 60
"""Of reciprocal rank fusion, as its authors set it."""
BATCH = 5_000
WORD = re.compile(r"\w{3,}")


class Classic(Local):
    """A collection and an FTS5 table a workspace, in one Chroma and one SQLite file."""

    def __init__(self, folder: Path, embedder: Embedder, *, by_rank: bool = False) -> None:
        super().__init__(folder, embedder)
        self._by_rank = by_rank
        # Telemetry is off, and no embedding function: vectors are given.
        self._chroma = chromadb.PersistentClient(str(folder / "chroma"), Settings(anonymized_telemetry=False))
        self._collections: dict[str, Any] = {}
        self._threads = threading.local()

    def add(self, memories: Sequence[Memory], vectors: Matrix | None = None, workspace: str = DEFAULT) -> None:
        """Both arms, in batches that Chroma takes."""
        for start in range(0, len(memories), BATCH):
            batch = memories[start : start + BATCH]
            texts = [memory.text for memory in batch]
            made = self._embedder.documents(texts) if vectors is None else vectors[start : start + BATCH]
            self._collection(workspace).add(
                ids=[memory.key for memory in batch],
                embeddings=made,
                documents=texts,
                metadatas=[memory.metadata for memory in batch],
            )
            self._add_words(batch, workspace)

    def search(self, query: str, k: int, *, tag: str = "", workspace: str = DEFAULT) -> list[str]:
        """Both arms, merged."""
        least = max(k, POOL) if self._by_rank else NEAREST
        nearest = self._nearest(query, least, tag, workspace)
        worded = self._worded(query, max(k, least), tag, workspace)
        merged = by_rank(nearest, worded) if self._by_rank else list(dict.fromkeys([*nearest, *worded]))
        return merged[:k]

    def _collection(self, workspace: str) -> Any:  # noqa: ANN401 - the library's own type
        if workspace not in self._collections:
            self._collections[workspace] = self._chroma.create_collection(
                workspace, configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
            )
            self._make_tables(len(self._collections) - 1)
        return self._collections[workspace]

    def _nearest(self, query: str, count: int, tag: str, workspace: str) -> list[str]:
        """By 1 - distance / 2: with neither scores nor ratings, the recipe's rank keeps the order."""
        found = self._collections[workspace].query(
            query_embeddings=[self._embedder.query(query)],
            n_results=count,
            where={"tag": tag} if tag else None,
            include=["documents", "metadatas", "distances"],
        )
        return list(found["ids"][0])

    def _worded(self, query: str, count: int, tag: str, workspace: str) -> list[str]:
        place = list(self._collections).index(workspace)
        terms = content_terms(query)
        if not terms:
            return []
        statement = (
            f"SELECT m.key FROM words_{place} w JOIN memories_{place} m ON m.id = w.rowid"  # noqa: S608 - a number
            f" WHERE words_{place} MATCH ? {'AND m.tag = ?' if tag else ''} ORDER BY bm25(words_{place}) LIMIT ?"
        )
        given = [" OR ".join(f'"{term}"' for term in terms), *([tag] if tag else []), count]
        return [row[0] for row in self._connection().execute(statement, given)]

    def _add_words(self, batch: Sequence[Memory], workspace: str) -> None:
        place = list(self._collections).index(workspace)
        with self._connection() as connection:
            ids = [
                connection.execute(f"INSERT INTO memories_{place} (key, tag) VALUES (?, ?)", row).lastrowid  # noqa: S608 - a number
                for row in ((memory.key, memory.tag) for memory in batch)
            ]
            rows = [(number, memory.text) for number, memory in zip(ids, batch, strict=True)]
            connection.executemany(f"INSERT INTO words_{place} (rowid, text) VALUES (?, ?)", rows)  # noqa: S608 - a number

    def _make_tables(self, place: int) -> None:
        with self._connection() as connection:
            connection.execute(f"CREATE TABLE memories_{place} (id INTEGER PRIMARY KEY, key TEXT, tag TEXT)")
            connection.execute(f"CREATE INDEX memories_{place}_tag ON memories_{place} (tag)")
            connection.execute(f"CREATE VIRTUAL TABLE words_{place} USING fts5(text, tokenize='porter unicode61')")

    def _connection(self) -> sqlite3.Connection:
        """One a thread, as SQLite wants it."""
        if not hasattr(self._threads, "connection"):
            self._threads.connection = sqlite3.connect(self._folder / "words.db")
            self._threads.connection.execute("PRAGMA journal_mode = WAL")
        connection: sqlite3.Connection = self._threads.connection
        return connection


def content_terms(query: str) -> list[str]:
    """The query's first words of three letters and more that are not stop words, each once."""
    words = (word for word in WORD.findall(query.lower()) if word not in STOPWORDS_EN)
    return list(dict.fromkeys(words))[:TERMS]


def by_rank(*rankings: Sequence[str]) -> list[str]:
    """Reciprocal rank fusion."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, key in enumerate(ranking, start=1):
            scores[key] = scores.get(key, 0.0) + 1 / (RANK_CONSTANT + rank)
    return sorted(scores, key=lambda key: -scores[key])


@contextmanager
def opened(folder: Path, embedder: Embedder) -> Iterator[Classic]:
    """The recipe: the nearest first, then what only words found."""
    yield Classic(folder, embedder)


@contextmanager
def opened_by_rank(folder: Path, embedder: Embedder) -> Iterator[Classic]:
    """A better merge of the same two arms."""
    yield Classic(folder, embedder, by_rank=True)
