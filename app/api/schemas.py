"""What goes in and out over HTTP. Inputs refuse unknown fields; outputs are frozen."""

import sys
from array import array
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from app.memories.admission import BODY_LIMIT, NAME_LIMIT, TAG_LIMIT, TAGS_LIMIT, TITLE_LIMIT, URI_LIMIT
from app.memories.facets import Facets
from app.memories.filters import GLOB_LIMIT, Filters
from app.memories.memory import (
    GivenVector,
    Memory,
    NewMemory,
    ObservationDetail,
    Source,
    SourceReference,
    StoredObservation,
)
from app.retrieval.browse import LoggedRecall
from app.retrieval.query import LARGEST_K, QUERY_LIMIT, Query
from app.retrieval.ranking import Weights
from app.retrieval.recall import Broken, Degradation, Explanation, History, Hit

Kind = Literal["observation", "chunk", "message", "cue", "note"]
SourceKind = Literal["report", "session", "run", "other"]
Name = Annotated[str, Meta(max_length=NAME_LIMIT)]
Tag = Annotated[str, Meta(min_length=1, max_length=TAG_LIMIT)]
Tags = Annotated[list[Tag], Meta(max_length=TAGS_LIMIT)]
K = Annotated[int, Meta(ge=1, le=LARGEST_K, description="hits at most")]
QueryText = Annotated[str, Meta(min_length=1, max_length=QUERY_LIMIT)]
Quality = Annotated[int, Meta(ge=-3, le=3, description="what ratings replay to")]
VECTOR_LIMIT = 16_000
"""Numbers of a vector; pgvector's halfvec holds so many."""
LARGEST_FLOAT = 3.4e38
"""Of 32 bits; a larger number is taken as this one, which changes no direction that is anywhere."""
Score = Annotated[float, Meta(ge=0, le=10, description="the evaluator's score")]
Now = Annotated[
    datetime | None,
    Meta(description="what `last week` is told from and ages are counted to; without it the present"),
]

Rerank = Annotated[
    bool | None,
    Meta(description="whether the re-ranker reads the best hits once more; without it, where one is configured"),
]


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


class FiltersInput(Struct, forbid_unknown_fields=True):
    """Conditions that a hit must meet, all of them."""

    kinds: list[Kind] = []
    source: Annotated[str, Meta(max_length=GLOB_LIMIT, description="glob of the source's path")] = ""
    tags: Tags = []
    since: datetime | None = None
    until: datetime | None = None
    task_types: list[Name] = []
    verdicts: list[Name] = []
    min_quality: Quality | None = None
    max_quality: Quality | None = None
    min_score: Score | None = None
    max_score: Score | None = None

    def filters(self) -> Filters:
        """The value that the verb takes."""
        given: dict[str, Any] = {name: getattr(self, name) for name in Filters.__slots__}
        lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
        return Filters(**{**given, **lists})


class WeightsInput(Struct, forbid_unknown_fields=True):
    """What counts how much, in place of the preset's own weights."""

    relevance: Annotated[float, Meta(ge=0, le=1)] = 0.7
    quality: Annotated[float, Meta(ge=0, le=1)] = 0.3
    recency: bool = True
    """Whether age counts."""

    def weights(self) -> Weights:
        """The value that the verb takes."""
        half_life = Weights().half_life_days if self.recency else None
        return Weights(relevance=self.relevance, quality=self.quality, half_life_days=half_life)


class SearchInput(Struct, forbid_unknown_fields=True):
    """What is searched for."""

    query: QueryText
    k: K = 10
    filters: FiltersInput | None = None
    preset: Annotated[str, Meta(max_length=NAME_LIMIT)] = "default"
    language: Name | None = None
    agent: Name | None = None
    run_id: Name | None = None
    weights: WeightsInput | None = None
    now: Now = None
    rerank: Rerank = None

    def asked(self) -> Query:
        """The value that the verb takes."""
        return _query(self, "search")


class HistoryInput(Struct, forbid_unknown_fields=True):
    """What an agent is about to do."""

    query: QueryText
    agent: Name | None = None
    k: K = 3
    budget_tokens: Annotated[int, Meta(ge=1, le=100_000)] = 500
    run_id: Name | None = None
    stable: Annotated[
        bool,
        Meta(
            description="continue the run's previous stable section: what it showed keeps its place and bytes as long"
            " as there is room, and what is new follows, so that a model server's prefix cache can reuse it; needs"
            " run_id"
        ),
    ] = False
    filters: FiltersInput | None = None
    preset: Annotated[str, Meta(max_length=NAME_LIMIT)] = "default"
    language: Name | None = None
    weights: WeightsInput | None = None
    now: Now = None
    rerank: Rerank = None

    def asked(self) -> Query:
        """The value that the verb takes."""
        return _query(self, "history")


def _query(given: SearchInput | HistoryInput, purpose: str) -> Query:
    return Query(
        text=given.query,
        k=given.k,
        filters=Filters() if given.filters is None else given.filters.filters(),
        preset=given.preset,
        language=given.language,
        agent=given.agent,
        run_id=given.run_id,
        purpose=purpose,
        weights=None if given.weights is None else given.weights.weights(),
        now=given.now,
        rerank=given.rerank,
    )


class ReportInput(Struct, forbid_unknown_fields=True):
    """A report file's content."""

    path: Annotated[str, Meta(min_length=1, max_length=URI_LIMIT, description="a relative path to .md or .json")]
    content: str
    language: Name | None = None


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


