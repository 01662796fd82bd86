"""The verb that tells an agent, before it acts, what was learnt about what it is about to do."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias, TypeVar
from uuid import UUID, uuid5

from msgspec import Struct

from app.errors import EmbeddingUnavailable, InvalidInput, NotFound, check
from app.foundation.db.database import Database
from app.foundation.db.session import Session
from app.foundation.models.protocols import EmbeddingProvider, TokenCounter, Vector, adapted_vectors
from app.foundation.safety.secrets import masked_values
from app.intake.cases.service import Cases
from app.recall.cues import evidence, log, render, store
from app.recall.cues.arbitrate import CONSIDERED, Nearly, ShownCue, choose, fit_to_inform, rank
from app.recall.cues.cue import ACTIVE, RETIRED, SUPERSEDED, Cue
from app.recall.cues.index import CueIndexes
from app.recall.cues.known import CueIndex
from app.recall.cues.log import LoggedActivation
from app.recall.cues.match import MOST_FILES, CueMatch, PlannedAct, find_matches
from app.recall.cues.outcomes import HEEDED, IGNORED
from app.recall.cues.render import Contradiction
from app.recall.retrieval.judged import JudgedIssue, case_of_plan, issues_before, lines_of
from app.storage.memories.gate import unstorable
from app.storage.memories.memory import in_utc, new_id
from app.storage.tenants.workspace import Workspace

PLAN_LIMIT = 20_000
DEFAULT_BUDGET = 400
"""Model tokens of the section."""
LEAST_BUDGET, LARGEST_BUDGET = 1, 100_000
PATH = re.compile(r"(?<![\w/.-])(?:[\w.-]+/)*[\w-][\w.-]*\.[A-Za-z][A-Za-z0-9]{0,4}\b(?!\()")
"""A file in a text: a name with an extension, with its folders if they are given."""
MOST_TOUCHING = 200
_ISSUES_SHARE = 0.5
"""Most of a budget that the issues of the plan's case take; the cues take the rest."""
T = TypeVar("T")
_PlanVectors: TypeAlias = tuple[Vector | None, Vector | None]
"""The vectors of a plan by the model and by its adapted form."""
KEYS = UUID("0d2c4f52-6c1e-4b53-9a1e-3d7f6f1f7a55")
"""Namespace of the ids that are made from idempotency keys."""
MOST_SHOWN, NEARLY = 20, 0.05
"""Most cues that are named as nearly shown, and their least probability."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAsked:
    """A question for what was learnt about a plan or an action."""

    plan: str
    files: tuple[str, ...] = ()
    agent: str | None = None
    run_id: str | None = None
    budget_tokens: int = DEFAULT_BUDGET
    min_score: float | None = None
    """Least probability of a cue that is shown; None for the one that follows from its consequence."""
    as_of: datetime | None = None
    """The moment whose cues are asked for; None for the present."""
    trial: bool = False
    """A person's trial: it is not logged, and counts for no cue."""
    idempotency_key: str | None = None
    """It marks a retry, which is answered anew, and not logged and counted again."""


class ShownLesson(Struct, frozen=True, kw_only=True, rename={"cue_id": "id"}):
    """A cue that an activation tells."""

    cue_id: UUID
    kind: str
    trigger: str
    lesson: str
    imperative: str
    reason: str
    checkpoint: str
    """A step to take first; empty unless the cue is severe."""
    conflict_with: tuple[UUID, ...]
    """Cues that say otherwise, where it is not clear which one holds."""
    score: float
    explain: Mapping[str, float]
    action_types: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """The cues that a plan fires, and the section that tells them."""

    activation_id: UUID | None
    """None for a trial."""
    markdown: str
    tokens: int
    cues: tuple[ShownLesson, ...]
    issues: tuple[JudgedIssue, ...]
    """The open issues of the plan's case that the section shows."""
    contradictions: tuple[Contradiction, ...]
    nearly: tuple[Nearly, ...]
    action_types: tuple[str, ...]
    degraded: str
    """The reason why meaning was not compared; empty if it was."""
    took_ms: float

    def fit_to_inform(self, plan: str) -> frozenset[UUID] | None:
        """Returns the cues that a history of the plan may have as knowledge; None if meaning was not compared."""
        return None if self.degraded else fit_to_inform(plan, self.nearly)


