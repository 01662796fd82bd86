"""The values that the service takes and gives. Made by `make panel-types` from the OpenAPI document: changes are lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal
from uuid import UUID

from msgspec import UNSET, Struct, UnsetType, field


class ActivateInput(Struct, frozen=True, kw_only=True):
    agent: str | None | UnsetType = UNSET
    as_of: datetime | None | UnsetType = UNSET
    """The moment whose cues are asked for."""
    budget_tokens: int | UnsetType = UNSET
    files: Sequence[str] | UnsetType = UNSET
    """The files that it touches."""
    min_score: float | None | UnsetType = UNSET
    """Least probability of a cue that is told; without it, a lesson's consequence decides."""
    plan: str | UnsetType = UNSET
    run_id: str | None | UnsetType = UNSET
    trial: bool | UnsetType = UNSET
    """A person's trial: it is not logged, and counts for no cue."""
    user: str | UnsetType = UNSET
    """The end user it belongs to, or who asks, by your own id of them; without it what all users share."""


class Activation(Struct, frozen=True, kw_only=True):
    action_types: list[str]
    activation_id: UUID | None
    contradictions: list[Contradiction]
    cues: list[ShownLesson]
    degraded: str
    issues: list[JudgedIssue]
    markdown: str
    nearly: list[Nearly]
    tokens: int
    took_ms: float


class ActivationOutcomeInput(Struct, frozen=True, kw_only=True):
    heeded: Sequence[UUID] | UnsetType = UNSET
    ignored: Sequence[UUID] | UnsetType = UNSET


class Alert(Struct, frozen=True, kw_only=True):
    case: str
    severity: str
    state: str
    title: str
    versions: list[str]


class Allocation(Struct, frozen=True, kw_only=True):
    context: float | UnsetType = UNSET
    observation: float | UnsetType = UNSET
    system: float | UnsetType = UNSET


class AppendInput(Struct, frozen=True, kw_only=True):
    language: str | None | UnsetType = UNSET
    messages: Sequence[MessageInput]
    user: str | None | UnsetType = UNSET
    """Whose session it is; without it, whose it was, or no user's."""


class AroundView(Struct, frozen=True, kw_only=True):
    links: list[Linked]
    """Those beside it in its source first, then given links, then found ones."""
    neighbours: list[MemoryView]
    """The live memories up to two places before and after it in its source."""
    runs: Any
    """The runs that made it, and those that it was given to."""


class AuditEntry(Struct, frozen=True, kw_only=True):
    action: str
    at: datetime
    count: int
    id: UUID
    ids: list[str]
    ids_hash: str
    key_id: UUID | None
    object: str
    operation: str
    request_id: str
    titles: list[str]
    user: str
    who: str


class AuditPage(Struct, frozen=True, kw_only=True):
    entries: list[AuditEntry]
    next: UUID | None


class Broken(Struct, frozen=True, kw_only=True):
    memory_id: UUID
    reason: str


class Budget(Struct, frozen=True, kw_only=True):
    allocation: Allocation | Literal['information', 'relevance'] | UnsetType = UNSET
    """Shares for instructions, for what is hydrated, and for the observation; or one room for all: by relevance, or by relevance and what a section alone says."""
    reserve_ratio: float | UnsetType = UNSET
    """Share that stays free for the answer."""
    total: int | UnsetType = UNSET


class BudgetView(Struct, frozen=True, kw_only=True):
    allocation: Allocation | str
    """Shares for instructions, for what is hydrated, and for the observation; or one room for all: by relevance, or by relevance and what a section alone says."""
    reserve_ratio: float
    """Share that stays free for the answer."""
    total: int


class CallState(Struct, frozen=True, kw_only=True):
    now: datetime | None | UnsetType = UNSET
    """Without it the present."""
    project: str | UnsetType = UNSET
    """Without it the workspace."""
    user: str | UnsetType = UNSET


class CaseHistory(Struct, frozen=True, kw_only=True):
    case: str
    issues: list[CaseIssue]
    title: str
    versions: list[CaseVersion]


class CaseIssue(Struct, frozen=True, kw_only=True):
    how: str
    id: UUID
    occurrences: list[Occurrence]
    reopened_in: list[str]
    resolved_in: str
    severity: str
    state: str
    status: str
    title: str
    unnamed_since: str
    versions: list[str]


class CaseSummary(Struct, frozen=True, kw_only=True):
    case: str
    judged_at: datetime | None
    judgements: int
    open_issues: int
    recurring_issues: int
    title: str
    versions: int


class CaseVersion(Struct, frozen=True, kw_only=True):
    advice: str
    change: float | None
    grade: str
    judged_at: datetime | None
    judges: int
    opened: list[str]
    passed: bool | None
    recurring: list[str]
    reopened: list[str]
    resolved: list[str]
    runs: list[str]
    score: float | None
    sources: list[str]
    summary: str
    unnamed: list[str]
    verdict: str
    version: str


class Changed(Struct, frozen=True, kw_only=True):
    changed: list[UUID]
    missing: list[UUID]


class CheckInput(Struct, frozen=True, kw_only=True):
    agent: str | None | UnsetType = UNSET
    budget_tokens: int | UnsetType = UNSET
    files: Sequence[str] | UnsetType = UNSET
    """The files that it touches."""
    plan: str
    """The plan; a list has a step an item."""
    run_id: str | None | UnsetType = UNSET
    task_type: str | UnsetType = UNSET
    """The kind of task; it may name the test case."""
    trial: bool | UnsetType = UNSET
    """A person's trial: it is not logged, and counts for no cue."""
    user: str | UnsetType = UNSET
    """The end user it belongs to, or who asks, by your own id of them; without it what all users share."""


class Cluster(Struct, frozen=True, kw_only=True):
    id: int
    size: int
    terms: list[str]
    x: float
    y: float


class CompareInput(Struct, frozen=True, kw_only=True):
    first: CompileInput
    second: CompileInput | None | UnsetType = UNSET
    threshold: float | UnsetType = UNSET
    """Likeness from which two are equivalent."""


class CompileInput(Struct, frozen=True, kw_only=True):
    budget: Budget | None | UnsetType = UNSET
    """Without it nothing is cut."""
    format: Literal['openai', 'anthropic', 'markdown', None] | UnsetType = UNSET
    """The form of the compiled context; null: messages as the model's API takes them."""
    model: str | UnsetType = UNSET
    """The model that reads the context: tokens are counted as it does; empty: as the embedding model."""
    sections: Sequence[MadeSectionInput] | UnsetType = UNSET
    tools: Sequence[MadeToolInput] | UnsetType = UNSET


class ContextComparison(Struct, frozen=True, kw_only=True):
    equivalent: bool | None
    impacts: dict[str, Impact]
    similarity: float | None


class ContextInput(Struct, frozen=True, kw_only=True):
    agent: str | None | UnsetType = UNSET
    budget: Budget | UnsetType = UNSET
    format: Literal['openai', 'anthropic', 'markdown', None] | UnsetType = UNSET
    """The form of the compiled context; null: messages as the model's API takes them."""
    goal: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    """The model that reads the context: tokens are counted as it does; empty: as the embedding model."""
    observation: str
    """What the agent is asked, or has just seen."""
    run_id: str | None | UnsetType = UNSET
    sections: Sequence[GivenSection] | UnsetType = UNSET
    session: str | UnsetType = UNSET
    """The id of the session whose latest turns are shown."""
    state: CallState | None | UnsetType = UNSET
    strategy: Strategy | UnsetType = UNSET
    tools: Sequence[GivenTool] | UnsetType = UNSET
    user: str | UnsetType = UNSET
    """The end user it belongs to, or who asks, by your own id of them; without it what all users share."""


