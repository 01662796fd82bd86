"""Notes who acts, for the triggers that write the audit log, and writes what no row says: exports, erasures."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

WORKER = "worker"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks for a change, by which operation."""

    who: str
    """`key NAME`, `token SUBJECT`, `panel`, `anyone`, `cli`, `worker`; `service` for what a process does by itself.
    The name of the panel's reviewer follows SIGNED."""
    operation: str = ""
    """A route, a command, a tool or a job."""
    request_id: str = ""
    key_id: UUID | None = None


_SERVICE = Actor("service")
_ACTOR: ContextVar[Actor] = ContextVar("ACTOR", default=_SERVICE)


def encoded_actor() -> str:
    """Returns the one on whose behalf this task works, as the triggers read it."""
    return msgspec.json.encode(_ACTOR.get()).decode()


def actor() -> Actor:
    """Returns the one on whose behalf this task works."""
    return _ACTOR.get()


def act_as(found: Actor) -> None:
    """Says on whose behalf this task works from now on."""
    _ACTOR.set(found)


@contextmanager
def acting_as(found: Actor) -> Iterator[None]:
    """Says on whose behalf this task works meanwhile."""
    token = _ACTOR.set(found)
    try:
        yield
    finally:
        _ACTOR.reset(token)


def note_operation(operation: str) -> None:
    """Names the operation once it is known."""
    _ACTOR.set(replace(_ACTOR.get(), operation=operation))


STORE = -1
"""The workspace of entries that concern the whole store, as keys do."""
SIGNED = " · "
"""Stands between who asks and the name that a reviewer has given in the panel."""
_EXPORTED, _ERASED = "export", "erase"
SILENT = "SET LOCAL priors.audit = 'off'"
"""Lets the triggers write nothing in this transaction: what a load writes has one entry."""


AUDITED: Mapping[str, Sequence[str]] = {
    "api_keys": ("key_id",),
    "memories": ("memory_id",),
    "observations": ("memory_id",),
    "sources": ("source_id",),
    "sessions": ("source_id",),
    "runs": ("run_id",),
    "feedback": ("feedback_id",),
    "cues": ("memory_id",),
    "cue_proposals": ("proposal_id",),
    "links": ("from_id", "to_id"),
    "recalls": ("recall_id",),
    "activations": ("activation_id",),
    "contexts": ("context_id",),
}
"""The tables whose changes are logged by triggers (migrations/schema.sql), with the columns of an object's name."""


@dataclass(frozen=True, slots=True)
class NotedChange:
    """An entry beside those of the triggers."""

    action: str
    object: str
    count: int
    ids: Sequence[str] = ()
    workspace_id: int | None = None
    """The workspace in whose log it stands, where that is not the session's."""


class ChangeLog:
    """The entries of one transaction beside those of the triggers."""

    def __init__(self) -> None:
        self._entries: list[NotedChange] = []

    def note(self, action: str, what: str, count: int, *, workspace_id: int | None = None) -> None:
        """Notes that objects were changed which have no trigger, or whose triggers are silent."""
        self._entries.append(NotedChange(action, what, count, workspace_id=workspace_id))

    def note_export(self, what: str, count: int) -> None:
        """Notes that objects were given away."""
        self._entries.append(NotedChange(_EXPORTED, what, count))

    def note_erasure(self, what: str, name: str, workspace_id: int | None) -> None:
        """Notes that a workspace or a user was erased, in the log of a workspace or in that of the store."""
        # The log does not name a user who is to be forgotten.
        ids = () if what == "user" else (name,)
        self._entries.append(NotedChange(_ERASED, what, 1, ids, workspace_id))

    def take_entries(self) -> list[NotedChange]:
        """Returns the entries, and forgets them."""
        entries, self._entries = self._entries, []
        return entries


# Its id is a UUID of version 7, so that ids sort by time.
_INSERT = """
INSERT INTO audit (workspace_id, entry_id, who, operation, request_id, key_id, for_user, action, object, count, ids)
VALUES (%(workspace)s::bigint, encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
        PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6),
        52, 1), 53, 1), 'hex')::uuid,
    %(who)s, %(operation)s, %(request_id)s, %(key_id)s::uuid, %(for_user)s, %(action)s, %(object)s, %(count)s::bigint,
    %(ids)s::text[])
"""
SWEEP = "DELETE FROM audit WHERE at < now() - make_interval(days => %(days)s)"


class Place(NamedTuple):
    """The workspace and the user whose objects a session changes."""

    workspace_id: int | None
    """None for all workspaces."""
    user: str


def insertions(entries: Sequence[NotedChange], place: Place) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields the statements that write entries, with their values; none for a workspace that is not made yet."""
    if place.workspace_id == 0:
        return
    by = actor()
    for entry in entries:
        yield (
            _INSERT,
            {
                **asdict(by),
                **asdict(entry),
                "workspace": entry.workspace_id or STORE if place.workspace_id is None else place.workspace_id,
                "for_user": place.user,
            },
        )
