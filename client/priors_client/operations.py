"""A method for each route of the service. Made by `make panel-types` from the OpenAPI document: changes are lost."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, TypeVar
from uuid import UUID, uuid4

from msgspec import UNSET, UnsetType

from priors_client.models import ActivateInput, Activation, ActivationOutcomeInput, AppendInput, AroundView, AuditPage, Budget, CallState, CaseHistory, CaseSummary, Changed, CheckInput, CompareInput, CompileInput, ContextComparison, ContextInput, ContextSummary, ContextView, Cue, CueEdit, CueInput, CuePage, DecisionInput, EffectView, Facets, FileOutcome, Filters, ForgetInput, Forgotten, ForgottenUser, GivenSection, GivenTool, GivenVector, GraphView, HarnessFile, HealthView, HistoryInput, HistoryView, Imported, Ingestion, KeptView, KeyLimitInput, LearntView, Lesson, LinkDeletion, LinkInput, LinksGiven, LinksInput, ListedMemory, LoggedActivation, LoggedIngestion, LoggedRecall, LoggedSummary, MadeKey, MadeSectionInput, MadeToolInput, Measure, MemoriesChange, MemoryPage, MemoryView, MergeInput, MessageInput, MessagesView, NewKey, NewMemory, Novelty, NoveltyInput, ObservationDetail, OutcomeInput, PlanCheck, ProbeReport, ProposalView, Rated, Rating, RatingInput, ReadyView, RecallDay, Recorded, ReportInput, ReviewCounts, RolePart, RotationInput, RunChange, RunInput, RunPage, RunStoryView, RunSummary, SameView, SavedRunView, SearchInput, SearchView, SentFile, SentFiles, SessionDetailView, SessionInput, SessionPage, Source, SourcePage, SourceReference, StatusView, StoredKey, StoredSession, StoredView, Strategy, TakenInView, Tenant, TendedView, Tuning, TuningChange, UserPage, WeightsInput, Why
from priors_client.requests import Paging, Request, by_cursor, by_last, segment

T = TypeVar("T")


class Requests:
    """What sends the requests of the methods."""

    def _send(self, request: Request[T]) -> T:
        raise NotImplementedError

    def _each(self, request: Request[Any], paging: Paging) -> Iterator[Any]:
        raise NotImplementedError

    def _lines(self, request: Request[Any]) -> Iterator[Any]:
        raise NotImplementedError


class Operations(Requests):
    """The routes that people call, as methods of a client; those of all others are `admin`'s."""

    @cached_property
    def admin(self) -> "Admin":
        """The methods of all other routes: lists, changes and deletions, keys, the service's state."""
        return Admin(self)

    def history(self, query: str, *, activate: bool | UnsetType = UNSET, agent: str | None | UnsetType = UNSET, budget_tokens: int | UnsetType = UNSET, filters: Filters | None | UnsetType = UNSET, half_life_days: float | None | UnsetType = UNSET, k: int | UnsetType = UNSET, language: str | None | UnsetType = UNSET, min_probability: float | None | UnsetType = UNSET, now: datetime | None | UnsetType = UNSET, preset: str | UnsetType = UNSET, rerank: bool | None | UnsetType = UNSET, run_id: str | None | UnsetType = UNSET, stable: bool | UnsetType = UNSET, trial: bool | UnsetType = UNSET, user: str | UnsetType = UNSET, weights: WeightsInput | None | UnsetType = UNSET) -> HistoryView:
        """The `## Relevant History` section for an agent, within a token budget. With `stable`, consecutive calls of one run share the longest possible prefix of bytes."""
        return self._send(Request('POST', '/api/history', HistoryView, body=HistoryInput(activate=activate, agent=agent, budget_tokens=budget_tokens, filters=filters, half_life_days=half_life_days, k=k, language=language, min_probability=min_probability, now=now, preset=preset, query=query, rerank=rerank, run_id=run_id, stable=stable, trial=trial, user=user, weights=weights), headers={"Idempotency-Key": uuid4().hex}, repeatable=True))

    def activate(self, plan: str | UnsetType = UNSET, *, agent: str | None | UnsetType = UNSET, as_of: datetime | None | UnsetType = UNSET, budget_tokens: int | UnsetType = UNSET, files: Sequence[str] | UnsetType = UNSET, min_score: float | None | UnsetType = UNSET, run_id: str | None | UnsetType = UNSET, trial: bool | UnsetType = UNSET, user: str | UnsetType = UNSET) -> Activation:
        """The `## Before you act` section for a plan or an action, within a token budget: what was learnt about it."""
        return self._send(Request('POST', '/api/activate', Activation, body=ActivateInput(agent=agent, as_of=as_of, budget_tokens=budget_tokens, files=files, min_score=min_score, plan=plan, run_id=run_id, trial=trial, user=user), headers={"Idempotency-Key": uuid4().hex}, repeatable=True))

    def check(self, plan: str, *, agent: str | None | UnsetType = UNSET, budget_tokens: int | UnsetType = UNSET, files: Sequence[str] | UnsetType = UNSET, run_id: str | None | UnsetType = UNSET, task_type: str | UnsetType = UNSET, trial: bool | UnsetType = UNSET, user: str | UnsetType = UNSET) -> PlanCheck:
        """A verdict for each step of a plan (clear, look again, stop and ask), with the evidence. No model is asked."""
        return self._send(Request('POST', '/api/check', PlanCheck, body=CheckInput(agent=agent, budget_tokens=budget_tokens, files=files, plan=plan, run_id=run_id, task_type=task_type, trial=trial, user=user)))

    def why(self, subject: str | UnsetType = UNSET, *, user: str | UnsetType = UNSET, path: str | UnsetType = UNSET, symbol: str | UnsetType = UNSET) -> Why:
        """Returns reasons: what was said on a subject or question, or the sessions that shaped a file or function. With `user` also those of this user, else only what all users share."""
        return self._send(Request('GET', '/api/why', Why, {"user": user, "subject": subject, "path": path, "symbol": symbol}, repeatable=True))

    def search(self, query: str, *, agent: str | None | UnsetType = UNSET, around: int | UnsetType = UNSET, filters: Filters | None | UnsetType = UNSET, half_life_days: float | None | UnsetType = UNSET, k: int | UnsetType = UNSET, language: str | None | UnsetType = UNSET, min_probability: float | None | UnsetType = UNSET, now: datetime | None | UnsetType = UNSET, preset: str | UnsetType = UNSET, rerank: bool | None | UnsetType = UNSET, run_id: str | None | UnsetType = UNSET, trial: bool | UnsetType = UNSET, user: str | UnsetType = UNSET, weights: WeightsInput | None | UnsetType = UNSET) -> SearchView:
        """The memories that matter for a query, best first, each with every component of its score."""
        return self._send(Request('POST', '/api/search', SearchView, body=SearchInput(agent=agent, around=around, filters=filters, half_life_days=half_life_days, k=k, language=language, min_probability=min_probability, now=now, preset=preset, query=query, rerank=rerank, run_id=run_id, trial=trial, user=user, weights=weights), repeatable=True))

    def record_run(self, run_id: str, *, wait: bool | UnsetType = UNSET, agent: str | None | UnsetType = UNSET, bytes: int | None | UnsetType = UNSET, final_score: float | None | UnsetType = UNSET, finished_at: datetime | None | UnsetType = UNSET, issues: Sequence[str] | None | UnsetType = UNSET, lines: int | None | UnsetType = UNSET, metadata: Mapping[str, Any] | None | UnsetType = UNSET, output: str | None | UnsetType = UNSET, output_path: str | None | UnsetType = UNSET, queries: Sequence[str] | None | UnsetType = UNSET, remember: bool | UnsetType = UNSET, round_scores: Sequence[float] | None | UnsetType = UNSET, stages: Mapping[str, Any] | None | UnsetType = UNSET, started_at: datetime | None | UnsetType = UNSET, task: str | None | UnsetType = UNSET, task_type: str | None | UnsetType = UNSET, user: str | UnsetType = UNSET, verdict: str | None | UnsetType = UNSET) -> SavedRunView:
        """Start or complete a run. The same run sent twice is one run. 202 while its observation waits."""
        return self._send(Request('POST', '/api/runs', SavedRunView, {"wait": wait}, body=RunInput(agent=agent, bytes=bytes, final_score=final_score, finished_at=finished_at, issues=issues, lines=lines, metadata=metadata, output=output, output_path=output_path, queries=queries, remember=remember, round_scores=round_scores, run_id=run_id, stages=stages, started_at=started_at, task=task, task_type=task_type, user=user, verdict=verdict)))

    def complete_run(self, run_id: str, *, wait: bool | UnsetType = UNSET, agent: str | None | UnsetType = UNSET, bytes: int | None | UnsetType = UNSET, final_score: float | None | UnsetType = UNSET, finished_at: datetime | None | UnsetType = UNSET, issues: Sequence[str] | None | UnsetType = UNSET, lines: int | None | UnsetType = UNSET, metadata: Mapping[str, Any] | None | UnsetType = UNSET, output: str | None | UnsetType = UNSET, output_path: str | None | UnsetType = UNSET, queries: Sequence[str] | None | UnsetType = UNSET, remember: bool | UnsetType = UNSET, round_scores: Sequence[float] | None | UnsetType = UNSET, stages: Mapping[str, Any] | None | UnsetType = UNSET, started_at: datetime | None | UnsetType = UNSET, task: str | None | UnsetType = UNSET, task_type: str | None | UnsetType = UNSET, user: str | UnsetType = UNSET, verdict: str | None | UnsetType = UNSET) -> SavedRunView:
        """Complete a run; one that was not recorded is recorded whole. 202 while its observation waits."""
        return self._send(Request('PATCH', f"/api/runs/{segment(run_id)}", SavedRunView, {"wait": wait}, body=RunChange(agent=agent, bytes=bytes, final_score=final_score, finished_at=finished_at, issues=issues, lines=lines, metadata=metadata, output=output, output_path=output_path, queries=queries, remember=remember, round_scores=round_scores, stages=stages, started_at=started_at, task=task, task_type=task_type, user=user, verdict=verdict)))

    def run_story(self, run_id: str, *, user: str | UnsetType = UNSET) -> RunStoryView:
        """A run: which memories it was given, what it produced, how it was judged, and what it left."""
        return self._send(Request('GET', f"/api/runs/{segment(run_id)}", RunStoryView, {"user": user}, repeatable=True))

    def store(self, kind: Literal['observation', 'chunk', 'message', 'cue', 'note'], *, wait: bool | UnsetType = UNSET, body: str | UnsetType = UNSET, embedding: GivenVector | None | UnsetType = UNSET, final_score: float | None | UnsetType = UNSET, language: str | None | UnsetType = UNSET, metadata: Mapping[str, Any] | UnsetType = UNSET, observation: ObservationDetail | None | UnsetType = UNSET, occurred_at: datetime | None | UnsetType = UNSET, ordinal: int | None | UnsetType = UNSET, run_id: str | None | UnsetType = UNSET, source: SourceReference | None | UnsetType = UNSET, tags: Sequence[str] | UnsetType = UNSET, title: str | UnsetType = UNSET, user: str | UnsetType = UNSET) -> StoredView:
        """Store one memory. Known text is not stored twice."""
        return self._send(Request('POST', '/api/memories', StoredView, {"wait": wait}, body=NewMemory(body=body, embedding=embedding, final_score=final_score, kind=kind, language=language, metadata=metadata, observation=observation, occurred_at=occurred_at, ordinal=ordinal, run_id=run_id, source=source, tags=tags, title=title, user=user), repeatable=True))

    def memory(self, memory_id: UUID, *, user: str | UnsetType = UNSET) -> MemoryView:
        """One memory, live or retired."""
        return self._send(Request('GET', f"/api/memories/{segment(memory_id)}", MemoryView, {"user": user}, repeatable=True))

    def rate(self, memory_id: UUID, rating: Literal[1, -1], *, user: str | UnsetType = UNSET, comment: str | UnsetType = UNSET, reviewer: str | None | UnsetType = UNSET, run_id: str | None | UnsetType = UNSET) -> Rated:
        """Rate a memory; its quality moves with the log, and the very next recall ranks by it."""
        return self._send(Request('POST', f"/api/memories/{segment(memory_id)}/feedback", Rated, {"user": user}, body=RatingInput(comment=comment, rating=rating, reviewer=reviewer, run_id=run_id), headers={"Idempotency-Key": uuid4().hex}, repeatable=True))

    def learn(self, *, user: str | UnsetType = UNSET, because: str | UnsetType = UNSET, instead: str | UnsetType = UNSET, kind: Literal['correction', 'preference', 'precedent', 'procedure', 'decision', 'discovery', 'negative_result'], lesson: str, quote: str | UnsetType = UNSET, session: str | UnsetType = UNSET, severity: Literal['low', 'medium', 'high', 'severe'], steps: Sequence[str] | UnsetType = UNSET, when: str) -> LearntView:
        """Store a lesson: with the user's trust if `quote` stands in the user's turns of `session`, else an agent's."""
        return self._send(Request('POST', '/api/cues:learn', LearntView, {"user": user}, body=Lesson(because=because, instead=instead, kind=kind, lesson=lesson, quote=quote, session=session, severity=severity, steps=steps, when=when)))

    def build_context(self, observation: str, *, agent: str | None | UnsetType = UNSET, budget: Budget | UnsetType = UNSET, format: Literal['openai', 'anthropic', 'markdown', None] | UnsetType = UNSET, goal: str | UnsetType = UNSET, model: str | UnsetType = UNSET, run_id: str | None | UnsetType = UNSET, sections: Sequence[GivenSection] | UnsetType = UNSET, session: str | UnsetType = UNSET, state: CallState | None | UnsetType = UNSET, strategy: Strategy | UnsetType = UNSET, tools: Sequence[GivenTool] | UnsetType = UNSET, user: str | UnsetType = UNSET) -> ContextView:
        """An agent's context for an observation: hydrated, composed, cut to the budget, compiled, and stored."""
        return self._send(Request('POST', '/api/contexts', ContextView, body=ContextInput(agent=agent, budget=budget, format=format, goal=goal, model=model, observation=observation, run_id=run_id, sections=sections, session=session, state=state, strategy=strategy, tools=tools, user=user)))

    def store_session(self, *, wait: bool | UnsetType = UNSET, folder: str | UnsetType = UNSET, id: str, language: str | None | UnsetType = UNSET, messages: Sequence[MessageInput], started_at: datetime | None | UnsetType = UNSET, title: str | UnsetType = UNSET, user: str | None | UnsetType = UNSET) -> TakenInView:
        """Store a session. Give all its turns again when it has grown: only what is new or changed is stored. No turn is taken away because the session is given without it. A changed turn is known by its `id`, by its time, or by its place and a text that holds the stored one; otherwise it is a turn of its own. No turn is refused. One in which the injection scan has a finding stands in no history until a person releases it."""
        return self._send(Request('POST', '/api/sessions', TakenInView, {"wait": wait}, body=SessionInput(folder=folder, id=id, language=language, messages=messages, started_at=started_at, title=title, user=user), repeatable=True))

    def ingest_report(self, *, content: str, language: str | None | UnsetType = UNSET, path: str) -> FileOutcome:
        """Take in the content of one report file or log of sessions, as `priors ingest` takes a file. A log that has grown is given whole again: only what is new is stored."""
        return self._send(Request('POST', '/api/reports', FileOutcome, body=ReportInput(content=content, language=language, path=path), repeatable=True))


