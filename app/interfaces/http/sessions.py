"""`/api/sessions`: conversations and work logs, turn by turn, with what they taught and what they touched."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from litestar import Controller
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from msgspec import UNSET, Meta, Struct, UnsetType, field

from app.foundation.text.scores import moment_of
from app.intake.sessions.browse import (
    SessionDetail,
    SessionFilters,
)
from app.intake.sessions.store import StoredMessage, StoredSession, TouchedArtifact
from app.intake.sessions.take_in import TakenIn
from app.intake.sessions.transcript import ToolUse, Transcript, Turn, title_of
from app.interfaces.http.context import BY_USER, Call, Cursor, IdempotencyKey, Limit, ThisCall, Wait, name_of
from app.interfaces.http.intake import embed
from app.interfaces.http.schemas import (
    DegradedView,
    Input,
    convert,
    cursor_of,
    delete,
    get,
    place_of,
    post,
)
from app.recall.cues.cue import Cue
from app.storage.memories.memory import NAME_LIMIT, TITLE_LIMIT, URI_LIMIT, Name
from app.storage.memories.service import LARGEST_PAGE
from app.storage.tenants.workspace import User

_FORMAT = "messages"
"""The format of sessions that come over HTTP."""
_MOST_MESSAGES = 100_000

Role = Literal["user", "caller", "assistant", "tool", "system"]
_ROLES = "`user` is a person and nobody else; `caller` is an agent or a program that gives this agent its work"


class ToolInput(ToolUse, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool that a turn called: an act, and not speech."""

    name: Name
    symbols: Annotated[tuple[str, ...], Meta(description="what it changed: functions, sections, where you know")] = ()


class MessageInput(Input):
    """One turn of a session."""

    role: Annotated[Role, Meta(description=_ROLES)]
    text: str
    at: Annotated[datetime, Meta(description="of a turn that is appended: without it, now")] | None = None
    tools: Sequence[ToolInput] = ()
    id: Annotated[Name, Meta(description="yours: a turn of a known id replaces the stored one")] = ""

    def turn(self, ordinal: int, key: str | None = None) -> Turn:
        """Returns the value that the verb takes; `key` is that of a call which may be repeated."""
        of_call = f"{key}#{ordinal}" if key and self.at is None else ""
        return Turn(
            ordinal=ordinal,
            role=self.role,
            text=self.text,
            at=moment_of(self.at),
            tools=tuple(self.tools),
            message_id=self.id or of_call,
        )


class AppendInput(Input):
    """Turns to append to a session, in their order."""

    messages: Annotated[list[MessageInput], Meta(min_length=1, max_length=_MOST_MESSAGES)]
    user: Annotated[User, Meta(description="whose session it is; without it, whose it was, or no user's")] | None = None
    language: Annotated[str, Meta(max_length=NAME_LIMIT)] | None = None


class SessionInput(Input):
    """A session, with all its turns up to now. Those that are stored already are not stored twice, and stored ones that
    it lacks stay."""

    id: Annotated[str, Meta(min_length=1, max_length=URI_LIMIT)]
    messages: Annotated[list[MessageInput], Meta(max_length=_MOST_MESSAGES)]
    started_at: datetime | None = None
    title: Annotated[str, Meta(max_length=TITLE_LIMIT, description="without it, what the user said first")] = ""
    folder: Annotated[
        str, Meta(max_length=URI_LIMIT, description="in which it worked; artifacts are named relative to it")
    ] = ""
    language: Annotated[str, Meta(max_length=NAME_LIMIT)] | None = None
    user: Annotated[User, Meta(description="whose session it is; without it, whose it was, or no user's")] | None = None

    def transcript(self) -> Transcript:
        """Returns the value that the verb takes."""
        turns = tuple(given.turn(ordinal) for ordinal, given in enumerate(self.messages))
        return Transcript(
            session_id=self.id,
            title=self.title or title_of(turns),
            started_at=moment_of(self.started_at),
            format=_FORMAT,
            turns=turns,
            folder=self.folder,
        )


class TakenInView(Struct, frozen=True):
    """The result for a session."""

    session_id: str = field(name="id")
    status: Literal["new", "changed", "unchanged"]
    turns: int
    stored: int
    """Number of turns that were not known, or said something else."""
    retired: int
    """Number of stored turns that others replaced, or that nobody said."""
    missing: int
    """Number of turns that stay though the given session no longer has them."""
    flagged: int
    """Number of stored turns that no history shows, until a person releases them."""
    embedded: int | UnsetType = UNSET
    """With `?wait=true`: how many turns got their vector."""
    degraded: Sequence[DegradedView] | UnsetType = UNSET
    cues: int | UnsetType = UNSET
    """With `?wait=true`: how many cues its turns hold."""


class SessionPage(Struct, frozen=True):
    """A page of sessions."""

    sessions: Sequence[StoredSession]
    next: str | None
    """The cursor of the next page; null on the last one."""


class SessionCueView(Cue, frozen=True, kw_only=True):
    """A cue at a turn of the session. One that several turns say stands at each of them."""

    message: int | None
    """The turn's ordinal."""


class SessionDetailView(StoredSession, frozen=True, kw_only=True):
    """A session with its turns, its cues, and the artifacts that it touched."""

    messages: Sequence[StoredMessage]
    cues: Sequence[SessionCueView]
    artifacts: Sequence[TouchedArtifact]