class ContextMeta(Struct, frozen=True, kw_only=True):
    budget: BudgetView | None
    cache_hit: bool | None
    """True: an earlier context of the run, for the same model, had the prefix; null: no run."""
    compression_ratio: float
    created_at: datetime | None
    entropy: float
    format: str
    model: str
    prefix: Prefix
    strategy: dict[str, Any] | None
    total_tokens: int
    usable_tokens: int | None
    """The budget without its reserve; null without a budget."""


class ContextSummary(Struct, frozen=True, kw_only=True):
    agent: str | None
    budget: int
    created_at: datetime
    format: str
    id: UUID
    model: str
    run_id: str | None
    session: str | None
    tokens: int
    took_ms: float


class ContextTrace(Struct, frozen=True, kw_only=True):
    compile_ms: float
    counter: str
    cuts: list[ShortenedPart]
    exact: bool
    hydrate_ms: float
    notes: list[str]
    sources: list[SourceTrace]
    took_ms: float


class ContextView(Struct, frozen=True, kw_only=True):
    id: UUID | None
    markdown: str | None
    """The whole text, for Markdown."""
    messages: list[Message]
    meta: ContextMeta
    sections: list[SectionView]
    system: str | None
    """The system prompt where the API takes it beside the messages."""
    tool_definitions: list[dict[str, Any]]
    tools: list[ToolDefinition]
    trace: ContextTrace


class Contradiction(Struct, frozen=True, kw_only=True):
    cue_id: UUID
    rejected: str
    statement: str


class Contrast(Struct, frozen=True, kw_only=True):
    given: int
    label: str
    measures: list[Measure]
    repeat_rate: float | None
    repeat_rate_without: float | None
    without: int


class Cue(Struct, frozen=True, kw_only=True):
    action_types: list[str]
    confidence: float
    consequence: float
    created_at: datetime
    details: dict[str, Any]
    disputed_by: list[UUID]
    edited: list[str]
    evidence: list[Evidence]
    files: list[str]
    fired: int
    heeded: int
    id: UUID
    ignored: int
    kind: str
    last_fired_at: datetime | None
    lesson: str
    origin: str
    quality: int
    quote: str
    scope: str
    seen_on: list[date]
    standing: str
    state: str
    superseded_by: UUID | None
    suspect: bool
    tags: list[str]
    trigger: str
    trust: str
    updated_at: datetime
    valid_from: datetime
    valid_until: datetime | None


class CueEdit(Struct, frozen=True, kw_only=True):
    action_types: Sequence[str] | UnsetType = UNSET
    confidence: float | UnsetType = UNSET
    consequence: float | Literal['low', 'medium', 'high', 'severe'] | UnsetType = UNSET
    """The cost of the mistake: 0 to 1, or low (0.2), medium (0.5), high (0.8), severe (1)."""
    details: Mapping[str, Any] | UnsetType = UNSET
    files: Sequence[str] | UnsetType = UNSET
    kind: Literal['correction', 'preference', 'precedent', 'procedure', 'decision', 'discovery', 'negative_result'] | UnsetType = UNSET
    lesson: str | UnsetType = UNSET
    quote: str | UnsetType = UNSET
    scope: Literal['project', 'user'] | UnsetType = UNSET
    state: Literal['active', 'proposed', 'retired', 'superseded', None] | UnsetType = UNSET
    superseded_by: UUID | None | UnsetType = UNSET
    trigger: str | UnsetType = UNSET
    trust: Literal['person', 'agent', 'imported', 'web'] | UnsetType = UNSET
    valid_from: datetime | UnsetType = UNSET
    valid_until: datetime | None | UnsetType = UNSET


class CueInput(Struct, frozen=True, kw_only=True):
    action_types: Sequence[str] | UnsetType = UNSET
    confidence: float | UnsetType = UNSET
    consequence: float | Literal['low', 'medium', 'high', 'severe'] | UnsetType = UNSET
    """The cost of the mistake: 0 to 1, or low (0.2), medium (0.5), high (0.8), severe (1)."""
    details: Mapping[str, Any] | UnsetType = UNSET
    """The further fields of the kind."""
    evidence: Sequence[EvidenceInput] | UnsetType = UNSET
    """Turns that say so."""
    files: Sequence[str] | UnsetType = UNSET
    kind: Literal['correction', 'preference', 'precedent', 'procedure', 'decision', 'discovery', 'negative_result']
    language: str | None | UnsetType = UNSET
    lesson: str
    quote: str | UnsetType = UNSET
    """The words of the turn that say so."""
    scope: Literal['project', 'user'] | UnsetType = UNSET
    tags: Sequence[str] | UnsetType = UNSET
    trigger: str
    """The situation in which the lesson applies."""
    trust: Literal['person', 'agent', 'imported', 'web'] | UnsetType = UNSET
    """Who stands behind it; only a person's is told before an act."""
    valid_from: datetime | None | UnsetType = UNSET
    valid_until: datetime | None | UnsetType = UNSET


class CuePage(Struct, frozen=True, kw_only=True):
    cues: list[Cue]
    next: str | None


class DecisionInput(Struct, frozen=True, kw_only=True):
    artifact: str | UnsetType = UNSET
    """The file that holds the convention that an accepted cue becomes."""
    state: Literal['accepted', 'declined', 'undone']
    """Undone: what was accepted has changed nothing, and all but a merge are open again."""


class Degradation(Struct, frozen=True, kw_only=True):
    arm: str
    reason: str
    silent: bool


class DegradedView(Struct, frozen=True, kw_only=True):
    arm: str
    reason: str


class EffectView(Struct, frozen=True, kw_only=True):
    alerts: list[Alert]
    document: str
    """The report as the document that `format` names; else empty."""
    draws: Contrast | None
    estimated_at: datetime | None
    explore: float
    harmful: list[MemoryEffect]
    helpful: list[MemoryEffect]
    history: Contrast
    left_out: int
    limits: list[str]
    runs: int
    scored: int
    since: datetime | None
    task_type: str
    task_types: list[Contrast]
    until: datetime | None
    uses_effects: bool
    versions: list[Contrast]
    weeks: list[Contrast]
    workspace: str


class Evidence(Struct, frozen=True, kw_only=True):
    at: datetime | None
    message: int | None
    path: str
    quote: str
    section: str
    session: str
    source_id: UUID | None
    turn_id: UUID | None


class EvidenceInput(Struct, frozen=True, kw_only=True):
    at: datetime | None | UnsetType = UNSET
    message: int | None | UnsetType = UNSET
    """The turn in it, from 0."""
    quote: str | UnsetType = UNSET
    session: str | UnsetType = UNSET
    """The session's id."""


class Facet(Struct, frozen=True, kw_only=True):
    count: int
    value: str


