"""Expressions of an engine whose time is linear in the text, also where nothing matches."""

import functools
from typing import Any


@functools.cache
def linear(pattern: str) -> Any:  # noqa: ANN401 - re2 carries no types
    """The compiled expression."""
    import re2  # type: ignore[import-untyped] # noqa: PLC0415 - it carries no types; only where text is stored

    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def has(pattern: str, text: str) -> bool:
    """Whether the text has it somewhere: for most texts all there is to know, and cheaper to ask."""
    return bool(_set(pattern).Match(text))


@functools.cache
def _set(pattern: str) -> Any:  # noqa: ANN401 - re2 carries no types
    import re2  # noqa: PLC0415 - only where text is stored

    found = re2.Set.SearchSet()
    found.Add(pattern)
    found.Compile()
    return found
