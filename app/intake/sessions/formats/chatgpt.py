"""Reads exports of ChatGPT: each conversation is a session. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from app.foundation.text.scores import moment_of
from app.intake.sessions.transcript import (
    ASSISTANT,
    TOOL,
    USER,
    ToolUse,
    Transcript,
    Turns,
)

_THOUGHTS = ("thoughts", "reasoning_recap", "model_editable_context", "user_editable_context")
"""Kinds of content that nobody said."""


def is_conversation(value: object) -> bool:
    """Tells whether a JSON value is a conversation of such an export."""
    return isinstance(value, dict) and isinstance(value.get("mapping"), dict)


def read_conversation(value: Mapping[str, Any], fallback: str) -> Transcript:
    """Reads a conversation; `fallback` is its id if it has none."""
    found = Turns()
    for message in _branch(value):
        _take_message(found, message)
    return found.transcript(
        str(value.get("conversation_id") or value.get("id") or fallback),
        title=str(value.get("title") or ""),
        started_at=moment_of(value.get("create_time")),
        format="chatgpt",
    )


def _branch(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yields the messages from the root to the current node: answers that were made again, and edits, leave others."""
    mapping, node = value["mapping"], value.get("current_node")
    if not isinstance(node, str) or node not in mapping:
        node = _newest_leaf(mapping)
    path: dict[str, None] = {}
    while isinstance(node, str) and node in mapping and node not in path:
        path[node] = None
        node = mapping[node].get("parent")
    for name in reversed(path):
        if isinstance(message := mapping[name].get("message"), dict):
            yield message


def _newest_leaf(mapping: Mapping[str, Any]) -> str | None:
    leaves = [name for name, node in mapping.items() if not node.get("children")]
    return max(leaves, key=lambda name: _creation_time(mapping[name]), default=None)


def _creation_time(node: Mapping[str, Any]) -> float:
    made = (node.get("message") or {}).get("create_time")
    return made if isinstance(made, int | float) else 0.0


def _take_message(found: Turns, message: Mapping[str, Any]) -> None:
    role, content = message["author"]["role"], message.get("content") or {}
    hidden = (message.get("metadata") or {}).get("is_visually_hidden_from_conversation")
    text, at = _message_text(content), moment_of(message.get("create_time"))
    recipient = message.get("recipient") or "all"
    if hidden or content.get("content_type") in _THOUGHTS or not text.strip():
        return
    if role == ASSISTANT and recipient != "all":
        found.use(ToolUse(name=str(recipient), input={"text": text}), call="last", at=at)
    elif role == TOOL:
        found.answer("last", text)
    elif role in (USER, ASSISTANT):
        found.say(role, text, at, message_id=str(message.get("id") or ""))


def _message_text(content: Mapping[str, Any]) -> str:
    parts = content.get("parts")
    texts = [part for part in parts if isinstance(part, str)] if isinstance(parts, list) else [content.get("text")]
    return "\n\n".join(text for text in texts if isinstance(text, str) and text.strip())
