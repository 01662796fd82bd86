"""Reads the plain log: a line of JSON for each turn, with a role and a text. Pure."""

from collections.abc import Mapping
from typing import Any

from app.foundation.text.scores import moment_of
from app.intake.sessions.transcript import ROLES, Lines, Log, Transcript, Turn, reasons_shown, title_of

_OTHER_ROLES = {"human": "user", "ai": "assistant", "agent": "assistant", "model": "assistant", "developer": "system",
               "function": "tool"}  # fmt: skip
"""Names of roles in other logs."""


def is_message(value: Mapping[str, Any]) -> bool:
    """Tells whether an object is a line of the plain log."""
    return isinstance(value.get("role"), str) and isinstance(value.get("text", value.get("content")), str)


def read_messages(lines: Lines, session_id: str) -> Log:
    """Reads the plain log: each line is a turn, whatever its role."""
    skipped, turns = list(lines.skipped), list[Turn]()
    for number, value in lines.read.items():
        found = _plain_turn(value, len(turns))
        if isinstance(found, Turn):
            turns.append(found)
        else:
            skipped.append(f"line {number}: {found}")
    started_at = next((turn.at for turn in turns if turn.at is not None), None)
    transcript = Transcript(
        session_id=session_id,
        title=title_of(turns),
        started_at=started_at,
        format="messages",
        turns=tuple(turns),
    )
    return Log(transcripts=(transcript,), skipped=reasons_shown(skipped))


def _plain_turn(value: Mapping[str, Any], ordinal: int) -> Turn | str:
    if not is_message(value):
        return "has no role and text"
    role = value["role"].lower()
    role = _OTHER_ROLES.get(role, role)
    if role not in ROLES:
        return f"has the role {value['role'][:40]!r}; there are {', '.join(ROLES)}"
    at = moment_of(value.get("at", value.get("timestamp")))
    return Turn(ordinal=ordinal, role=role, text=value.get("text", value.get("content")), at=at)
