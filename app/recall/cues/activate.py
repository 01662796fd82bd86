"""The verb that tells an agent, before it acts, what was learnt about what it is about to do."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID, uuid5

from app.errors import EmbeddingUnavailable, InvalidInput, check
from app.foundation.db.database import Database
from app.foundation.db.session import Session
from app.foundation.models.protocols import EmbeddingProvider, TokenCounter, Vector
from app.foundation.safety.secrets import masked_values
from app.recall.cues import evidence, log, render, store
from app.recall.cues.arbitrate import CONSIDERED, ShownCue, Withheld, choose, rank
from app.recall.cues.cue import ACTIVE, RETIRED, SUPERSEDED, Cue
from app.recall.cues.index import index_of
from app.recall.cues.known import CueIndex
from app.recall.cues.match import MOST_FILES, CueMatch, PlannedAct, find_matches
from app.storage.memories.gate import moment_reasons, unstorable
from app.storage.memories.memory import in_utc, new_id
from app.storage.tenants.workspace import Workspace

PLAN_LIMIT = 20_000
"""Most characters of a plan."""
DEFAULT_BUDGET = 400
"""Model tokens of the section."""
LEAST_BUDGET, LARGEST_BUDGET = 1, 100_000
"""Limits of the budget, in tokens."""
PATH = re.compile(r"(?<![\w/.-])(?:[\w.-]+/)*[\w-][\w.-]*\.[A-Za-z][A-Za-z0-9]{0,4}\b(?!\()")
"""A file in a text: a name with an extension, with its folders if they are given."""
MOST_TOUCHING = 200
"""Most cues of the sessions that touched one file."""
T = TypeVar("T")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownLesson:
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
class Contradicted:
    """Something in the plan that a cue rejects."""

    cue_id: UUID
    rejected: str
    statement: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearly:
    """A cue that matched and is not shown."""

    cue_id: UUID
    kind: str
    lesson: str
    score: float
    reason: str
    """`unlikely`, `enough`, `trust`, `suspect`, `alike` or `budget`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """The cues that a plan fires, and the section that tells them."""

    activation_id: UUID | None
    """None for a trial."""
    markdown: str
    tokens: int
    cues: tuple[ShownLesson, ...]
    contradictions: tuple[Contradicted, ...]
    nearly: tuple[Nearly, ...]
    action_types: tuple[str, ...]
    """Action types of the plan."""
    degraded: str
    """The reason why meaning was not compared; empty if it was."""
    took_ms: float


async def activate(
    database: Database,
    provider: EmbeddingProvider,
    counter: TokenCounter,
    *,
    workspace: Workspace,
    asked: PlanAsked,
    mask: bool = True,
) -> Activation:
    """Returns what was learnt about a plan, as a section of at most `budget_tokens` model tokens, and logs it.

    Raises:
        InvalidInput: the plan, the budget or the least score is not valid, or the key was used for another plan.
        DatabaseUnavailable: the database does not answer.
    """
    firing = await fire(database, provider, counter, workspace=workspace, asked=asked, mask=mask)
    if workspace.workspace_id and not asked.trial:
        async with database.session(workspace, transaction=False) as session:
            await log_firing(session, firing)
    return firing.activation


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """An activation before it is logged."""

    asked: PlanAsked
    """The plan in the form that may be stored."""
    activation: Activation
    shown: Sequence[ShownCue]


async def log_firing(session: Session, firing: Firing, *, stands: bool = True) -> None:
    """Logs an activation, and counts that its cues fired; if its section does not stand in the answer, none did."""
    asked, activation = firing.asked, firing.activation
    given: dict[str, Any] = {"plan": asked.plan, "files": list(asked.files)}
    given |= {name: getattr(asked, name) for name in ("agent", "run_id", "budget_tokens")}
    given |= {name: getattr(activation, name) for name in ("activation_id", "degraded", "took_ms")}
    shown = firing.shown if stands else ()
    given["tokens"] = activation.tokens if stands else 0
    if await log.add(session, given, [_log_row(rank, item) for rank, item in enumerate(shown, start=1)]):
        return
    known = await log.get(session, given["activation_id"])
    if known is not None and known.plan != asked.plan:
        raise InvalidInput("Idempotency-Key", "was used for another plan; take a new one")


def _id_of(asked: PlanAsked) -> UUID | None:
    """Returns the id of an activation, which is the same for a retry; None for a trial."""
    if asked.trial:
        return None
    return new_id() if asked.idempotency_key is None else uuid5(KEYS, asked.idempotency_key)


