"""The limits of a key's use: requests a minute, counted in this process."""

from dataclasses import dataclass
from math import ceil
from uuid import UUID

from app.storage.tenants.keys.key import EVERYTHING, Key

_MINUTE = 60.0
MOST_COUNTED = 10_000
"""Callers that a process counts at once; beyond them, the one that was counted first begins anew."""


@dataclass(slots=True)
class _Left:
    """A caller's remaining requests at a moment, in seconds."""

    most: int
    requests: float
    at: float


class Limits:
    """Counts what each key uses; 0 stands for no limit.

    A caller may use a minute's worth at once, and gets it back evenly over a minute; under a new limit it begins anew.
    """

    def __init__(self, requests: int) -> None:
        self._default = requests
        self._callers: dict[tuple[UUID | None, str], _Left] = {}

    def wait(self, key: Key, now: float) -> int:
        """Takes one request of a key; returns the whole seconds after which to try again, 0 if it is admitted."""
        most = self._default if key.requests_per_minute is None else key.requests_per_minute
        if key is EVERYTHING or not most:
            return 0
        left = self._allowance(key, most, now)
        if left.requests < 1:
            return max(1, ceil((1 - left.requests) / most * _MINUTE))
        left.requests -= 1
        return 0

    def _allowance(self, key: Key, most: int, now: float) -> _Left:
        caller = (key.key_id, key.who)
        left = self._callers.get(caller)
        if left is None or left.most != most:
            while len(self._callers) >= MOST_COUNTED:
                del self._callers[next(iter(self._callers))]
            left = self._callers[caller] = _Left(most, float(most), now)
        left.requests = min(most, left.requests + max(0.0, now - left.at) / _MINUTE * most)
        left.at = now
        return left
