"""Checks how the time of a function grows with its text, without a limit in seconds."""

import time
from collections.abc import Callable


def assert_linear(read: Callable[[str], object], piece: str, *, characters: int = 50_000) -> None:
    """Check that eight times the text takes less than 32 times as long: 8 is linear, 64 quadratic."""

    def seconds(characters: int) -> float:
        text = piece * (characters // len(piece))
        started = time.process_time()
        read(text)
        return time.process_time() - started

    read(piece)
    once = max(min(seconds(characters) for _ in range(3)), 0.001)
    # A second time only if the first one was too long: another process may have taken the caches.
    assert any(seconds(8 * characters) / once < 32 for _ in range(2))