async def fire(
    database: Database,
    provider: EmbeddingProvider,
    counter: TokenCounter,
    *,
    workspace: Workspace,
    asked: PlanAsked,
    mask: bool = True,
) -> Firing:
    """Does `activate` without the log."""
    (firing,) = await fire_all(database, provider, counter, workspace=workspace, plans=[asked], mask=mask)
    return firing


async def fire_all(
    database: Database,
    provider: EmbeddingProvider,
    counter: TokenCounter,
    *,
    workspace: Workspace,
    plans: Sequence[PlanAsked],
    mask: bool = True,
) -> list[Firing]:
    """Does `fire` for several plans, with as many statements as for one, and one batch of the embedding model.

    `took_ms` of each is the time until it was done.
    """
    for asked in plans:
        check_plan(asked)
    started, now = time.perf_counter(), datetime.now(UTC)
    vectors, index = await asyncio.gather(
        asyncio.gather(*(_vector(provider, asked) for asked in plans)), index_of(database, provider, workspace)
    )
    touching = await _touching(database, workspace, {path for asked in plans for path in files_of(asked)})
    acts = [
        _MatchedPlan.of(index, asked, vector, touching, now=now, users=workspace.users, degraded=degraded)
        async for asked, (vector, degraded) in _in_turns(zip(plans, vectors, strict=True))
    ]
    cues = await _read(database, workspace, {item.cue_id for act in acts for item in act.matches})
    return [
        Firing(
            asked=masked_values(act.asked) if mask else act.asked,
            activation=_activation(index, act, shown, withheld, counter, started),
            shown=shown,
        )
        async for act in _in_turns(acts)
        for shown, withheld in (act.choose(index, cues, counter),)
    ]


async def _in_turns(items: Iterable[T]) -> AsyncIterator[T]:
    """Yields the items; between two of them other tasks of the event loop may go on."""
    for place, item in enumerate(items):
        if place:
            await asyncio.sleep(0)
        yield item


@dataclass(frozen=True, slots=True, kw_only=True)
class _MatchedPlan:
    """A plan with the cues that may apply to it."""

    asked: PlanAsked
    act: PlannedAct
    matches: Sequence[CueMatch]
    now: datetime
    degraded: str

    @classmethod
    def of(
        cls,
        index: CueIndex,
        asked: PlanAsked,
        vector: Vector | None,
        touching: Mapping[str, set[UUID]],
        *,
        now: datetime,
        users: Sequence[str] | None,
        degraded: str,
    ) -> "_MatchedPlan":
        """Matches a plan; `touching` has the cues of the sessions that touched each file."""
        files = files_of(asked)
        touched = frozenset(cue_id for path in files for cue_id in touching.get(_stored_path(path), ()))
        act = PlannedAct(asked.plan, files, vector, touched, users)
        moment, past = now if asked.as_of is None else in_utc(asked.as_of), asked.as_of is not None
        matches = find_matches(index, act, moment=moment, past=past, most=CONSIDERED)
        return cls(asked=asked, act=act, matches=matches, now=moment, degraded=degraded or _missing_vectors(index))

    def choose(
        self, index: CueIndex, cues: Mapping[UUID, Cue], counter: TokenCounter
    ) -> tuple[Sequence[ShownCue], Sequence[Withheld]]:
        """Returns the cues that are shown within the plan's budget, and those that are not."""
        asked, past = self.asked, self.asked.as_of is not None
        holding = {key: cue for key, cue in cues.items() if _holds(index, cue, past=past)}
        ranked = rank(self.matches, holding, plan=asked.plan, now=self.now)
        return choose(ranked, plan=asked.plan, budget=asked.budget_tokens, counter=counter, min_score=asked.min_score)


def _activation(
    index: CueIndex,
    act: _MatchedPlan,
    shown: Sequence[ShownCue],
    withheld: Sequence[Withheld],
    counter: TokenCounter,
    started: float,
) -> Activation:
    against = _contradictions(shown)
    markdown = render.markdown_of([item.statement for item in against], [item.entry for item in shown])
    return Activation(
        activation_id=_id_of(act.asked),
        markdown=markdown,
        tokens=counter.count(markdown),
        cues=tuple(map(_describe, shown)),
        contradictions=against,
        nearly=tuple(_nearly(item) for item in withheld if item.fired.score >= NEARLY)[:MOST_SHOWN],
        action_types=index.types.names(act.asked.plan, act.act.vector),
        degraded=act.degraded,
        took_ms=round((time.perf_counter() - started) * 1_000, 3),
    )


