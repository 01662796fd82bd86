"""What a recall gives: hits, each with every component of its score, and how they were found."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from app.memories.memory import Memory

HYBRID, LEXICAL, VECTOR = "hybrid", "lexical", "vector"


@dataclass(frozen=True, slots=True, kw_only=True)
class Degradation:
    """An arm that did not serve an answer, or not in full, and why."""

    arm: str
    reason: str
    silent: bool
    """Whether the arm was left out altogether."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A memory that was found."""

    memory: Memory
    score: float
    explain: Mapping[str, float | None]
    """Every component of the score, by name (docs/retrieval.md says how they make it)."""

    @property
    def kind(self) -> str:
        """The memory's kind."""
        return self.memory.kind

    @property
    def title(self) -> str:
        """The memory's title."""
        return self.memory.title

    @property
    def body(self) -> str:
        """The memory's text."""
        return self.memory.body


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """The answer to a query, best hit first."""

    recall_id: UUID
    hits: tuple[Hit, ...]
    mode: str
    """Which arms answered: hybrid, lexical or vector."""
    degraded: tuple[Degradation, ...]
    took_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A recall as the section that an agent reads."""

    markdown: str
    """`## Relevant History …`; empty where nothing is relevant."""
    tokens: int
    """Model tokens of `markdown`."""
    recall: Recall
    """With the hits that the section shows."""
