"""The verb that tells an agent, before it acts, what was learnt about what it is about to do."""

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid5

from app.cues import log, say, store
from app.cues.arbitrate import CONSIDERED, Told, Withheld, chosen, ranked
from app.cues.cue import ACTIVE, RETIRED, SUPERSEDED, Cue
from app.cues.index import index_of
from app.cues.known import CueIndex
from app.cues.match import MOST_FILES, Match, Plan, matched
from app.db.database import Database
from app.db.session import Session
from app.errors import EmbeddingUnavailable, InvalidInput, check
from app.memories.gate import moment_reasons, unstorable
from app.memories.memory import in_utc, new_id
from app.models.protocols import EmbeddingProvider, TokenCounter, Vector
from app.safety.secrets import masked_values
from app.workspaces.workspace import Workspace

PLAN_LIMIT = 20_000
"""Most characters of a plan."""
DEFAULT_BUDGET = 400
"""Model tokens of the section."""
LEAST_BUDGET, LARGEST_BUDGET = 1, 100_000
"""Limits of the budget, in tokens."""
PATH = re.compile(r"(?<![\w/.-])(?:[\w.-]+/)*[\w-][\w.-]*\.[A-Za-z][A-Za-z0-9]{0,4}\b(?!\()")
"""A file in a text: a name with an extension, with its folders if they are given."""
MOST_TOUCHING = 200
"""Most cues of the sessions that touched the files of a plan."""
KEYS = UUID("0d2c4f52-6c1e-4b53-9a1e-3d7f6f1f7a55")
"""Namespace of the ids that are made from idempotency keys."""
MOST_SHOWN, NEARLY = 20, 0.05
"""Most cues that are named as nearly told, and their least probability."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAsked:
    """A question for what was learnt about a plan or an action."""

    plan: str
    files: tuple[str, ...] = ()
    agent: str | None = None
    run_id: str | None = None
    budget_tokens: int = DEFAULT_BUDGET
    min_score: float | None = None
    """Least probability of a cue that is told; None for the one that follows from its consequence."""
    as_of: datetime | None = None
    """The moment whose cues are asked for; None for the present."""
    trial: bool = False
    """A person's trial: it is not logged, and counts for no cue."""
    idempotency_key: str | None = None
    """It marks a retry, which is answered anew, and not logged and counted again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldCue:
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
    """A cue that matched and is not told."""

    cue_id: UUID
    kind: str
    lesson: str
    score: float
    reason: str
    """`unlikely`, `trust`, `suspect`, `alike` or `budget`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """The cues that a plan fires, and the section that tells them."""

    activation_id: UUID | None
    """None for a trial."""
    markdown: str
    tokens: int
    cues: tuple[ToldCue, ...]
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
    told: Sequence[Told]


async def log_firing(session: Session, firing: Firing, *, stands: bool = True) -> None:
    """Logs an activation, and counts that its cues fired; if its section does not stand in the answer, none did."""
    asked, activation = firing.asked, firing.activation
    given: dict[str, Any] = {"plan": asked.plan, "files": list(asked.files)}
    given |= {name: getattr(asked, name) for name in ("agent", "run_id", "budget_tokens")}
    given |= {name: getattr(activation, name) for name in ("activation_id", "degraded", "took_ms")}
    told = firing.told if stands else ()
    given["tokens"] = activation.tokens if stands else 0
    if await log.add(session, given, [_logged(rank, item) for rank, item in enumerate(told, start=1)]):
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
    check_plan(asked)
    started = time.perf_counter()
    (vector, degraded), index = await asyncio.gather(_vector(provider, asked), index_of(database, provider, workspace))
    degraded = degraded or _lacking(index)
    now = datetime.now(UTC)
    moment = now if asked.as_of is None else in_utc(asked.as_of)
    files = files_of(asked)
    plan = Plan(asked.plan, files, vector, await _touching(database, workspace, files), workspace.users)
    matches = matched(index, plan, moment=moment, past=asked.as_of is not None, most=CONSIDERED)
    cues = await _read(database, workspace, index, matches, past=asked.as_of is not None)
    plain = masked_values(asked) if mask else asked
    told, withheld = chosen(
        ranked(matches, cues, plan=asked.plan, now=moment),
        plan=asked.plan,
        budget=asked.budget_tokens,
        counter=counter,
        min_score=asked.min_score,
    )
    markdown = _markdown(told)
    activation = Activation(
        activation_id=_id_of(asked),
        markdown=markdown,
        tokens=counter.count(markdown),
        cues=tuple(map(_told, told)),
        contradictions=tuple(found for item in told for found in _contradicted(item)),
        nearly=tuple(_nearly(item) for item in withheld if item.fired.score >= NEARLY)[:MOST_SHOWN],
        action_types=index.types.names(asked.plan, vector),
        degraded=degraded,
        took_ms=round((time.perf_counter() - started) * 1_000, 3),
    )
    return Firing(asked=plain, activation=activation, told=told)


