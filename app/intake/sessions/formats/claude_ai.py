"""Reads exports of claude.ai: each conversation is a session. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.foundation.text.scores import moment_of
from app.intake.sessions.transcript import (
    ASSISTANT,
    USER,
    ToolUse,
    Transcript,
    Turns,
    joined_text,
)

_SPEAKERS = {"human": USER, "assistant": ASSISTANT}


def is_chat(value: object) -> bool:
    """Tells whether a JSON value is a conversation of such an export."""
    return isinstance(value, dict) and isinstance(value.get("chat_messages"), list)


def read_chat(value: Mapping[str, Any], fallback: str) -> Transcript:
    """Reads a conversation without the agent's thoughts; `fallback` is its id if it has none."""
    found = Turns()
    for message in _branch(value["chat_messages"]):
        _take(found, message)
    return found.transcript(
        str(value.get("uuid") or fallback),
        title=str(value.get("name") or ""),
        started_at=moment_of(value.get("created_at")),
        format="claude-ai",
    )


def _branch(messages: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yields the messages up to the last one; where they name their parents, without abandoned edits and answers."""
    by_name = {message.get("uuid"): message for message in messages}
    if not any(message.get("parent_message_uuid") in by_name for message in messages):
        yield from messages
        return
    path, name = list[Mapping[str, Any]](), messages[-1].get("uuid")
    while name in by_name:
        path.append(by_name.pop(name))
        name = path[-1].get("parent_message_uuid")
    yield from reversed(path)


def _take(found: Turns, message: Mapping[str, Any]) -> None:
    at, identity, role = moment_of(message.get("created_at")), str(message.get("uuid") or ""), message["sender"]
    content = message.get("content") or ()
    text = joined_text(content).strip() or str(message.get("text") or "").strip()
    if text:
        found.say(_SPEAKERS[role], text, at, message_id=identity)
    for block in content:
        if block.get("type") == "tool_use":
            given = block.get("input")
            tool = ToolUse(name=str(block["name"]), input=given if isinstance(given, dict) else {})
            found.use(tool, call=str(block.get("id") or block["name"]), at=at, message_id=identity)
        elif block.get("type") == "tool_result":
            result = joined_text(block.get("content"), separator="\n")
            call = str(block.get("tool_use_id") or block.get("name"))
            found.answer(call, result, failed=block.get("is_error") is True)
