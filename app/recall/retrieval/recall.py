"""The values of a query, which is checked here, and of its recall: hits, each with every component of its score."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from itertools import islice
from textwrap import shorten
from typing import Literal, NamedTuple
from uuid import UUID

from app.errors import check
from app.foundation.db.database import Database
from app.foundation.text.words import is_latin
from app.foundation.values import frozen
from app.recall.retrieval.rank.asking import DEFAULT_ROLE, role_of, roles_of
from app.recall.retrieval.rank.passages import PassageScore
from app.recall.retrieval.rank.presets import DEFAULT, PRESETS, Preset, Weights
from app.recall.retrieval.rank.rank import Asking
from app.storage.memories import filters
from app.storage.memories.filters import Filters
from app.storage.memories.gate import unstorable
from app.storage.memories.memory import NAME_LIMIT, Memory, in_utc, new_id
from app.storage.recalls.store import Degradation, Explanation, HitLink
from app.storage.tenants.workspace import Workspace, check_language

QUERY_LIMIT = 300_000
"""Most characters of a query, regardless of their bytes. A task text of 10,000 long words is accepted, although it
has more than 100 kB; a pasted log is not (benchmarks/retrieval.md)."""
LARGEST_K = 200


@frozen
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


def checked_preset(query: Query, *, measured: bool = True) -> Preset:
    """Returns the preset that the query names, with the query's own weights and threshold.

    `measured` is False for another model than the one by whose similarities the thresholds were chosen.

    Raises:
        InvalidInput: a part of the query is not valid.
    """
    check(list(islice(_reasons(query), 1)))
    preset = PRESETS[query.preset]
    weights = preset.weights if query.weights is None else query.weights
    if query.half_life_days is not None:
        weights = replace(weights, half_life_days=query.half_life_days)
    threshold = preset.threshold if query.min_probability is None else None
    if threshold is not None and not measured:
        threshold = threshold.for_unmeasured_model()
    elif threshold is not None and not is_latin(query.text):
        threshold = threshold.of_words()
    return replace(preset, weights=weights, threshold=threshold)


def _reasons(query: Query) -> Iterator[str]:
    if not query.text.strip():
        yield "query: is empty; say what the history should be about"
    if len(query.text) > QUERY_LIMIT:
        yield f"query: has {len(query.text):,} characters; at most {QUERY_LIMIT:,} are taken"
    if len(query.agent or "") > NAME_LIMIT:
        yield f"agent: has more than {NAME_LIMIT} characters"
    check_language(query.language)
    names = {"agent": query.agent, "run_id": query.run_id, "language": query.language}
    yield from unstorable({"query": query.text, "now": query.now, **names})
    if query.filters:
        filters.check(query.filters)
    if query.preset not in PRESETS:
        yield f"preset: {query.preset!r} is none; there are {', '.join(PRESETS)}"


_MOST_NEEDS = 6
"""Needs of a request for which passages are scored."""


class CheckedQuery(NamedTuple):
    """A checked query, with its workspace and database."""

    database: Database
    workspace: Workspace
    query: Query
    preset: Preset
    suspects: bool
    """True where memories with a suspect text are hits too."""
    measured: bool = True
    """False for a model, or a script, by whose similarities no probability was fitted."""
    passages: bool = False
    """True where the hits' passages are ranked too: of more hits than the query wants, because blocks are made of the
    passages of several."""
    needs: Sequence[str] = ()
    """The sentences of the query that name what it needs."""
    spare: int = 0
    """Hits beyond those that the query wants."""
    newest: bool = False
    """True if the query asks for all that was recorded in a period, newest first."""

    @property
    def several(self) -> Sequence[str]:
        """The first needs, if there are several and passages are ranked by them."""
        return self.needs[:_MOST_NEEDS] if self.passages and len(self.needs) > 1 else ()

    @property
    def asking(self) -> Asking:
        """The query as ranking takes it; a preset that judges all memories knows no roles."""
        role = DEFAULT_ROLE if self.preset.judges_all else role_of(self.query.agent, roles_of(self.workspace))
        return Asking(self.query.text, self.query.moment, role)

    def before_passages(self, *, has_vector: bool) -> Preset:
        """Returns the preset by which memories are found whose passages tell if the query has an answer."""
        threshold = self.preset.threshold
        if not (self.passages and self.measured and has_vector) or threshold is None:
            return self.preset
        return replace(self.preset, threshold=threshold.of_memories())


HYBRID, LEXICAL, VECTOR = "hybrid", "lexical", "vector"
RERANKER = "reranker"
"""The name of the re-ranker among the arms in `degraded`."""


_REMARK_CHARACTERS = 80
_HOW = re.compile(r" by | \(")
"""The separator between a state and the words on how an issue was resolved, for which several issues leave no room."""


@frozen
class IssueState:
    """The present state of an issue that a hit states, where the hit does not say it."""

    title: str
    status: str
    """`reopened`, `resolved` or `unnamed`."""
    state: str
    """The status in words, with its version: `resolved in v7 by the stop rule`."""
    words: tuple[str, ...]
    """The titles that the hit gives the issue, in lower case."""


class HitPassage(NamedTuple):
    """A passage of a hit with its rank, which is on the scale of the hits' scores."""

    passage: PassageScore
    score: float
    newer: str = ""
    """The source of a later passage on the same thing, where this one may be outdated."""


