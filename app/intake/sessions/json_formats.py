"""Reads the session logs that are JSON: of Claude Code, of Codex and of a ChatGPT export. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.foundation.text.data import read_json
from app.foundation.text.prose import without_tags
from app.foundation.text.scores import moment_of
from app.intake.sessions.artifacts import changed_symbols
from app.intake.sessions.transcript import (
    ASSISTANT,
    TOOL,
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

_SPEAKERS = (USER, ASSISTANT)
_SLASH_COMMAND = re.compile(
    r"<command-name>(.{0,300}?)</command-name>(?:\s{0,40}<command-args>(.{0,5000}?)</command-args>)?", re.DOTALL
)
_SHELL = re.compile(r"<bash-input>(.{0,5000}?)</bash-input>", re.DOTALL)
_NOT_SAID = ("isMeta", "isCompactSummary", "isApiErrorMessage", "isVisibleInTranscriptOnly")
"""Marks of records that the program wrote itself."""


def is_record(value: Mapping[str, Any]) -> bool:
    """Tells whether an object is a record of such a transcript that holds a message."""
    return value.get("type") in _SPEAKERS and isinstance(value.get("message"), dict) and "sessionId" in value


def read_records(lines: Lines, session_id: str) -> Log:
    """Reads a transcript. Thoughts, a subagent's messages and what the program inserted are left out.

    A file that only holds the messages of a subagent is a session of its own.
    """
    records = {number: value for number, value in lines.read.items() if is_record(value)}
    main = {number: value for number, value in records.items() if not value.get("isSidechain")}
    first = next(iter((main or records).values()))
    found, skipped, seen, message = Turns(), list(lines.skipped), set[str](), ""
    for number, value in (main or records).items():
        identity = value.get("uuid")
        if isinstance(identity, str) and identity in seen:
            continue
        seen.add(str(identity))
        try:
            if any(value.get(mark) for mark in _NOT_SAID):
                _leave_out(found, value)
            else:
                message = _take_record(found, value, message)
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            skipped.append(f"line {number}: is a record of another form ({type(error).__name__}: {error})")
    turns = found.storable_turns()
    return Log(
        transcripts=(
            Transcript(
                session_id=str(first.get("sessionId") or session_id) + ("" if main else f"/{first.get('agentId', '')}"),
                title=_given_title(lines) or title_of(turns),
                started_at=next((turn.at for turn in turns if turn.at is not None), None),
                format="claude-code",
                turns=turns,
                folder=str(first.get("cwd") or ""),
                unspoken=found.unspoken,
            ),
        ),
        skipped=reasons_shown(skipped),
    )


def _take_record(found: Turns, record: Mapping[str, Any], message: str) -> str:
    """Adds a record's message; returns its id. One message may stand in several records, a block in each."""
    role, given, at = record["type"], record["message"], moment_of(record.get("timestamp"))
    content, identity, record_id = given["content"], str(given.get("id") or ""), str(record.get("uuid") or "")
    text = _text_of(record)
    if text.strip():
        if role == ASSISTANT and identity and identity == message and found.latest == ASSISTANT:
            found.say_more(text)
        else:
            found.say(role, text, at, message_id=record_id)
    for block in content if isinstance(content, list) else ():
        if block["type"] == "tool_use":
            tool = ToolUse(name=str(block["name"]), input=dict(block["input"]))
            found.use(tool, call=str(block["id"]), at=at, message_id=record_id)
        elif block["type"] == "tool_result":
            found.answer(
                str(block["tool_use_id"]),
                _result_text(block.get("content")),
                failed=block.get("is_error") is True,
                symbols=_changed_parts(record.get("toolUseResult")),
            )
    return identity


def _text_of(record: Mapping[str, Any]) -> str:
    """Returns what the speaker of a record says in it."""
    text = "\n\n".join(texts_of(record["message"]["content"], ("text",)))
    return _typed_text(text) if record["type"] == USER else text


def _leave_out(found: Turns, record: Mapping[str, Any]) -> None:
    """Notes the text of a record that the program wrote."""
    moment, identity = moment_of(record.get("timestamp")), str(record.get("uuid") or "")
    found.leave_out(_text_of(record), moment, message_id=identity, role=record["type"])


