"""`/api/cues`, `/api/why`, `POST /api/activate`, `POST /api/activations/{id}/outcome`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from litestar import Controller
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from msgspec import UNSET, Meta, Struct, UnsetType

from app.foundation.values import frozen
from app.interfaces.http.context import BY_USER, Call, Cursor, IdempotencyKey, Limit, ThisCall
from app.interfaces.http.intake import as_error
from app.interfaces.http.schemas import (
    Input,
    ask,
    convert,
    cursor_of,
    get,
    patch,
    place_of,
    post,
)
from app.recall.cues.activate import DEFAULT_BUDGET, LARGEST_BUDGET, LEAST_BUDGET, Activation, PlanAsked
from app.recall.cues.cue import CONSEQUENCES, LIST_LIMIT, Cue, CueKind, Evidence, NewCue, Severity, Told, Words
from app.recall.cues.keep import MOST_AT_ONCE, StoredCues
from app.recall.cues.learn import Learnt, Lesson
from app.recall.cues.log import LoggedActivation
from app.recall.cues.service import MOST_MERGED
from app.recall.cues.store import CueFilter
from app.recall.cues.why.why import Why
from app.storage.memories.memory import Name, Tags
from app.storage.tenants.keys import RATE
from app.storage.tenants.workspace import User

State = Literal["active", "proposed", "retired", "superseded"]
Scope = Literal["project", "user"]
Trust = Literal["person", "agent", "imported", "web"]
Share = Annotated[float, Meta(ge=0, le=1)]
Path = Annotated[str, Meta(min_length=1, max_length=1_000)]
Paths = Annotated[tuple[Path, ...], Meta(max_length=LIST_LIMIT)]
_ActionTypes = Annotated[tuple[Name, ...], Meta(max_length=LIST_LIMIT)]
Consequence = Annotated[
    Share | Severity,
    Meta(description="the cost of the mistake: 0 to 1, or low (0.2), medium (0.5), high (0.8), severe (1)"),
]


class EvidenceInput(Input):
    """A turn, or another text, that a cue was learnt from."""

    session: Annotated[str, Meta(max_length=2_000, description="the session's id")] = ""
    message: Annotated[int, Meta(ge=0, le=2**31 - 1, description="the turn in it, from 0")] | None = None
    quote: Words = ""
    at: datetime | None = None

    def evidence(self) -> Evidence:
        """Returns the value that the verb takes."""
        return Evidence(session=self.session, ordinal=self.message, quote=self.quote, at=self.at)


class CueInput(Input):
    """A cue to store."""

    kind: CueKind
    trigger: Annotated[Told, Meta(description="the situation in which the lesson applies")]
    lesson: Told
    consequence: Consequence = 0.5
    confidence: Share = 1.0
    scope: Scope = "project"
    quote: Annotated[Words, Meta(description="the words of the turn that say so")] = ""
    evidence: Annotated[Sequence[EvidenceInput], Meta(max_length=LIST_LIMIT, description="turns that say so")] = ()
    details: Annotated[Mapping[str, Any], Meta(description="the further fields of the kind")] = {}
    trust: Annotated[Trust, Meta(description="who stands behind it; only a person's is told before an act")] = "person"
    action_types: _ActionTypes = ()
    files: Paths = ()
    tags: Tags = ()
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    language: Name | None = None

    def cue(self) -> NewCue:
        """Returns the value that the verb takes."""
        evidence = tuple(item.evidence() for item in self.evidence)
        quote = self.quote or next((item.quote for item in evidence if item.quote), "")
        return convert(self, NewCue, evidence=evidence, quote=quote, consequence=_number(self.consequence))


def _number(given: float | str) -> float:
    return CONSEQUENCES[given] if isinstance(given, str) else given


class CueEdit(Input):
    """New values of a cue's fields; those that are not given stay."""

    kind: CueKind | UnsetType = UNSET
    trigger: Told | UnsetType = UNSET
    lesson: Told | UnsetType = UNSET
    consequence: Consequence | UnsetType = UNSET
    confidence: Share | UnsetType = UNSET
    scope: Scope | UnsetType = UNSET
    quote: Words | UnsetType = UNSET
    details: dict[str, Any] | UnsetType = UNSET
    trust: Trust | UnsetType = UNSET
    action_types: _ActionTypes | UnsetType = UNSET
    files: Paths | UnsetType = UNSET
    valid_from: datetime | UnsetType = UNSET
    valid_until: datetime | UnsetType | None = UNSET
    state: State | None = None
    """`retired`: it fires no more, is not found, and can be made active again; `active`: a person stands behind it."""
    superseded_by: UUID | None = None
    """The active cue that holds in its place, from `valid_until` on, or from now on; `superseded` needs it."""

    def fields(self) -> dict[str, Any]:
        """Returns the new values but the state."""
        of_state = {"state", "superseded_by", "valid_until" if self.superseded_by else ""}
        names = set(self.__struct_fields__) - of_state
        changed = {name: value for name in names if (value := getattr(self, name)) is not UNSET}
        if "consequence" in changed:
            changed["consequence"] = _number(changed["consequence"])
        return changed


