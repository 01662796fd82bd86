"""Reads rollouts of Codex: what is said stands in response items, in completed items, in events, or in two of these.
Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from app.foundation.text.data import read_json
from app.foundation.text.scores import moment_of
from app.intake.sessions.transcript import (
    ASSISTANT,
    CALLER,
    NAMES,
    USER,
    Lines,
    Log,
    ToolUse,
    Turns,
    joined_text,
    noting_unread,
    reasons_shown,
    unknown_types,
)

_ITEM, _EVENT, _META, _COMPACTED = "response_item", "event_msg", "session_meta", "compacted"
_OTHERS = (_META, _EVENT, "turn_context", _COMPACTED, "world_state", "inter_agent_communication")
"""Envelopes of what is no response item."""
_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "tool_search_output")
_TEXTS = ("input_text", "output_text", "text", "Text")
_SILENT_ITEMS, _SILENT_DONE = NAMES["codex"]["silent_items"], NAMES["codex"]["silent_done"]
"""Response and completed items in which nobody speaks and no file is changed."""
_INSERTED = tuple(NAMES["codex"]["inserted"])
"""Beginnings of what the program says in a user's place."""
_REQUEST = re.compile(r"\A# Context from my IDE setup:.*?^## My request for Codex:\s*", re.DOTALL | re.MULTILINE)
"""The text that an editor puts before a request."""
_IMAGE = re.compile(r"</?image\b[^<>]*>\s*")
_BY_PERSON = frozenset({"cli", "vscode"})
"""Sources of sessions in which a person types. Old versions name none."""
_PERSONS_PROGRAMS = ("codex-tui", "codex_tui", "codex_cli_rs", "codex_vscode", "codex desktop")


def is_item(value: Mapping[str, Any]) -> bool:
    """Tells whether an object is a line of a rollout."""
    if value.get("type") in (_ITEM, *_OTHERS):
        return isinstance(value.get("payload"), dict)
    bare = value.get("type") == "message" and isinstance(value.get("content"), list) and "role" in value
    return bare or value.get("type") in (*_CALLS, *_OUTPUTS)


def read_items(lines: Lines, session_id: str) -> Log:
    """Reads a rollout. Reasoning, and what the program inserted, are left out.

    In the session of a sub-agent, and in one that a program started, the role `user` is a caller's.
    """
    meta = _meta(lines)
    reader = _Rollout(lines, USER if _is_by_person(meta) else CALLER)
    skipped = list(lines.skipped)
    for number, value in lines.read.items():
        with noting_unread(skipped, f"line {number}"):
            reader.take(value)
    transcript = reader.found.transcript(
        str(meta.get("id") or session_id),
        started_at=moment_of(meta.get("timestamp")),
        format="codex",
        folder=str(meta.get("cwd") or ""),
    )
    return Log(transcripts=(transcript,), skipped=reasons_shown(skipped), notes=unknown_types(reader.unknown))


def _meta(lines: Lines) -> Mapping[str, Any]:
    """Returns what the rollout says of its session: in its first line, which in old versions has no envelope."""
    for value in lines.read.values():
        payload: object = value.get("payload")
        if value.get("type") == _META and isinstance(payload, dict):
            return payload
        if "type" not in value and {"id", "timestamp"} <= value.keys():
            return value
    return {}


def _is_by_person(meta: Mapping[str, Any]) -> bool:
    """Tells whether a person types in this session."""
    if meta.get("thread_source") not in {None, USER}:
        return False
    if (source := meta.get("source")) is not None:
        return isinstance(source, str) and source in _BY_PERSON
    return str(meta.get("originator") or _PERSONS_PROGRAMS[0]).lower().startswith(_PERSONS_PROGRAMS)


class _RolloutMessage(NamedTuple):
    """A message that a line holds."""

    source: str
    """The kind of its place: `response_item`, `item_completed`, or the event."""
    role: str
    text: str
    identity: str

    @property
    def key(self) -> tuple[str, str]:
        """The role and the text, without the difference of blanks."""
        return self.role, " ".join(self.text.split())


def _speech(value: Mapping[str, Any]) -> _RolloutMessage | None:
    item = value.get("payload", value)
    if not isinstance(item, dict):
        return None
    kind = item.get("type")
    if value.get("type") == _EVENT:
        return _speech_in_event(item)
    if kind == "message" and item.get("role") in (USER, ASSISTANT) and value.get("type") not in _OTHERS:
        return _RolloutMessage(_ITEM, item["role"], _text_of(item["content"], item["role"]), str(item.get("id") or ""))
    return None