class Admin:
    """The other routes, as methods of a client's `admin`."""

    def __init__(self, client: Requests) -> None:
        self._client = client

    def note_outcome(self, activation_id: UUID, *, heeded: Sequence[UUID] | UnsetType = UNSET, ignored: Sequence[UUID] | UnsetType = UNSET) -> LoggedActivation:
        """Say which cues of an activation were heeded and which ignored; it may be said again."""
        return self._client._send(Request('POST', f"/api/activations/{segment(activation_id)}/outcome", LoggedActivation, body=ActivationOutcomeInput(heeded=heeded, ignored=ignored)))

    def audit(self, *, since: datetime | UnsetType = UNSET, until: datetime | UnsetType = UNSET, who: str | UnsetType = UNSET, action: Literal['add', 'change', 'remove', 'export', 'erase'] | UnsetType = UNSET, object: str | UnsetType = UNSET, id: str | UnsetType = UNSET, before: UUID | UnsetType = UNSET, limit: int | UnsetType = UNSET, store: bool | UnsetType = UNSET) -> AuditPage:
        """Who changed what in the workspace and who exported it, the newest first. Reads are not logged."""
        return self._client._send(Request('GET', '/api/audit', AuditPage, {"since": since, "until": until, "who": who, "action": action, "object": object, "id": id, "before": before, "limit": limit, "store": store}, repeatable=True))

    def cases(self, *, user: str | UnsetType = UNSET, limit: int | UnsetType = UNSET) -> list[CaseSummary]:
        """The test cases that were judged, the latest judged first."""
        return self._client._send(Request('GET', '/api/cases', list[CaseSummary], {"user": user, "limit": limit}, repeatable=True))

    def case(self, case: str, *, user: str | UnsetType = UNSET) -> CaseHistory:
        """A test case: its versions with dates, scores and verdicts, what changed, and its issues over them."""
        return self._client._send(Request('GET', f"/api/cases/{segment(case)}", CaseHistory, {"user": user}, repeatable=True))

    def contexts(self, *, user: str | UnsetType = UNSET, run_id: str | UnsetType = UNSET, session: str | UnsetType = UNSET, agent: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, before: UUID | UnsetType = UNSET) -> list[ContextSummary]:
        """Stored contexts that meet every condition, the latest first, without their parts."""
        return self._client._send(Request('GET', '/api/contexts', list[ContextSummary], {"user": user, "run_id": run_id, "session": session, "agent": agent, "limit": limit, "before": before}, repeatable=True))

    def iter_contexts(self, *, user: str | UnsetType = UNSET, run_id: str | UnsetType = UNSET, session: str | UnsetType = UNSET, agent: str | UnsetType = UNSET, limit: int | UnsetType = UNSET) -> Iterator[ContextSummary]:
        """Stored contexts that meet every condition, the latest first, without their parts. It asks for page after page."""
        return self._client._each(Request('GET', '/api/contexts', list[ContextSummary], {"user": user, "run_id": run_id, "session": session, "agent": agent, "limit": limit}, repeatable=True), by_last('id'))

    def context(self, context_id: UUID, *, user: str | UnsetType = UNSET) -> ContextView:
        """A context as it was made, byte for byte."""
        return self._client._send(Request('GET', f"/api/contexts/{segment(context_id)}", ContextView, {"user": user}, repeatable=True))

    def compare_contexts(self, first: CompileInput, *, second: CompileInput | None | UnsetType = UNSET, threshold: float | UnsetType = UNSET) -> ContextComparison:
        """The share that each section contributes to a representation, and whether another one says the same."""
        return self._client._send(Request('POST', '/api/contexts:compare', ContextComparison, body=CompareInput(first=first, second=second, threshold=threshold)))

    def compile_context(self, *, budget: Budget | None | UnsetType = UNSET, format: Literal['openai', 'anthropic', 'markdown', None] | UnsetType = UNSET, model: str | UnsetType = UNSET, sections: Sequence[MadeSectionInput] | UnsetType = UNSET, tools: Sequence[MadeToolInput] | UnsetType = UNSET) -> ContextView:
        """A representation that was made elsewhere, cut to a budget and compiled. Nothing is looked up or stored."""
        return self._client._send(Request('POST', '/api/contexts:compile', ContextView, body=CompileInput(budget=budget, format=format, model=model, sections=sections, tools=tools)))

    def cues(self, *, user: str | UnsetType = UNSET, kind: Sequence[Literal['correction', 'preference', 'precedent', 'procedure', 'decision', 'discovery', 'negative_result']] | UnsetType = UNSET, state: Sequence[Literal['active', 'proposed', 'retired', 'superseded']] | UnsetType = UNSET, action_type: str | UnsetType = UNSET, session: str | UnsetType = UNSET, text: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, cursor: str | UnsetType = UNSET) -> CuePage:
        """Cues that meet every condition, newest first."""
        return self._client._send(Request('GET', '/api/cues', CuePage, {"user": user, "kind": kind, "state": state, "action_type": action_type, "session": session, "text": text, "limit": limit, "cursor": cursor}, repeatable=True))

    def iter_cues(self, *, user: str | UnsetType = UNSET, kind: Sequence[Literal['correction', 'preference', 'precedent', 'procedure', 'decision', 'discovery', 'negative_result']] | UnsetType = UNSET, state: Sequence[Literal['active', 'proposed', 'retired', 'superseded']] | UnsetType = UNSET, action_type: str | UnsetType = UNSET, session: str | UnsetType = UNSET, text: str | UnsetType = UNSET, limit: int | UnsetType = UNSET) -> Iterator[Cue]:
        """Cues that meet every condition, newest first. It asks for page after page."""
        return self._client._each(Request('GET', '/api/cues', CuePage, {"user": user, "kind": kind, "state": state, "action_type": action_type, "session": session, "text": text, "limit": limit}, repeatable=True), by_cursor('cues'))

    def store_cues(self, data: CueInput | Sequence[CueInput], *, user: str | UnsetType = UNSET) -> KeptView:
        """Store a cue, or a list of them. Known text is not stored twice; its evidence is united. An agent's cue (`trust`) has a person's trust if its first evidence quotes a turn of the user in its session."""
        return self._client._send(Request('POST', '/api/cues', KeptView, {"user": user}, body=data))

    def cue(self, cue_id: UUID, *, user: str | UnsetType = UNSET) -> Cue:
        """One cue, of any state."""
        return self._client._send(Request('GET', f"/api/cues/{segment(cue_id)}", Cue, {"user": user}, repeatable=True))

    def change_cue(self, cue_id: UUID, *, user: str | UnsetType = UNSET, action_types: Sequence[str] | UnsetType = UNSET, confidence: float | UnsetType = UNSET, consequence: float | Literal['low', 'medium', 'high', 'severe'] | UnsetType = UNSET, details: Mapping[str, Any] | UnsetType = UNSET, files: Sequence[str] | UnsetType = UNSET, kind: Literal['correction', 'preference', 'precedent', 'procedure', 'decision', 'discovery', 'negative_result'] | UnsetType = UNSET, lesson: str | UnsetType = UNSET, quote: str | UnsetType = UNSET, scope: Literal['project', 'user'] | UnsetType = UNSET, state: Literal['active', 'proposed', 'retired', 'superseded', None] | UnsetType = UNSET, superseded_by: UUID | None | UnsetType = UNSET, trigger: str | UnsetType = UNSET, trust: Literal['person', 'agent', 'imported', 'web'] | UnsetType = UNSET, valid_from: datetime | UnsetType = UNSET, valid_until: datetime | None | UnsetType = UNSET) -> Cue:
        """Change fields of a cue, or its state. It keeps its id, its evidence and its counts."""
        return self._client._send(Request('PATCH', f"/api/cues/{segment(cue_id)}", Cue, {"user": user}, body=CueEdit(action_types=action_types, confidence=confidence, consequence=consequence, details=details, files=files, kind=kind, lesson=lesson, quote=quote, scope=scope, state=state, superseded_by=superseded_by, trigger=trigger, trust=trust, valid_from=valid_from, valid_until=valid_until)))

    def merge_cues(self, *, user: str | UnsetType = UNSET, ids: Sequence[UUID], into: UUID) -> Cue:
        """Merge cues into one that says the same better; the merged ones are superseded by it."""
        return self._client._send(Request('POST', '/api/cues:merge', Cue, {"user": user}, body=MergeInput(ids=ids, into=into)))

    def tend_cues(self, *, user: str | UnsetType = UNSET) -> TendedView:
        """Merge near-duplicate cues, and propose what else should change. A worker does it each night."""
        return self._client._send(Request('POST', '/api/cues:tend', TendedView, {"user": user}))

    def effect(self, *, user: str | UnsetType = UNSET, since: datetime | UnsetType = UNSET, until: datetime | UnsetType = UNSET, task_type: str | UnsetType = UNSET, versions: int | UnsetType = UNSET, format: Literal['json', 'markdown', 'html'] | UnsetType = UNSET) -> EffectView:
        """Runs with and without history: score, cost, tokens, duration and repeated issues; and what proves nothing."""
        return self._client._send(Request('GET', '/api/effect', EffectView, {"user": user, "since": since, "until": until, "task_type": task_type, "versions": versions, "format": format}, repeatable=True))

    def export_feedback(self, *, user: str | UnsetType = UNSET, format: Literal['ratings', 'dpo', 'kto'] | UnsetType = UNSET) -> Iterator[Any]:
        """JSON lines: every rating that stands, or what TRL's trainers read: pairs (`dpo`), labelled texts (`kto`)."""
        return self._client._lines(Request('GET', '/api/feedback/export', Any, {"user": user, "format": format}, repeatable=True))

    def undo_rating(self, feedback_id: UUID, *, user: str | UnsetType = UNSET) -> Rated:
        """Take a rating back; the log keeps both."""
        return self._client._send(Request('DELETE', f"/api/feedback/{segment(feedback_id)}", Rated, {"user": user}, repeatable=True))

    def forget(self, phrase: str, *, confirm: int | None | UnsetType = UNSET, yes: bool | UnsetType = UNSET) -> Forgotten:
        """List everything that names a subject, of all users, and with `yes` remove it for good. Memories that name it are destroyed, in the trash too; elsewhere, as in runs and recalls, the phrase is taken out. The answer says what stays."""
        return self._client._send(Request('POST', '/api/forget', Forgotten, body=ForgetInput(confirm=confirm, phrase=phrase, yes=yes)))

    def graph(self, *, user: str | UnsetType = UNSET, kind: Literal['', 'observation', 'chunk', 'message', 'cue', 'note'] | UnsetType = UNSET, limit: int | UnsetType = UNSET, refresh: bool | UnsetType = UNSET, sketch: bool | UnsetType = UNSET) -> GraphView:
        """The newest memories in two dimensions, coloured by cluster, as they were drawn last. The first time it takes a while, and so it does where a tenth of them is missing."""
        return self._client._send(Request('GET', '/api/graph', GraphView, {"user": user, "kind": kind, "limit": limit, "refresh": refresh, "sketch": sketch}, repeatable=True))

    def import_file(self, *, content: str, name: str) -> Imported:
        """Take in the store of an earlier harness, as `priors import` does: its runs, observations and feedback. A bad line or row is named and left out. Another import adds only what is new."""
        return self._client._send(Request('POST', '/api/imports', Imported, body=HarnessFile(content=content, name=name), repeatable=True))

    def ingestions(self, *, limit: int | UnsetType = UNSET, before: UUID | UnsetType = UNSET, failed: bool | UnsetType = UNSET) -> list[LoggedIngestion]:
        """Past ingestions, newest first, each with the outcome of its files."""
        return self._client._send(Request('GET', '/api/ingestions', list[LoggedIngestion], {"limit": limit, "before": before, "failed": failed}, repeatable=True))

    def iter_ingestions(self, *, limit: int | UnsetType = UNSET, failed: bool | UnsetType = UNSET) -> Iterator[LoggedIngestion]:
        """Past ingestions, newest first, each with the outcome of its files. It asks for page after page."""
        return self._client._each(Request('GET', '/api/ingestions', list[LoggedIngestion], {"limit": limit, "failed": failed}, repeatable=True), by_last('id'))

    def keys(self) -> list[StoredKey]:
        """The keys that the caller's own may manage, the newest first, revoked and expired ones among them."""
        return self._client._send(Request('GET', '/api/keys', list[StoredKey], repeatable=True))

    def add_keys(self, *, expires_at: datetime | None | UnsetType = UNSET, name: str, requests_per_minute: int | None | UnsetType = UNSET, scopes: Sequence[str], workspaces: Sequence[str] | None | UnsetType = UNSET) -> MadeKey:
        """Make a key. The answer has its secret, which is shown this once."""
        return self._client._send(Request('POST', '/api/keys', MadeKey, body=NewKey(expires_at=expires_at, name=name, requests_per_minute=requests_per_minute, scopes=scopes, workspaces=workspaces)))

    def delete_key(self, key_id: UUID) -> StoredKey:
        """Revoke a key for good; a second time changes nothing."""
        return self._client._send(Request('DELETE', f"/api/keys/{segment(key_id)}", StoredKey, repeatable=True))

    def save_key_limits(self, key_id: UUID, requests_per_minute: int | None) -> StoredKey:
        """Limit the use of a key. Only a key of all workspaces may do it."""
        return self._client._send(Request('PUT', f"/api/keys/{segment(key_id)}/limits", StoredKey, body=KeyLimitInput(requests_per_minute=requests_per_minute), repeatable=True))

    def rotate_key(self, key_id: UUID, *, overlap_seconds: float | UnsetType = UNSET) -> MadeKey:
        """Make a key in place of another, which stays valid for the overlap."""
        return self._client._send(Request('POST', f"/api/keys/{segment(key_id)}/rotate", MadeKey, body=RotationInput(overlap_seconds=overlap_seconds)))

    def change_links(self, *, links: Sequence[LinkInput] | UnsetType = UNSET, remove: LinkDeletion | None | UnsetType = UNSET) -> LinksGiven:
        """Link memories, all or none of them, or remove a link. A known link takes the new weight, and `removed` is 0 for one that is not stored, so a call may be repeated."""
        return self._client._send(Request('POST', '/api/links', LinksGiven, body=LinksInput(links=links, remove=remove), repeatable=True))

    def memories(self, *, user: str | UnsetType = UNSET, kind: Sequence[Literal['observation', 'chunk', 'message', 'cue', 'note']] | UnsetType = UNSET, tag: Sequence[str] | UnsetType = UNSET, task_type: Sequence[str] | UnsetType = UNSET, verdict: Sequence[str] | UnsetType = UNSET, source: str | UnsetType = UNSET, source_id: UUID | UnsetType = UNSET, since: datetime | UnsetType = UNSET, until: datetime | UnsetType = UNSET, min_quality: int | UnsetType = UNSET, max_quality: int | UnsetType = UNSET, min_score: float | UnsetType = UNSET, max_score: float | UnsetType = UNSET, state: Literal['live', 'suspect', 'prune', 'quarantined', 'deleted', 'superseded'] | UnsetType = UNSET, sort: Literal['created', 'occurred', 'score', 'quality'] | UnsetType = UNSET, order: Literal['desc', 'asc'] | UnsetType = UNSET, limit: int | UnsetType = UNSET, cursor: str | UnsetType = UNSET) -> MemoryPage:
        """Memories of a state that meet every condition, in an order; without more, the live ones, newest first."""
        return self._client._send(Request('GET', '/api/memories', MemoryPage, {"user": user, "kind": kind, "tag": tag, "task_type": task_type, "verdict": verdict, "source": source, "source_id": source_id, "since": since, "until": until, "min_quality": min_quality, "max_quality": max_quality, "min_score": min_score, "max_score": max_score, "state": state, "sort": sort, "order": order, "limit": limit, "cursor": cursor}, repeatable=True))

    def iter_memories(self, *, user: str | UnsetType = UNSET, kind: Sequence[Literal['observation', 'chunk', 'message', 'cue', 'note']] | UnsetType = UNSET, tag: Sequence[str] | UnsetType = UNSET, task_type: Sequence[str] | UnsetType = UNSET, verdict: Sequence[str] | UnsetType = UNSET, source: str | UnsetType = UNSET, source_id: UUID | UnsetType = UNSET, since: datetime | UnsetType = UNSET, until: datetime | UnsetType = UNSET, min_quality: int | UnsetType = UNSET, max_quality: int | UnsetType = UNSET, min_score: float | UnsetType = UNSET, max_score: float | UnsetType = UNSET, state: Literal['live', 'suspect', 'prune', 'quarantined', 'deleted', 'superseded'] | UnsetType = UNSET, sort: Literal['created', 'occurred', 'score', 'quality'] | UnsetType = UNSET, order: Literal['desc', 'asc'] | UnsetType = UNSET, limit: int | UnsetType = UNSET) -> Iterator[ListedMemory]:
        """Memories of a state that meet every condition, in an order; without more, the live ones, newest first. It asks for page after page."""
        return self._client._each(Request('GET', '/api/memories', MemoryPage, {"user": user, "kind": kind, "tag": tag, "task_type": task_type, "verdict": verdict, "source": source, "source_id": source_id, "since": since, "until": until, "min_quality": min_quality, "max_quality": max_quality, "min_score": min_score, "max_score": max_score, "state": state, "sort": sort, "order": order, "limit": limit}, repeatable=True), by_cursor('memories'))

    def change_memories(self, ids: Sequence[UUID], *, user: str | UnsetType = UNSET, by: UUID | None | UnsetType = UNSET, state: Literal['live', 'deleted', 'quarantined', 'superseded', None] | UnsetType = UNSET, tag: str | None | UnsetType = UNSET, untag: str | None | UnsetType = UNSET) -> Changed:
        """Change the state of memories, or give them a tag or take it away; all of them or none. `changed` are those that were not so before: an undo changes these. Only the panel or the admin key release what the scan holds."""
        return self._client._send(Request('PATCH', '/api/memories', Changed, {"user": user}, body=MemoriesChange(by=by, ids=ids, state=state, tag=tag, untag=untag), repeatable=True))

    def memories_facets(self, *, user: str | UnsetType = UNSET) -> Facets:
        """Kinds, task types, verdicts and tags to filter by, each with its count among the newest 100,000."""
        return self._client._send(Request('GET', '/api/memories/facets', Facets, {"user": user}, repeatable=True))

    def memories_review_counts(self, *, user: str | UnsetType = UNSET) -> ReviewCounts:
        """Count the memories to review by state: to prune, quarantined, suspect, deleted and superseded ones."""
        return self._client._send(Request('GET', '/api/memories/review-counts', ReviewCounts, {"user": user}, repeatable=True))

    def memory_around(self, memory_id: UUID, *, user: str | UnsetType = UNSET) -> AroundView:
        """The neighbours of a memory in its source, its links, and its runs."""
        return self._client._send(Request('GET', f"/api/memories/{segment(memory_id)}/around", AroundView, {"user": user}, repeatable=True))

    def memory_feedback(self, memory_id: UUID, *, user: str | UnsetType = UNSET) -> list[Rating]:
        """A memory's ratings in their order, each with when it was undone."""
        return self._client._send(Request('GET', f"/api/memories/{segment(memory_id)}/feedback", list[Rating], {"user": user}, repeatable=True))

    def memory_same(self, memory_id: UUID, *, user: str | UnsetType = UNSET, phrase: str | UnsetType = UNSET) -> SameView:
        """The memory and all live ones that say the same: copies, cues, what they quote, what was derived of it. A search hides equal texts. So delete all of them by `PATCH /api/memories`, else a copy takes its place."""
        return self._client._send(Request('GET', f"/api/memories/{segment(memory_id)}/same", SameView, {"user": user, "phrase": phrase}, repeatable=True))

    def novelty(self, results: Sequence[str], *, known: Sequence[str] | UnsetType = UNSET, task: str | UnsetType = UNSET, user: str | UnsetType = UNSET) -> Novelty:
        """Measure how much each text adds beyond what is stored, with the nearest memories."""
        return self._client._send(Request('POST', '/api/novelty', Novelty, body=NoveltyInput(known=known, results=results, task=task, user=user), repeatable=True))

    def observe(self, *, wait: bool | UnsetType = UNSET, bytes: int | None | UnsetType = UNSET, final_score: float | None | UnsetType = UNSET, issues: Sequence[str] | UnsetType = UNSET, language: str | None | UnsetType = UNSET, lines: int | None | UnsetType = UNSET, occurred_at: datetime | None | UnsetType = UNSET, output: str | UnsetType = UNSET, output_path: str | None | UnsetType = UNSET, queries: Sequence[str] | UnsetType = UNSET, run_id: str | None | UnsetType = UNSET, tags: Sequence[str] | UnsetType = UNSET, task: str | UnsetType = UNSET, task_type: str | UnsetType = UNSET, user: str | UnsetType = UNSET, verdict: str | UnsetType = UNSET) -> Recorded:
        """Compress a finished run, stored or sent here: 202 at once, or 200 once it is made with `?wait=true`."""
        return self._client._send(Request('POST', '/api/observations', Recorded, {"wait": wait}, body=OutcomeInput(bytes=bytes, final_score=final_score, issues=issues, language=language, lines=lines, occurred_at=occurred_at, output=output, output_path=output_path, queries=queries, run_id=run_id, tags=tags, task=task, task_type=task_type, user=user, verdict=verdict)))

    def observation(self, observation_id: UUID, *, user: str | UnsetType = UNSET) -> Recorded:
        """Show the state of an observation that was asked for."""
        return self._client._send(Request('GET', f"/api/observations/{segment(observation_id)}", Recorded, {"user": user}, repeatable=True))

    def run_probes(self, *, limit: int | UnsetType = UNSET) -> ProbeReport:
        """Measures whether the newest cues fire for plans of their triggers, and none for plans of other trades."""
        return self._client._send(Request('POST', '/api/probes:run', ProbeReport, {"limit": limit}))

    def proposals(self, *, user: str | UnsetType = UNSET, state: Literal['open', 'accepted', 'declined', 'undone', ''] | UnsetType = UNSET, limit: int | UnsetType = UNSET) -> list[ProposalView]:
        """The changes to cues that were proposed, the newest first."""
        return self._client._send(Request('GET', '/api/proposals', list[ProposalView], {"user": user, "state": state, "limit": limit}, repeatable=True))

    def decide_proposal(self, proposal_id: UUID, state: Literal['accepted', 'declined', 'undone'], *, artifact: str | UnsetType = UNSET) -> ProposalView:
        """Accept a proposal, which changes its cues, or decline it; or take the decision back."""
        return self._client._send(Request('PATCH', f"/api/proposals/{segment(proposal_id)}", ProposalView, body=DecisionInput(artifact=artifact, state=state)))

    def recalls(self, *, user: str | UnsetType = UNSET, text: str | UnsetType = UNSET, agent: str | UnsetType = UNSET, run_id: str | UnsetType = UNSET, mode: Literal['hybrid', 'lexical', 'vector'] | UnsetType = UNSET, purpose: str | UnsetType = UNSET, outcome: Literal['empty', 'degraded'] | UnsetType = UNSET, since: datetime | UnsetType = UNSET, until: datetime | UnsetType = UNSET, limit: int | UnsetType = UNSET, before: UUID | UnsetType = UNSET) -> list[LoggedSummary]:
        """Logged recalls that meet every condition, the latest first."""
        return self._client._send(Request('GET', '/api/recalls', list[LoggedSummary], {"user": user, "text": text, "agent": agent, "run_id": run_id, "mode": mode, "purpose": purpose, "outcome": outcome, "since": since, "until": until, "limit": limit, "before": before}, repeatable=True))

    def iter_recalls(self, *, user: str | UnsetType = UNSET, text: str | UnsetType = UNSET, agent: str | UnsetType = UNSET, run_id: str | UnsetType = UNSET, mode: Literal['hybrid', 'lexical', 'vector'] | UnsetType = UNSET, purpose: str | UnsetType = UNSET, outcome: Literal['empty', 'degraded'] | UnsetType = UNSET, since: datetime | UnsetType = UNSET, until: datetime | UnsetType = UNSET, limit: int | UnsetType = UNSET) -> Iterator[LoggedSummary]:
        """Logged recalls that meet every condition, the latest first. It asks for page after page."""
        return self._client._each(Request('GET', '/api/recalls', list[LoggedSummary], {"user": user, "text": text, "agent": agent, "run_id": run_id, "mode": mode, "purpose": purpose, "outcome": outcome, "since": since, "until": until, "limit": limit}, repeatable=True), by_last('recall_id'))

    def recall(self, recall_id: UUID, *, user: str | UnsetType = UNSET) -> LoggedRecall:
        """One logged recall with its hits."""
        return self._client._send(Request('GET', f"/api/recalls/{segment(recall_id)}", LoggedRecall, {"user": user}, repeatable=True))

    def recall_trends(self, *, user: str | UnsetType = UNSET, days: int | UnsetType = UNSET) -> list[RecallDay]:
        """The latest days, today the last, each with its recalls; those that people tried out do not count."""
        return self._client._send(Request('GET', '/api/recalls:trends', list[RecallDay], {"user": user, "days": days}, repeatable=True))

    def batch_reports(self, *, dry_run: bool | UnsetType = UNSET, failures: Mapping[str, str] | UnsetType = UNSET, files: Sequence[SentFile] | UnsetType = UNSET, gone: Sequence[str] | UnsetType = UNSET, language: str | None | UnsetType = UNSET, left_out: Mapping[str, str] | UnsetType = UNSET, roots: Sequence[str] | UnsetType = UNSET) -> Ingestion:
        """Take in files of another machine, as `priors ingest` takes those of its own: also moved and deleted ones."""
        return self._client._send(Request('POST', '/api/reports:batch', Ingestion, body=SentFiles(dry_run=dry_run, failures=failures, files=files, gone=gone, language=language, left_out=left_out, roots=roots)))

    def runs(self, *, user: str | UnsetType = UNSET, task_type: str | UnsetType = UNSET, verdict: str | UnsetType = UNSET, agent: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, cursor: str | UnsetType = UNSET) -> RunPage:
        """Runs, newest first."""
        return self._client._send(Request('GET', '/api/runs', RunPage, {"user": user, "task_type": task_type, "verdict": verdict, "agent": agent, "limit": limit, "cursor": cursor}, repeatable=True))

    def iter_runs(self, *, user: str | UnsetType = UNSET, task_type: str | UnsetType = UNSET, verdict: str | UnsetType = UNSET, agent: str | UnsetType = UNSET, limit: int | UnsetType = UNSET) -> Iterator[RunSummary]:
        """Runs, newest first. It asks for page after page."""
        return self._client._each(Request('GET', '/api/runs', RunPage, {"user": user, "task_type": task_type, "verdict": verdict, "agent": agent, "limit": limit}, repeatable=True), by_cursor('runs'))

    def sessions(self, *, user: str | UnsetType = UNSET, text: str | UnsetType = UNSET, format: str | UnsetType = UNSET, path: str | UnsetType = UNSET, since: datetime | UnsetType = UNSET, until: datetime | UnsetType = UNSET, limit: int | UnsetType = UNSET, cursor: str | UnsetType = UNSET) -> SessionPage:
        """Sessions, the latest first, that meet every condition."""
        return self._client._send(Request('GET', '/api/sessions', SessionPage, {"user": user, "text": text, "format": format, "path": path, "since": since, "until": until, "limit": limit, "cursor": cursor}, repeatable=True))

    def iter_sessions(self, *, user: str | UnsetType = UNSET, text: str | UnsetType = UNSET, format: str | UnsetType = UNSET, path: str | UnsetType = UNSET, since: datetime | UnsetType = UNSET, until: datetime | UnsetType = UNSET, limit: int | UnsetType = UNSET) -> Iterator[StoredSession]:
        """Sessions, the latest first, that meet every condition. It asks for page after page."""
        return self._client._each(Request('GET', '/api/sessions', SessionPage, {"user": user, "text": text, "format": format, "path": path, "since": since, "until": until, "limit": limit}, repeatable=True), by_cursor('sessions'))

    def delete_session(self, session_id: str, *, user: str | UnsetType = UNSET) -> None:
        """Move all turns of a session to the trash. Its log is not read again; later turns begin it anew."""
        self._client._send(Request('DELETE', f"/api/sessions/{segment(session_id)}", None, {"user": user}, repeatable=True))

    def session(self, session_id: str, *, user: str | UnsetType = UNSET) -> SessionDetailView:
        """A session: its turns with their tools, its cues, and the artifacts that it touched."""
        return self._client._send(Request('GET', f"/api/sessions/{segment(session_id)}", SessionDetailView, {"user": user}, repeatable=True))

    def session_messages(self, session_id: str, *, user: str | UnsetType = UNSET, last: int | UnsetType = UNSET, before: int | UnsetType = UNSET) -> MessagesView:
        """The latest turns of a session, in their order; with `before` the ones before a page."""
        return self._client._send(Request('GET', f"/api/sessions/{segment(session_id)}/messages", MessagesView, {"user": user, "last": last, "before": before}, repeatable=True))

    def append_messages(self, session_id: str, messages: Sequence[MessageInput], *, wait: bool | UnsetType = UNSET, language: str | None | UnsetType = UNSET, user: str | None | UnsetType = UNSET) -> TakenInView:
        """Append turns to a session as they happen; a session that is not known is made. A message with an `id` or a time `at`, or sent with an Idempotency-Key, is stored once."""
        return self._client._send(Request('POST', f"/api/sessions/{segment(session_id)}/messages", TakenInView, {"wait": wait}, body=AppendInput(language=language, messages=messages, user=user), headers={"Idempotency-Key": uuid4().hex}, repeatable=True))

    def settings(self) -> Tuning:
        """The settings of the workspace: what every workspace has, or its own in its place."""
        return self._client._send(Request('GET', '/api/settings', Tuning, repeatable=True))

    def change_settings(self, *, action_types: Mapping[str, Sequence[str] | None] | UnsetType = UNSET, roles: Mapping[str, Sequence[RolePart] | None] | UnsetType = UNSET, uses_effects: bool | UnsetType = UNSET) -> Tuning:
        """Set roles and action types by name, take one away with null, and let effects count in the ranking or not."""
        return self._client._send(Request('PATCH', '/api/settings', Tuning, body=TuningChange(action_types=action_types, roles=roles, uses_effects=uses_effects)))

    def sources(self, *, user: str | UnsetType = UNSET, kind: Literal['report', 'session', 'run', 'other'] | UnsetType = UNSET, limit: int | UnsetType = UNSET, cursor: str | UnsetType = UNSET) -> SourcePage:
        """Sources, the retired ones included, newest first."""
        return self._client._send(Request('GET', '/api/sources', SourcePage, {"user": user, "kind": kind, "limit": limit, "cursor": cursor}, repeatable=True))

    def iter_sources(self, *, user: str | UnsetType = UNSET, kind: Literal['report', 'session', 'run', 'other'] | UnsetType = UNSET, limit: int | UnsetType = UNSET) -> Iterator[Source]:
        """Sources, the retired ones included, newest first. It asks for page after page."""
        return self._client._each(Request('GET', '/api/sources', SourcePage, {"user": user, "kind": kind, "limit": limit}, repeatable=True), by_cursor('sources'))

    def status(self) -> StatusView:
        """Show how a workspace is served: mode, pending work, sizes, and how long recalls take."""
        return self._client._send(Request('GET', '/api/status', StatusView, repeatable=True))

    def users(self, *, after: str | UnsetType = UNSET, limit: int | UnsetType = UNSET) -> UserPage:
        """The users of the workspace by name, each with the numbers of their memories, sessions and recalls."""
        return self._client._send(Request('GET', '/api/users', UserPage, {"after": after, "limit": limit}, repeatable=True))

    def delete_user(self, user: str) -> ForgottenUser:
        """Destroy everything of a user: memories, sessions, cues, runs, recalls, activations, contexts, items, ratings. It does not go to the trash."""
        return self._client._send(Request('DELETE', f"/api/users/{segment(user)}", ForgottenUser, repeatable=True))

    def workspaces(self) -> list[Tenant]:
        """The workspaces that something was written to, by name. A key of some workspaces sees those alone."""
        return self._client._send(Request('GET', '/api/workspaces', list[Tenant], repeatable=True))

    def health(self) -> HealthView:
        """The process is alive. Asks for no key."""
        return self._client._send(Request('GET', '/health', HealthView, repeatable=True))

    def metrics(self) -> str:
        """The service's counters, as Prometheus reads them."""
        return self._client._send(Request('GET', '/metrics', str, repeatable=True))

    def ready(self) -> ReadyView:
        """Tell if database, migrations and model are ready, and count the memories pending for vectors or links."""
        return self._client._send(Request('GET', '/ready', ReadyView, repeatable=True))