class CuePage(Struct, frozen=True):
    """Cues, newest first."""

    cues: Sequence[Cue]
    next: str | None
    """Pass it as `cursor` for the page after; null at the end."""


@frozen
class KeptView(StoredCues):
    """The outcome of storing cues."""

    id: UUID | None
    """The cue's id, where one was sent alone."""


class LearntView(Struct, frozen=True):
    """A stored lesson, and who stands behind it."""

    id: UUID
    trust: str
    message: int | None
    reason: str
    is_known: bool
    """True if it was stored already; its evidence is united."""


class MergeInput(Input):
    """Cues that go into another one."""

    ids: Annotated[list[UUID], Meta(min_length=1, max_length=MOST_MERGED)]
    into: UUID


class PlannedInput(Input, kw_only=True):
    """The context of a plan, and how it is answered."""

    files: Annotated[Sequence[Path], Meta(max_length=100, description="the files that it touches")] = ()
    agent: Name | None = None
    run_id: Name | None = None
    budget_tokens: Annotated[int, Meta(ge=LEAST_BUDGET, le=LARGEST_BUDGET)] = DEFAULT_BUDGET
    trial: Annotated[bool, Meta(description="a person's trial: it is not logged, and counts for no cue")] = False
    user: User = ""


class ActivateInput(PlannedInput, kw_only=True):
    """A plan or an act that somebody is about to carry out."""

    plan: Annotated[str, Meta(max_length=20_000)] = ""
    min_score: Annotated[
        Share | None,
        Meta(description="least probability of a cue that is told; without it, a lesson's consequence decides"),
    ] = None
    as_of: Annotated[datetime | None, Meta(description="the moment whose cues are asked for")] = None


class ActivationOutcomeInput(Input):
    """The cues of an activation that were heeded, and those that were ignored."""

    heeded: Annotated[Sequence[UUID], Meta(max_length=1_000)] = ()
    ignored: Annotated[Sequence[UUID], Meta(max_length=1_000)] = ()


async def store_lesson(call: Call, given: Lesson) -> Learnt:
    """Stores a lesson in a request's workspace.

    Raises:
        PriorsError: it cannot be stored; the reason names its field.
    """
    learnt = await call.services.cues.learn(await call.writer(), given)
    if learnt.kept.rejected:
        raise as_error(learnt.kept.rejected[0])
    return learnt