@frozen
class Hit:
    """A memory that was found."""

    memory: Memory
    score: float
    explain: Mapping[str, float | None]
    """Every component of the score, by name (benchmarks/retrieval.md describes the sum)."""
    link: HitLink | None = None
    """The link that gave the component `links`."""
    issues: tuple[IssueState, ...] = ()
    """The issues in it whose present state it does not say."""
    stated_issues: int = 0
    """Number of issues that it states, if it does not say the state of all."""
    passages: tuple["HitPassage", ...] = ()
    """Its passages with their ranks, without the sentences that a later one corrects; read for a history
    only."""

    def remark(self, shown: str) -> str:
        """Returns the present states of the issues that the shown text states, if it does not say them itself.

        Each has the issue's title if the hit states several.
        """
        if not self.issues:
            return ""
        text = " ".join(shown.lower().split())
        issues = [issue for issue in self.issues if any(title in text for title in issue.words)]
        if not issues:
            return ""
        if len({issue.state for issue in self.issues}) == 1 and self.stated_issues == len(self.issues):
            said = issues[0].state
        else:
            titles: dict[str, list[str]] = {}
            for issue in sorted(issues, key=lambda issue: issue.status):
                titles.setdefault(_HOW.split(issue.state)[0], []).append(issue.title)
            said = "; ".join(f"{state}: {', '.join(its)}" for state, its in titles.items())
        return shorten(said, _REMARK_CHARACTERS, placeholder=" …")

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


@frozen
class Recall:
    """The answer to a query, best hit first."""

    recall_id: UUID = field(default_factory=new_id)
    hits: tuple[Hit, ...]
    mode: str
    """The arms that answered: hybrid, lexical or vector."""
    degraded: tuple[Degradation, ...]
    took_ms: float = 0.0
    query: Query
    """The query as it is logged."""
    workspace: Workspace
    probability: float | None = None
    """The probability that the store speaks to the query; None without vectors of the measured model."""
    period: str | None = None
    """The period of which the query asks for records, in words: all hits are of it. None if it asks for none."""


@frozen
class Broken:
    """The block at which the previous section of a run could not be continued."""

    memory_id: UUID
    """The memory of the first block that is no longer at its place."""
    reason: Literal["withdrawn", "edited", "filtered", "budget"]
    """In this order: the memory is no longer live; its text, title, date or source has changed; the query's filters
    exclude it; or the query's hits need the room."""


@frozen
class Reuse:
    """The beginning of a section that is equal, byte for byte, to that of the run's previous section."""

    tokens: int
    share: float
    """Share of the section's tokens that are reused; 0 for a first call."""
    kept: tuple[UUID, ...]
    """The memories of the reused blocks, in their order, whether or not the query found them again."""
    broken: Broken | None
    """The block that ended the reuse; None if the whole previous section is reused."""


@frozen
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