def files_of(asked: PlanAsked) -> tuple[str, ...]:
    """Returns the files that a plan is given with, and those that its text names."""
    named = [found.lstrip("./") for found in PATH.findall(asked.plan)]
    return tuple(dict.fromkeys([*asked.files, *named]))[:MOST_FILES]


async def _touching(database: Database, workspace: Workspace, files: Iterable[str]) -> Mapping[str, set[UUID]]:
    """Returns the cues of the sessions that touched each of these files, by its path as sessions have it."""
    paths = sorted(set(map(_stored_path, files)) - {""})
    if not paths:
        return {}
    async with database.session(workspace, transaction=False) as session:
        return await evidence.touching_files(session, paths, limit=MOST_TOUCHING)


def _stored_path(path: str) -> str:
    return path.replace("\\", "/").lstrip("./")


def check_plan(asked: PlanAsked) -> None:
    """Checks a question.

    Raises:
        InvalidInput: the plan, the budget or the least score is not valid.
    """
    if not asked.plan.strip():
        raise InvalidInput("plan", "is empty; say what you are about to do")
    if len(asked.plan) > PLAN_LIMIT:
        raise InvalidInput("plan", f"has {len(asked.plan):,} characters; at most {PLAN_LIMIT:,} are taken")
    check(unstorable({name: getattr(asked, name) for name in ("plan", "files", "agent", "run_id")}))
    check(moment_reasons([("as_of", asked.as_of)]))
    if not LEAST_BUDGET <= asked.budget_tokens <= LARGEST_BUDGET:
        raise InvalidInput("budget_tokens", f"must be from {LEAST_BUDGET} to {LARGEST_BUDGET:,}")
    if asked.min_score is not None and not 0 <= asked.min_score <= 1:
        raise InvalidInput("min_score", "must be from 0 to 1")


async def _vector(provider: EmbeddingProvider, asked: PlanAsked) -> tuple[Vector | None, str]:
    """Returns the vector of a plan, or the reason why there is none."""
    if not provider.enabled:
        return None, "no embedding model is configured: words, files and action types were compared"
    try:
        return await provider.embed_query(asked.plan), ""
    except EmbeddingUnavailable as error:
        return None, str(error)


def _missing_vectors(index: CueIndex) -> str:
    """Returns why some cues were not compared by meaning; empty if all were."""
    if index.scale is None:
        return "the action types have no vectors yet: words, files and action types were compared"
    if not index.lacking:
        return ""
    return (
        f"{index.lacking:,} cues have no vectors of the served model yet: words, files and action types were compared"
    )


async def _read(database: Database, workspace: Workspace, ids: Collection[UUID]) -> Mapping[UUID, Cue]:
    """Reads the matched cues."""
    if not ids:
        return {}
    async with database.session(workspace, transaction=False) as session:
        return await store.read(session, list(ids))


def _holds(index: CueIndex, cue: Cue, *, past: bool) -> bool:
    """Tells if a cue holds. One whose memory is in the trash by now does not, as if it had never held."""
    if past:
        return cue.state in {ACTIVE, SUPERSEDED} or cue.state == index.state_of(cue.cue_id) == RETIRED
    return cue.state == ACTIVE


def _log_row(rank: int, item: ShownCue) -> Mapping[str, object]:
    fired = item.fired
    return {"rank": rank, "memory_id": fired.cue.cue_id, "score": fired.score, "explain": dict(fired.explain)}


def _describe(item: ShownCue) -> ShownLesson:
    cue = item.fired.cue
    return ShownLesson(
        cue_id=cue.cue_id,
        kind=cue.kind,
        trigger=cue.trigger,
        lesson=cue.lesson,
        imperative=render.imperative(cue),
        reason=render.reason(cue),
        checkpoint=render.checkpoint(cue),
        conflict_with=cue.disputed_by,
        score=item.fired.score,
        explain=item.fired.explain,
        action_types=cue.action_types,
    )


def _contradictions(shown: Sequence[ShownCue]) -> tuple[Contradicted, ...]:
    found = [(item.fired.cue.cue_id, item.contradiction) for item in shown if item.contradiction is not None]
    return tuple(Contradicted(cue_id=key, rejected=item.rejected, statement=item.statement) for key, item in found)


def _nearly(item: Withheld) -> Nearly:
    cue = item.fired.cue
    return Nearly(cue_id=cue.cue_id, kind=cue.kind, lesson=cue.lesson, score=item.fired.score, reason=item.reason)