class Facets(Struct, frozen=True, kw_only=True):
    kinds: list[Facet]
    tags: list[Facet]
    task_types: list[Facet]
    verdicts: list[Facet]


class FieldError(Struct, frozen=True, kw_only=True):
    field: str
    message: str


class FileOutcome(Struct, frozen=True, kw_only=True):
    chunks: int
    noise: int
    notes: list[str]
    path: str
    quarantined: int
    reason: str
    skipped: list[str]
    status: str
    stored: int
    suffix: str
    tokens: int


class FileTouch(Struct, frozen=True, kw_only=True):
    action: str
    at: datetime
    message_id: UUID
    ordinal: int
    path: str
    session: str
    symbol: str
    title: str


class Filters(Struct, frozen=True, kw_only=True):
    kinds: Sequence[Literal['observation', 'chunk', 'message', 'cue', 'note']] | UnsetType = UNSET
    max_quality: int | None | UnsetType = UNSET
    """The ratings, applied in order and clamped each time."""
    max_score: float | None | UnsetType = UNSET
    """The evaluator's score."""
    min_quality: int | None | UnsetType = UNSET
    """The ratings, applied in order and clamped each time."""
    min_score: float | None | UnsetType = UNSET
    """The evaluator's score."""
    session: str | UnsetType = UNSET
    """Id of a session: only its turns."""
    since: datetime | None | UnsetType = UNSET
    """The earliest moment, inclusive: when it occurred, or was stored if that is unknown; a chunk of an undated report has none."""
    source: str | UnsetType = UNSET
    """Glob of the source's path from any folder on: `*` within a name, `**` across folders, `?` one character."""
    tags: Sequence[str] | UnsetType = UNSET
    """All of them."""
    task_types: Sequence[str] | UnsetType = UNSET
    until: datetime | None | UnsetType = UNSET
    """The latest moment, exclusive."""
    verdicts: Sequence[str] | UnsetType = UNSET


class ForgetInput(Struct, frozen=True, kw_only=True):
    confirm: int | None | UnsetType = UNSET
    """The `total` of the list, where it is more than 100."""
    phrase: str
    """A name or some words, found in any case as whole words."""
    yes: bool | UnsetType = UNSET
    """Remove it; without it, the answer lists where it stands."""


class Forgotten(Struct, frozen=True, kw_only=True):
    done: bool
    files: list[str]
    in_trash: int
    memories: dict[str, int]
    rows: dict[str, int]
    stays: list[str]
    total: int


class ForgottenUser(Struct, frozen=True, kw_only=True):
    activations: int
    contexts: int
    cues: int
    memories: int
    ratings: int
    recalls: int
    runs: int
    sessions: int
    turns: int


class GivenCue(Struct, frozen=True, kw_only=True):
    activation_id: UUID
    given_at: datetime
    id: UUID
    lesson: str | None
    outcome: None | str
    plan: str


class GivenMemory(Struct, frozen=True, kw_only=True):
    agent: str | None
    explain: dict[str, float | HitLink | None]
    given_at: datetime
    id: UUID
    parts: ScoreParts
    query: str
    rank: int
    recall_id: UUID
    score: float
    shown: str | None
    title: str | None
    used: str


class GivenSection(Struct, frozen=True, kw_only=True):
    content: str
    id: str
    label: str | UnsetType = UNSET
    min_tokens: int | UnsetType = UNSET
    mode: Literal['hierarchical', 'constraint', 'additive', 'contextual'] | UnsetType = UNSET
    priority: Literal['critical', 'high', 'medium', 'low'] | UnsetType = UNSET
    recency: float | UnsetType = UNSET
    reference: bool | UnsetType = UNSET
    """True: material to read, not to obey; it stands in a fence."""
    relevance: float | UnsetType = UNSET
    source: str | UnsetType = UNSET
    """Where it comes from, such as `knowledge`; it decides its place."""


class GivenTool(Struct, frozen=True, kw_only=True):
    description: str | UnsetType = UNSET
    embedding: Sequence[float] | None | UnsetType = UNSET
    """The served model's vector of its use: the nearer to the request, the more it is worth."""
    name: str
    priority: Literal['critical', 'high', 'medium', 'low'] | UnsetType = UNSET
    schema: Mapping[str, Any] | UnsetType = UNSET


class GivenVector(Struct, frozen=True, kw_only=True):
    model: str
    """As `GET /api/status` names the one that is served."""
    vector: str | Sequence[float]
    """Numbers, or 32-bit floats, little-endian, in base64."""


class GraphView(Struct, frozen=True, kw_only=True):
    clusters: list[Cluster]
    computed_at: datetime | None
    nodes: list[NodeView]
    reason: str


class HarnessFile(Struct, frozen=True, kw_only=True):
    content: str
    """The bytes of its SQLite store or JSON lines, in Base64."""
    name: str
    """Its name, for the answer."""


class HealthView(Struct, frozen=True, kw_only=True):
    status: str


class HistoryInput(Struct, frozen=True, kw_only=True):
    activate: bool | UnsetType = UNSET
    """Add the section `## Before you act`: what was learnt about the query as a plan; one budget."""
    agent: str | None | UnsetType = UNSET
    budget_tokens: int | UnsetType = UNSET
    filters: Filters | None | UnsetType = UNSET
    half_life_days: float | None | UnsetType = UNSET
    """Days after which recency is half way to its floor; without it 365."""
    k: int | UnsetType = UNSET
    """Hits at most."""
    language: str | None | UnsetType = UNSET
    min_probability: float | None | UnsetType = UNSET
    """The least probability of each hit, in place of the preset's thresholds; 0 shows everything."""
    now: datetime | None | UnsetType = UNSET
    """The moment that `last week` and ages refer to; without it the present."""
    preset: str | UnsetType = UNSET
    query: str
    """What is asked, in plain words: what is to be done, such as the `task` of a run, or a question."""
    rerank: bool | None | UnsetType = UNSET
    """True: the re-ranker reads the best hits once more; without it, where one is configured."""
    run_id: str | None | UnsetType = UNSET
    stable: bool | UnsetType = UNSET
    """Continue the run's previous stable section: what it showed keeps its place and bytes as long as there is room, and what is new follows, so that a model server's prefix cache can reuse it; needs run_id."""
    trial: bool | UnsetType = UNSET
    """A person tries out what an agent would get: logged with the purpose `trial`."""
    user: str | UnsetType = UNSET
    """The end user it belongs to, or who asks, by your own id of them; without it what all users share."""
    weights: WeightsInput | None | UnsetType = UNSET


class HistoryView(Struct, frozen=True, kw_only=True):
    activation: Activation | UnsetType = UNSET
    broken: Broken | None | UnsetType = UNSET
    """The first block of the previous section that stands no longer where it stood. withdrawn: the memory is deleted, superseded, quarantined or gone from its source; edited: its title, text, source or date is another; filtered: this call's filters leave it out; budget: what this query found needs the room."""
    degraded: list[DegradedView]
    hits: list[HitView]
    kept: list[UUID] | UnsetType = UNSET
    """Memories whose blocks stand where the previous section had them, in that order, whether or not this query found them; the hits that are not among them follow."""
    markdown: str
    mode: str
    needed_tokens: int | None
    """The budget from which the best hit fits, where this one was too small for any; else null."""
    period: str | None
    """The period of which the query asks for records (`8 to 14 June 2026`): all hits are of it; null if it asks for none."""
    probability: float | None
    """The probability that the store speaks to the query; null without vectors of the bundled model."""
    recall_id: UUID
    reused_share: float | UnsetType = UNSET
    """Reused_tokens ÷ tokens; 0 for a run's first call."""
    reused_tokens: int | UnsetType = UNSET
    """Tokens that the run's previous stable section began with, byte for byte."""
    tokens: int
    took_ms: float