class CuesController(Controller):
    """Stores, shows and changes cues."""

    path = "/api"
    tags = ("cues",)

    @post("/cues", dependencies=BY_USER)
    async def store(
        self, call: ThisCall, data: JSONBody[CueInput | Annotated[list[CueInput], Meta(max_length=MOST_AT_ONCE)]]
    ) -> KeptView:
        """Store a cue, or a list of them. Known text is not stored twice; its evidence is united.

        An agent's cue (`trust`) has a person's trust if its first evidence quotes a turn of the user in its session.
        """
        given = [data] if isinstance(data, CueInput) else data
        cues, owned = call.services.cues, await call.writer()
        kept = await cues.add(owned, await cues.prove(owned, [item.cue() for item in given]))
        if isinstance(data, CueInput) and kept.rejected:
            raise as_error(kept.rejected[0])
        alone = kept.ids[0] if isinstance(data, CueInput) else None
        return convert(kept, KeptView, id=alone)

    @post("/cues:learn", dependencies=BY_USER)
    async def learn(self, call: ThisCall, data: JSONBody[Lesson]) -> LearntView:
        """Store a lesson: with the user's trust if `quote` stands in the user's turns of `session`, else an agent's."""
        learnt = await store_lesson(call, data)
        return convert(learnt, LearntView, id=learnt.cue_id, is_known=bool(learnt.kept.known))

    @get("/cues", dependencies=BY_USER)
    async def page(
        self,
        call: ThisCall,
        kind: FromQuery[list[CueKind] | None] = None,
        states: Annotated[list[State] | None, QueryParameter(name="state")] = None,
        action_type: Annotated[str, QueryParameter(max_length=200, description="a type, or its area")] = "",
        session: Annotated[str, QueryParameter(max_length=2_000, description="the id of a session")] = "",
        text: Annotated[str, QueryParameter(max_length=1_000, description="a part of trigger or lesson")] = "",
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> CuePage:
        """Cues that meet every condition, newest first."""
        asked = CueFilter(
            kinds=tuple(kind or ()), states=tuple(states or ()), action_type=action_type, session=session, text=text
        )
        after = place_of(cursor, datetime.fromisoformat, UUID)
        found = await call.services.cues.page(await call.tenant(), asked=asked, after=after, limit=limit)
        following = cursor_of(found[-1].created_at, found[-1].cue_id) if len(found) == limit else None
        return CuePage(cues=found, next=following)

    @get("/cues/{cue_id:uuid}", dependencies=BY_USER)
    async def show(self, cue_id: FromPath[UUID], call: ThisCall) -> Cue:
        """One cue, of any state."""
        return await call.services.cues.get(await call.tenant(), cue_id)

    @patch("/cues/{cue_id:uuid}", dependencies=BY_USER)
    async def edit(self, cue_id: FromPath[UUID], call: ThisCall, data: JSONBody[CueEdit]) -> Cue:
        """Change fields of a cue, or its state. It keeps its id, its evidence and its counts."""
        cues, changed, newer = call.services.cues, data.fields(), data.superseded_by
        state = data.state or ("superseded" if newer else None)
        if changed or state is None:
            cue = await cues.edit(await call.writer(), cue_id, changed)
        if state is not None:
            end = data.valid_until or None
            cue = await cues.set_state(await call.tenant(), cue_id, state, superseded_by=newer, valid_until=end)
        return cue

    @post("/cues:merge", dependencies=BY_USER)
    async def merge(self, call: ThisCall, data: JSONBody[MergeInput]) -> Cue:
        """Merge cues into one that says the same better; the merged ones are superseded by it."""
        return await call.services.cues.merge(await call.tenant(), data.ids, into=data.into)

    @ask("/activate")
    async def activate(
        self, call: ThisCall, data: JSONBody[ActivateInput], idempotency_key: IdempotencyKey = None
    ) -> Activation:
        """The `## Before you act` section for a plan or an action, within a token budget: what was learnt about it."""
        asked = convert(data, PlanAsked, idempotency_key=idempotency_key)
        found = await call.services.activations.activate(await call.asked_by(data.user).tenant(), asked)
        return replace(found, degraded=found.degraded or call.lack)

    @post("/activations/{activation_id:uuid}/outcome", opt={"scope": RATE})
    async def outcome(
        self, activation_id: FromPath[UUID], call: ThisCall, data: JSONBody[ActivationOutcomeInput]
    ) -> LoggedActivation:
        """Say which cues of an activation were heeded and which ignored; it may be said again."""
        return await call.services.activations.note_outcome(
            await call.tenant(), activation_id, heeded=data.heeded, ignored=data.ignored
        )


@get("/api/why", tags=["cues"], dependencies=BY_USER)
async def why(
    call: ThisCall,
    subject: Annotated[str, QueryParameter(description="such as `API versioning`, or a whole question")] = "",
    path: Annotated[str, QueryParameter(description="of a file, or the end of it")] = "",
    symbol: Annotated[str, QueryParameter(description="a function or section, as sessions named it")] = "",
) -> Why:
    """Returns reasons: what was said on a subject or question, or the sessions that shaped a file or function.

    With `user` also those of this user, else only what all users share.
    """
    target = await call.asked_by(call.user).tenant()
    return await call.services.reasons.ask(target, subject=subject, path=path, symbol=symbol)
