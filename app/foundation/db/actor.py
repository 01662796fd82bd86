"""Who works: the doors say on whose behalf a request, a command or a job changes what is stored."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from uuid import UUID

WORKER = "worker"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks for a change, by which operation."""

    who: str
    """`key NAME`, `token SUBJECT`, `panel`, `anyone`, `cli`, `worker`; `service` for what a process does by itself."""
    operation: str = ""
    """A route, a command, a tool or a job."""
    request_id: str = ""
    key_id: UUID | None = None


SERVICE = Actor("service")
_ACTOR: ContextVar[Actor] = ContextVar("ACTOR", default=SERVICE)


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
