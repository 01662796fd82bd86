"""Reads sessions of Gemini CLI: one document, or lines that change the session that the lines above tell. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from app.foundation.text.scores import moment_of
from app.intake.sessions.transcript import (
    ASSISTANT,
    CALLER,
    USER,
    Lines,
    Log,
    ToolUse,
    Turns,
    noting_unread,
    reasons_shown,
    unknown_types,
)

_SPEAKERS = {USER: USER, "gemini": ASSISTANT}
_SILENT = frozenset({"info", "error", "warning"})
"""Types of messages that the program shows."""
_INSERTED = ("<session_context>", "<hook_context>", "<state_snapshot>")
"""Beginnings of what the program says in a user's place; the last one is a compression's summary."""
_FAILED = frozenset({"error", "cancelled"})


def is_session(value: Mapping[str, Any]) -> bool:
    """Tells whether an object is such a session, or the first line of one."""
    return isinstance(value.get("sessionId"), str) and isinstance(value.get("projectHash"), str)


class _Replayed(NamedTuple):
    """A session as its lines leave it."""

    meta: Mapping[str, Any]
    messages: Mapping[str, Mapping[str, Any]]
    """By their ids, in their order."""
    skipped: Sequence[str]


def _replay(lines: Lines) -> _Replayed:
    meta, messages, skipped = dict[str, Any](), dict[str, Mapping[str, Any]](), list(lines.skipped)
    for number, value in lines.read.items():
        given = value.get("$set")
        if isinstance(name := value.get("$rewindTo"), str):
            _rewind(messages, name)
        elif isinstance(value.get("id"), str):
            messages[value["id"]] = value
        elif isinstance(given, dict) or is_session(value):
            told = given if isinstance(given, dict) else value
            meta |= {key: item for key, item in told.items() if key != "messages"}
            _add(messages, told.get("messages") or ())
        else:
            skipped.append(f"line {number}: is neither a message nor a change of the session")
    return _Replayed(meta, messages, skipped)


def read_session(lines: Lines, session_id: str) -> Log:
    """Reads a session of lines, or a document as the only one: a message that stands again replaces itself,
    `$rewindTo` takes back what the user took back. A compression, which sets other messages, takes nothing back."""
    meta, messages, before = _replay(lines)
    skipped, unknown = list(before), Counter[str]()
    found = Turns()
    person = CALLER if meta.get("kind", "main") != "main" else USER
    for place, message in enumerate(messages.values(), 1):
        with noting_unread(skipped, f"message {place}"):
            if message.get("type") in _SPEAKERS:
                _take(found, message, person)
            elif message.get("type") not in _SILENT:
                unknown[str(message.get("type"))] += 1
    transcript = found.transcript(
        str(meta.get("sessionId") or session_id),
        title=str(meta.get("summary") or ""),
        started_at=moment_of(meta.get("startTime")),
        format="gemini-cli",
    )
    return Log(transcripts=(transcript,), skipped=reasons_shown(skipped), notes=unknown_types(unknown))


def _rewind(messages: dict[str, Mapping[str, Any]], name: str) -> None:
    """Takes back a message and all after it; all messages if it is not known."""
    names = list(messages)
    for taken in names[names.index(name) if name in messages else 0 :]:
        del messages[taken]


def _add(messages: dict[str, Mapping[str, Any]], given: Iterable[Mapping[str, Any]]) -> None:
    """Adds the messages that are not known, by their id or by all that they say."""
    known = {(item.get("type"), _text(item.get("content"))) for item in messages.values()}
    for item in given:
        if isinstance(item.get("id"), str) and item["id"] not in messages:
            said = item.get("type"), _text(item.get("content"))
            if not said[1] or said not in known:
                messages[item["id"]] = item


def _text(content: object) -> str:
    """Returns the text of a message's content: one text, or parts, without thoughts."""
    if isinstance(content, str):
        return content.strip()
    parts = content if isinstance(content, list) else [content]
    texts = [
        part if isinstance(part, str) else str(part.get("text") or "")
        for part in parts
        if isinstance(part, str) or (isinstance(part, dict) and not part.get("thought"))
    ]
    return "".join(texts).strip()


def _take(found: Turns, message: Mapping[str, Any], person: str) -> None:
    at, identity, role = moment_of(message.get("timestamp")), str(message["id"]), _SPEAKERS[message["type"]]
    shown = message.get("displayContent") if role == USER else None
    text = _text(shown or message.get("content"))
    if role == USER and text.startswith(_INSERTED):
        found.leave_out(text, at, message_id=identity)
    elif text:
        found.say(person if role == USER else role, text, at, message_id=identity)
    for call in message.get("toolCalls") or ():
        tool = ToolUse(
            name=str(call["name"]),
            input=call["args"] if isinstance(call.get("args"), dict) else {},
            result=_result(call),
            failed=call.get("status") in _FAILED,
        )
        found.use(tool, at=at, message_id=identity)


def _result(call: Mapping[str, Any]) -> str:
    """Returns a tool's answer: as it was shown, or as the model got it."""
    if isinstance(shown := call.get("resultDisplay"), str):
        return shown
    given = call.get("result")
    for part in given if isinstance(given, list) else [given]:
        answer = part.get("functionResponse", {}).get("response") if isinstance(part, dict) else part
        output = answer.get("output", answer.get("error", "")) if isinstance(answer, dict) else answer
        if isinstance(output, str) and output:
            return output
    return ""
