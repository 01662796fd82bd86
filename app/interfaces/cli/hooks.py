"""Answers the hooks of coding programs, by the running service. Whatever fails, the user's work goes on.

A prompt and each act of an agent wait for this process. It imports some of Python's own library and nothing else:
40 ms of a core, Python's own start included. The client and the settings would take 400, Python's HTTP client 20.
"""

import json
import os
import re
import socket
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from app.errors import ConfigurationError
from app.interfaces.cli.projects import Project, own_data_dir, project_of, recorded_url

DEFAULTS = {"WORKSPACE": "default", "DATA_DIR": ".priors", "HOST": "127.0.0.1", "PORT": "8000"}
"""Values of settings that are not in the environment, as `app.settings` has them."""
_OPTIONS = {"--url": "url", "--key": "key", "--workspace": "workspace", "-w": "workspace", "--agent": "agent"}
WAIT_SECONDS, TOOL_SECONDS = 5.0, 1.0
"""Longest waits for the service, while a person waits for the prompt to begin, and before each act of an agent."""
_REFUSED = 400
PROMPT_BUDGET, TOOL_BUDGET = 800, 200
"""Tokens of history and lessons for a prompt, and of lessons before an act."""
_START_BYTES = 480
"""Bytes of what a session starts with, so that it has at most 200 tokens: English has one in four or five bytes, and
Russian mixed with Chinese, the densest of the tests, 0.38 in a byte with the bundled tokenizer."""
_TELLING = re.compile(r"[^\W\d_]{4,}|[^\x00-\x7f]+")
"""A word that may say what a prompt is about: “yes, go on” has none."""
_COURTESY = """
again agreed also alright awesome continue cool correct done excellent fine going good great hello just keep like
looks more most much next nice okay perfect please proceed really right ship sorry sounds sure thank thanks that
then there this very well what with work works yeah
"""
"""Words of four letters and more in prompts that are about nothing, such as “thanks, that looks good”."""
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
"""A file in a patch of Codex."""
PLAN_CHARACTERS, CONTENT_CHARACTERS = 2_000, 400
"""Most characters of an act that is asked about, and of what it writes into a file."""
_AGENT = "claude-code"
"""The program whose hooks are answered, unless it names itself."""
_STANDING = "/api/cues?kind=decision&kind=preference&state=active&limit=50"
_STANDING_HEADING = "## Standing decisions and preferences of this project"
_ASK = """Before you stop, once in this session: has it taught something that a later run must know? If so, call the \
tool `learn` of priors, at most three times, with session {session}, and the user's own words as `quote` where he said \
it. If not, just stop; do not mention this."""
_CURSOR_START = "sessionStart"
"""The start of a session of Cursor, whose answer has a form of its own."""
_NOTE_BYTES = 120
"""Bytes of a session's id that name its note: a file's name has at most 255. Ids are UUIDs of 36."""
_NOTED_DAYS = 30
"""Days after which it is forgotten what a session was asked and told."""

Event = Mapping[str, Any]


class Destination(NamedTuple):
    """The service, its key, the workspace, and who asks."""

    url: str
    key: str
    workspace: str
    agent: str = _AGENT

    def ask(self, path: str, body: Mapping[str, Any] | None = None, *, until: float | None = None) -> Any:  # noqa: ANN401 - the answer of any route
        """Returns the answer of the service: to a POST if there is a body, else to a GET.

        It waits until that time of the monotonic clock, else for WAIT_SECONDS.

        Raises:
            OSError: it cannot be reached.
            ValueError: it refuses, or the URL is none.
        """
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"{self.url} does not begin with http:// or https://")
        headers = {"host": parts.netloc, "x-workspace": self.workspace, "content-type": "application/json"}
        if self.key:
            headers["authorization"] = f"Bearer {self.key}"
        sent = b"" if body is None else json.dumps(body).encode()
        headers["content-length"] = str(len(sent))
        # Of HTTP 1.0, so that the answer ends with the connection and comes in one piece.
        first = f"{'GET' if body is None else 'POST'} {parts.path.rstrip('/')}{path} HTTP/1.0"
        head = "\r\n".join([first, *(f"{name}: {value}" for name, value in headers.items()), "", ""])
        until = time.monotonic() + WAIT_SECONDS if until is None else until
        try:
            answered = _exchange(parts, head.encode() + sent, until)
        except OSError as error:
            raise type(error)(f"no answer came from {self.url}: {error.strerror or error}") from error
        return _json_of(self.url, answered)


def _exchange(parts: SplitResult, request: bytes, until: float) -> bytes:
    """Sends a request and returns everything that comes back; a service that is slow at each step is not waited for."""
    is_secure = parts.scheme == "https"
    host, port = parts.hostname or "", parts.port or (443 if is_secure else 80)
    with _connection(host, port, until) as connection:
        if is_secure:
            from ssl import create_default_context  # noqa: PLC0415 - 10 ms, and most services are on this machine

            connection = create_default_context().wrap_socket(connection, server_hostname=host)  # noqa: PLW2901 - the same connection
        connection.settimeout(_seconds_left(until))
        connection.sendall(request)
        pieces = []
        while piece := connection.recv(65_536):
            pieces.append(piece)
            connection.settimeout(_seconds_left(until))
    return b"".join(pieces)