def _speech_in_event(event: Mapping[str, Any]) -> _RolloutMessage | None:
    kind, done = event.get("type"), event.get("item")
    if kind == "item_completed" and isinstance(done, dict):
        role = {"UserMessage": USER, "AgentMessage": ASSISTANT}.get(str(done.get("type")))
        text = _text_of(done.get("content"), role or "")
        return None if role is None else _RolloutMessage("item_completed", role, text, str(done.get("id") or ""))
    role = {"user_message": USER, "agent_message": ASSISTANT}.get(str(kind))
    if role is None or event.get("kind") not in {None, "plain"}:
        return None
    return _RolloutMessage(str(kind), role, _text_of(event.get("message"), role), "")


def _text_of(content: object, role: str) -> str:
    """Returns a message's text; of a user's without marks of images and what an editor put before it."""
    text = joined_text(content, kinds=_TEXTS).strip()
    return _REQUEST.sub("", _IMAGE.sub("", text)).strip() if role == USER else text


class _Rollout:
    """Collects the turns of one rollout."""

    def __init__(self, lines: Lines, person: str) -> None:
        self.found, self.unknown = Turns(), Counter[str]()
        self._person = person
        """The role of who types."""
        every = [said for value in lines.read.values() if (said := _speech(value)) and said.text]
        self._sources = _sources(every)
        self._texts = {said.key for said in every}
        self._told_apart = {said.key for said in every if said.source != _ITEM and said.role == USER}
        """The texts of the user, where the rollout tells them from those that the program inserted."""

    def take(self, value: Mapping[str, Any]) -> None:
        """Adds what a line says or does."""
        at, item = moment_of(value.get("timestamp")), value.get("payload", value)
        if said := _speech(value):
            if self._sources.get(said.key) == said.source:
                self._say(said, at, is_inserted=bool(self._told_apart) and said.key not in self._told_apart)
        elif value.get("type") == _EVENT:
            self._take_event(item, at)
        elif value.get("type") == _COMPACTED:
            self._take_replaced(item, at)
        elif value.get("type") not in _OTHERS:
            self._take_item(item, at, envelope=str(value.get("type")))

    def _say(self, said: _RolloutMessage, at: Any, *, is_inserted: bool) -> None:  # noqa: ANN401 - a moment, or None
        if said.role == USER and (is_inserted or said.text.startswith(_INSERTED)):
            self.found.leave_out(said.text, at, message_id=said.identity)
        else:
            role = self._person if said.role == USER else ASSISTANT
            self.found.say(role, said.text, at, message_id=said.identity)

    def _take_replaced(self, item: Mapping[str, Any], at: Any) -> None:  # noqa: ANN401 - as above
        """Adds the messages that a compaction kept and that stand nowhere else; its summary is nobody's."""
        summary = " ".join(str(item.get("message") or "").split())
        for message in item.get("replacement_history") or ():
            said = _speech(message) if isinstance(message, dict) else None
            if said and said.text and said.key not in self._texts:
                self._texts.add(said.key)
                self._say(said, at, is_inserted=said.key[1] == summary)

    def _take_event(self, event: Mapping[str, Any], at: Any) -> None:  # noqa: ANN401 - as above
        kind, done = str(event.get("type")), event.get("item")
        if kind == "thread_rolled_back":
            asked = self.found.places(self._person)[-int(event.get("num_turns") or 1) :]
            self.found.rewind(asked[0] if asked else 0)
        elif kind == "item_completed" and isinstance(done, dict):
            tools = list(_tools_done(str(done.get("type")), done))
            if not tools and done.get("type") not in _SILENT_DONE:
                self.unknown[f"item {done.get('type')}"] += 1
            self._use(tools, str(done.get("id") or ""), at)
        elif kind in _DONE:
            self._use(list(_tools_done(_DONE[kind], event)), str(event.get("call_id") or ""), at)

    def _use(self, tools: list[ToolUse], call: str, at: Any) -> None:  # noqa: ANN401 - as above
        """Adds the tools of an event, unless a response item has told of this call."""
        for tool in tools if not self.found.has_call(call) else ():
            self.found.use(tool, at=at)

    def _take_item(self, item: Mapping[str, Any], at: Any, *, envelope: str) -> None:  # noqa: ANN401 - as above
        kind = item.get("type")
        if kind in _CALLS:
            self.found.use(_call(item), call=str(item.get("call_id") or item.get("id") or ""), at=at)
        elif kind in _OUTPUTS:
            text, failed = _answer(item.get("output"))
            self.found.answer(str(item["call_id"]), text, failed=failed)
        elif kind not in _SILENT_ITEMS and not (envelope == "None" and kind is None):
            self.unknown[envelope if envelope != _ITEM else f"item {kind}"] += 1


