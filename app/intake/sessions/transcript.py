"""A session as its log tells it: its turns in their order, with the tools that they used. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

USER, ASSISTANT, TOOL, SYSTEM = "user", "assistant", "tool", "system"
ROLES = (USER, ASSISTANT, TOOL, SYSTEM)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A tool that a turn called: an act, and not speech."""

    name: str
    input: Mapping[str, Any] = field(default_factory=dict)
    result: str = ""
    """The tool's answer; "" if the log has none yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of a session."""

    ordinal: int
    """The turn's place among the session's messages, from 0."""
    role: str
    """One of ROLES."""
    text: str
    """What was said; "" for a turn that only used tools."""
    at: datetime | None = None
    tools: tuple[ToolUse, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A session with all its turns."""

    session_id: str
    title: str = ""
    started_at: datetime | None = None
    format: str
    """The name of the log's format."""
    turns: tuple[Turn, ...]
