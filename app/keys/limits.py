"""The limits of a key's use: requests and bytes a minute, counted in this process."""

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple
from uuid import UUID

from app.keys.key import EVERYTHING, Key, KeyLimits

MINUTE = 60.0
MOST_COUNTED = 10_000
"""Callers that a process counts at once; beyond them, the one that was counted first begins anew."""


class _Most(NamedTuple):
    """The requests and bytes of a minute; 0 for no limit."""

    requests: int
    bytes: int


@dataclass(slots=True)
class _Left:
    """A caller's remaining requests and bytes at a moment, in seconds; bytes may be owed."""

    most: _Most
    requests: float
    bytes: float
    at: float


class Limits:
    """Counts what each key uses; 0 stands for no limit.

    A caller may use a minute's worth at once, and gets it back evenly over a minute; under new limits it begins anew.
    Bytes are those of bodies in both directions. A request is admitted while any are left, and what it uses beyond them
    is owed: nobody knows before how long an answer will be.
    """

    def __init__(self, *, requests: int, bytes_: int) -> None:
        self._default = _Most(requests, bytes_)
        self._callers: dict[tuple[UUID | None, str], _Left] = {}

    def wait(self, key: Key, now: float) -> int:
        """Takes one request of a key; returns the whole seconds after which to try again, 0 if it is admitted."""
        most = self._most(key.limits)
        if key is EVERYTHING or not any(most):
            return 0
        left = self._left(key, most, now)
        missing = max(
            (1 - left.requests) / most.requests if most.requests else 0.0,
            -left.bytes / most.bytes if most.bytes else 0.0,
        )
        if missing > 0:
            return max(1, ceil(missing * MINUTE))
        left.requests -= 1
        return 0

    def charge(self, key: Key, size: int) -> None:
        """Takes the bytes of a piece of a body."""
        if (left := self._callers.get((key.key_id, key.who))) is not None:
            left.bytes -= size

    def _most(self, limits: KeyLimits) -> _Most:
        """Returns a key's own limits, and the settings' where it has none."""
        requests, bytes_ = limits.requests_per_minute, limits.bytes_per_minute
        return _Most(
            self._default.requests if requests is None else requests, self._default.bytes if bytes_ is None else bytes_
        )

    def _left(self, key: Key, most: _Most, now: float) -> _Left:
        caller = (key.key_id, key.who)
        left = self._callers.get(caller)
        if left is None or left.most != most:
            while len(self._callers) >= MOST_COUNTED:
                del self._callers[next(iter(self._callers))]
            left = self._callers[caller] = _Left(most, float(most.requests), float(most.bytes), now)
        share = max(0.0, now - left.at) / MINUTE
        left.requests = min(most.requests, left.requests + share * most.requests)
        left.bytes = min(most.bytes, left.bytes + share * most.bytes)
        left.at = now
        return left