def _detail_view(found: SessionDetail, cues: Sequence[Cue]) -> SessionDetailView:
    """Returns the view of a session with its cues, in the order of their turns."""
    told = [
        convert(cue, SessionCueView, message=proof.ordinal, quote=proof.quote or cue.quote)
        for cue in cues
        for proof in cue.proofs_in(found.session.source_id)
    ]
    return convert(
        found.session,
        SessionDetailView,
        messages=found.messages,
        cues=sorted(told, key=lambda cue: -1 if cue.message is None else cue.message),
        artifacts=found.artifacts,
    )


class MessagesView(Struct, frozen=True):
    """Turns of a session in their order."""

    messages: Sequence[StoredMessage]
    next: int | None
    """Pass it as `before` for the turns before these; null at the beginning."""


class SessionsController(Controller):
    """Takes sessions in, shows and deletes them."""

    path = "/api"
    tags = ("sessions",)

    @post("/sessions")
    async def store(self, call: ThisCall, data: JSONBody[SessionInput], wait: Wait = False) -> TakenInView:
        """Store a session. Give all its turns again when it has grown: only what is new or changed is stored.

        No turn is taken away because the session is given without it. A changed turn is known by its `id`, by its time,
        or by its place and a text that holds the stored one; otherwise it is a turn of its own.

        No turn is refused. One in which the injection scan has a finding stands in no history until a person releases
        it.
        """
        taken = await call.services.session_intake.take_in(
            await call.tenant(), data.transcript(), language=data.language, revive=True, user=data.user
        )
        return await _answer(call, taken, wait=wait)

    @post("/sessions/{session_id:str}/messages")
    async def append(
        self,
        session_id: FromPath[str],
        call: ThisCall,
        data: JSONBody[AppendInput],
        wait: Wait = False,
        idempotency_key: IdempotencyKey = None,
    ) -> TakenInView:
        """Append turns to a session as they happen; a session that is not known is made.

        A message with an `id` or a time `at`, or sent with an Idempotency-Key, is stored once.
        """
        turns = [given.turn(place, idempotency_key) for place, given in enumerate(data.messages)]
        taken = await call.services.session_intake.append(
            await call.tenant(),
            name_of(session_id),
            turns,
            format=_FORMAT,
            language=data.language,
            user=data.user,
        )
        return await _answer(call, taken, wait=wait)

    @get("/sessions/{session_id:str}/messages", dependencies=BY_USER)
    async def messages(
        self,
        session_id: FromPath[str],
        call: ThisCall,
        last: Annotated[int, QueryParameter(ge=1, le=LARGEST_PAGE, description="turns at most")] = 20,
        before: Annotated[int | None, QueryParameter(ge=0, le=2**31 - 1, description="a page's `next`")] = None,
    ) -> MessagesView:
        """The latest turns of a session, in their order; with `before` the ones before a page."""
        found = await call.services.sessions.latest_turns(
            await call.tenant(), name_of(session_id), count=last, before=before
        )
        following = found[0].ordinal if len(found) == last and found[0].ordinal else None
        return MessagesView(messages=found, next=following)

    @get("/sessions", dependencies=BY_USER)
    async def sessions(
        self,
        call: ThisCall,
        text: Annotated[str | None, QueryParameter(description="a part of the title or the id")] = None,
        format: FromQuery[str | None] = None,  # noqa: A002 - its name in the document
        path: Annotated[str | None, QueryParameter(description="a file that it created or changed")] = None,
        since: FromQuery[datetime | None] = None,
        until: FromQuery[datetime | None] = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> SessionPage:
        """Sessions, the latest first, that meet every condition."""
        before = place_of(cursor, datetime.fromisoformat, UUID)
        filters = SessionFilters(text=text, format=format, path=path, since=moment_of(since), until=moment_of(until))
        found = await call.services.sessions.page(await call.tenant(), filters=filters, limit=limit, before=before)
        following = None
        if len(found) == limit:
            following = cursor_of(found[-1].started_at or found[-1].created_at, found[-1].source_id)
        return SessionPage(sessions=found, next=following)

    @get("/sessions/{session_id:str}", dependencies=BY_USER)
    async def show(self, session_id: FromPath[str], call: ThisCall) -> SessionDetailView:
        """A session: its turns with their tools, its cues, and the artifacts that it touched."""
        tenant = await call.tenant()
        found = await call.services.sessions.get(tenant, name_of(session_id))
        cues = await call.services.cues.of_source(tenant, found.session.source_id)
        return _detail_view(found, cues)

    @delete("/sessions/{session_id:str}", status_code=204, dependencies=BY_USER)
    async def remove(self, session_id: FromPath[str], call: ThisCall) -> None:
        """Move all turns of a session to the trash. Its log is not read again; later turns begin it anew."""
        await call.services.sessions.delete(await call.tenant(), name_of(session_id))


async def _answer(call: Call, taken: TakenIn, *, wait: bool) -> TakenInView:
    """Returns the view of a session that was stored, after its vectors and cues, where the call waits for them."""
    call.metrics.sessions.labels(taken.status).inc()
    if not wait:
        return convert(taken, TakenInView)
    tenant = await call.tenant()
    embedded, degraded = await embed(call.services, tenant, taken.pending)
    owned = await call.services.session_intake.of_owner(tenant, taken.session_id)
    cues = await call.services.extraction.extract_session(owned, taken.session_id)
    cues += await call.services.mining.mine(owned, taken.session_id)
    _, later = await embed(call.services, tenant, cues)
    return convert(taken, TakenInView, embedded=embedded, degraded=degraded or later, cues=len(cues))