class HitLink(Struct, frozen=True, kw_only=True):
    direction: str
    memory_id: UUID
    relation: str
    title: str


class HitView(Struct, frozen=True, kw_only=True):
    access_count: int
    accessed_at: datetime | None
    around: list[MemoryView] | UnsetType = UNSET
    body: str
    created_at: datetime
    explain: dict[str, float | HitLink | None]
    final_score: float | None
    id: UUID
    issues: list[IssueState]
    kind: str
    metadata: dict[str, Any]
    occurred_at: datetime | None
    ordinal: int | None
    parts: ScoreParts
    quality: int
    score: float
    source: SourceView | None
    suspect: bool
    tags: list[str]
    title: str
    user: str


class Impact(Struct, frozen=True, kw_only=True):
    information: float
    share: float
    tokens: int
    worth: float


class Imported(Struct, frozen=True, kw_only=True):
    failed: list[str]
    known: int
    path: str
    ratings: int
    runs: int
    stored: int


class Ingestion(Struct, frozen=True, kw_only=True):
    degraded: str
    dry_run: bool
    outcomes: list[FileOutcome]
    pending: int
    seconds: float
    sliced: dict[str, int]


class IssueState(Struct, frozen=True, kw_only=True):
    state: str
    status: str
    title: str
    words: list[str]


class JudgedIssue(Struct, frozen=True, kw_only=True):
    case: str
    id: UUID
    severity: str
    statement: str
    title: str
    versions: list[str]


class KeptView(Struct, frozen=True, kw_only=True):
    id: UUID | None
    ids: list[UUID | None]
    known: int
    rejected: list[Rejection]
    stored: int


class KeyLimitInput(Struct, frozen=True, kw_only=True):
    requests_per_minute: int | None


class Latency(Struct, frozen=True, kw_only=True):
    hybrid: float
    p50: float
    p95: float
    p99: float
    purpose: str
    recalls: int


class LearntView(Struct, frozen=True, kw_only=True):
    id: UUID
    is_known: bool
    message: int | None
    reason: str
    trust: str


class Lesson(Struct, frozen=True, kw_only=True):
    because: str | UnsetType = UNSET
    instead: str | UnsetType = UNSET
    """What to do instead."""
    kind: Literal['correction', 'preference', 'precedent', 'procedure', 'decision', 'discovery', 'negative_result']
    """Precedent: done so before; discovery: a found cause; negative_result: tried, and failed."""
    lesson: str
    """The rule, wish, choice, cause or failure, understandable alone."""
    quote: str | UnsetType = UNSET
    """The user's exact words."""
    session: str | UnsetType = UNSET
    """Id of the session of `quote`."""
    severity: Literal['low', 'medium', 'high', 'severe']
    """The cost of the mistake."""
    steps: Sequence[str] | UnsetType = UNSET
    """In their order."""
    when: str
    """The act or situation in which it applies, in the words of a later plan."""


class LinkDeletion(Struct, frozen=True, kw_only=True):
    from_id: UUID
    relation: str
    to_id: UUID


class LinkInput(Struct, frozen=True, kw_only=True):
    from_id: UUID
    """The memory that contradicts, refines, supersedes … the other."""
    relation: str
    """`mentions`, `similar` and the like are found, not given."""
    to_id: UUID
    weight: float | UnsetType = UNSET


class Linked(Struct, frozen=True, kw_only=True):
    created_at: datetime
    direction: str
    kind: str
    memory_id: UUID
    occurred_at: datetime | None
    ordinal: int | None
    relation: str
    run_id: str | None
    source: str
    task_type: str
    title: str
    user: str
    weight: float


class LinksGiven(Struct, frozen=True, kw_only=True):
    created: int
    removed: int
    unchanged: int
    updated: int


class LinksInput(Struct, frozen=True, kw_only=True):
    links: Sequence[LinkInput] | UnsetType = UNSET
    remove: LinkDeletion | None | UnsetType = UNSET


class ListedMemory(Struct, frozen=True, kw_only=True):
    access_count: int
    accessed_at: datetime | None
    body: str
    created_at: datetime
    final_score: float | None
    findings: list[dict[str, Any]] | None
    id: UUID
    kind: str
    language: str
    metadata: dict[str, Any]
    observation: StoredObservation | None
    occurred_at: datetime | None
    ordinal: int | None
    quality: int
    ratings: list[Rating] | UnsetType = UNSET
    """With `state=prune`: its ratings that stand, the latest first."""
    reason: str | UnsetType = UNSET
    """With `state=prune`: what speaks against it."""
    retired_as: str | None
    run_id: str | None
    source: SourceView | None
    suspect: bool
    tags: list[str]
    title: str
    tokens: int
    user: str
    uses: int
    valid_until: datetime | None


class LoggedActivation(Struct, frozen=True, kw_only=True):
    agent: str | None
    created_at: datetime
    id: UUID
    outcomes: dict[str, str | None]
    plan: str
    run_id: str | None
    settled_at: datetime | None


class LoggedHit(Struct, frozen=True, kw_only=True):
    explain: dict[str, float | HitLink | None]
    id: UUID
    parts: ScoreParts
    propensity: float | None
    rank: int
    score: float
    title: str


class LoggedIngestion(Struct, frozen=True, kw_only=True):
    counts: dict[str, int]
    degraded: str
    files: list[FileOutcome]
    finished_at: datetime
    id: UUID
    seconds: float


class LoggedRecall(Struct, frozen=True, kw_only=True):
    agent: str | None
    created_at: datetime
    degraded: list[Degradation]
    hits: list[LoggedHit]
    mode: str
    parameters: dict[str, Any]
    purpose: str
    query: str
    recall_id: UUID
    run_id: str | None
    tokens: int | None
    took_ms: float
    withheld: list[WithheldMemory]


class LoggedSummary(Struct, frozen=True, kw_only=True):
    agent: str | None
    created_at: datetime
    degraded: list[Degradation]
    hits: int
    mode: str
    purpose: str
    query: str
    recall_id: UUID
    run_id: str | None
    tokens: int | None
    took_ms: float


class MadeKey(Struct, frozen=True, kw_only=True):
    key: StoredKey
    secret: str


class MadeSectionInput(Struct, frozen=True, kw_only=True):
    content: str
    content_hash: str | UnsetType = UNSET
    embedding: Sequence[float] | None | UnsetType = UNSET
    id: str
    label: str | UnsetType = UNSET
    min_tokens: int | UnsetType = UNSET
    mode: Literal['hierarchical', 'constraint', 'additive', 'contextual'] | UnsetType = UNSET
    priority: Literal['critical', 'high', 'medium', 'low'] | UnsetType = UNSET
    provenance: ProvenanceInput | UnsetType = UNSET
    recency: float | UnsetType = UNSET
    reference: bool | UnsetType = UNSET
    relevance: float | UnsetType = UNSET
    source: str | UnsetType = UNSET
    tokens: int | UnsetType = UNSET