def _changed_parts(told: object) -> list[str]:
    """Returns the functions and sections that an edit changed, as the record of it tells: its patch, and the file that
    it was made in."""
    if not isinstance(told, dict) or not isinstance(path := told.get("filePath"), str):
        return []
    hunks = [hunk for hunk in told.get("structuredPatch") or () if isinstance(hunk, dict)]
    before = told.get("originalFile")
    lines = before.splitlines() if isinstance(before, str) else []
    found = list[str]()
    for hunk in hunks:
        start = max(0, int(hunk.get("oldStart") or 1) - 1)
        above = "\n".join(lines[:start])
        told_lines = [str(line) for line in hunk.get("lines") or ()]
        old, new = ("\n".join([above, *(line[1:] for line in told_lines if line[:1] in {mark, " "})]) for mark in "-+")
        found += changed_symbols(old, new, path)
    return list(dict.fromkeys(found))


def _typed_text(text: str) -> str:
    """Returns what the user typed."""
    text = without_tags(text)
    text = _SLASH_COMMAND.sub(lambda match: f"{match[1]} {match[2] or ''}".strip(), text)
    return _SHELL.sub(lambda match: f"! {match[1]}", text)


def _result_text(content: object) -> str:
    return without_tags("\n".join(texts_of(content, ("text",)))).strip()


def _given_title(lines: Lines) -> str:
    """Returns the title that the log gives the session: the last one."""
    given: Sequence[object] = [
        value.get(name)
        for value in lines.read.values()
        for kind, name in (("summary", "summary"), ("ai-title", "aiTitle"), ("custom-title", "customTitle"))
        if value.get("type") == kind
    ]
    return next((title for title in reversed(given) if isinstance(title, str) and title.strip()), "")


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
            _take_item(found, value)
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
        unspoken=found.unspoken,
    )
    return Log(transcripts=(transcript,), skipped=reasons_shown(skipped))


def _take_item(found: Turns, value: Mapping[str, Any]) -> None:
    if value.get("type") in _OTHERS:
        return
    item, at = value.get("payload", value), moment_of(value.get("timestamp"))
    kind = item.get("type")
    if kind == "message" and item["role"] in (USER, ASSISTANT):
        text, identity = "\n\n".join(texts_of(item["content"], _TEXTS)).strip(), str(item.get("id") or "")
        if item["role"] == USER and text.startswith(_INSERTED):
            found.leave_out(text, at, message_id=identity)
        elif text:
            found.say(item["role"], text, at, message_id=identity)
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


_THOUGHTS = ("thoughts", "reasoning_recap", "model_editable_context", "user_editable_context")
"""Kinds of content that nobody said."""


def is_conversation(value: object) -> bool:
    """Tells whether a JSON value is a conversation of such an export."""
    return isinstance(value, dict) and isinstance(value.get("mapping"), dict)


def read_conversations(given: Sequence[object], session_id: str) -> Log:
    """Reads an export: each conversation is a session."""
    transcripts, skipped = list[Transcript](), list[str]()
    for number, value in enumerate(given, 1):
        try:
            if not is_conversation(value) or not isinstance(value, dict):
                raise TypeError("has no tree of messages")  # noqa: TRY301 - one place names what cannot be read
            transcripts.append(_conversation(value, session_id if len(given) == 1 else f"{session_id}#{number}"))
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            skipped.append(f"conversation {number}: cannot be read ({error})")
    return Log(transcripts=tuple(item for item in transcripts if item.turns), skipped=reasons_shown(skipped))


def _conversation(value: Mapping[str, Any], fallback: str) -> Transcript:
    found = Turns()
    for message in _branch(value):
        _take_message(found, message)
    turns = found.storable_turns()
    return Transcript(
        session_id=str(value.get("conversation_id") or value.get("id") or fallback),
        title=str(value.get("title") or "") or title_of(turns),
        started_at=moment_of(value.get("create_time")),
        format="chatgpt",
        turns=turns,
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
