"""Reads transcripts of Claude Code: who speaks in a record, and what the program wrote in the user's place. Pure."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from app.foundation.text.prose import without_tags
from app.foundation.text.scores import moment_of
from app.intake.sessions.artifacts import changed_symbols
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

_SPEAKERS = (USER, ASSISTANT)
_QUEUE = "queue-operation"
_SILENT = NAMES["claude-code"]["silent"]
"""Types of records in which nobody speaks."""
_NOT_SAID = ("isMeta", "isCompactSummary", "isApiErrorMessage", "isVisibleInTranscriptOnly", "sourceToolUseID")
"""Marks of records that the program wrote itself."""
_BY_PERSON = NAMES["claude-code"]["by_person"]
"""Ways to start a session in which a person types. Older versions name none; the others start it by a program."""
_PROMPT, _ABSORBED = "prompt", "absorbed_mid_turn"
_BY_PROGRAM = frozenset({"task-notification", "auto-continuation", "system", "hook"})
"""Origins of texts that the program wrote. What is neither of these nor `human` is a caller's."""

_BRIEF = 20
"""Characters up to which a queued text is looked for as a whole: "yes" stands in many others."""

_SLASH_COMMAND = re.compile(
    r"<command-name>((?:(?!<command-name>).){0,300}?)</command-name>"
    r"(?:\s{0,40}<command-args>((?:(?!<command-args>).){0,5000}?)</command-args>)?",
    re.DOTALL,
)
_SHELL = re.compile(r"<bash-input>((?:(?!<bash-input>).){0,5000}?)</bash-input>", re.DOTALL)
_NOTICE = re.compile(
    r"\s*(?:\[Request interrupted|\[SYSTEM NOTIFICATION|Caveat: The messages below|Base directory for this skill:|"
    r"This session is being continued from a previous conversation|\(Re-invocation of /|\{\"task_id\":|<tick>|"
    r"<(?:task|agent|background)-[\w-]+|<local-command|"
    r"(?:Stop|SubagentStop|UserPromptSubmit|SessionStart|PreToolUse|PostToolUse|PreCompact)(?::\S+)? "
    r"(?:hook (?:feedback|success|error|additional context|blocking error|stopped|cancelled)|operation \w+ by hook))"
)
"""The beginning of a notice of the program."""
_ELEMENT = re.compile(
    r"\s*<(?!command-|bash-input)(?P<tag>[a-z]++(?:[-_][a-z]++)++)\b[^>]*>.*</(?P=tag)>\s*", re.DOTALL
)
"""An element of a name in parts: a text that is nothing else is a program's, and nobody knows which."""
_AGENTS_TAG = r"</?(?:teammate|cross-session|agent|peer)-message\b[^<>]*>"
_FROM_AGENT = re.compile(rf"(?:{_AGENTS_TAG}|Another Claude session sent a message:)")
"""The beginning of a text with messages of other agents; there may be several of them."""
_REFUSED = re.compile(r"The user doesn't want to.{0,400}?the user said:\s*(?P<said>.+)", re.DOTALL)
"""The answer of a tool that the user did not allow, with what the user said instead."""


_NAMING = ("sessionId", "leafUuid", "messageId", "agentId")
"""Fields by which a record names what it belongs to."""


def is_line(value: Mapping[str, Any]) -> bool:
    """Tells whether an object is a line of such a transcript; in some files nobody speaks."""
    return is_record(value) or (value.get("type") in _SILENT and any(name in value for name in _NAMING))


def is_record(value: Mapping[str, Any]) -> bool:
    """Tells whether an object is a record of such a transcript that holds a message."""
    return value.get("type") in _SPEAKERS and isinstance(value.get("message"), dict) and "sessionId" in value