class MadeToolInput(Struct, frozen=True, kw_only=True):
    description: str | UnsetType = UNSET
    embedding: Sequence[float] | None | UnsetType = UNSET
    """The served model's vector of its use: the nearer to the request, the more it is worth."""
    name: str
    priority: Literal['critical', 'high', 'medium', 'low'] | UnsetType = UNSET
    relevance: float | UnsetType = UNSET
    schema: Mapping[str, Any] | UnsetType = UNSET
    tokens: int | UnsetType = UNSET


class MeanOfRuns(Struct, frozen=True, kw_only=True):
    high: float | None
    low: float | None
    mean: float
    runs: int


class Measure(Struct, frozen=True, kw_only=True):
    difference: MeanOfRuns | None
    given: MeanOfRuns | None
    name: str
    without: MeanOfRuns | None


class MemoriesChange(Struct, frozen=True, kw_only=True):
    by: UUID | None | UnsetType = UNSET
    """The memory that replaces them; without it, the live one that replaced each before, which takes back its restoration."""
    ids: Sequence[UUID]
    state: Literal['live', 'deleted', 'quarantined', 'superseded', None] | UnsetType = UNSET
    """Deleted: out of every answer, until the trash is emptied; live: restores and releases; quarantined: takes a release back; superseded: replaced by the memory `by`."""
    tag: str | None | UnsetType = UNSET
    """Give them this tag."""
    untag: str | None | UnsetType = UNSET
    """Take this tag away."""


class MemoryEffect(Struct, frozen=True, kw_only=True):
    basis: str
    enough: bool
    estimate: float
    final_score: float | None
    flagged: bool
    harmful: float
    high: float
    id: UUID
    influence: float
    kind: str
    low: float
    quality: int
    runs_with: int
    runs_without: int
    title: str
    why: str


class MemoryPage(Struct, frozen=True, kw_only=True):
    memories: list[ListedMemory]
    next: str | None
    total: int | None


class MemoryTeller(Struct, frozen=True, kw_only=True):
    final_score: float | None
    outcome: str
    run_id: str | None
    said_at: datetime
    stored: bool
    task: str
    verdict: str


class MemoryUse(Struct, frozen=True, kw_only=True):
    agent: str | None
    final_score: float | None
    given_at: datetime
    rank: int
    recall_id: UUID
    run_id: str
    score: float
    stored: bool
    task: str | None
    used: bool
    verdict: str | None


class MemoryUses(Struct, frozen=True, kw_only=True):
    """The runs that made it, and those that it was given to."""

    given_to: list[MemoryUse]
    id: UUID
    made_by: str | None
    made_by_stored: bool
    said_by: list[MemoryTeller]
    uses: int


class MemoryView(Struct, frozen=True, kw_only=True):
    access_count: int
    accessed_at: datetime | None
    body: str
    created_at: datetime
    final_score: float | None
    findings: list[dict[str, Any]] | None
    id: UUID
    kind: str
    language: str
    metadata: dict[str, Any]
    observation: StoredObservation | None
    occurred_at: datetime | None
    ordinal: int | None
    quality: int
    retired_as: str | None
    run_id: str | None
    source: SourceView | None
    suspect: bool
    tags: list[str]
    title: str
    tokens: int
    user: str
    uses: int
    valid_until: datetime | None


class MergeInput(Struct, frozen=True, kw_only=True):
    ids: Sequence[UUID]
    into: UUID


class Message(Struct, frozen=True, kw_only=True):
    content: str
    role: str


class MessageInput(Struct, frozen=True, kw_only=True):
    at: datetime | None | UnsetType = UNSET
    """Of a turn that is appended: without it, now."""
    id: str | UnsetType = UNSET
    """Yours: a turn of a known id replaces the stored one."""
    role: Literal['user', 'caller', 'assistant', 'tool', 'system']
    """`user` is a person and nobody else; `caller` is an agent or a program that gives this agent its work."""
    text: str
    tools: Sequence[ToolInput] | UnsetType = UNSET


class MessagesView(Struct, frozen=True, kw_only=True):
    messages: list[StoredMessage]
    next: int | None


class Nearest(Struct, frozen=True, kw_only=True):
    id: UUID
    similarity: float
    title: str


class Nearly(Struct, frozen=True, kw_only=True):
    id: UUID
    kind: str
    lesson: str
    reason: str
    score: float


class NewKey(Struct, frozen=True, kw_only=True):
    expires_at: datetime | None | UnsetType = UNSET
    name: str
    """Tells it from other keys."""
    requests_per_minute: int | None | UnsetType = UNSET
    scopes: Sequence[str]
    """Read, write, rate, admin."""
    workspaces: Sequence[str] | None | UnsetType = UNSET


class NewMemory(Struct, frozen=True, kw_only=True):
    body: str | UnsetType = UNSET
    """Stands above an observation's facts; empty: its narrative."""
    embedding: GivenVector | None | UnsetType = UNSET
    final_score: float | None | UnsetType = UNSET
    """The evaluator's score."""
    kind: Literal['observation', 'chunk', 'message', 'cue', 'note']
    language: str | None | UnsetType = UNSET
    """By name or ISO code; without it, the workspace's."""
    metadata: Mapping[str, Any] | UnsetType = UNSET
    observation: ObservationDetail | None | UnsetType = UNSET
    occurred_at: datetime | None | UnsetType = UNSET
    ordinal: int | None | UnsetType = UNSET
    """Position in the source, from 0."""
    run_id: str | None | UnsetType = UNSET
    source: SourceReference | None | UnsetType = UNSET
    tags: Sequence[str] | UnsetType = UNSET
    title: str | UnsetType = UNSET
    user: str | UnsetType = UNSET
    """The end user it belongs to, or who asks, by your own id of them; without it what all users share."""


class NodeView(Struct, frozen=True, kw_only=True):
    cluster: int
    created_at: datetime
    final_score: float | None
    id: UUID
    kind: str
    occurred_at: datetime | None
    quality: int
    run_id: str | None
    source: str
    tags: list[str]
    task_type: str
    title: str
    user: str
    verdict: str
    x: float
    y: float


class Novelty(Struct, frozen=True, kw_only=True):
    degraded: str
    novelty: float
    path: str
    results: list[ResultNovelty]


class NoveltyInput(Struct, frozen=True, kw_only=True):
    known: Sequence[str] | UnsetType = UNSET
    """Texts of this run so far, which are not stored."""
    results: Sequence[str]
    task: str | UnsetType = UNSET
    """The task of the texts; its words, numbers and names are known, and count neither for a text nor against it."""
    user: str | UnsetType = UNSET
    """The end user it belongs to, or who asks, by your own id of them; without it what all users share."""


class ObservationDetail(Struct, frozen=True, kw_only=True):
    facts: Sequence[str] | UnsetType = UNSET
    narrative: str | UnsetType = UNSET
    output_path: str | None | UnsetType = UNSET
    queries: Sequence[str] | UnsetType = UNSET
    task: str | UnsetType = UNSET
    task_type: str | UnsetType = UNSET
    verdict: str | UnsetType = UNSET