def _connection(host: str, port: int, until: float) -> socket.socket:
    """Returns a connection to the first address of a host that takes one."""
    refused: OSError = TimeoutError(f"{host} has no address")
    for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        try:
            return socket.create_connection((str(address[0]), port), _seconds_left(until))
        except OSError as error:
            refused = error
    raise refused


def _seconds_left(until: float) -> float:
    if (left := until - time.monotonic()) <= 0:
        raise TimeoutError("the service did not answer in time")
    return left


def _json_of(url: str, answer: bytes) -> Any:  # noqa: ANN401 - the answer of any route
    head, _, body = answer.partition(b"\r\n\r\n")
    version, _, status = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
    if not version.startswith("HTTP/"):
        raise ValueError(f"{url} does not answer as a service does")
    if int(status[:3]) >= _REFUSED:
        raise ValueError(f"the service at {url} refuses: {_reason(body) or status}")
    return json.loads(body)


def _reason(body: bytes) -> str:
    """Returns the detail of a problem document; "" for any other body, such as a proxy's."""
    try:
        return str(json.loads(body)["detail"])
    except (ValueError, KeyError, TypeError):
        return ""


def place_of(words: Sequence[str]) -> Destination | None:
    """Returns the place that a hook's options and the environment name; None if one of them is another option."""
    given = dict(zip(words[::2], words[1::2], strict=False))
    if len(words) % 2 or not given.keys() <= _OPTIONS.keys():
        return None
    named = {_OPTIONS[option]: value for option, value in given.items()}
    project = project_here()
    url = named.get("url") or os.environ.get("PRIORS_URL") or _service_of(project)
    workspace = named.get("workspace") or os.environ.get("PRIORS_WORKSPACE") or (project and project.workspace)
    key = named.get("key") or _setting("API_KEY")
    return Destination(url, key, workspace or _setting("WORKSPACE"), named.get("agent") or _AGENT)


def _setting(name: str) -> str:
    return os.environ.get(f"PRIORS_{name}") or DEFAULTS.get(name, "")


def project_here() -> Project | None:
    """Returns the connected project that this process works for. Standard error says why its record cannot be read."""
    try:
        return project_of()
    except ConfigurationError as error:
        print(f"priors hook: {error}", file=sys.stderr)
        return None


def _service_of(project: Project | None) -> str:
    """Returns the URL of a service: of the data directory in the environment, the project, the folder, or the user.

    Asking it tells whether it runs.
    """
    named = os.environ.get("PRIORS_DATA_DIR", "")
    found = recorded_url(named)
    if not named:
        found = project.service() if project else ""
        found = found or recorded_url(DEFAULTS["DATA_DIR"]) or recorded_url(str(own_data_dir()))
    return found or f"http://{_setting('HOST')}:{_setting('PORT')}"


def answer(place: Destination) -> None:
    """Answers the event on standard input. It never raises: the reason of a failure goes to standard error."""
    try:
        event = json.load(sys.stdin)
        _EVENTS.get(event["hook_event_name"], _refuse)(place, event)
    except KeyError as error:
        print(f"priors hook: the event has no {error}", file=sys.stderr)
    except Exception as error:  # noqa: BLE001 - the event is another program's, and may have any form
        print(f"priors hook: {error}", file=sys.stderr)


def _tell(event: Event, text: str) -> None:
    """Prints a text as context for the model."""
    name = event["hook_event_name"]
    context = {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}
    print(json.dumps({"additional_context": text} if name == _CURSOR_START else context))


def _refuse(_place: Destination, event: Event) -> None:
    raise ValueError(f"answers {', '.join(_EVENTS)}, and not {event['hook_event_name']}")


def _start(place: Destination, event: Event) -> None:
    """Tells the standing decisions and preferences of persons, newest first; a resumed session has them already."""
    if event.get("source") == "resume":
        return
    now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    lines = [
        f"- {' '.join(cue['lesson'].split())}"
        for cue in place.ask(_STANDING)["cues"]
        if cue["trust"] == "person" and "starter" not in cue["tags"] and (cue["valid_until"] or now) >= now
    ]
    if text := _within(lines, _START_BYTES - len(_STANDING_HEADING) - 2):
        _tell(event, f"{_STANDING_HEADING}\n\n{text}")


def _within(lines: Iterable[str], room: int) -> str:
    """Returns as many of the lines as have room, a number of bytes; one that is too long is left out."""
    kept: list[str] = []
    for line in dict.fromkeys(lines):
        size = len(line.encode()) + 1
        if size <= room:
            room -= size
            kept.append(line)
    return "\n".join(kept)


