"""Turns the turns of a session into rows to write: all the work that needs no database. Pure."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec
from msgspec import structs

from app.foundation.models.protocols import TokenCounter
from app.foundation.safety.scan import FLAG, WEAK_SIGNS
from app.foundation.safety.secrets import masked_values
from app.foundation.text.data import DEEPEST
from app.foundation.text.prose import speech_of, without_inserted
from app.foundation.values import frozen
from app.intake.sessions.artifacts import Touch, touches_of
from app.intake.sessions.transcript import TOOL, USER, ToolUse, Turn
from app.storage.index.vectors import embedded_text
from app.storage.memories.gate import screen_memory
from app.storage.memories.memory import BODY_LIMIT, MemoryRow, NewMemory, in_utc

VERSION = 6
"""Version of this module and of the readers of logs. Every turn's digest begins with it, so that a new version compares
all turns again, and knows which of them an earlier one gave."""
_DIGEST_BYTES = 16
_TOOL_BODY = 400
"""Most characters of a tool's output, and of the acts of a wordless turn, that are searched."""
_TOOL_TEXT = 4_000
"""Most characters of each text in a tool's input and of its result that are kept: its beginning and its end."""
_CUT = "\n[… {count:,} characters left out …]\n"
_ACT_KEYS = ("file_path", "path", "target_file", "command", "cmd", "pattern", "query", "url", "description")
"""The inputs that say best what a tool did."""


@frozen
class PreparedTurn:
    """A turn ready to be written."""

    row: MemoryRow
    role: str
    spoken: str | None
    """The turn's text if the memory has another body; None if the text is the body."""
    tools: tuple[ToolUse, ...]
    message_id: str
    digest: bytes
    touches: tuple[Touch, ...]


@frozen
class Preparation:
    """Settings with which all turns of a session are prepared."""

    language: str
    """Text search configuration."""
    folder: str
    counter: TokenCounter
    mask: bool
    tags: tuple[str, ...] = ()
    """Tags of all turns."""


def digest_of(turn: Turn, preparation: Preparation) -> bytes:
    """Returns the version, and 16 bytes that change with anything that is stored of a turn but its id."""
    said = (preparation.language, preparation.mask, preparation.folder, turn.role, turn.text, turn.at)
    content = msgspec.json.encode([*said, [structs.asdict(tool) for tool in turn.tools]], enc_hook=str)
    return bytes([VERSION]) + hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()


def prepare_turns(turns: Sequence[Turn], preparation: Preparation) -> list[PreparedTurn]:
    """Returns the rows of the storable turns that say or do something, without secrets.

    Nobody's words are refused: findings of the injection scan are noted.
    """
    found = [_turn(turn, preparation) for turn in turns]
    kept = [item for item in found if item is not None]
    tokens = preparation.counter.count_many([embedded_text("", item.row.memory.body) for item in kept])
    return [replace(item, row=replace(item.row, tokens=count)) for item, count in zip(kept, tokens, strict=True)]


def _turn(turn: Turn, preparation: Preparation) -> PreparedTurn | None:
    clean = masked_values(turn) if preparation.mask else turn
    body = body_of(clean)
    if not body.strip():
        return None
    at = None if clean.at is None else in_utc(clean.at)
    memory = NewMemory(
        kind="message",
        body=body,
        ordinal=turn.ordinal,
        tags=preparation.tags,
        occurred_at=at,
        metadata={"role": clean.role},
    )
    result = screen_memory(structs.replace(memory, ordinal=None), mask=False)
    if clean.role == USER:
        result = replace(result, findings=_without_doubt_of_own_words(result.findings, body))
    row = replace(result, memory=memory, objection=None).row(source_id=None, language=preparation.language)
    return PreparedTurn(
        row=row,
        role=clean.role,
        spoken=None if body == clean.text else _cut(clean.text, BODY_LIMIT),
        tools=tuple(_short(tool) for tool in clean.tools),
        message_id=turn.message_id,
        digest=digest_of(turn, preparation),
        touches=tuple(touches_of(clean, preparation.folder)),
    )


def _without_doubt_of_own_words(findings: Sequence[Mapping[str, Any]], body: str) -> tuple[dict[str, Any], ...]:
    """Returns the findings of a person's turn; weak signs in the person's own words are noted, and hold nothing back.

    Of 799 turns of people in real logs 12 had weak signs, all innocent. A paste is no word of theirs.
    """
    own = speech_of(body).text if findings else ""
    return tuple(
        {**item, "severity": FLAG}
        if item["rule"] == WEAK_SIGNS and body[item["start"] : item["end"]].strip() in own
        else dict(item)
        for item in findings
    )


def body_of(turn: Turn) -> str:
    """Returns the text by which a turn is found: what was said, without what a program inserted.

    Of a tool's output, only the beginning is searched, and of a turn without words what its tools did.
    """
    if turn.role == TOOL and turn.text.strip():
        return turn.text.strip()[:_TOOL_BODY]
    if turn.text.strip():
        said = without_inserted(turn.text).strip() if turn.role == USER else ""
        return _cut(said if said not in {"", turn.text.strip()} else turn.text, BODY_LIMIT)
    return "\n".join(dict.fromkeys(act(tool) for tool in turn.tools))[:_TOOL_BODY]


def act(tool: ToolUse) -> str:
    """Returns a line that says what a tool did: `Edit app/db.py`."""
    said = next((str(value) for key in _ACT_KEYS if (value := tool.input.get(key))), "")
    return f"{tool.name.strip() or TOOL} {' '.join(said.split())[:100]}".strip()


def _cut(text: str, limit: int) -> str:
    """Returns a text of at most `limit` characters: its beginning and its end, with the number left out between."""
    if len(text) <= limit:
        return text
    half = (limit - len(_CUT) - 12) // 2
    return text[:half] + _CUT.format(count=len(text) - 2 * half) + text[-half:]


def _short(tool: ToolUse) -> ToolUse:
    return structs.replace(tool, input=_shorten_value(tool.input), result=_cut(tool.result, _TOOL_TEXT))


def _shorten_value(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    match value:
        case str():
            return _cut(value, _TOOL_TEXT)
        case Mapping():
            return {key: _shorten_value(item) for key, item in value.items()}
        case list() | tuple():
            return [_shorten_value(item) for item in value]
    return value


def storable(turn: Turn) -> Turn:
    """Returns a turn without characters that no database holds, and without what is nested too deep in its tools."""
    return replace(turn, text=_storable(turn.text), tools=tuple(_storable_tool(tool) for tool in turn.tools))


def _storable_tool(tool: ToolUse) -> ToolUse:
    return structs.replace(tool, name=_storable(tool.name), input=_storable(tool.input), result=_storable(tool.result))


def _storable(value: Any, depth: int = 0) -> Any:  # noqa: ANN401 - any JSON value
    """Returns a JSON value with a sign in the place of each character that no database holds, and of all that is nested
    too deep."""
    if depth > DEEPEST:
        return "…"
    match value:
        case str():
            clean = value.replace("\0", "\N{REPLACEMENT CHARACTER}")
            return clean if clean.isascii() else clean.encode("utf-8", "replace").decode()
        case Mapping():
            return {_storable(str(key)): _storable(item, depth + 1) for key, item in value.items()}
        case list() | tuple():
            return [_storable(item, depth + 1) for item in value]
    return value


def date_turns(turns: Sequence[Turn], started_at: datetime | None) -> list[Turn]:
    """Returns the turns, each without a time with that of the one before it, or of the session's start."""
    at = started_at
    return [replace(turn, at=(at := turn.at or at)) for turn in turns]
