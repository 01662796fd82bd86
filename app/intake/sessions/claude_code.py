"""Reads a transcript of Claude Code: JSON lines of records, each with a message of content blocks. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from app.foundation.text.scores import moment_of
from app.foundation.text.speech import without_tags
from app.intake.sessions.artifacts import changed_symbols
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

_SPEAKERS = (USER, ASSISTANT)
_COMMAND = re.compile(
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
    found = Turns()
    skipped, seen, message = list(lines.skipped), set[str](), ""
    for number, value in (main or records).items():
        identity = value.get("uuid")
        if (isinstance(identity, str) and identity in seen) or any(value.get(mark) for mark in _NOT_SAID):
            continue
        seen.add(str(identity))
        try:
            message = _take(found, value, message)
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            skipped.append(f"line {number}: is a record of another form ({type(error).__name__}: {error})")
    turns = found.storable_turns()
    return Log(
        transcripts=(
            Transcript(
                session_id=str(first.get("sessionId") or session_id) + ("" if main else f"/{first.get('agentId', '')}"),
                title=_summary(lines) or title_of(turns),
                started_at=next((turn.at for turn in turns if turn.at is not None), None),
                format="claude-code",
                turns=turns,
                folder=str(first.get("cwd") or ""),
            ),
        ),
        skipped=reasons_shown(skipped),
    )


def _take(found: Turns, record: Mapping[str, Any], message: str) -> str:
    """Adds a record's message; returns its id. One message may stand in several records, a block in each."""
    role, given, at = record["type"], record["message"], moment_of(record.get("timestamp"))
    content, identity = given["content"], str(given.get("id") or "")
    text = "\n\n".join(texts_of(content, ("text",)))
    text = _typed_text(text) if role == USER else text
    if text.strip():
        if role == ASSISTANT and identity and identity == message and found.latest == ASSISTANT:
            found.say_more(text)
        else:
            found.say(role, text, at)
    for block in content if isinstance(content, list) else ():
        if block["type"] == "tool_use":
            tool = ToolUse(name=str(block["name"]), input=dict(block["input"]))
            found.use(tool, call=str(block["id"]), at=at)
        elif block["type"] == "tool_result":
            found.answer(
                str(block["tool_use_id"]),
                _result(block.get("content")),
                failed=block.get("is_error") is True,
                symbols=_changed_parts(record.get("toolUseResult")),
            )
    return identity


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
    text = _COMMAND.sub(lambda match: f"{match[1]} {match[2] or ''}".strip(), text)
    return _SHELL.sub(lambda match: f"! {match[1]}", text)


def _result(content: object) -> str:
    return without_tags("\n".join(texts_of(content, ("text",)))).strip()


def _summary(lines: Lines) -> str:
    """Returns the title that the log gives the session: the last one."""
    given: Sequence[object] = [
        value.get(name)
        for value in lines.read.values()
        for kind, name in (("summary", "summary"), ("ai-title", "aiTitle"), ("custom-title", "customTitle"))
        if value.get("type") == kind
    ]
    return next((title for title in reversed(given) if isinstance(title, str) and title.strip()), "")
