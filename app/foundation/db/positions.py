"""The positions in the primary's log (WAL), in bytes, that the reads of one request or job must see."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf


@dataclass(slots=True)
class Seen:
    """The positions of one request, which its tasks share."""

    required: float = 0
    """The position that a replica must have replayed; `inf` for a reader that only the primary serves."""
    written: int = 0
    """The position after the request's latest write; 0 if it has written nothing."""


_SEEN: ContextVar[Seen | None] = ContextVar("SEEN", default=None)


def positions_seen() -> Seen:
    """Returns the positions of this task; those of a task that nobody has given any hold nothing."""
    return _SEEN.get() or Seen()


@contextmanager
def seeing(positions: Seen) -> Iterator[None]:
    """Gives this task its positions meanwhile."""
    token = _SEEN.set(positions)
    try:
        yield
    finally:
        _SEEN.reset(token)


def read_from_primary() -> None:
    """Lets the primary alone serve this task from now on: a job reads what has just been written by any process."""
    _SEEN.set(Seen(inf))
