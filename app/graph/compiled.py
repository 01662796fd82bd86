"""Machine code that outlives its process.

Half of what UMAP compiles it compiles anew in every process, because those functions do not ask numba to keep it: 15 s
for a first fit and 8 s for a first projection on a busy machine, and 2 s for both when they are made to ask.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version

CACHE = "NUMBA_CACHE_DIR"
PARTS = ("umap-learn", "pynndescent", "numba")


def versions() -> str:
    """Name of a folder for what these versions compile: numba sees a change in a function, not in what it calls."""
    return "-".join(version(part) for part in PARTS)


@contextmanager
def kept_when_compiled() -> Iterator[None]:
    """What is imported meanwhile keeps what it compiles, if a folder is named for it."""
    if CACHE not in os.environ:
        yield
        return
    import numba  # noqa: PLC0415 - takes seconds

    compiling = numba.njit
    numba.njit = lambda *arguments, **options: compiling(*arguments, **{"cache": True, **options})
    try:
        yield
    finally:
        numba.njit = compiling
