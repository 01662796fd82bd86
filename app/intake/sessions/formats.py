"""Tells the formats of session logs apart by their content, and reads them. Pure."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import msgspec

from app.intake.sessions import aider, specstory
from app.intake.sessions.chatgpt import is_conversation, read_conversations
from app.intake.sessions.claude_code import is_record, read_records
from app.intake.sessions.codex import is_item, read_items
from app.intake.sessions.json_lines import Lines, is_message, read_lines, read_messages
from app.intake.sessions.transcript import Log, Transcript

TRIED = 200
"""Lines of a file that are looked at to tell its format."""
READERS: tuple[tuple[Callable[[Mapping[str, Any]], bool], Callable[[Lines, str], Log]], ...] = (
    (is_record, read_records),
    (is_item, read_items),
    (is_message, read_messages),
)
EXPORT = (b'"mapping"', b'"current_node"')
"""Keys of a ChatGPT export."""


def read_log(content: bytes, *, suffix: str, session_id: str) -> Log | None:
    """Reads a file as the log that it is; returns None for a file of any other content.

    `session_id` names a session whose log does not name it; it is the file's path. Sessions of one file that have the
    same id are numbered from the second one on.
    """
    log = _read(content, suffix, session_id)
    return None if log is None else replace(log, transcripts=tuple(_numbered(log.transcripts)))


def _numbered(transcripts: Sequence[Transcript]) -> Iterator[Transcript]:
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
    for line in islice(lines.read, TRIED):
        for tells, reader in READERS:
            if tells(line.value):
                return reader(lines, session_id)
    return None


def _export(content: bytes, session_id: str) -> Log | None:
    if not all(key in content for key in EXPORT):
        return None
    try:
        value = msgspec.json.decode(content.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, RecursionError):
        return None
    given = value if isinstance(value, list) else [value]
    return read_conversations(given, session_id) if any(map(is_conversation, given)) else None