class Occurrence(Struct, frozen=True, kw_only=True):
    detail: str
    judgement_id: UUID
    place: int
    severity: str
    status: str
    title: str
    version: str


class OutcomeInput(Struct, frozen=True, kw_only=True):
    bytes: int | None | UnsetType = UNSET
    final_score: float | None | UnsetType = UNSET
    """The evaluator's score."""
    issues: Sequence[str] | UnsetType = UNSET
    language: str | None | UnsetType = UNSET
    lines: int | None | UnsetType = UNSET
    occurred_at: datetime | None | UnsetType = UNSET
    output: str | UnsetType = UNSET
    """May be left out with the `run_id` of a stored run that has one."""
    output_path: str | None | UnsetType = UNSET
    queries: Sequence[str] | UnsetType = UNSET
    run_id: str | None | UnsetType = UNSET
    """The pipeline's own."""
    tags: Sequence[str] | UnsetType = UNSET
    task: str | UnsetType = UNSET
    """What the run was to do; to look for earlier work on it, ask with it as `query`."""
    task_type: str | UnsetType = UNSET
    user: str | UnsetType = UNSET
    """The end user it belongs to, or who asks, by your own id of them; without it what all users share."""
    verdict: str | UnsetType = UNSET


class PlanCheck(Struct, frozen=True, kw_only=True):
    activation_id: UUID | None
    case: str
    degraded: str
    evidence: list[PlanEvidence]
    markdown: str
    steps: list[PlanStep]
    tokens: int
    took_ms: float
    verdict: str


class PlanEvidence(Struct, frozen=True, kw_only=True):
    issue_id: UUID | None
    kind: str
    memory_id: UUID | None
    reason: str
    score: float | None
    statement: str
    verdict: str


class PlanStep(Struct, frozen=True, kw_only=True):
    added: bool
    evidence: list[PlanEvidence]
    number: str
    text: str
    verdict: str


class Prefix(Struct, frozen=True, kw_only=True):
    bytes: int
    digest: str
    tokens: int


class ProbeReport(Struct, frozen=True, kw_only=True):
    cues: int
    precision: float | None
    recall: float | None
    stale: int
    unrelated: int
    unrelated_fired: float
    weak: list[Cue]


class Problem(Struct, frozen=True, kw_only=True):
    detail: str
    errors: list[FieldError] | UnsetType = UNSET
    findings: list[dict[str, Any]] | UnsetType = UNSET
    instance: str
    reason: str = ''
    request_id: str = ''
    status: int
    title: str
    type: str = 'about:blank'


class ProposalView(Struct, frozen=True, kw_only=True):
    change: str
    created_at: datetime
    cue_ids: list[UUID]
    decided_at: datetime | None
    id: UUID
    reason: str
    relation: str
    state: str
    target_id: UUID | None


class Provenance(Struct, frozen=True, kw_only=True):
    activation_id: UUID | None
    memory_ids: list[UUID]
    recall_id: UUID | None
    session: str


class ProvenanceInput(Struct, frozen=True, kw_only=True):
    activation_id: UUID | None | UnsetType = UNSET
    memory_ids: Sequence[UUID] | UnsetType = UNSET
    recall_id: UUID | None | UnsetType = UNSET
    session: str | UnsetType = UNSET


class Rated(Struct, frozen=True, kw_only=True):
    quality: int
    rating: Rating
    replaced: Rating | None


class Rating(Struct, frozen=True, kw_only=True):
    comment: str
    created_at: datetime
    feedback_id: UUID
    memory_id: UUID
    rating: int
    reviewer: str | None
    run_id: str | None
    undone_at: datetime | None


class RatingInput(Struct, frozen=True, kw_only=True):
    comment: str | UnsetType = UNSET
    rating: Literal[1, -1]
    reviewer: str | None | UnsetType = UNSET
    """Has one rating of each memory: another takes its place."""
    run_id: str | None | UnsetType = UNSET
    """The pipeline's own."""


class ReadyView(Struct, frozen=True, kw_only=True):
    database: bool
    head: str
    migrations: str | None
    model: bool
    pending_links: int
    ready: bool
    reasons: list[str]
    storing_examples: bool
    waiting: int


class Reason(Struct, frozen=True, kw_only=True):
    at: datetime | None
    head: str
    is_session: bool
    kinds: list[str]
    memory_id: UUID
    ordinal: int | None
    place: list[Any]
    replaced_by: str
    role: str
    score: float
    section: str
    source: str
    source_id: UUID
    state: str
    subject: str
    text: str


class RecallDay(Struct, frozen=True, kw_only=True):
    day: date
    degraded: int
    empty: int
    p95_ms: float | None
    recalls: int


class Recorded(Struct, frozen=True, kw_only=True):
    memory_id: UUID | None
    observation_id: UUID
    outcome: str | None
    reason: str


class RejectedLine(Struct, frozen=True, kw_only=True):
    code: str
    line: int
    reason: str


class Rejection(Struct, frozen=True, kw_only=True):
    code: str
    details: list[dict[str, Any]]
    index: int
    reason: str


class ReportInput(Struct, frozen=True, kw_only=True):
    content: str
    language: str | None | UnsetType = UNSET
    path: str
    """A relative path; of the suffixes .md, .markdown, .txt, .log, .json and .jsonl."""


class ResultNovelty(Struct, frozen=True, kw_only=True):
    compared: int
    nearest: list[Nearest]
    novelty: float
    passages: int


class ReviewCounts(Struct, frozen=True, kw_only=True):
    deleted: int
    prune: int
    quarantined: int
    superseded: int
    suspect: int


class RolePart(Struct, frozen=True, kw_only=True):
    facets: Sequence[str] | UnsetType = UNSET
    title: str
    """Its name, for people."""
    weight: float | UnsetType = UNSET
    words: Sequence[str] | UnsetType = UNSET


class RotationInput(Struct, frozen=True, kw_only=True):
    overlap_seconds: float | UnsetType = UNSET


class Run(Struct, frozen=True, kw_only=True):
    agent: str | None
    bytes: int | None
    cost: float | None
    created_at: datetime
    final_score: float | None
    finished_at: datetime | None
    issues: list[str]
    lines: int | None
    metadata: dict[str, Any]
    output: str | None
    output_path: str | None
    queries: list[str]
    round_scores: list[float]
    run_id: str
    stages: dict[str, Any]
    started_at: datetime | None
    task: str
    task_type: str
    tokens: int | None
    updated_at: datetime
    verdict: str


class RunChange(Struct, frozen=True, kw_only=True):
    agent: str | None | UnsetType = UNSET
    bytes: int | None | UnsetType = UNSET
    final_score: float | None | UnsetType = UNSET
    """The evaluator's score."""
    finished_at: datetime | None | UnsetType = UNSET
    issues: Sequence[str] | None | UnsetType = UNSET
    lines: int | None | UnsetType = UNSET
    metadata: Mapping[str, Any] | None | UnsetType = UNSET
    output: str | None | UnsetType = UNSET
    output_path: str | None | UnsetType = UNSET
    queries: Sequence[str] | None | UnsetType = UNSET
    remember: bool | UnsetType = UNSET
    round_scores: Sequence[float] | None | UnsetType = UNSET
    stages: Mapping[str, Any] | None | UnsetType = UNSET
    started_at: datetime | None | UnsetType = UNSET
    task: str | None | UnsetType = UNSET
    """What the run was to do; to look for earlier work on it, ask with it as `query`."""
    task_type: str | None | UnsetType = UNSET
    user: str | UnsetType = UNSET
    """The end user it belongs to, or who asks, by your own id of them; without it what all users share."""
    verdict: str | None | UnsetType = UNSET


