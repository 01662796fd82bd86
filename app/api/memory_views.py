"""How memories and their sources come in and are shown over HTTP. Inputs refuse unknown fields; outputs are frozen."""

import sys
from array import array
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from app.api.fields import DegradedView, Kind, Name, Score, SourceKind, Tags
from app.memories.admission import BODY_LIMIT, TITLE_LIMIT, URI_LIMIT
from app.memories.browse import Facets
from app.memories.memory import (
    GivenVector,
    Memory,
    NewMemory,
    ObservationDetail,
    Source,
    SourceReference,
    StoredObservation,
)

VECTOR_LIMIT = 16_000
"""Numbers of a vector; pgvector's halfvec holds so many."""
LARGEST_FLOAT = 3.4e38
"""Of 32 bits; a larger number is taken as this one, which changes no direction that is anywhere."""


class SourceInput(Struct, forbid_unknown_fields=True):
    """Where a memory comes from."""

    kind: SourceKind
    uri: Annotated[str, Meta(min_length=1, max_length=URI_LIMIT)]
    title: Annotated[str, Meta(max_length=TITLE_LIMIT)] = ""


class ObservationInput(Struct, forbid_unknown_fields=True):
    """What an observation has beyond a memory's text, already compressed."""

    task: Annotated[str, Meta(max_length=20_000)] = ""
    task_type: Name = ""
    narrative: Annotated[str, Meta(max_length=BODY_LIMIT)] = ""
    facts: Annotated[list[Annotated[str, Meta(max_length=10_000)]], Meta(max_length=100)] = []
    output_path: Annotated[str, Meta(max_length=URI_LIMIT)] | None = None
    verdict: Name = ""

    def detail(self) -> ObservationDetail:
        """The value that the verb takes."""
        return ObservationDetail(
            task=self.task,
            task_type=self.task_type,
            narrative=self.narrative,
            facts=tuple(self.facts),
            output_path=self.output_path,
            verdict=self.verdict,
        )


class EmbeddingInput(Struct, forbid_unknown_fields=True):
    """A vector of the memory's title and body, a line break between them, where the caller has one."""

    model: Annotated[Name, Meta(description="as `GET /api/status` names the one that is served")]
    vector: Annotated[
        bytes | Annotated[list[float], Meta(max_length=VECTOR_LIMIT)],
        Meta(description="numbers, or 32-bit floats, little-endian, in base64"),
    ]

    def given(self) -> GivenVector:
        """The value that the verb takes."""
        if isinstance(self.vector, bytes):
            return GivenVector(model=self.model, numbers=self.vector)
        numbers = array("f", [min(max(number, -LARGEST_FLOAT), LARGEST_FLOAT) for number in self.vector])
        if sys.byteorder == "big":
            numbers.byteswap()
        return GivenVector(model=self.model, numbers=numbers.tobytes())


class MemoryInput(Struct, forbid_unknown_fields=True):
    """One memory to store."""

    kind: Kind
    body: Annotated[str, Meta(max_length=BODY_LIMIT, description="may be empty where an observation says it all")] = ""
    title: Annotated[str, Meta(max_length=TITLE_LIMIT)] = ""
    source: SourceInput | None = None
    ordinal: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    occurred_at: datetime | None = None
    tags: Tags = []
    metadata: dict[str, Any] = {}
    language: Name | None = None
    run_id: Name | None = None
    final_score: Score | None = None
    observation: ObservationInput | None = None
    embedding: EmbeddingInput | None = None

    def memory(self) -> NewMemory:
        """The value that the verb takes."""
        source = None
        if self.source is not None:
            source = SourceReference(kind=self.source.kind, uri=self.source.uri, title=self.source.title)
        detail = None if self.observation is None else self.observation.detail()
        return NewMemory(
            kind=self.kind,
            body=self.body or (detail.body if detail else ""),
            title=self.title,
            source=source,
            ordinal=self.ordinal,
            occurred_at=self.occurred_at,
            tags=tuple(self.tags),
            metadata=self.metadata,
            language=self.language,
            run_id=self.run_id,
            final_score=self.final_score,
            observation=detail,
            embedding=None if self.embedding is None else self.embedding.given(),
        )


