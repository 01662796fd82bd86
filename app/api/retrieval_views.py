"""How queries come in, and hits, histories and recalls are shown over HTTP."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from app.api.fields import DegradedView, Kind, Name, Quality, Score, Tags, degraded_view
from app.api.memory_views import SourceView, source_view
from app.memories.admission import NAME_LIMIT
from app.memories.filters import GLOB_LIMIT, Filters
from app.retrieval.log import LoggedRecall
from app.retrieval.query import LARGEST_K, QUERY_LIMIT, Query
from app.retrieval.rank.quality import Weights
from app.retrieval.recall import Broken, Explanation, History, Hit

K = Annotated[int, Meta(ge=1, le=LARGEST_K, description="hits at most")]
QueryText = Annotated[str, Meta(min_length=1, max_length=QUERY_LIMIT)]
Now = Annotated[
    datetime | None,
    Meta(description="what `last week` is told from and ages are counted to; without it the present"),
]
Rerank = Annotated[
    bool | None,
    Meta(description="whether the re-ranker reads the best hits once more; without it, where one is configured"),
]


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