class RunInput(Struct, frozen=True, kw_only=True):
    agent: str | None | UnsetType = UNSET
    bytes: int | None | UnsetType = UNSET
    final_score: float | None | UnsetType = UNSET
    """The evaluator's score."""
    finished_at: datetime | None | UnsetType = UNSET
    issues: Sequence[str] | None | UnsetType = UNSET
    lines: int | None | UnsetType = UNSET
    metadata: Mapping[str, Any] | None | UnsetType = UNSET
    output: str | None | UnsetType = UNSET
    output_path: str | None | UnsetType = UNSET
    queries: Sequence[str] | None | UnsetType = UNSET
    remember: bool | UnsetType = UNSET
    round_scores: Sequence[float] | None | UnsetType = UNSET
    run_id: str
    """The pipeline's own."""
    stages: Mapping[str, Any] | None | UnsetType = UNSET
    started_at: datetime | None | UnsetType = UNSET
    task: str | None | UnsetType = UNSET
    """What the run was to do; to look for earlier work on it, ask with it as `query`."""
    task_type: str | None | UnsetType = UNSET
    user: str | UnsetType = UNSET
    """The end user it belongs to, or who asks, by your own id of them; without it what all users share."""
    verdict: str | None | UnsetType = UNSET


class RunPage(Struct, frozen=True, kw_only=True):
    next: str | None
    runs: list[RunSummary]


class RunStoryView(Struct, frozen=True, kw_only=True):
    cues: list[GivenCue]
    given: list[GivenMemory]
    observation: Recorded | None
    observations: list[MemoryView]
    run: Run | None
    run_id: str
    stored: bool


class RunSummary(Struct, frozen=True, kw_only=True):
    agent: str | None
    cost: float | None
    created_at: datetime
    final_score: float | None
    finished_at: datetime | None
    issues: list[str]
    round_scores: list[float]
    run_id: str
    started_at: datetime | None
    task: str
    task_type: str
    tokens: int | None
    verdict: str


class SameView(Struct, frozen=True, kw_only=True):
    found: list[SayingView]
    more: bool
    """More may say the same: take these back, and ask again."""


class SavedRunView(Struct, frozen=True, kw_only=True):
    degraded: list[DegradedView] | UnsetType = UNSET
    observation: Recorded | UnsetType = UNSET
    run: Run


class SayingView(Struct, frozen=True, kw_only=True):
    memory: MemoryView
    why: str


class ScoreParts(Struct, frozen=True, kw_only=True):
    dated: float = 0.0
    influence: float = 0.0
    links: float = 0.0
    meaning: float = 0.0
    named: float = 0.0
    neighbours: float = 0.0
    other: float = 0.0
    place: float = 0.0
    quality: float = 0.0
    ratings: float = 0.0
    recency: float = 0.0
    role: float = 0.0
    source: float = 0.0
    state: float = 0.0
    text: float = 0.0
    unscored: float = 0.0
    words: float = 0.0


class SearchInput(Struct, frozen=True, kw_only=True):
    agent: str | None | UnsetType = UNSET
    around: int | UnsetType = UNSET
    """Show the memories up to so many places before and after each hit."""
    filters: Filters | None | UnsetType = UNSET
    half_life_days: float | None | UnsetType = UNSET
    """Days after which recency is half way to its floor; without it 365."""
    k: int | UnsetType = UNSET
    """Hits at most."""
    language: str | None | UnsetType = UNSET
    min_probability: float | None | UnsetType = UNSET
    """The least probability of each hit, in place of the preset's thresholds; 0 shows everything."""
    now: datetime | None | UnsetType = UNSET
    """The moment that `last week` and ages refer to; without it the present."""
    preset: str | UnsetType = UNSET
    query: str
    """What is asked, in plain words: what is to be done, such as the `task` of a run, or a question."""
    rerank: bool | None | UnsetType = UNSET
    """True: the re-ranker reads the best hits once more; without it, where one is configured."""
    run_id: str | None | UnsetType = UNSET
    trial: bool | UnsetType = UNSET
    """A person tries out what an agent would get: logged with the purpose `trial`."""
    user: str | UnsetType = UNSET
    """The end user it belongs to, or who asks, by your own id of them; without it what all users share."""
    weights: WeightsInput | None | UnsetType = UNSET


class SearchView(Struct, frozen=True, kw_only=True):
    degraded: list[DegradedView]
    hits: list[HitView]
    mode: str
    period: str | None
    """The period of which the query asks for records (`8 to 14 June 2026`): all hits are of it; null if it asks for none."""
    probability: float | None
    """The probability that the store speaks to the query; null without vectors of the bundled model."""
    recall_id: UUID
    took_ms: float


class SectionView(Struct, frozen=True, kw_only=True):
    content: str
    content_hash: str
    embedding: list[float] | None
    id: str
    label: str
    min_tokens: int
    mode: str
    priority: str
    provenance: Provenance
    recency: float
    reference: bool
    relevance: float
    source: str
    tokens: int


class SentFile(Struct, frozen=True, kw_only=True):
    content: str
    """Its bytes in Base64."""
    dated: datetime | None | UnsetType = UNSET
    path: str
    """Its absolute path there."""
    shown: str
    """The path that people see."""


class SentFiles(Struct, frozen=True, kw_only=True):
    dry_run: bool | UnsetType = UNSET
    failures: Mapping[str, str] | UnsetType = UNSET
    files: Sequence[SentFile] | UnsetType = UNSET
    gone: Sequence[str] | UnsetType = UNSET
    language: str | None | UnsetType = UNSET
    left_out: Mapping[str, str] | UnsetType = UNSET
    roots: Sequence[str] | UnsetType = UNSET


class SessionCueView(Struct, frozen=True, kw_only=True):
    action_types: list[str]
    confidence: float
    consequence: float
    created_at: datetime
    details: dict[str, Any]
    disputed_by: list[UUID]
    edited: list[str]
    evidence: list[Evidence]
    files: list[str]
    fired: int
    heeded: int
    id: UUID
    ignored: int
    kind: str
    last_fired_at: datetime | None
    lesson: str
    message: int | None
    origin: str
    quality: int
    quote: str
    scope: str
    seen_on: list[date]
    standing: str
    state: str
    superseded_by: UUID | None
    suspect: bool
    tags: list[str]
    trigger: str
    trust: str
    updated_at: datetime
    valid_from: datetime
    valid_until: datetime | None


class SessionDetailView(Struct, frozen=True, kw_only=True):
    artifacts: list[TouchedArtifact]
    created_at: datetime
    cues: list[SessionCueView]
    ended_at: datetime | None
    format: str
    id: str
    messages: list[StoredMessage]
    path: str
    source_id: UUID
    started_at: datetime | None
    title: str
    turns: int
    updated_at: datetime
    user: str