def _sources(every: list[_RolloutMessage]) -> dict[tuple[str, str], str]:
    """Returns for each text where it is read: the first of the sources that have it most often."""
    count = dict[tuple[str, str], Counter[str]]()
    for said in every:
        count.setdefault(said.key, Counter())[said.source] += 1
    return {key: max(found, key=lambda source: (found[source], source == _ITEM)) for key, found in count.items()}


_DONE = {"exec_command_end": "CommandExecution", "patch_apply_end": "FileChange", "mcp_tool_call_end": "McpToolCall",
         "web_search_end": "WebSearch"}  # fmt: skip
"""The items that older events are."""


def _tools_done(kind: str, done: Mapping[str, Any]) -> Iterator[ToolUse]:
    """Yields the tools of a completed item: a command, the files of a change, a call to a server."""
    failed = done.get("status") in {"failed", "declined"} or done.get("success") is False
    result = str(done.get("aggregated_output") or done.get("stdout") or "")
    if kind == "CommandExecution":
        given = {"command": done.get("command"), "cwd": str(done.get("cwd") or "")}
        yield ToolUse(name="shell", input=given, result=result, failed=failed or done.get("exit_code") not in {None, 0})
    elif kind == "FileChange":
        for path, change in dict(done.get("changes") or {}).items():
            yield from _file_change(path, change, failed=failed)
    elif kind in {"McpToolCall", "DynamicToolCall"}:
        told = done.get("invocation") or done
        arguments = told.get("arguments")
        given = arguments if isinstance(arguments, dict) else {"input": arguments}
        yield ToolUse(name=str(told.get("tool") or kind), input=given, failed=failed or bool(done.get("error")))
    elif kind == "WebSearch":
        yield ToolUse(name="web_search", input={"query": done.get("query")})


def _file_change(path: str, change: Mapping[str, Any], *, failed: bool) -> Iterator[ToolUse]:
    kind, told = str(change.get("type") or next(iter(change), "")), change
    if "type" not in change and isinstance(change.get(kind), dict):
        told = change[kind]
    names = {"add": "create_file", "delete": "delete_file"}
    given = {"path": path, "diff": told.get("unified_diff"), "content": told.get("content")}
    yield ToolUse(
        name=names.get(kind, "edit_file"),
        input={key: value for key, value in given.items() if isinstance(value, str)},
        failed=failed,
    )
    if isinstance(moved := told.get("move_path"), str):
        yield ToolUse(name="rename_file", input={"source": path, "destination": moved}, failed=failed)


def _call(item: Mapping[str, Any]) -> ToolUse:
    name = str(item.get("name") or str(item["type"]).removesuffix("_call"))
    given = item.get("arguments", item.get("input", item.get("action")))
    read = read_json(given, dict[str, Any]) if isinstance(given, str) else given
    return ToolUse(name=name, input=read if isinstance(read, dict) else {"input": given})


def _answer(output: object) -> tuple[str, bool]:
    """Returns an answer's text, and whether it says that the tool failed: by its exit code, or outright.

    Both may stand in JSON.
    """
    read, failed = output, False
    if isinstance(output, str):
        code = re.match(r"\s*Exit code: (\d+)", output)
        failed = code is not None and code[1] != "0"
        read = read_json(output, dict[str, Any]) if output.startswith("{") else None
    if isinstance(read, dict):
        output, told = read.get("output", read.get("content", "")), read.get("metadata")
        status = told.get("exit_code") if isinstance(told, dict) else read.get("exit_code")
        failed = read.get("success") is False or (isinstance(status, int) and status != 0)
    return joined_text(output, kinds=_TEXTS, separator="\n").strip(), failed
