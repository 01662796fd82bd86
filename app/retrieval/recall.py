"""The values of a query, which is checked here, and of its recall: hits, each with every component of its score."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import islice
from textwrap import shorten
from types import MappingProxyType
from typing import Literal, NamedTuple
from uuid import UUID

from app.errors import check
from app.memories import filters
from app.memories.filters import Filters
from app.memories.gate import NAME_LIMIT, moment_reasons, unstorable
from app.memories.memory import Memory, in_utc
from app.retrieval.rank.passages import PassageScore
from app.retrieval.rank.presets import DEFAULT, PRESETS, Preset
from app.retrieval.rank.quality import Weights
from app.retrieval.rank.tuning import with_weights
from app.text.words import is_latin
from app.workspaces.workspace import Workspace, check_language

QUERY_LIMIT = 300_000
"""Most characters of a query, regardless of their bytes. A task text of 10,000 long words is accepted, although it
has more than 100 kB; a pasted log is not (docs/retrieval.md)."""
LARGEST_K = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The query of an agent, with its options."""

    text: str
    k: int
    filters: Filters = field(default_factory=Filters)
    preset: str = DEFAULT.name
    language: str | None = None
    """Text search language of the query; None stands for all languages of the workspace's memories."""
    agent: str | None = None
    run_id: str | None = None
    idempotency_key: str | None = None
    """It marks a retry: the cues that it fires are not counted again."""
    purpose: str = "search"
    weights: Weights | None = None
    """Weights in place of the preset's own."""
    min_probability: float | None = None
    """The least probability of a hit, in place of the preset's thresholds; where there is no probability, the least
    `lexical`."""
    half_life_days: float | None = None
    """Days after which recency is half way to its floor, in place of the weights' own; with it, age counts."""
    now: datetime | None = None
    """The moment to which `last week` and ages are relative, in its own time zone or UTC; None stands for the
    present."""
    rerank: bool | None = None
    """True if the re-ranker scores the best hits again; None if it does so only when one is configured."""

    @property
    def moment(self) -> datetime:
        """The moment of the query."""
        if self.now is None:
            return datetime.now(UTC)
        return self.now if self.now.tzinfo else in_utc(self.now)


LONGEST_HALF_LIFE = 36_500
"""Days: a century, after which age hardly counts."""
WEIGHED = ("relevance", "quality")
"""The weights that a query may set."""


def checked_preset(
    query: Query, fitted: Mapping[str, float] = MappingProxyType({}), *, measured: bool = True
) -> Preset:
    """Returns the preset that the query names, with the query's own weights and threshold.

    `fitted` are the workspace's own weights, which the preset `default` has there. `measured` is False for another
    model than the one by whose similarities the thresholds were chosen.

    Raises:
        InvalidInput: a part of the query is not valid.
    """
    check(list(islice(_reasons(query), 1)))
    preset = PRESETS[query.preset]
    if fitted and preset is DEFAULT:
        preset = with_weights(preset, fitted)
    weights = preset.weights if query.weights is None else query.weights
    if query.half_life_days is not None:
        weights = replace(weights, half_life_days=query.half_life_days)
    threshold = preset.threshold if query.min_probability is None else None
    if threshold is not None and not measured:
        threshold = threshold.unmeasured()
    elif threshold is not None and not is_latin(query.text):
        threshold = threshold.of_words()
    return replace(preset, weights=weights, threshold=threshold)


def _reasons(query: Query) -> Iterator[str]:
    if not query.text.strip():
        yield "query: is empty; say what the history should be about"
    if len(query.text) > QUERY_LIMIT:
        yield f"query: has {len(query.text):,} characters; at most {QUERY_LIMIT:,} are taken"
    yield from moment_reasons([("now", query.now)])
    if not 1 <= query.k <= LARGEST_K:
        yield f"k: must be from 1 to {LARGEST_K}"
    names = {"agent": query.agent, "run_id": query.run_id, "language": query.language}
    yield from (
        f"{name}: has more than {NAME_LIMIT} characters"
        for name, value in names.items()
        if len(value or "") > NAME_LIMIT
    )
    check_language(query.language)
    yield from unstorable({"query": query.text, **names})
    if query.filters:
        filters.check(query.filters)
    if query.preset not in PRESETS:
        yield f"preset: {query.preset!r} is none; there are {', '.join(PRESETS)}"
    yield from _out_of_range(query)


def _out_of_range(query: Query) -> Iterator[str]:
    if query.min_probability is not None and not 0 <= query.min_probability <= 1:
        yield "min_probability: must be from 0 to 1"
    if query.half_life_days is not None and not 0 < query.half_life_days <= LONGEST_HALF_LIFE:
        yield f"half_life_days: must be above 0 and at most {LONGEST_HALF_LIFE:,}"
    given = {} if query.weights is None else asdict(query.weights)
    yield from (f"weights.{name}: must be from 0 to 1" for name in WEIGHED if not 0 <= given.get(name, 0) <= 1)


TRIAL = "trial"
"""The purpose of a recall by which a person tries out what an agent would get."""
HYBRID, LEXICAL, VECTOR = "hybrid", "lexical", "vector"
RERANKER = "reranker"
"""The name of the re-ranker among the arms in `degraded`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Degradation:
    """An arm that did not serve an answer, or did so only in part, with the reason."""

    arm: str
    reason: str
    silent: bool
    """True if the arm was left out completely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HitLink:
    """The link that brought a hit, or boosts it."""

    relation: str
    direction: str
    """`out` if the link leads from the hit to the other memory (it mentions that memory, is derived from it …); else
    `in`."""
    memory_id: UUID
    """The memory at the other end of the link, which is relevant to the query itself."""
    title: str = ""
    """The title of that memory; empty in the log, which stores no text of memories."""


