"""Reads logs as the tests compare them: who said what."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.intake.sessions.formats.detect import read_log
from app.intake.sessions.transcript import Log, Transcript


def log_of(content: str | bytes, suffix: str = ".jsonl", path: str = "/logs/a") -> Log:
    """Returns a file's log, which it must be."""
    found = read_log(content if isinstance(content, bytes) else content.encode(), suffix=suffix, session_id=path)
    assert found is not None
    return found


def log_of_records(records: Sequence[Mapping[str, Any]], path: str = "/logs/a.jsonl") -> Log:
    """Returns the log of these records, one a line."""
    return log_of("\n".join(map(json.dumps, records)) + "\n", path=path)


def log_at(path: Path) -> Log:
    """Returns the log that a file is."""
    return log_of(path.read_bytes(), path.suffix, str(path))


def said(transcript: Transcript) -> list[tuple[str, str]]:
    """Returns the role and the text of each turn."""
    return [(turn.role, turn.text) for turn in transcript.turns]


def only(log: Log) -> Transcript:
    """Returns the one session of a log."""
    (transcript,) = log.transcripts
    return transcript