class SessionInput(Struct, frozen=True, kw_only=True):
    folder: str | UnsetType = UNSET
    """In which it worked; artifacts are named relative to it."""
    id: str
    language: str | None | UnsetType = UNSET
    messages: Sequence[MessageInput]
    started_at: datetime | None | UnsetType = UNSET
    title: str | UnsetType = UNSET
    """Without it, what the user said first."""
    user: str | None | UnsetType = UNSET
    """Whose session it is; without it, whose it was, or no user's."""


class SessionPage(Struct, frozen=True, kw_only=True):
    next: str | None
    sessions: list[StoredSession]


class ShortenedPart(Struct, frozen=True, kw_only=True):
    after: int
    before: int
    id: str
    label: str
    reason: str
    source: str


class ShownLesson(Struct, frozen=True, kw_only=True):
    action_types: list[str]
    checkpoint: str
    conflict_with: list[UUID]
    explain: dict[str, float]
    id: UUID
    imperative: str
    kind: str
    lesson: str
    reason: str
    score: float
    trigger: str


class Source(Struct, frozen=True, kw_only=True):
    created_at: datetime
    id: UUID
    kind: str
    memories: int
    retired_at: datetime | None
    title: str
    updated_at: datetime
    uri: str


class SourcePage(Struct, frozen=True, kw_only=True):
    next: str | None
    sources: list[Source]


class SourceReference(Struct, frozen=True, kw_only=True):
    kind: Literal['report', 'session', 'run', 'other']
    title: str | UnsetType = UNSET
    uri: str


class SourceTrace(Struct, frozen=True, kw_only=True):
    activation_id: UUID | None
    failure: str
    notes: list[str]
    recall_id: UUID | None
    sections: int
    source: str
    tokens: int
    took_ms: float


class SourceView(Struct, frozen=True, kw_only=True):
    id: UUID
    kind: str
    title: str
    uri: str


class StatusView(Struct, frozen=True, kw_only=True):
    database_bytes: int
    evaluator: str
    language: str | None
    latencies: list[Latency]
    live: int
    mode: str
    model: str
    pending_links: int
    pgvector: str
    postgres: str
    reasons: list[str]
    recalls: int
    refused: dict[str, int]
    retired: dict[str, int]
    revision: str | None
    runs: int
    sources: int
    trash_days: int
    version: str
    waiting: int
    week: Week
    workspace: str


class StoredKey(Struct, frozen=True, kw_only=True):
    created_at: datetime
    expires_at: datetime | None
    id: UUID
    last_used_at: datetime | None
    name: str
    replaces: UUID | None
    requests_per_minute: int | None
    revoked_at: datetime | None
    scopes: list[str]
    workspaces: list[str] | None


class StoredMessage(Struct, frozen=True, kw_only=True):
    at: datetime | None
    id: UUID
    ordinal: int
    quality: int
    role: str
    suspect: bool
    tags: list[str]
    text: str
    tools: list[ToolUse]


class StoredObservation(Struct, frozen=True, kw_only=True):
    compressor: str
    facts: list[str]
    model: str | None
    narrative: str
    output_path: str | None
    superseded_by: UUID | None
    task: str
    task_type: str
    verdict: str


class StoredSession(Struct, frozen=True, kw_only=True):
    created_at: datetime
    ended_at: datetime | None
    format: str
    id: str
    path: str
    source_id: UUID
    started_at: datetime | None
    title: str
    turns: int
    updated_at: datetime
    user: str


class StoredView(Struct, frozen=True, kw_only=True):
    degraded: list[DegradedView] | UnsetType = UNSET
    embedded: int | UnsetType = UNSET
    ids: list[UUID | None]
    rejected: list[RejectedLine]
    stored: int
    unchanged: int
    updated: int


class Strategy(Struct, frozen=True, kw_only=True):
    include_cues: bool | UnsetType = UNSET
    include_knowledge: bool | UnsetType = UNSET
    recency_decay: float | UnsetType = UNSET
    """Share of its recency that a memory keeps a day; 1: all of it."""
    semantic_limit: int | UnsetType = UNSET
    """Related turns and chunks, and as many observations and notes."""
    semantic_threshold: float | UnsetType = UNSET
    """Least cosine similarity of a related memory and the request."""
    temporal_window: int | UnsetType = UNSET
    """Latest turns of the session."""


class TakenInView(Struct, frozen=True, kw_only=True):
    cues: int | UnsetType = UNSET
    degraded: list[DegradedView] | UnsetType = UNSET
    embedded: int | UnsetType = UNSET
    flagged: int
    id: str
    missing: int
    retired: int
    status: str
    stored: int
    turns: int


class Tenant(Struct, frozen=True, kw_only=True):
    language: str
    name: str


class TendedView(Struct, frozen=True, kw_only=True):
    cues: int
    proposals: list[ProposalView]
    proposed: dict[str, int]


class ToolDefinition(Struct, frozen=True, kw_only=True):
    description: str
    embedding: list[float] | None
    name: str
    priority: str
    relevance: float
    schema: dict[str, Any]
    tokens: int


class ToolInput(Struct, frozen=True, kw_only=True):
    failed: bool | UnsetType = UNSET
    input: Mapping[str, Any] | UnsetType = UNSET
    name: str
    result: str | UnsetType = UNSET
    symbols: Sequence[str] | UnsetType = UNSET
    """What it changed: functions, sections, where you know."""


class ToolUse(Struct, frozen=True, kw_only=True):
    failed: bool
    input: dict[str, Any]
    name: str
    result: str
    symbols: list[str]


class TouchedArtifact(Struct, frozen=True, kw_only=True):
    actions: list[str]
    id: UUID
    messages: list[int]
    path: str
    symbol: str


class Tuning(Struct, frozen=True, kw_only=True):
    action_types: dict[str, list[str]]
    roles: dict[str, list[RolePart]]
    uses_effects: bool


class TuningChange(Struct, frozen=True, kw_only=True):
    action_types: Mapping[str, Sequence[str] | None] | UnsetType = UNSET
    roles: Mapping[str, Sequence[RolePart] | None] | UnsetType = UNSET
    uses_effects: bool | UnsetType = UNSET


class User(Struct, frozen=True, kw_only=True):
    cues: int
    memories: int
    name: str
    recalls: int
    sessions: int
    turns: int


class UserPage(Struct, frozen=True, kw_only=True):
    next: str | None
    users: list[User]


class Week(Struct, frozen=True, kw_only=True):
    heeded: int
    ignored: int
    last_session_at: datetime | None
    proposals: int
    quarantined: int
    sessions: int
    tokens: int
    told: int
    unread: int


class WeightsInput(Struct, frozen=True, kw_only=True):
    quality: float | UnsetType = UNSET
    recency: bool | UnsetType = UNSET
    relevance: float | UnsetType = UNSET


class Why(Struct, frozen=True, kw_only=True):
    answer: str
    asked: str
    known: bool
    markdown: str
    nearest: list[str]
    probability: float | None
    reasons: list[Reason]
    shaped_by: list[FileTouch]


class WithheldMemory(Struct, frozen=True, kw_only=True):
    given_to: UUID | None
    id: UUID
    propensity: float | None
    rank: int
    reason: str
    score: float
    title: str