Explanation = dict[str, float | HitLink | None]


REMARK_CHARACTERS = 100
HOW = re.compile(r" by | \(")
"""What separates a state from the words on how an issue was resolved, for which several issues leave no room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueState:
    """The present state of an issue that a hit states, where the hit does not say it."""

    title: str
    status: str
    """`reopened`, `resolved` or `unnamed`."""
    state: str
    """The status in words, with its version: `resolved in v7 by the stop rule`."""


class HitPassage(NamedTuple):
    """A passage of a hit with its rank, which is on the scale of the hits' scores."""

    passage: PassageScore
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A memory that was found."""

    memory: Memory
    score: float
    explain: Mapping[str, float | None]
    """Every component of the score, by name (docs/retrieval.md describes the sum)."""
    link: HitLink | None = None
    """The link that gave the component `links`."""
    issues: tuple[IssueState, ...] = ()
    """The issues in it whose present state it does not say."""
    stated_issues: int = 0
    """Number of issues that it states, if it does not say the state of all."""
    passages: tuple["HitPassage", ...] = ()
    """Its passages with their ranks, those left out that a later one corrects; read for a history only."""

    @property
    def remark(self) -> str:
        """The present states of its issues, each with its title if it states several; empty if it says them itself."""
        if not self.issues:
            return ""
        states = list(dict.fromkeys(issue.state for issue in self.issues))
        if len(states) == 1 and self.stated_issues == len(self.issues):
            said = states[0]
        else:
            titles: dict[str, list[str]] = {}
            for issue in sorted(self.issues, key=lambda issue: issue.status):
                titles.setdefault(HOW.split(issue.state)[0], []).append(issue.title)
            said = "; ".join(f"{state}: {', '.join(its)}" for state, its in titles.items())
        return shorten(said, REMARK_CHARACTERS, placeholder=" …")

    @property
    def explanation(self) -> Explanation:
        """The components with the link, as answers give them."""
        return {**self.explain, "link": self.link} if self.link else {**self.explain}

    @property
    def logged(self) -> Explanation:
        """The components with the link, as the log keeps them."""
        return {**self.explain, "link": replace(self.link, title="")} if self.link else {**self.explain}

    @property
    def passage(self) -> tuple[int, int] | None:
        """The characters of its text from which and up to which its nearest passage goes; None if it has only one."""
        starts, ends = self.explain.get("passage_starts"), self.explain.get("passage_ends")
        return None if starts is None or ends is None else (int(starts), int(ends))

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
    """The arms that answered: hybrid, lexical or vector."""
    degraded: tuple[Degradation, ...]
    took_ms: float
    query: Query
    """The query as it is logged."""
    workspace: Workspace
    probability: float | None = None
    """The probability that the store speaks to the query; None without vectors of the measured model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """The block at which the previous section of a run could not be continued."""

    memory_id: UUID
    """The memory of the first block that is no longer at its place."""
    reason: Literal["withdrawn", "edited", "filtered", "budget"]
    """In this order: the memory is no longer live; its text, title, date or source has changed; the query's filters
    exclude it; or the query's hits need the room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reuse:
    """The beginning of a section that is equal, byte for byte, to that of the run's previous section."""

    tokens: int
    share: float
    """Share of the section's tokens that are reused; 0 for a first call."""
    kept: tuple[UUID, ...]
    """The memories of the reused blocks, in their order, whether or not the query found them again."""
    broken: Broken | None
    """The block that ended the reuse; None if the whole previous section is reused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A recall with the section that an agent reads."""

    markdown: str
    """The section `## Relevant History …`; empty if no memory is relevant."""
    tokens: int
    """Model tokens of `markdown`."""
    recall: Recall
    """The recall, with the hits of this query that the section shows."""
    reuse: Reuse | None = None
    """The reused part of the section; None if the section is not stable."""
    needed_tokens: int | None = None
    """The budget from which the best hit fits, where the budget was too small for any; else None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedSummary:
    """A logged recall with the number of its hits."""

    recall_id: UUID
    purpose: str
    query: str
    agent: str | None
    run_id: str | None
    mode: str
    degraded: tuple[Degradation, ...]
    tokens: int | None
    took_ms: float
    created_at: datetime
    hits: int


Outcome = Literal["empty", "degraded"]
"""A reason to look at a recall: it found nothing, or it was answered without an arm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallFilters:
    """Conditions of logged recalls; None is no condition."""

    text: str | None = None
    """A part of the query, in upper or lower case."""
    agent: str | None = None
    run_id: str | None = None
    mode: str | None = None
    purpose: str | None = None
    outcome: Outcome | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallDay:
    """The recalls of one day in UTC."""

    day: date
    recalls: int = 0
    empty: int = 0
    """Recalls that found nothing."""
    degraded: int = 0
    p95_ms: float | None = None
    """Milliseconds; None for a day without recalls."""


def checked_filters(asked: RecallFilters) -> RecallFilters:
    """Returns the conditions with their moments in UTC.

    Raises:
        InvalidInput: a text or moment that the log cannot have.
    """
    check(list(islice(_reasons_against(asked), 1)))
    since, until = (None if moment is None else in_utc(moment) for moment in (asked.since, asked.until))
    return replace(asked, since=since, until=until)


def _reasons_against(asked: RecallFilters) -> Iterator[str]:
    yield from moment_reasons([("since", asked.since), ("until", asked.until)])
    texts = {"text": asked.text, "agent": asked.agent, "run_id": asked.run_id, "purpose": asked.purpose}
    yield from unstorable({name: value or "" for name, value in texts.items()})