class SourceView(Struct, frozen=True):
    """The source of a memory."""

    id: UUID
    kind: str
    uri: str
    title: str


class SourceDetail(Struct, frozen=True):
    """A source with its state."""

    id: UUID
    kind: str
    uri: str
    title: str
    memories: int
    created_at: datetime
    updated_at: datetime
    retired_at: datetime | None

    @classmethod
    def of(cls, source: Source) -> "SourceDetail":
        """The view of a stored source."""
        shared = {name: getattr(source, name) for name in Source.__slots__ if name != "source_id"}
        return cls(id=source.source_id, **shared)


class ObservationView(Struct, frozen=True):
    """What an observation has beyond a memory's text."""

    task: str
    task_type: str
    narrative: str
    facts: Sequence[str]
    output_path: str | None
    verdict: str
    compressor: str
    model: str | None
    superseded_by: UUID | None

    @classmethod
    def of(cls, observation: StoredObservation) -> "ObservationView":
        """The view of a stored observation."""
        return cls(**{name: getattr(observation, name) for name in cls.__struct_fields__})


class MemoryView(Struct, frozen=True):
    """A stored memory."""

    id: UUID
    kind: str
    title: str
    body: str
    language: str
    source: SourceView | None
    ordinal: int | None
    occurred_at: datetime | None
    tags: Sequence[str]
    metadata: dict[str, Any]
    run_id: str | None
    final_score: float | None
    quality: int
    tokens: int
    uses: int
    created_at: datetime
    valid_until: datetime | None
    retired_as: str | None
    findings: Sequence[dict[str, Any]] | None
    observation: ObservationView | None

    @classmethod
    def of(cls, memory: Memory) -> "MemoryView":
        """The view of a stored memory."""
        left_out = {
            "memory_id", "source_id", "source_kind", "source_uri", "source_title", "metadata", "findings",
            "observation",
        }  # fmt: skip
        findings = None if memory.findings is None else [dict(finding) for finding in memory.findings]
        shared = {name: getattr(memory, name) for name in Memory.__slots__ if name not in left_out}
        return cls(
            id=memory.memory_id,
            source=source_view(memory),
            metadata=dict(memory.metadata),
            findings=findings,
            observation=None if memory.observation is None else ObservationView.of(memory.observation),
            **shared,
        )


class RejectedLine(Struct, frozen=True):
    """A memory that was not stored."""

    line: int
    """From 1."""
    reason: str
    code: str = "invalid"
    """What statistics count it by."""


class StoredView(Struct, frozen=True, omit_defaults=True):
    """What became of the memories that were sent."""

    stored: int
    updated: int
    unchanged: int
    rejected: Sequence[RejectedLine]
    ids: Sequence[UUID | None]
    embedded: int | UnsetType = UNSET
    """With `?wait=embedded`: how many got their vector."""
    degraded: Sequence[DegradedView] | UnsetType = UNSET


class MemoryPage(Struct, frozen=True):
    """Memories in the order that was asked for."""

    memories: Sequence[MemoryView]
    next: str | None
    """Pass it as `cursor` for the page after; null at the end."""
    total: int | None
    """How many there are on all pages, counted up to 10,001; only on the first page."""


class FacetView(Struct, frozen=True):
    """A value that memories can be filtered by, and how many live ones have it."""

    value: str
    count: int


class FacetsView(Struct, frozen=True):
    """What there is to filter by, the most frequent first."""

    kinds: Sequence[FacetView]
    task_types: Sequence[FacetView]
    verdicts: Sequence[FacetView]
    tags: Sequence[FacetView]

    @classmethod
    def of(cls, facets: Facets) -> "FacetsView":
        """The view of what was counted."""
        return cls(
            **{
                name: [FacetView(value=value, count=count) for value, count in getattr(facets, name)]
                for name in cls.__struct_fields__
            }
        )


class SourcePage(Struct, frozen=True):
    """Sources, newest first."""

    sources: Sequence[SourceDetail]
    next: str | None


def source_view(memory: Memory) -> SourceView | None:
    """The view of a memory's source."""
    if memory.source_id is None:
        return None
    return SourceView(
        id=memory.source_id,
        kind=memory.source_kind or "",
        uri=memory.source_uri or "",
        title=memory.source_title or "",
    )
