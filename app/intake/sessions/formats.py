"""Tells the formats of session logs apart by their content, and reads them. Pure."""

from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from app.foundation.text.data import read_json
from app.foundation.text.scores import moment_of
from app.intake.sessions import aider, specstory
from app.intake.sessions.chatgpt import is_conversation, read_conversations
from app.intake.sessions.claude_code import is_record, read_records
from app.intake.sessions.codex import is_item, read_items
from app.intake.sessions.transcript import ROLES, Lines, Log, Transcript, Turn, read_lines, reasons_shown, title_of

_OTHER_ROLES = {"human": "user", "ai": "assistant", "agent": "assistant", "model": "assistant", "developer": "system",
               "function": "tool"}  # fmt: skip
"""Names of roles in other logs."""


def _is_message(value: Mapping[str, Any]) -> bool:
    """Tells whether an object is a line of the plain log."""
    return isinstance(value.get("role"), str) and isinstance(value.get("text", value.get("content")), str)


def _read_messages(lines: Lines, session_id: str) -> Log:
    """Reads the plain log: each line is a turn, whatever its role."""
    skipped, turns = list(lines.skipped), list[Turn]()
    for number, value in lines.read.items():
        found = _turn(value, len(turns))
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


def _turn(value: Mapping[str, Any], ordinal: int) -> Turn | str:
    if not _is_message(value):
        return "has no role and text"
    role = value["role"].lower()
    role = _OTHER_ROLES.get(role, role)
    if role not in ROLES:
        return f"has the role {value['role'][:40]!r}; there are {', '.join(ROLES)}"
    at = moment_of(value.get("at", value.get("timestamp")))
    return Turn(ordinal=ordinal, role=role, text=value.get("text", value.get("content")), at=at)


_TRIED = 200
"""Lines of a file that are looked at to tell its format."""
_READERS: tuple[tuple[Callable[[Mapping[str, Any]], bool], Callable[[Lines, str], Log]], ...] = (
    (is_record, read_records),
    (is_item, read_items),
    (_is_message, _read_messages),
)
_EXPORT = (b'"mapping"', b'"current_node"')
"""Keys of a ChatGPT export."""


def read_log(content: bytes, *, suffix: str, session_id: str) -> Log | None:
    """Reads a file as the log that it is; returns None for a file of any other content.

    `session_id` names a session whose log does not name it; it is the file's path. Sessions of one file that have the
    same id are numbered from the second one on.
    """
    log = _read(content, suffix, session_id)
    return None if log is None else replace(log, transcripts=tuple(_with_unique_ids(log.transcripts)))


def _with_unique_ids(transcripts: Sequence[Transcript]) -> Iterator[Transcript]:
    count = Counter[str]()
    for item in transcripts:
        count[item.session_id] += 1
        number = count[item.session_id]
        yield item if number == 1 else replace(item, session_id=f"{item.session_id}#{number}")


def _read(content: bytes, suffix: str, session_id: str) -> Log | None:
    if suffix == ".jsonl":
        return _json_lines(content, session_id)
    if suffix == ".json":
        return _export(content, session_id)
    text = content.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
    if aider.is_history(text):
        return aider.read_history(text, session_id)
    return specstory.read_history(text, session_id) if specstory.is_history(text) else None


def _json_lines(content: bytes, session_id: str) -> Log | None:
    lines = read_lines(content)
    for value in islice(lines.read.values(), _TRIED):
        for tells, reader in _READERS:
            if tells(value):
                return reader(lines, session_id)
    return None


def _export(content: bytes, session_id: str) -> Log | None:
    if not all(key in content for key in _EXPORT):
        return None
    value = read_json(content.removeprefix(BOM_UTF8), object)
    given = value if isinstance(value, list) else [value]
    return read_conversations(given, session_id) if any(map(is_conversation, given)) else None