def read_records(lines: Lines, session_id: str) -> Log:
    """Reads a transcript. Thoughts, a sub-agent's messages and what the program inserted are left out.

    A file that only holds the messages of a sub-agent is a session of its own; in it and in a session that a program
    started, the role `user` is a caller's.
    """
    records = {number: value for number, value in lines.read.items() if is_record(value)}
    main = {number: value for number, value in records.items() if not value.get("isSidechain")} or records
    first = next(iter(main.values()), {})
    is_agent = first.get("isSidechain") or "/subagents/" in session_id
    agent = str(first.get("agentId") or (PurePath(session_id).stem if is_agent else ""))
    reader = _Dialogue(CALLER if agent or not _is_by_person(first) else USER)
    skipped, unknown = list(lines.skipped), Counter[str]()
    absent = _not_delivered(lines)
    for number, value in lines.read.items():
        with noting_unread(skipped, f"line {number}"):
            if number in main:
                reader.take_record(value)
            elif value.get("type") == "attachment":
                reader.take_attachment(value)
            elif number in absent:
                reader.say_typed(str(value["content"]), value)
            elif number not in records and value.get("type") not in _SILENT:
                unknown[str(value.get("type"))] += 1
    transcript = reader.found.transcript(
        str(first.get("sessionId") or session_id) + (f"/{agent}" if agent else ""),
        title=_given_title(lines),
        format="claude-code",
        folder=str(first.get("cwd") or ""),
    )
    return Log(transcripts=(transcript,), skipped=reasons_shown(skipped), notes=unknown_types(unknown))


def _is_by_person(record: Mapping[str, Any]) -> bool:
    """Tells by its first record whether a person types in this session: by the way it was started, or outright."""
    way, origin = record.get("entrypoint"), record.get("origin")
    is_human = isinstance(origin, dict) and origin.get("kind") == "human"
    return way is None or way in _BY_PERSON or (is_human and not str(way).startswith("sdk"))


def _not_delivered(lines: Lines) -> set[int]:
    """Returns the lines that alone have what the user typed while the agent worked.

    What is queued becomes a record or an attachment, mostly further down, is taken back, or is absorbed by the work.
    """
    delivered = {number: text for number, value in lines.read.items() if (text := _delivered_text(value))}
    places, every = defaultdict[str, list[int]](list), "\0".join(delivered.values())
    for place, said in delivered.items():
        places[said].append(place)
    found = set[int]()
    for number, text in _queued_texts(lines).items():
        # A text of some length may stand in a longer one; it is looked for where there is one.
        inside = [said for said in places if text in said] if len(text) > _BRIEF and text in every else []
        match = next(
            (place for said in [text, *inside] for place in places[said] if _follows(lines, number, place)), None
        )
        if match is None:
            found.add(number)
        else:
            places[delivered[match]].remove(match)
    return found


def _follows(lines: Lines, number: int, place: int) -> bool:
    """Tells whether what was queued in a line may be delivered in another: further down, or as an attachment."""
    return place > number or "attachment" in lines.read[place]


def _queued_texts(lines: Lines) -> dict[int, str]:
    """Returns what was queued and not taken back, by the line in which it enters the queue, or else leaves it."""
    found, pending = dict[int, str](), dict[int, str]()
    for number, value in lines.read.items():
        operation, text = value.get("operation"), _key(str(value.get("content") or ""))
        if value.get("type") != _QUEUE:
            continue
        if operation == "enqueue":
            found |= {number: text} if text else {}
            pending |= {number: text} if text else {}
            continue
        named = [place for place, other in pending.items() if other == text]
        taken = named[:1] if text else list(pending)[: None if operation == "popAll" else 1]
        is_absorbed = operation == "remove" and value.get("reason") in {None, _ABSORBED}
        if is_absorbed and text and not named:
            found[number] = text
        for place in taken:
            del pending[place]
            if not is_absorbed and operation != "dequeue":
                del found[place]
    return found


def _delivered_text(value: Mapping[str, Any]) -> str:
    """Returns what the user says in a record or an attachment, without the difference of blanks."""
    if is_record(value) and value["type"] == USER:
        return _key(_typed_text(joined_text(value["message"].get("content"))))
    return _key(joined_text(_queued_command(value).get("prompt")))


