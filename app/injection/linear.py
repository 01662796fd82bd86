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
