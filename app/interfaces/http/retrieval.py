"""`POST /api/search`, `/api/history` and `/api/check`; `GET /api/recalls`, `/api/recalls:trends` and one recall."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from litestar import Controller
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from app.errors import DatabaseUnavailable
from app.interfaces.http.context import BY_USER, Call, IdempotencyKey, Limit, ThisCall
from app.interfaces.http.cues import PlannedInput
from app.interfaces.http.schemas import (
    DegradedView,
    HitView,
    Input,
    ask,
    convert,
    get,
    hit_view,
)
from app.recall.cues.activate import PLAN_LIMIT, Activation, PlanAsked
from app.recall.preflight import CheckAsked, PlanCheck
from app.recall.retrieval.rank.presets import Weights
from app.recall.retrieval.recall import (
    LARGEST_K,
    LONGEST_HALF_LIFE,
    QUERY_LIMIT,
    Broken,
    History,
    Query,
    Recall,
    checked_preset,
)
from app.storage.memories.filters import Filters
from app.storage.memories.memory import NAME_LIMIT, Name
from app.storage.memories.service import NEIGHBOURHOOD
from app.storage.recalls.store import TRIAL, LoggedRecall, LoggedSummary, Outcome, RecallDay, RecallFilters
from app.storage.tenants.workspace import User, Workspace

_K = Annotated[int, Meta(ge=1, le=LARGEST_K, description="hits at most")]
QueryText = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=QUERY_LIMIT,
        description="what is asked, in plain words: what is to be done, such as the `task` of a run, or a question",
    ),
]
Now = Annotated[
    datetime | None,
    Meta(description="the moment that `last week` and ages refer to; without it the present"),
]
_MinProbability = Annotated[
    float,
    Meta(
        ge=0,
        le=1,
        description="the least probability of each hit, in place of the preset's thresholds; 0 shows everything",
    ),
]
_HalfLife = Annotated[
    float,
    Meta(gt=0, le=LONGEST_HALF_LIFE, description="days after which recency is half way to its floor; without it 365"),
]
_Rerank = Annotated[
    bool | None,
    Meta(description="true: the re-ranker reads the best hits once more; without it, where one is configured"),
]


_Trial = Annotated[
    bool, Meta(description="a person tries out what an agent would get: logged with the purpose `trial`")
]
_MOST_DAYS = 366


class WeightsInput(Input):
    """The weights of a score's parts, in place of the preset's own."""

    relevance: Annotated[float, Meta(ge=0, le=1)] = 0.7
    quality: Annotated[float, Meta(ge=0, le=1)] = 0.3
    recency: bool = True
    """True where age counts."""

    def weights(self) -> Weights:
        """Returns the value that the verb takes."""
        half_life = Weights().half_life_days if self.recency else None
        return Weights(relevance=self.relevance, quality=self.quality, half_life_days=half_life)


class QueryInput(Input, kw_only=True):
    """A query, and how it is answered."""

    query: QueryText
    k: _K = 10
    filters: Filters | None = None
    preset: Annotated[str, Meta(max_length=NAME_LIMIT)] = "default"
    language: Name | None = None
    agent: Name | None = None
    run_id: Name | None = None
    weights: WeightsInput | None = None
    min_probability: _MinProbability | None = None
    half_life_days: _HalfLife | None = None
    now: Now = None
    rerank: _Rerank = None
    trial: _Trial = False
    user: User = ""


class SearchInput(QueryInput, kw_only=True):
    """A query for memories."""

    around: Annotated[
        int,
        Meta(ge=0, le=NEIGHBOURHOOD, description="show the memories up to so many places before and after each hit"),
    ] = 0


class HistoryInput(QueryInput, kw_only=True):
    """A query for what an agent is about to do."""

    k: _K = 3
    budget_tokens: Annotated[int, Meta(ge=1, le=100_000)] = 500
    stable: Annotated[
        bool,
        Meta(
            description="continue the run's previous stable section: what it showed keeps its place and bytes as long"
            " as there is room, and what is new follows, so that a model server's prefix cache can reuse it; needs"
            " run_id"
        ),
    ] = False
    activate: Annotated[
        bool,
        Meta(description="add the section `## Before you act`: what was learnt about the query as a plan; one budget"),
    ] = False


def _query_of(given: SearchInput | HistoryInput, purpose: str, key: str | None = None) -> Query:
    """Returns the query as the verbs take it."""
    filters = given.filters or Filters()
    weights = None if given.weights is None else given.weights.weights()
    purpose = TRIAL if given.trial else purpose
    own = {"text": given.query, "filters": filters, "weights": weights, "purpose": purpose, "idempotency_key": key}
    return convert(given, Query, **own)


async def _tenant_of(call: Call, query: Query, user: str) -> Workspace:
    """Returns the tenant of a query's call, as a user sees it.

    If the database is away, an invalid query gets its own error.
    """
    try:
        return await call.asked_by(user).tenant()
    except DatabaseUnavailable:
        checked_preset(query)
        raise


Probability = Annotated[
    float | None,
    Meta(description="the probability that the store speaks to the query; null without vectors of the bundled model"),
]

AskedPeriod = Annotated[
    str | None,
    Meta(
        description="the period of which the query asks for records (`8 to 14 June 2026`): all hits are of it; null if"
        " it asks for none"
    ),
]


class SearchView(Struct, frozen=True):
    """The answer to a search."""

    hits: Sequence[HitView]
    probability: Probability
    mode: str
    degraded: Sequence[DegradedView]
    recall_id: UUID
    took_ms: float
    period: AskedPeriod = None


class HistoryView(SearchView, frozen=True, kw_only=True):
    """The section that an agent reads, and what it was made of; the fields from `reused_tokens` where it is stable."""

    markdown: str
    tokens: int
    needed_tokens: Annotated[
        int | None,
        Meta(description="the budget from which the best hit fits, where this one was too small for any; else null"),
    ]
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
    broken: (
        Annotated[
            Broken,
            Meta(
                description="the first block of the previous section that stands no longer where it stood. withdrawn:"
                " the memory is deleted, superseded, quarantined or gone from its source; edited: its title, text,"
                " source or date is another; filtered: this call's filters leave it out; budget: what this query found"
                " needs the room"
            ),
        ]
        | UnsetType
        | None
    ) = UNSET
    activation: Activation | UnsetType = UNSET
    """With `activate`: the cues; their section follows the history in `markdown`."""


def _degradations(call: Call, recall: Recall) -> list[DegradedView]:
    """Returns the arms that did not serve in full, and the store while it may lack what it is asked for."""
    found = convert(recall.degraded, list[DegradedView])
    return [*found, DegradedView(arm="store", reason=lack)] if (lack := call.lack) else found


def _history_view(call: Call, found: History) -> HistoryView:
    recall, reuse = found.recall, found.reuse
    view = convert(
        recall,
        HistoryView,
        hits=[hit_view(hit, recall.query.weights) for hit in recall.hits],
        degraded=_degradations(call, recall),
        markdown=found.markdown,
        tokens=found.tokens,
        needed_tokens=found.needed_tokens,
    )
    if reuse is None:
        return view
    return replace(view, reused_tokens=reuse.tokens, reused_share=reuse.share, kept=reuse.kept, broken=reuse.broken)


class RetrievalController(Controller):
    """Finds memories."""

    path = "/api"
    tags = ("retrieval",)

    @ask("/search")
    async def search(self, call: ThisCall, data: JSONBody[SearchInput]) -> SearchView:
        """The memories that matter for a query, best first, each with every component of its score."""
        query = _query_of(data, "search")
        tenant = await _tenant_of(call, query, data.user)
        recall = await call.services.retrieval.search(tenant, query)
        call.note_recall(recall)
        ids = [hit.memory.memory_id for hit in recall.hits] if data.around else []
        beside = await call.services.memories.surroundings(tenant, ids=ids, distance=data.around)
        hits = [hit_view(hit, query.weights, beside.get(hit.memory.memory_id)) for hit in recall.hits]
        return convert(recall, SearchView, hits=hits, degraded=_degradations(call, recall))

    @ask("/history")
    async def history(
        self, call: ThisCall, data: JSONBody[HistoryInput], idempotency_key: IdempotencyKey = None
    ) -> HistoryView:
        """The `## Relevant History` section for an agent, within a token budget.

        With `stable`, consecutive calls of one run share the longest possible prefix of bytes.
        """
        histories, query = call.services.histories, _query_of(data, "history", idempotency_key)
        tenant = await _tenant_of(call, query, data.user)
        options: dict[str, Any] = {"budget_tokens": data.budget_tokens, "stable": data.stable}
        if data.activate:
            found, activation = await histories.with_cues(tenant, query, **options)
        else:
            found, activation = await histories.get(tenant, query, **options), None
        call.note_recall(found.recall)
        view = _history_view(call, found)
        if activation is None:
            return view
        markdown = "\n".join(filter(None, (view.markdown, activation.markdown)))
        return replace(view, markdown=markdown, tokens=view.tokens + activation.tokens, activation=activation)

    @get("/recalls", dependencies=BY_USER)
    async def recalls(  # noqa: PLR0913, PLR0917 - each is a query parameter
        self,
        call: ThisCall,
        text: Annotated[str | None, QueryParameter(description="a part of the query", max_length=1_000)] = None,
        agent: FromQuery[str | None] = None,
        run_id: FromQuery[str | None] = None,
        mode: FromQuery[Literal["hybrid", "lexical", "vector"] | None] = None,
        purpose: FromQuery[str | None] = None,
        outcome: FromQuery[Outcome | None] = None,
        since: FromQuery[datetime | None] = None,
        until: FromQuery[datetime | None] = None,
        limit: Limit = 50,
        before: Annotated[UUID | None, QueryParameter(description="the last recall of the page before")] = None,
    ) -> Sequence[LoggedSummary]:
        """Logged recalls that meet every condition, the latest first."""
        asked = RecallFilters(
            text=text,
            agent=agent,
            run_id=run_id,
            mode=mode,
            purpose=purpose,
            outcome=outcome,
            since=since,
            until=until,
        )
        return await call.services.recalls.page(await call.tenant(), asked, limit=limit, before=before)

    @get("/recalls:trends", dependencies=BY_USER)
    async def trends(
        self, call: ThisCall, days: Annotated[int, QueryParameter(ge=1, le=_MOST_DAYS)] = 30
    ) -> Sequence[RecallDay]:
        """The latest days, today the last, each with its recalls; those that people tried out do not count."""
        return await call.services.recalls.days(await call.tenant(), days)

    @get("/recalls/{recall_id:uuid}", dependencies=BY_USER)
    async def recall(self, recall_id: FromPath[UUID], call: ThisCall) -> LoggedRecall:
        """One logged recall with its hits."""
        return await call.services.recalls.get(await call.tenant(), recall_id)


class CheckInput(PlannedInput, kw_only=True):
    """A plan that somebody is about to carry out."""

    plan: Annotated[str, Meta(min_length=1, max_length=PLAN_LIMIT, description="the plan; a list has a step an item")]
    task_type: Annotated[Name, Meta(description="the kind of task; it may name the test case")] = ""

    def question(self) -> CheckAsked:
        """Returns the value that the verb takes."""
        return CheckAsked(plan=convert(self, PlanAsked), task_type=self.task_type)


@ask("/api/check", tags=["cues"])
async def check(call: ThisCall, data: JSONBody[CheckInput]) -> PlanCheck:
    """A verdict for each step of a plan (clear, look again, stop and ask), with the evidence. No model is asked."""
    asking = call.asked_by(data.user)
    return await asking.services.preflights.check(await asking.tenant(), data.question())
