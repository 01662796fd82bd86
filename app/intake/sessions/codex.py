"""Reads a rollout of Codex: JSON lines of response items, each in an envelope or, in old logs, bare. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from app.foundation.text.data import read_json
from app.foundation.text.scores import moment_of
from app.intake.sessions.transcript import (
    ASSISTANT,
    USER,
    Lines,
    Log,
    ToolUse,
    Transcript,
    Turns,
    reasons_shown,
    texts_of,
    title_of,
)

_ITEM = "response_item"
_OTHERS = ("session_meta", "event_msg", "turn_context", "compacted")
"""Envelopes of what is no item."""
_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_TEXTS = ("input_text", "output_text", "text")
_INSERTED = ("<environment_context>", "<user_instructions>", "<permissions", "<turn_aborted>", "<INSTRUCTIONS>",
            "# AGENTS.md instructions", "<collaboration_mode>", "<skill>")  # fmt: skip
"""Beginnings of what the program says in a user's place."""


def is_item(value: Mapping[str, Any]) -> bool:
    """Tells whether an object is a line of a rollout."""
    if value.get("type") in (_ITEM, *_OTHERS):
        return isinstance(value.get("payload"), dict)
    bare = value.get("type") == "message" and isinstance(value.get("content"), list) and "role" in value
    return bare or value.get("type") in (*_CALLS, *_OUTPUTS)


def read_items(lines: Lines, session_id: str) -> Log:
    """Reads a rollout. Reasoning, and what the program inserted, are left out."""
    found, skipped = Turns(), list(lines.skipped)
    meta: Mapping[str, Any] = {}
    for number, value in lines.read.items():
        if value.get("type") == "session_meta" and not meta:
            meta = value["payload"] if isinstance(value.get("payload"), dict) else {}
        elif not meta and "type" not in value and {"id", "timestamp"} <= value.keys():
            meta = value
        try:
            _take(found, value)
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            skipped.append(f"line {number}: is an item of another form ({type(error).__name__}: {error})")
    turns = found.storable_turns()
    started_at = moment_of(meta.get("timestamp")) or next((turn.at for turn in turns if turn.at is not None), None)
    transcript = Transcript(
        session_id=str(meta.get("id") or session_id),
        title=title_of(turns),
        started_at=started_at,
        format="codex",
        turns=turns,
        folder=str(meta.get("cwd") or ""),
    )
    return Log(transcripts=(transcript,), skipped=reasons_shown(skipped))


def _take(found: Turns, value: Mapping[str, Any]) -> None:
    if value.get("type") in _OTHERS:
        return
    item, at = value.get("payload", value), moment_of(value.get("timestamp"))
    kind = item.get("type")
    if kind == "message" and item["role"] in (USER, ASSISTANT):
        text = "\n\n".join(texts_of(item["content"], _TEXTS)).strip()
        if text and not (item["role"] == USER and text.startswith(_INSERTED)):
            found.say(item["role"], text, at)
    elif kind in _CALLS:
        found.use(_call(item), call=str(item.get("call_id") or item.get("id") or ""), at=at)
    elif kind in _OUTPUTS:
        found.answer(str(item["call_id"]), _output(item.get("output")), failed=_has_failed(item.get("output")))


def _call(item: Mapping[str, Any]) -> ToolUse:
    name = str(item.get("name") or str(item["type"]).removesuffix("_call"))
    given = item.get("arguments", item.get("input", item.get("action")))
    read = read_json(given, dict[str, Any]) if isinstance(given, str) else given
    return ToolUse(name=name, input=read if isinstance(read, dict) else {"input": given})


def _has_failed(output: object) -> bool:
    """Tells whether an answer says that the tool failed: by its exit code, or outright."""
    if isinstance(output, str):
        if code := re.match(r"\s*Exit code: (\d+)", output):
            return code[1] != "0"
        output = read_json(output, dict[str, Any]) if output.startswith("{") else None
    if not isinstance(output, dict):
        return False
    told = output.get("metadata")
    code = told.get("exit_code") if isinstance(told, dict) else output.get("exit_code")
    return output.get("success") is False or (isinstance(code, int) and code != 0)


def _output(output: object) -> str:
    """Returns an answer's text, which may stand in JSON beside the exit code."""
    read = read_json(output, dict[str, Any]) if isinstance(output, str) and output.startswith("{") else output
    if isinstance(read, dict):
        output = read.get("output", read.get("content", ""))
    return "\n".join(texts_of(output, _TEXTS)).strip()