def _queued_command(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the attachment with what was typed while the agent worked; an empty one for any other record."""
    given = value.get("attachment")
    return given if isinstance(given, dict) and given.get("type") == "queued_command" else {}


def _key(text: str) -> str:
    return " ".join(text.split())


def _is_notice(text: str, record: Mapping[str, Any]) -> bool:
    """Tells whether the program wrote a text in the user's place."""
    is_known = _NOTICE.match(text) or _NOTICE.match(without_tags(text))
    return is_known is not None or any(record.get(mark) for mark in _NOT_SAID)


class _Dialogue:
    """Collects the turns of one transcript."""

    def __init__(self, person: str) -> None:
        self.found = Turns()
        self._person, self._message = person, ""
        """The role of who types, and the id of the message of the latest record."""
        self._seen = set[str]()

    def take_record(self, record: Mapping[str, Any]) -> None:
        """Adds a record's message. One message may stand in several records, a block in each."""
        identity = str(record.get("uuid") or "")
        if identity in self._seen:
            return
        self._seen |= {identity} - {""}
        if record["type"] == ASSISTANT:
            self._take_answer(record)
        else:
            self.say_typed(joined_text(record["message"]["content"]), record)
            self._take_results(record)
            self._message = ""

    def take_attachment(self, record: Mapping[str, Any]) -> None:
        """Adds what was typed while the agent worked."""
        if given := _queued_command(record):
            is_typed = given.get("commandMode", _PROMPT) == _PROMPT and not given.get("isMeta")
            said = {**record, "origin": given.get("origin"), "isMeta": not is_typed}
            self.say_typed(joined_text(given.get("prompt")), said)

    def say_typed(self, text: str, record: Mapping[str, Any]) -> None:
        """Adds a text in the user's place as a turn of who wrote it; what the program wrote is left out."""
        at, identity = moment_of(record.get("timestamp")), str(record.get("uuid") or "")
        origin, typed = record.get("origin"), _typed_text(text).strip()
        kind = str(origin.get("kind")) if isinstance(origin, dict) else "human"
        if found := _FROM_AGENT.match(typed):
            self.found.say(CALLER, re.sub(_AGENTS_TAG, "", typed[found.end() :]), at, message_id=identity)
        elif not typed or kind in _BY_PROGRAM or record.get("promptSource") == "system" or _is_notice(text, record):
            self.found.leave_out(typed or text, at, message_id=identity)
        else:
            by_person = kind == "human" and not _ELEMENT.fullmatch(without_tags(text))
            self.found.say(self._person if by_person else CALLER, typed, at, message_id=identity)

    def _take_answer(self, record: Mapping[str, Any]) -> None:
        given, at = record["message"], moment_of(record.get("timestamp"))
        content, message, identity = given["content"], str(given.get("id") or ""), str(record.get("uuid") or "")
        text = joined_text(content)
        if any(record.get(mark) for mark in _NOT_SAID) or given.get("model") == "<synthetic>":
            self.found.leave_out(text, at, message_id=identity, role=ASSISTANT)
            return
        if text.strip() and message and message == self._message and self.found.latest == ASSISTANT:
            self.found.say_more(text)
        elif text.strip():
            self.found.say(ASSISTANT, text, at, message_id=identity)
        for block in content if isinstance(content, list) else ():
            if block["type"] == "tool_use":
                tool = ToolUse(name=str(block["name"]), input=dict(block["input"]))
                self.found.use(tool, call=str(block["id"]), at=at, message_id=identity)
        self._message = message

    def _take_results(self, record: Mapping[str, Any]) -> None:
        content = record["message"]["content"]
        for block in content if isinstance(content, list) else ():
            if block["type"] != "tool_result":
                continue
            text = _result_text(block.get("content"))
            self.found.answer(
                str(block["tool_use_id"]),
                text,
                failed=block.get("is_error") is True,
                symbols=_changed_parts(record.get("toolUseResult")),
            )
            if block.get("is_error") and (refused := _REFUSED.match(text)):
                self.say_typed(refused["said"], record)


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
    return without_tags(joined_text(content, separator="\n")).strip()


def _given_title(lines: Lines) -> str:
    """Returns the title that the log gives the session: the last one."""
    given: Sequence[object] = [
        value.get(name)
        for value in lines.read.values()
        for kind, name in (("summary", "summary"), ("ai-title", "aiTitle"), ("custom-title", "customTitle"))
        if value.get("type") == kind
    ]
    return next((title for title in reversed(given) if isinstance(title, str) and title.strip()), "")