def files_of(asked: PlanAsked) -> tuple[str, ...]:
    """Returns the files that a plan is given with, and those that its text names."""
    named = [found.lstrip("./") for found in PATH.findall(asked.plan)]
    return tuple(dict.fromkeys([*asked.files, *named]))[:MOST_FILES]


async def _touching(database: Database, workspace: Workspace, files: Sequence[str]) -> frozenset[UUID]:
    """Returns the cues of the sessions that touched these files."""
    paths = [path.replace("\\", "/").lstrip("./") for path in files]
    if not paths:
        return frozenset()
    async with database.session(workspace, transaction=False) as session:
        return frozenset(await log.touching(session, paths, limit=MOST_TOUCHING))


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


def _lacking(index: CueIndex) -> str:
    """Returns why some cues were not compared by meaning; empty if all were."""
    if index.scale is None:
        return "the action types have no vectors yet: words, files and action types were compared"
    if not index.lacking:
        return ""
    return (
        f"{index.lacking:,} cues have no vectors of the served model yet: words, files and action types were compared"
    )


async def _read(
    database: Database, workspace: Workspace, index: CueIndex, matches: Sequence[Match], *, past: bool
) -> Mapping[UUID, Cue]:
    """Reads the matched cues; one whose memory is in the trash by now is left out, as if it had never held."""
    if not matches:
        return {}
    async with database.session(workspace, transaction=False) as session:
        found = await store.read(session, [item.cue_id for item in matches])
    held = {ACTIVE, SUPERSEDED} if past else {ACTIVE}
    return {
        cue_id: cue
        for cue_id, cue in found.items()
        if cue.state in held or (past and cue.state == index.state_of(cue_id) == RETIRED)
    }


def _markdown(told: Sequence[Told]) -> str:
    warnings = [item.contradiction.statement for item in told if item.contradiction is not None]
    return say.markdown_of(warnings, [item.entry for item in told])


def _logged(rank: int, item: Told) -> Mapping[str, object]:
    fired = item.fired
    return {"rank": rank, "memory_id": fired.cue.cue_id, "score": fired.score, "explain": dict(fired.explain)}


def _told(item: Told) -> ToldCue:
    cue = item.fired.cue
    return ToldCue(
        cue_id=cue.cue_id,
        kind=cue.kind,
        trigger=cue.trigger,
        lesson=cue.lesson,
        imperative=say.imperative(cue),
        reason=say.reason(cue),
        checkpoint=say.checkpoint(cue),
        conflict_with=cue.disputed_by,
        score=item.fired.score,
        explain=item.fired.explain,
        action_types=cue.action_types,
    )


def _contradicted(item: Told) -> Sequence[Contradicted]:
    if item.contradiction is None:
        return ()
    found = item.contradiction
    return (Contradicted(cue_id=item.fired.cue.cue_id, rejected=found.rejected, statement=found.statement),)


def _nearly(item: Withheld) -> Nearly:
    cue = item.fired.cue
    return Nearly(cue_id=cue.cue_id, kind=cue.kind, lesson=cue.lesson, score=item.fired.score, reason=item.reason)
