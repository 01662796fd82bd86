"""Tells the formats of session logs apart by their content, and names what looks like a log of no known form. Pure."""

import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from app.errors import InvalidInput
from app.foundation.text.data import read_json
from app.intake.sessions.formats import aider, chatgpt, claude_ai, specstory
from app.intake.sessions.formats.claude_code import is_line, read_records
from app.intake.sessions.formats.codex import is_item, read_items
from app.intake.sessions.formats.dialogue import read_dialogue
from app.intake.sessions.formats.gemini import is_session, read_session
from app.intake.sessions.formats.messages import is_message, read_messages
from app.intake.sessions.transcript import Lines, Log, Transcript, read_conversations, read_lines

_TRIED = 200
"""Lines of a file that are looked at to tell its format."""
_READERS: tuple[tuple[Callable[[Mapping[str, Any]], bool], Callable[[Lines, str], Log]], ...] = (
    (is_line, read_records),
    (is_item, read_items),
    (is_session, read_session),
    (is_message, read_messages),
)
_KEYS = ((b'"mapping"', b'"current_node"'), (b'"chat_messages"',), (b'"projectHash"', b'"messages"'))
"""Keys of documents that may be sessions; others are not parsed for it."""
_DESCRIPTION = re.compile(r"/subagents/(?:.*/)?[^/]+\.meta\.json\Z")
"""The path of a file in which Claude Code describes the sub-agent of the log beside it."""
_SPEAKER_KEYS = ("role", "sender", "author", "speaker", "from", "type")
_TEXT_KEYS = ("text", "content", "message", "parts", "value", "body")
_PERSONS = frozenset({"user", "human"})
_AGENTS = frozenset({"assistant", "ai", "bot", "model", "gpt", "agent", "gemini", "claude"})
_DEEP = 3
_FEWEST = 4
"""Messages of a transcript."""
_MOST = 0.5
"""Share of a document, in characters, that its messages are in a transcript. A report that quotes one has less."""


def read_log(content: bytes, *, suffix: str, session_id: str) -> Log | None:
    """Reads a file as the log that it is; returns None for a file of any other content.

    `session_id` names a session whose log does not name it; it is the file's path. Sessions of one file that have the
    same id are numbered from the second one on.

    Raises:
        InvalidInput: it looks like a transcript, of a form that is not known.
    """
    log = _read(content, suffix, session_id)
    if log is None:
        return None
    is_empty = not any(transcript.turns for transcript in log.transcripts)
    silent = ("nobody says or does anything in it; no session is stored",) if is_empty else ()
    return replace(log, transcripts=tuple(_with_unique_ids(log.transcripts)), notes=(*log.notes, *silent))


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
        return _document(content, session_id)
    text = content.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
    if aider.is_history(text):
        return aider.read_history(text, session_id)
    if specstory.is_history(text):
        return specstory.read_history(text, session_id)
    try:
        return read_dialogue(text, session_id)
    except ValueError as error:
        raise InvalidInput("", f"looks like a transcript of an unknown form: {error}") from error


def _json_lines(content: bytes, session_id: str) -> Log | None:
    lines = read_lines(content)
    tried = islice(lines.read.values(), _TRIED)
    reader = next((reader for value in tried for tells, reader in _READERS if tells(value)), None)
    if reader is None:
        _check_known(list(lines.read.values()))
        return None
    return reader(lines, session_id)


def _document(content: bytes, session_id: str) -> Log | None:
    if _DESCRIPTION.search(session_id):
        return Log(transcripts=())
    if not any(all(key in content for key in keys) for keys in _KEYS) and b'"user"' not in content:
        return None
    value = read_json(content.removeprefix(BOM_UTF8), object)
    given = value if isinstance(value, list) else [value]
    for tells, read in ((chatgpt.is_conversation, chatgpt.read_conversation), (claude_ai.is_chat, claude_ai.read_chat)):
        if any(map(tells, given)):
            return read_conversations(given, session_id, read)
    if isinstance(value, dict) and is_session(value) and isinstance(value.get("messages"), list):
        return read_session(Lines({1: value}, ()), session_id)
    _check_known(value)
    return None


def _check_known(value: object) -> None:
    """Refuses a document that is mostly messages of a person and an agent.

    Raises:
        InvalidInput: it is one.
    """
    found = [message for messages in _conversations(value, _DEEP) for message in messages]
    if len(found) >= _FEWEST and len(repr(found)) >= _MOST * len(repr(value)):
        raise InvalidInput(
            "",
            f"looks like a transcript of an unknown form ({len(found):,} messages with the fields"
            f" {', '.join(sorted(found[0])[:8])}); write it as lines of JSON with the fields role, text and at",
        )


def _conversations(value: object, depth: int) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Yields the lists of messages in a document in which both a person and an agent speak."""
    if isinstance(value, list):
        messages = [item for item in value if isinstance(item, dict) and _speaker(item)]
        speakers = {_speaker(item) for item in messages}
        if speakers & _PERSONS and speakers & _AGENTS:
            yield messages
            return
    parts = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
    for part in parts if depth else ():
        yield from _conversations(part, depth - 1)


def _speaker(item: Mapping[str, Any]) -> str:
    """Returns who speaks in a message; "" for what is no message."""
    if not any(key in item for key in _TEXT_KEYS):
        return ""
    given = [item[key] for key in _SPEAKER_KEYS if key in item]
    names = [value.get("role") if isinstance(value, dict) else value for value in given]
    return next((name.lower() for name in names if isinstance(name, str) and name.lower() in _PERSONS | _AGENTS), "")
