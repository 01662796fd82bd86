"""Stores the transcript of a client's session, as the client keeps it, by the running service."""

from pathlib import Path
from typing import Any

import msgspec
from priors_client import PriorsError as ClientError

from app.errors import PriorsError
from app.intake.sessions.formats import read_log
from app.interfaces.cli.hooks import Destination
from app.interfaces.cli.service import client_of

_SECONDS = 60.0
"""Longest wait for the service to store a session."""
LEAST_PROMPTS = 2
"""Prompts of a person from which a session is asked for lessons: a correction is at the earliest the second."""
_SENT = ("role", "text", "at", "tools")
"""The fields of a turn that a session over HTTP has."""


def store_transcript(place: Destination, log: Path, session_id: str, *, least_prompts: int = 0) -> bool:
    """Stores the sessions of a log; returns False for one with fewer prompts of a person, which is left alone.

    Raises:
        OSError: the file cannot be read, or the service cannot be asked.
        ValueError: it is no log of a session.
    """
    found = _sessions(log, session_id)
    if sum(turn["role"] == "user" for session in found for turn in session["messages"]) < least_prompts:
        return False
    try:
        with client_of(place.url, place.key, place.workspace, _SECONDS, retries=0) as client:
            for session in found:
                client.store_session(**session)
    except (PriorsError, ClientError) as error:
        raise OSError(str(error)) from error
    return True


def _sessions(log: Path, session_id: str) -> list[dict[str, Any]]:
    found = read_log(log.read_bytes(), suffix=log.suffix, session_id=session_id)
    if found is None:
        raise ValueError(f"{log} is no log of a session")
    return [
        {
            "id": transcript.session_id,
            "title": transcript.title,
            "folder": transcript.folder,
            "started_at": msgspec.to_builtins(transcript.started_at),
            "messages": [
                {name: value for name, value in msgspec.to_builtins(turn).items() if name in _SENT}
                for turn in transcript.turns
            ],
        }
        for transcript in found.transcripts
    ]