class Firing(NamedTuple):
    """An activation before it is logged."""

    asked: PlanAsked
    """The plan in the form that may be stored."""
    activation: Activation
    shown: Sequence[ShownCue]


async def log_firing(session: Session, firing: Firing, *, stands: bool = True) -> None:
    """Logs an activation, and counts that its cues fired; if its section does not stand in the answer, none did."""
    asked, activation = firing.asked, firing.activation
    given: dict[str, Any] = {name: getattr(activation, name) for name in ("activation_id", "degraded", "took_ms")}
    given |= {**asdict(asked), "files": list(asked.files), "tokens": activation.tokens if stands else 0}
    told = enumerate((item.fired for item in firing.shown) if stands else (), start=1)
    rows = [
        {"rank": rank, "memory_id": it.cue.cue_id, "score": it.score, "explain": dict(it.explain)} for rank, it in told
    ]
    if await log.add(session, given, rows):
        return
    known = await log.get(session, given["activation_id"])
    if known is not None and known.plan != asked.plan:
        raise InvalidInput("Idempotency-Key", "was used for another plan; take a new one")


def _id_of(asked: PlanAsked) -> UUID | None:
    if asked.trial:
        return None
    return new_id() if asked.idempotency_key is None else uuid5(KEYS, asked.idempotency_key)


async def _in_turns(items: Iterable[T]) -> AsyncIterator[T]:
    """Yields the items; between two of them other tasks of the event loop may go on."""
    for place, item in enumerate(items):
        if place:
            await asyncio.sleep(0)
        yield item


class _MatchedPlan(NamedTuple):
    asked: PlanAsked
    act: PlannedAct
    matches: Sequence[CueMatch]


