"""What a workspace is, and which names it may have."""

import re
from dataclasses import dataclass

from app.errors import InvalidInput

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A tenant, with what the lexical arm must know of it."""

    workspace_id: int
    name: str
    language: str
    """Text search language of a memory or query that names none."""
    languages: tuple[str, ...]
    """Every language that its memories are written in."""
    document_count: int
    """Live memories when its statistics were last taken."""
    mean_length: float
    """Their mean length in lexemes; 0 before the first statistics."""


def checked_name(name: str) -> str:
    """`name`, if a workspace may be called that.

    Raises:
        InvalidInput: it may not.
    """
    if not NAME.fullmatch(name):
        raise InvalidInput("X-Workspace", "a workspace's name has 1 to 64 letters, digits, dots, dashes or underscores")
    return name
