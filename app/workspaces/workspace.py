"""The tenant as every verb takes it, and the names that it may have."""

import re
from dataclasses import dataclass

from app.errors import InvalidInput

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
UNMADE = 0
"""The id of a workspace that nothing was written to yet. No row has it, so such a workspace is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A tenant, resolved once at the door."""

    workspace_id: int
    """UNMADE before the first write."""
    name: str
    language: str
    """Text search configuration of a memory or query that names none."""
    languages: tuple[str, ...]
    """Text search configurations of all its memories."""


def checked_name(name: str) -> str:
    """Returns `name` if a workspace may have it.

    Raises:
        InvalidInput: it may not.
    """
    if not NAME.fullmatch(name):
        raise InvalidInput("X-Workspace", "a workspace's name has 1 to 64 letters, digits, dots, dashes or underscores")
    return name