class HitView(Struct, frozen=True):
    """A memory that was found, with every component of its score."""

    id: UUID
    kind: str
    title: str
    body: str
    score: float
    source: SourceView | None
    ordinal: int | None
    occurred_at: datetime | None
    tags: Sequence[str]
    metadata: dict[str, Any]
    final_score: float | None
    quality: int
    explain: Explanation

    @classmethod
    def of(cls, hit: Hit) -> "HitView":
        """The view of a hit."""
        memory = hit.memory
        return cls(
            id=memory.memory_id,
            kind=memory.kind,
            title=memory.title,
            body=memory.body,
            score=hit.score,
            source=source_view(memory),
            ordinal=memory.ordinal,
            occurred_at=memory.occurred_at,
            tags=memory.tags,
            metadata=dict(memory.metadata),
            final_score=memory.final_score,
            quality=memory.quality,
            explain=hit.explanation,
        )


class DegradedView(Struct, frozen=True):
    """An arm that did not serve in full, and why."""

    arm: str
    reason: str


class SearchView(Struct, frozen=True):
    """The answer to a search."""

    hits: Sequence[HitView]
    mode: str
    degraded: Sequence[DegradedView]
    recall_id: UUID
    took_ms: float


class BrokenView(Struct, frozen=True):
    """The first block of the run's previous section that stands no longer where it stood."""

    memory_id: UUID
    reason: Annotated[
        Literal["withdrawn", "edited", "filtered", "budget"],
        Meta(
            description="withdrawn: the memory is deleted, superseded, quarantined or gone from its source; edited: its"
            " title, text, source or date is another; filtered: this call's filters leave it out; budget: what this"
            " query found needs the room"
        ),
    ]

    @classmethod
    def of(cls, broken: Broken) -> "BrokenView":
        """The view of a break."""
        return cls(memory_id=broken.memory_id, reason=broken.reason)


class HistoryView(Struct, frozen=True):
    """The section that an agent reads, and what it was made of; `reuse` where it is stable."""

    markdown: str
    hits: Sequence[HitView]
    tokens: int
    mode: str
    degraded: Sequence[DegradedView]
    recall_id: UUID
    took_ms: float
    reused_tokens: (
        Annotated[int, Meta(description="tokens that the run's previous stable section began with, byte for byte")]
        | UnsetType
    ) = UNSET
    reused_share: (
        Annotated[float, Meta(ge=0, le=1, description="reused_tokens ÷ tokens; 0 for a run's first call")] | UnsetType
    ) = UNSET
    kept: (
        Annotated[
            Sequence[UUID],
            Meta(
                description="memories whose blocks stand where the previous section had them, in that order, whether or"
                " not this query found them; the hits that are not among them follow"
            ),
        ]
        | UnsetType
    ) = UNSET
    broken: BrokenView | UnsetType | None = UNSET

    @classmethod
    def of(cls, history: History) -> "HistoryView":
        """The view of a history."""
        recall, reuse = history.recall, history.reuse
        view = cls(
            markdown=history.markdown,
            hits=[HitView.of(hit) for hit in recall.hits],
            tokens=history.tokens,
            mode=recall.mode,
            degraded=degraded_view(recall.degraded),
            recall_id=recall.recall_id,
            took_ms=recall.took_ms,
        )
        if reuse is None:
            return view
        broken = None if reuse.broken is None else BrokenView.of(reuse.broken)
        return replace(view, reused_tokens=reuse.tokens, reused_share=reuse.share, kept=reuse.kept, broken=broken)


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


class LoggedHitView(Struct, frozen=True):
    """A hit as it was given."""

    rank: int
    id: UUID
    title: str
    score: float
    explain: Explanation


class RecallView(Struct, frozen=True):
    """A logged recall."""

    recall_id: UUID
    purpose: str
    query: str
    agent: str | None
    run_id: str | None
    parameters: dict[str, Any]
    mode: str
    degraded: Sequence[DegradedView]
    tokens: int | None
    took_ms: float
    created_at: datetime
    hits: Sequence[LoggedHitView]

    @classmethod
    def of(cls, recall: LoggedRecall) -> "RecallView":
        """The view of a logged recall."""
        left_out = {"degraded", "hits", "parameters"}
        shared = {name: getattr(recall, name) for name in LoggedRecall.__slots__ if name not in left_out}
        hits = [
            LoggedHitView(rank=h.rank, id=h.memory_id, title=h.title, score=h.score, explain=dict(h.explain))
            for h in recall.hits
        ]
        return cls(**shared, parameters=dict(recall.parameters), degraded=degraded_view(recall.degraded), hits=hits)


class OutcomeView(Struct, frozen=True):
    """What became of a report."""

    path: str
    status: str
    chunks: int
    stored: int
    tokens: int
    left_out: int
    quarantined: int


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


class HealthView(Struct, frozen=True):
    """The process is alive."""

    status: Literal["ok"] = "ok"


class ReadyView(Struct, frozen=True):
    """Whether requests can be served as they should be."""

    ready: bool
    database: bool
    migrations: str | None
    head: str
    model: bool
    waiting: int
    reasons: Sequence[str]


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


def degraded_view(degraded: Sequence[Degradation]) -> Sequence[DegradedView]:
    """The view of what did not serve in full."""
    return [DegradedView(arm=item.arm, reason=item.reason) for item in degraded]
