"""`hook`: answers the hooks of Claude Code, by the running service. Whatever fails, the user's work goes on."""

import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.running import WorkspaceOption
from app.errors import PriorsError
from app.settings import Settings, from_environment

commands = typer.Typer()

PROMPT_SECONDS = 5.0
"""Longest wait for the service while a person waits for the prompt to begin."""
SESSION_SECONDS = 60.0
"""Longest wait for the service to store a session: nobody waits for it."""
BUDGET = 800
"""Tokens of history and lessons for a prompt."""
AGENT = "claude-code"
LEAST_PROMPTS = 2
"""Prompts of a person from which a session is asked for lessons: a correction is at the earliest the second."""
ASK = """Before you stop, once in this session: has it taught something that a later run must know? If so, call the \
tool `learn` of priors, at most three times, with session {session}, and the user's own words as `quote` where he said \
it. If not, just stop; do not mention this."""
ASKED_DAYS = 30
"""Days after which it is forgotten that a session was asked."""

Event = Mapping[str, Any]
UrlOption = Annotated[
    str, typer.Option("--url", help="The service; without it, the one of PRIORS_HOST and PRIORS_PORT.")
]


@dataclass(frozen=True, slots=True)
class _Service:
    """A running service, in a workspace."""

    url: str
    settings: Settings
    workspace: str | None

    def post(self, path: str, body: Mapping[str, Any], seconds: float) -> Any:  # noqa: ANN401 - any JSON
        """Returns the answer to a request.

        Raises:
            OSError: the service does not answer, or refuses.
        """
        headers = {"content-type": "application/json", "x-workspace": self.workspace or self.settings.workspace}
        if self.settings.api_key:
            headers["authorization"] = f"Bearer {self.settings.api_key}"
        request = urllib.request.Request(f"{self.url}{path}", json.dumps(body).encode(), headers)  # noqa: S310 - a person named it
        with urllib.request.urlopen(request, timeout=seconds) as answer:  # noqa: S310 - the same
            return json.load(answer)


@commands.command()
def hook(*, url: UrlOption = "", workspace: WorkspaceOption = None) -> None:
    """Answer an event of Claude Code's hooks, which comes on standard input, by the running service.

    Changes: the end of a session stores its transcript, and so does an agent's stop, which also notes that the session
    was asked for lessons; a prompt changes nothing but the log of recalls. The exit code is 0 whatever happens, so
    that no prompt is ever held up; the reason is on standard error.
    """
    try:
        settings = from_environment()
        service = _Service(url.rstrip("/") or f"http://{settings.host}:{settings.port}", settings, workspace)
        event = json.load(sys.stdin)
        EVENTS.get(event["hook_event_name"], _unknown)(service, event)
    except KeyError as error:
        typer.echo(f"priors hook: the event has no {error}", err=True)
    except (OSError, ValueError, TypeError, PriorsError) as error:
        typer.echo(f"priors hook: {error}", err=True)


def _prompt(service: _Service, event: Event) -> None:
    """Prints history and lessons for a prompt, as context for the model. A command of the client itself gets none."""
    prompt = event["prompt"]
    if not prompt.strip() or prompt.startswith("/"):
        return
    asked = {"query": prompt, "activate": True, "budget_tokens": BUDGET, "agent": AGENT, "run_id": event["session_id"]}
    found = service.post("/api/history", asked, PROMPT_SECONDS)
    if found["markdown"]:
        context = {"hookEventName": event["hook_event_name"], "additionalContext": found["markdown"]}
        typer.echo(json.dumps({"hookSpecificOutput": context}))


def _unknown(_service: _Service, event: Event) -> None:
    raise ValueError(f"answers {', '.join(EVENTS)}, and not {event['hook_event_name']}")


def _stop(service: _Service, event: Event) -> None:
    """Asks the agent for lessons, once in a session, after its turns are stored: a quote of them is looked up there.

    An agent that goes on because it was asked is left alone, and so is a session with a single prompt.
    """
    session_id = event["session_id"]
    noted = _asked_folder() / sha256(session_id.encode()).hexdigest()
    if event.get("stop_hook_active") or noted.exists():
        return
    found = _sessions(Path(event["transcript_path"]), session_id)
    if sum(turn["role"] == "user" for session in found for turn in session["messages"]) < LEAST_PROMPTS:
        return
    for session in found:
        service.post("/api/sessions?wait=stored", session, PROMPT_SECONDS)
    noted.touch(mode=0o600)
    typer.echo(json.dumps({"decision": "block", "reason": ASK.format(session=session_id)}))


def _asked_folder() -> Path:
    """Returns the folder of this user's notes of asked sessions, without the old ones."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "priors" / "asked"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    oldest = time.time() - ASKED_DAYS * 86_400
    for note in folder.iterdir():
        if note.stat().st_mtime < oldest:
            note.unlink(missing_ok=True)
    return folder


def _session_end(service: _Service, event: Event) -> None:
    """Stores the transcript of a session, in a process of its own: the client does not wait until that is done."""
    log, session_id = Path(event["transcript_path"]), event["session_id"]
    log.open("rb").close()
    if os.fork():
        return
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    for session in _sessions(log, session_id):
        service.post("/api/sessions", session, SESSION_SECONDS)


def _sessions(log: Path, session_id: str) -> list[dict[str, Any]]:
    """Returns the sessions of a log as `POST /api/sessions` takes them.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no log of a session.
    """
    # msgspec and dateparser: see `app.cli`.
    import msgspec  # noqa: PLC0415

    from app.intake.sessions.formats import read_log  # noqa: PLC0415 - the same

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
                {name: value for name, value in msgspec.to_builtins(turn).items() if name in SENT}
                for turn in transcript.turns
            ],
        }
        for transcript in found.transcripts
    ]


SENT = ("role", "text", "at", "tools")
"""The fields of a turn that a session over HTTP has."""
EVENTS: Mapping[str, Callable[[_Service, Event], None]] = {
    "UserPromptSubmit": _prompt,
    "Stop": _stop,
    "SessionEnd": _session_end,
}
