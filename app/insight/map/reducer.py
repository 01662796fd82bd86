"""UMAP, compiled for one thread; importing it takes seconds, and compiling it more."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba

from app.insight.map.layout import CACHE


@contextmanager
def _compiling(*, eagerly: bool) -> Iterator[None]:
    """Makes modules that are imported meanwhile compile for one thread, and cache the code if CACHE names a folder.

    If not `eagerly`, functions with declared types are compiled when they are called. Both together save 17 s of the
    28 s of a core that the first map took.
    """
    njit = numba.njit
    changes = {"parallel": False, **({"cache": True} if CACHE in os.environ else {})}

    def compiling(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - numba has no types
        kept = arguments if eagerly else [argument for argument in arguments if callable(argument)]
        return njit(*kept, **{**options, **changes})

    numba.njit = compiling
    try:
        yield
    finally:
        numba.njit = njit


with _compiling(eagerly=False):
    import pynndescent  # type: ignore[import-untyped]  # noqa: F401 - UMAP imports it and never calls it here
with _compiling(eagerly=True):
    from umap import UMAP  # type: ignore[import-untyped]

__all__ = ["UMAP"]
