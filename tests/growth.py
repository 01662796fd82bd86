"""What time grows with, told without a limit of time."""

import time
from collections.abc import Callable


def assert_linear(read: Callable[[str], object], piece: str, *, characters: int = 50_000) -> None:
    """Eight times the text takes far less than its square would: 8 is linear, 64 quadratic."""

    def seconds(characters: int) -> float:
        text = piece * (characters // len(piece))
        started = time.process_time()
        read(text)
        return time.process_time() - started

    read(piece)
    once = max(min(seconds(characters) for _ in range(3)), 0.001)
    assert min(seconds(8 * characters) for _ in range(2)) / once < 32