@dataclass(frozen=True, slots=True, kw_only=True)
class Activations:
    """Tells agents, before they act, what was learnt about what they are about to do."""

    database: Database
    provider: EmbeddingProvider
    counter: TokenCounter
    mask_secrets: bool = True

    async def activate(self, workspace: Workspace, asked: PlanAsked) -> Activation:
        """Returns what was learnt about a plan, as a section of at most `budget_tokens` model tokens, and logs it.

        Raises:
            InvalidInput: the plan, the budget or the least score is not valid, or the key was used for another plan.
            DatabaseUnavailable: the database does not answer.
        """
        issues, lines = await self._issues(workspace, asked)
        room = max(LEAST_BUDGET, asked.budget_tokens - self.counter.count("\n".join(lines)))
        (firing,) = await self.fire(workspace, [replace(asked, budget_tokens=room)])
        if lines:
            section = "\n".join([firing.activation.markdown.rstrip("\n") or f"{render.HEADING}\n", *lines]) + "\n"
            tokens = self.counter.count(section)
            told = replace(firing.activation, markdown=section, tokens=tokens, issues=tuple(issues))
            firing = firing._replace(asked=replace(firing.asked, budget_tokens=asked.budget_tokens), activation=told)
        if workspace.workspace_id and not asked.trial:
            async with self.database.session(workspace, transaction=False) as session:
                await log_firing(session, firing)
        return firing.activation

    async def note_outcome(
        self,
        workspace: Workspace,
        activation_id: UUID,
        *,
        heeded: Sequence[UUID] = (),
        ignored: Sequence[UUID] = (),
    ) -> LoggedActivation:
        """Notes which cues of an activation were heeded and which ignored; returns the activation. It may be repeated.

        Raises:
            NotFound: the workspace has no such activation.
            InvalidInput: a cue is in both lists, or was not told in this activation.
        """
        if both := set(heeded) & set(ignored):
            raise InvalidInput("ignored", f"has {min(both)}, which `heeded` has too")
        outcomes = dict.fromkeys(heeded, HEEDED) | dict.fromkeys(ignored, IGNORED)
        async with self.database.session(workspace) as session:
            known = await log.get(session, activation_id)
            if known is None:
                raise NotFound(f"there is no activation {activation_id} in workspace {workspace.name}")
            for field, ids in ((HEEDED, heeded), (IGNORED, ignored)):
                if foreign := [cue_id for cue_id in ids if cue_id not in known.outcomes]:
                    raise InvalidInput(field, f"has {foreign[0]}, which activation {activation_id} did not tell")
            await log.settle(session, activation_id, outcomes)
            settled = await log.get(session, activation_id)
        assert settled is not None, "it was there in this transaction"  # noqa: S101
        return settled

    async def _issues(self, workspace: Workspace, asked: PlanAsked) -> tuple[list[JudgedIssue], list[str]]:
        """Returns the issues of the plan's case that are shown before the act, and their lines."""
        if asked.as_of is not None:
            # Only the present state of an issue is stored.
            return [], []
        cases = Cases(
            database=self.database, provider=self.provider, counter=self.counter, mask_secrets=self.mask_secrets
        )
        found = await case_of_plan(cases, workspace, asked.plan, run_id=asked.run_id)
        issues = [] if found is None else issues_before(found, asked.plan)
        room = int(asked.budget_tokens * _ISSUES_SHARE)
        lines = lines_of(issues, budget=room, counter=self.counter)
        return issues[: len(lines)], lines

    async def fire(self, workspace: Workspace, plans: Sequence[PlanAsked]) -> list[Firing]:
        """Does `activate` for several plans without the log, with as many statements as for one.

        `took_ms` of each is the time until it was done.
        """
        for asked in plans:
            check_plan(asked)
        started, now = time.perf_counter(), datetime.now(UTC)
        (plan_vectors, lack), index = await asyncio.gather(
            _vectors_of(self.provider, [asked.plan for asked in plans]),
            CueIndexes(database=self.database, provider=self.provider).of(workspace),
        )
        paths = {_stored_path(path) for asked in plans for path in files_of(asked)} - {""}
        async with self.database.session(workspace, transaction=False) as session:
            touching = await evidence.touching_files(session, sorted(paths), limit=MOST_TOUCHING) if paths else {}
        matched = [
            _match(index, asked, own, touching, now=now, users=workspace.users)
            async for asked, own in _in_turns(zip(plans, plan_vectors, strict=True))
        ]
        ids = {item.cue_id for plan in matched for item in plan.matches}
        async with self.database.session(workspace, transaction=False) as session:
            cues = await store.read(session, list(ids))
        degraded = lack or _missing_vectors(index)
        return [self._firing(index, plan, cues, degraded, started) async for plan in _in_turns(matched)]

    def _firing(
        self, index: CueIndex, plan: _MatchedPlan, cues: Mapping[UUID, Cue], degraded: str, started: float
    ) -> Firing:
        asked = plan.asked
        holding = {key: cue for key, cue in cues.items() if _holds(index, cue, past=plan.act.past)}
        ranked = rank(plan.matches, holding, plan=asked.plan, now=plan.act.moment)
        shown, withheld = choose(
            ranked, plan=asked.plan, budget=asked.budget_tokens, counter=self.counter, min_score=asked.min_score
        )
        against = tuple(item.contradiction for item in shown if item.contradiction is not None)
        markdown = render.markdown_of([item.statement for item in against], [item.entry for item in shown])
        activation = Activation(
            activation_id=_id_of(asked),
            markdown=markdown,
            tokens=self.counter.count(markdown),
            cues=tuple(map(_describe, shown)),
            issues=(),
            contradictions=against,
            nearly=tuple(item for item in withheld if item.score >= NEARLY)[:MOST_SHOWN],
            action_types=index.types.names(asked.plan, plan.act.vector),
            degraded=degraded,
            took_ms=round((time.perf_counter() - started) * 1_000, 3),
        )
        return Firing(asked=masked_values(asked) if self.mask_secrets else asked, activation=activation, shown=shown)