def _prompt(place: Destination, event: Event) -> None:
    """Tells history and lessons for a prompt. A command of the client and small talk get none."""
    prompt = event["prompt"]
    if prompt.startswith("/") or _is_small_talk(prompt):
        return
    asked = {"query": prompt, "activate": True, "budget_tokens": PROMPT_BUDGET}
    found = place.ask("/api/history", {**asked, "agent": place.agent, "run_id": event["session_id"]})
    if found["markdown"]:
        _tell(event, found["markdown"])


def _is_small_talk(prompt: str) -> bool:
    return set(_COURTESY.split()).issuperset(_TELLING.findall(prompt.lower()))


def _before_tool(place: Destination, event: Event) -> None:
    """Tells what was learnt about an act, unless the session was told all of it before.

    It asks without a trace in the log. Only what is told is logged and counts for its cues, and nobody waits for that.
    """
    asked = {**_act(event), "agent": place.agent, "run_id": event["session_id"], "budget_tokens": TOOL_BUDGET}
    found = place.ask("/api/activate", {**asked, "trial": True}, until=time.monotonic() + TOOL_SECONDS)
    if not found["cues"]:
        return
    noted = _note("told", event["session_id"])
    known = noted.read_text(encoding="utf-8").split() if noted.exists() else []
    new = [cue["id"] for cue in found["cues"] if cue["id"] not in known]
    if new:
        _write(noted, "\n".join([*known, *new]))
        _tell(event, found["markdown"])
        if _is_left_behind():
            place.ask("/api/activate", asked)


def _act(event: Event) -> dict[str, Any]:
    """Returns the plan of a call of a tool, and the files that it touches."""
    given, cwd = event["tool_input"], f"{event.get('cwd', '')}/"
    command = given.get("command") or ""
    path = given.get("file_path") or given.get("notebook_path")
    names = [name.removeprefix(cwd) for name in ([path] if path else _PATCHED.findall(command))]
    if not names:
        words = (given.get("description"), command)
        return {"plan": "\n".join(filter(None, words))[:PLAN_CHARACTERS] or event["tool_name"]}
    added = "\n".join(line[1:] for line in command.splitlines() if line.startswith("+"))
    content = given.get("new_string") or given.get("content") or given.get("new_source") or added
    return {"plan": f"{event['tool_name']} {' '.join(names)}\n{content[:CONTENT_CHARACTERS]}", "files": names}


def _stop(place: Destination, event: Event) -> None:
    """Asks the agent for lessons, once in a session, after its turns are stored: a quote of them is looked up there.

    An agent that goes on because it was asked is left alone, and so is a session with a single prompt.
    """
    session_id = event["session_id"]
    noted = _note("asked", session_id)
    if event.get("stop_hook_active") or noted.exists():
        return
    # dateparser and the client: see the module. The agent has stopped, and nobody waits.
    from app.interfaces.cli.sessions_and_cases import LEAST_PROMPTS, store_transcript  # noqa: PLC0415 - the same

    log = Path(event["transcript_path"])
    if store_transcript(place, log, session_id, least_prompts=LEAST_PROMPTS):
        _write(noted, "")
        print(json.dumps({"decision": "block", "reason": _ASK.format(session=session_id)}))


def _note(folder: str, session_id: str) -> Path:
    """Returns the path of this user's note of a session, and removes old notes.

    Its name is the session's id in hexadecimal, so that no id leads to another folder. A hash would load OpenSSL: 5 ms.
    """
    place = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "priors" / folder
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    oldest = time.time() - _NOTED_DAYS * 86_400
    for note in place.iterdir():
        if note.stat().st_mtime < oldest:
            note.unlink(missing_ok=True)
    return place / session_id.encode()[:_NOTE_BYTES].hex()


def _write(noted: Path, text: str) -> None:
    noted.touch(mode=0o600)
    noted.write_text(text, encoding="utf-8")


def _session_end(place: Destination, event: Event) -> None:
    """Stores the transcript of a session, in a process of its own: the client does not wait until that is done."""
    log, session_id = Path(event["transcript_path"]), event["session_id"]
    log.open("rb").close()
    if _is_left_behind():
        # dateparser and the client: see the module. The client has ended, and nobody waits.
        from app.interfaces.cli.sessions_and_cases import store_transcript  # noqa: PLC0415 - the same

        store_transcript(place, log, session_id)


def _is_left_behind() -> bool:
    """Starts a copy of this process that goes on without its streams, and returns whether this is the copy."""
    sys.stdout.flush()
    if os.fork():
        return False
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    return True


_EVENTS: Mapping[str, Callable[[Destination, Event], None]] = {
    "SessionStart": _start,
    _CURSOR_START: _start,
    "UserPromptSubmit": _prompt,
    "BeforeAgent": _prompt,
    "PreToolUse": _before_tool,
    "Stop": _stop,
    "SessionEnd": _session_end,
}
