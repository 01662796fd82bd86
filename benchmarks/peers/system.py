"""What every system under comparison is: it takes memories, and finds them."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from app.foundation.models.protocols import Matrix
from app.storage.index.vectors import embedded_text
from benchmarks.peers.embedder import Embedder

DEFAULT = "default"
"""The workspace of a work that needs only one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One memory, as every system gets it."""

    key: str
    body: str
    title: str = ""
    kind: str = "note"
    source: str = ""
    """Where it comes from; empty: from nowhere in particular."""
    ordinal: int | None = None
    occurred_at: str | None = None
    """ISO 8601."""
    tag: str = ""

    @property
    def text(self) -> str:
        """What a system stores that knows texts alone: a message as a dialogue is written, else what Priors embeds.

        Vectors of "Ann: hello" find 5 to 7 points more of LoCoMo's evidence than those of "Ann", a new line, "hello".
        """
        return f"{self.title}: {self.body}" if self.kind == "message" else embedded_text(self.title, self.body)

    @property
    def metadata(self) -> dict[str, Any]:
        """What else there is to say of it, for systems that keep flat metadata."""
        said = {"key": self.key, "source": self.source, "ordinal": self.ordinal, "date": self.occurred_at}
        return {name: value for name, value in {**said, "tag": self.tag}.items() if value not in {None, ""}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """What a system takes while it serves, in megabytes."""

    disk: float
    """Of its files, the embedding model's left out."""
    resident: float
    """Of every process that serves, the embedding model's included."""


class System(Protocol):
    """An empty, open store."""

    def add(self, memories: Sequence[Memory], vectors: Matrix | None = None, workspace: str = DEFAULT) -> None:
        """Store memories, so that the next search finds them; without vectors the system has them made."""
        ...

    def settle(self) -> None:
        """Do at once what it does by itself within a minute, before its answers are timed."""
        ...

    def search(self, query: str, k: int, *, tag: str = "", workspace: str = DEFAULT) -> list[str]:
        """The keys of what it finds, best first, the query's embedding included. Called by many threads at once."""
        ...

    def footprint(self) -> Footprint:
        """What it takes now."""
        ...


Opener = Callable[[Path, Embedder], AbstractContextManager[System]]
"""Opens a system in an empty folder, which it may fill."""