def _match(
    index: CueIndex,
    asked: PlanAsked,
    own: _PlanVectors,
    touching: Mapping[str, set[UUID]],
    *,
    now: datetime,
    users: Sequence[str] | None,
) -> _MatchedPlan:
    """Matches a plan; `touching` has the cues of the sessions that touched each file."""
    files = files_of(asked)
    touched = frozenset(cue_id for path in files for cue_id in touching.get(_stored_path(path), ()))
    moment = now if asked.as_of is None else in_utc(asked.as_of)
    act = PlannedAct(asked.plan, moment, files, *own, touched, users, past=asked.as_of is not None)
    return _MatchedPlan(asked, act, find_matches(index, act, most=CONSIDERED))


def files_of(asked: PlanAsked) -> tuple[str, ...]:
    """Returns the files that a plan is given with, and those that its text names."""
    named = [found.lstrip("./") for found in PATH.findall(asked.plan)]
    return tuple(dict.fromkeys([*asked.files, *named]))[:MOST_FILES]


def _stored_path(path: str) -> str:
    return path.replace("\\", "/").lstrip("./")


def check_plan(asked: PlanAsked) -> None:
    """Checks what the types of a question cannot: the doors know the limits of its texts and numbers.

    Raises:
        InvalidInput: the plan is empty, or a text or the moment cannot be stored.
    """
    if not asked.plan.strip():
        raise InvalidInput("plan", "is empty; say what you are about to do")
    check(unstorable({name: getattr(asked, name) for name in ("plan", "files", "agent", "run_id", "as_of")}))


async def _vectors_of(provider: EmbeddingProvider, plans: Sequence[str]) -> tuple[Sequence[_PlanVectors], str]:
    """Returns the vectors of plans, and the reason why there are none; empty if there are."""
    none: Sequence[_PlanVectors] = [(None, None)] * len(plans)
    if not provider.enabled:
        return none, "no embedding model is configured: words, files and action types were compared"
    try:
        *vectors, adapted = await asyncio.gather(
            *(provider.embed_query(plan) for plan in plans), adapted_vectors(provider, plans, queries=True)
        )
    except EmbeddingUnavailable as error:
        return none, str(error)
    rows = [None] * len(plans) if adapted is None else list(adapted)
    return list(zip(vectors, rows, strict=True)), ""


def _missing_vectors(index: CueIndex) -> str:
    """Returns why some cues were not compared by meaning; empty if all were."""
    if index.types.matrix is None:
        return "the action types have no vectors yet: words, files and action types were compared"
    if not index.lacking:
        return ""
    return (
        f"{index.lacking:,} cues have no vectors of the served model yet: words, files and action types were compared"
    )


def _holds(index: CueIndex, cue: Cue, *, past: bool) -> bool:
    """Tells if a cue holds. One whose memory is in the trash by now does not, as if it had never held."""
    if past:
        return cue.state in {ACTIVE, SUPERSEDED} or cue.state == index.state_of(cue.cue_id) == RETIRED
    return cue.state == ACTIVE


def _describe(item: ShownCue) -> ShownLesson:
    cue = item.fired.cue
    same = {name: getattr(cue, name) for name in ("cue_id", "kind", "trigger", "lesson", "action_types")}
    return ShownLesson(
        **same,
        imperative=render.imperative(cue),
        reason=render.reason(cue),
        checkpoint=render.checkpoint(cue),
        conflict_with=cue.disputed_by,
        score=item.fired.score,
        explain=item.fired.explain,
    )
