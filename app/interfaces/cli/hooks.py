"""Answers the hooks of coding programs, by the running service. Whatever fails, the user's work goes on.

A prompt and each act of an agent wait for this process, so it imports as little of Python's own library as it can: 18
ms of a core, Python's own start of 10 included. `typing` would take 4, `pathlib` 4, `socket` 3, Python's HTTP client
20, the client and the settings 400.
"""

from __future__ import annotations

import _socket
import json
import os
import re
import sys
import time
from collections import namedtuple

from app.errors import ConfigurationError
from app.interfaces.cli.projects import (
    Project,
    own_data_dir,
    project_of,
    recorded_url,
    state_folder,
    take_lock,
    write_whole,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, TypeAlias

    Event: TypeAlias = dict[str, Any]

DEFAULTS = {"WORKSPACE": "default", "DATA_DIR": ".priors", "HOST": "127.0.0.1", "PORT": "8000"}
"""Values of settings that are not in the environment, as `app.settings` has them."""
NO_LESSONS = "--no-lessons"
"""The option by which an agent's stop is no occasion to ask for lessons."""
_OPTIONS = {"--url": "url", "--key": "key", "--workspace": "workspace", "-w": "workspace", "--agent": "agent"}
WAIT_SECONDS, TOOL_SECONDS = 5.0, 1.0
"""Longest waits for the service in all: while a person waits for a prompt to begin, and before each act of an agent."""
REFUSED = 400
"""The first status of an answer that is an error."""
PROMPT_BUDGET, TOOL_BUDGET = 800, 200
"""Tokens of history and lessons for a prompt, and of lessons before an act."""
_START_BYTES = 480
"""Bytes of what a session starts with, so that it has at most 200 tokens: English has one in four or five bytes, and
Russian mixed with Chinese, the densest of the tests, 0.38 in a byte with the bundled tokenizer."""
INSERTED = """
system-reminder local-command-stdout local-command-stderr local-command-caveat bash-stdout bash-stderr ide_opened_file
ide_selection ide_diagnostics user-prompt-submit-hook task-notification command-message command-contents
environment_context user_instructions permissions turn_aborted INSTRUCTIONS
"""
"""Tags of what programs put into a prompt, as `app.foundation.text.prose` has them: nobody typed it."""
_COMMAND = re.compile(r"/[\w:.-]+")
"""A command of a program or of a project. A path has a second slash, or more words follow."""
_OWN_COMMANDS = """
add-dir agents approvals chat clear color compact config copy cost effort export fast help hooks login mcp memory model
new output-style permissions plugin rename resume rewind settings statusline tag theme
"""
"""Commands that are about the program itself, whatever words follow them."""
_COURTESIES = """
a again agreed ahead all alright also am an and are as at awesome bad be been both but by bye can cheers continue cool
correct could d did do does doesn don done either else everything excellent fine first for from go going good got
great had haha has have hello here hey hi hm hmm how i if in is it its job just k keep let lgtm like ll looks m made
make makes me mind mine more most much my never next nice no nope not nothing now of off oh ok okay on one oops or
other our out perfect please pls problem proceed re ready really right s second see sense ship should so something
sorry sounds such sure t ta take thank thanks that the them then there these they third this those thx till time to
too try ty up us ve very wait want was we well were what when which will with work works would wow yeah yep yes yet
you your yup
danke ja nein bitte weiter merci oui non gracias sí si да нет спасибо дальше 好 好的 谢谢 继续 是 はい ありがとう
"""
"""Words of prompts that are about nothing, such as “thanks, that looks good”."""
PROMPT_CHARACTERS = 20_000
"""Most characters of a prompt that is asked about: its beginning and its end, where the question stands."""
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
"""A file in a patch of Codex."""
PLAN_CHARACTERS, CONTENT_CHARACTERS = 2_000, 400
"""Most characters of an act that is asked about, and of what it writes into a file."""
MOST_FILES, PATH_CHARACTERS, NAME_CHARACTERS = 100, 1_000, 200
"""Most files of an act, and most characters of the path of each and of a name, as the service takes them."""
_SPOKEN = re.compile(r'"user(?:_?message)?"', re.IGNORECASE)
"""A sign of a prompt in the JSON of all programs. Without one nobody has said anything yet, and there is no session."""
_SPAWNING = frozenset({"Task", "Agent"})
"""The tools that start a sub-agent."""
LEAST_PROMPTS = 2
"""Prompts of a person from which a session is asked for lessons: a correction is at the earliest the second."""
STORE_SECONDS = 600.0
"""Longest wait of a background copy for the service to store a session."""
_PAUSES = (2.0, 10.0, 30.0, 60.0, 0.0)
"""Seconds before a background copy tries again; after the last one it gives up."""
_LATE = "told late"
"""The field of an event for what its context was not told before."""
_WEEK_SECONDS = 7 * 86_400
_PROMPTS = ("UserPromptSubmit", "BeforeAgent")
"""The events of a prompt: of Claude Code and Codex, and of Gemini CLI."""
_AGENT = "claude-code"
"""The program whose hooks are answered, unless it names itself."""
_STANDING = "/api/cues?kind=decision&kind=preference&kind=correction&state=active&limit=200"
_STANDING_HEADING = "## Standing decisions, preferences and corrections of this project"
_SURE = 0.7
"""Probability from which a lesson surely applies. Of the plans of lessons-dev whose likeliest lesson has more, 0.9 are
right."""
_ASK = """Before you stop, once in this session: has it taught something that a later run must know? If so, call the \
tool `learn` of priors, at most three times, with session {session}, and the user's own words as `quote` where he said \
it. If not, just stop; do not mention this."""
_CURSOR_START = "sessionStart"
"""The start of a session of Cursor, whose answer has a form of its own."""
_NOTE_BYTES = 120
"""Bytes of a session's id that name its note: a file's name has at most 255. Ids are UUIDs of 36."""
_NOTED_DAYS = 30
"""Days after which it is forgotten what a session was asked and told."""


class Destination(
    namedtuple("Destination", "url key workspace agent data_dir lessons until", defaults=(_AGENT, "", True, 0.0))
):
    """The service, its key, the workspace, who asks, the data directory of a service on this machine, and whether an
    agent that stops is asked for lessons."""

    url: str
    key: str
    workspace: str
    agent: str
    data_dir: str
    lessons: bool
    until: float
    """The end of the wait for all answers of an event, by the monotonic clock; 0: each may take WAIT_SECONDS."""

    def ask(self, path: str, body: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401 - the answer of any route
        """Returns the answer of the service: to a POST if there is a body, else to a GET.

        Raises:
            OSError: it cannot be reached.
            ValueError: it refuses, or the URL is none.
        """
        sent = b"" if body is None else json.dumps(body).encode()
        until = self.until or time.monotonic() + WAIT_SECONDS
        status, answer = self.exchange("GET" if body is None else "POST", path, sent, {}, until)
        if status >= REFUSED:
            raise ValueError(f"the service at {self.url} refuses: {_reason(answer) or status}")
        return json.loads(answer)

    def exchange(
        self, method: str, path: str, sent: bytes, headers: Mapping[str, str], until: float
    ) -> tuple[int, bytes]:
        """Returns the status and the body of the answer to a request.

        Raises:
            OSError: the answer is not whole at that time of the monotonic clock.
            ValueError: the URL is none, or what answers is no service.
        """
        match = _URL.fullmatch(self.url)
        if match is None:
            raise ValueError(f"{self.url} is no URL of a service, which begins with http:// or https://")
        own = {"host": match["netloc"], "x-workspace": self.workspace, "content-type": "application/json"}
        if self.key:
            own["authorization"] = f"Bearer {self.key}"
        own["content-length"] = str(len(sent))
        # Of HTTP 1.0, so that the answer ends with the connection and comes in one piece.
        first = f"{method} {(match['path'] or '').rstrip('/')}{path} HTTP/1.0"
        head = "\r\n".join([first, *(f"{name}: {value}" for name, value in {**own, **headers}.items()), "", ""])
        try:
            answered = _exchange(match, head.encode() + sent, until)
        except OSError as error:
            raise type(error)(f"no answer came from {self.url}: {error.strerror or error}") from error
        shown, _, body = answered.partition(b"\r\n\r\n")
        version, _, status = shown.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        if not version.startswith("HTTP/"):
            raise ValueError(f"{self.url} does not answer as a service does")
        return int(status[:3]), body


_URL = re.compile(
    r"(?P<scheme>https?)://(?:[^/?#@]*@)?(?P<netloc>(?:\[(?P<six>[^\]]+)\]|(?P<host>[^/?#:@\[]+))(?::(?P<port>\d+))?)"
    r"(?P<path>/[^?#]*)?",
    re.IGNORECASE,
)
"""An address of a service."""


def _exchange(url: re.Match[str], request: bytes, until: float) -> bytes:
    """Sends a request and returns everything that comes back; a service that is slow at each step is not waited for."""
    is_secure = url["scheme"].lower() == "https"
    host = url["six"] or url["host"]
    connection = _connection(host, int(url["port"] or (443 if is_secure else 80)), until)
    try:
        if is_secure:
            # 15 ms, and most services are on this machine.
            from socket import socket  # noqa: PLC0415
            from ssl import create_default_context  # noqa: PLC0415

            wrapped = socket(fileno=connection.detach())
            connection = create_default_context().wrap_socket(wrapped, server_hostname=host)
        connection.settimeout(_seconds_left(until))
        connection.sendall(request)
        pieces = []
        while piece := connection.recv(65_536):
            pieces.append(piece)
            connection.settimeout(_seconds_left(until))
    finally:
        connection.close()
    return b"".join(pieces)


def _connection(host: str, port: int, until: float) -> _socket.socket:
    """Returns a connection to the first address of a host that takes one."""
    refused: OSError = TimeoutError(f"{host} has no address")
    for family, kind, protocol, _, address in _socket.getaddrinfo(host, port, 0, _socket.SOCK_STREAM):
        connection = _socket.socket(family, kind, protocol)
        try:
            connection.settimeout(_seconds_left(until))
            connection.connect(address)
        except OSError as error:
            connection.close()
            refused = error
        else:
            return connection
    raise refused


def _seconds_left(until: float) -> float:
    if (left := until - time.monotonic()) <= 0:
        raise TimeoutError("the service did not answer in time")
    return left


def _reason(body: bytes) -> str:
    """Returns the detail of a problem document; "" for any other body, such as a proxy's."""
    try:
        return str(json.loads(body)["detail"])
    except (ValueError, KeyError, TypeError):
        return ""


def place_of(words: Sequence[str]) -> Destination | None:
    """Returns the place that a hook's options and the environment name; None if one of them is another option."""
    lessons, words = NO_LESSONS not in words, [word for word in words if word != NO_LESSONS]
    given = dict(zip(words[::2], words[1::2], strict=False))
    if len(words) % 2 or not given.keys() <= _OPTIONS.keys():
        return None
    named = {_OPTIONS[option]: value for option, value in given.items()}
    project = project_here()
    url = named.get("url") or os.environ.get("PRIORS_URL") or _service_of(project)
    workspace = named.get("workspace") or os.environ.get("PRIORS_WORKSPACE") or (project and project.workspace)
    key = named.get("key") or _setting("API_KEY")
    data_dir = os.environ.get("PRIORS_DATA_DIR") or (project.data_dir if project else "")
    agent = named.get("agent") or _AGENT
    return Destination(url, key, workspace or _setting("WORKSPACE"), agent, data_dir, lessons)


def _setting(name: str) -> str:
    return os.environ.get(f"PRIORS_{name}") or DEFAULTS.get(name, "")


def project_here() -> Project | None:
    """Returns the connected project that this process works for. Standard error says why its record cannot be read."""
    try:
        return project_of()
    except (ConfigurationError, OSError) as error:
        # An agent may have removed the working folder.
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
        found = found or recorded_url(DEFAULTS["DATA_DIR"]) or recorded_url(own_data_dir())
    return found or f"http://{_setting('HOST')}:{_setting('PORT')}"


def answer(place: Destination) -> None:
    """Answers the event on standard input. It never raises: the reason of a failure goes to standard error."""
    try:
        _answer(place, json.loads(sys.stdin.buffer.read()))
    except KeyError as error:
        print(f"priors hook: the event has no {error}", file=sys.stderr)
    except Exception as error:  # noqa: BLE001 - the event is another program's, and may have any form
        print(f"priors hook: {error}", file=sys.stderr)


def _answer(place: Destination, event: Event) -> None:
    """Answers an event within its time, however many questions that takes."""
    seconds = TOOL_SECONDS if event["hook_event_name"] == "PreToolUse" else WAIT_SECONDS
    place = place._replace(until=time.monotonic() + seconds)
    try:
        _answer_late(place, event)
        _EVENTS.get(event["hook_event_name"], _refuse)(place, event)
        # What is told late does not wait for something of the event itself.
        _tell(event, "")
    except ConnectionRefusedError as error:
        print(f"priors hook: {error}", file=sys.stderr)
        start_service(place)
        _note_late(event)


def start_service(place: Destination) -> None:
    """Starts the service of the connected project, unless another process does; it answers what comes next."""
    from pathlib import Path  # noqa: PLC0415 - a service is seldom started

    from app.interfaces.cli import failures, starting  # noqa: PLC0415 - the same

    if (project := _own_project(place)) is None:
        return
    try:
        starting.start(Path(project.data_dir), project.url)
    except (ConfigurationError, OSError) as error:
        print(f"priors hook: {error}", file=sys.stderr)
        failures.note("service", project.data_dir, str(error), project=project.root, data_dir=project.data_dir)


def _own_project(place: Destination) -> Project | None:
    """Returns the connected project whose service a place is, if that is on this machine."""
    project = project_here()
    return project if project and project.data_dir and place.url == project.service() else None


def _note_late(event: Event) -> None:
    """Notes what a context was not told because no service ran, until one answers."""
    if event["hook_event_name"] in {"SessionStart", *_PROMPTS} and event.get("source") != "resume":
        path = _note("late", _context_of(event))
        kept = {name: event[name] for name in ("session_id", "prompt") if name in event}
        write_whole(path, json.dumps([*json.loads(_read(path) or "[]"), kept]))


def _answer_late(place: Destination, event: Event) -> None:
    """Adds to an event what its context was not told while no service ran. A later prompt replaces an earlier one."""
    if event["hook_event_name"] not in {*_PROMPTS, "PreToolUse"} or "session_id" not in event:
        return
    path = _note("late", _context_of(event))
    if not (missed := json.loads(_read(path) or "[]")):
        return
    prompts = [item["prompt"] for item in missed if "prompt" in item]
    told = [_standing(place)] if any("prompt" not in item for item in missed) else []
    if prompts and event["hook_event_name"] == "PreToolUse":
        typed = _typed_text(prompts[-1])
        told += [_history(place, event, typed)] if _is_request(typed) else []
    _remove(path)
    event[_LATE] = "\n\n".join(filter(None, told))


def _tell(event: Event, text: str, notice: str = "") -> None:
    """Prints a text as context for the model, and a notice for the user, which the model sees too."""
    told = "\n\n".join(filter(None, (event.pop(_LATE, ""), text, notice)))
    if not told:
        return
    name = event["hook_event_name"]
    shown = {"systemMessage": notice} if notice else {}
    context = {"hookSpecificOutput": {"hookEventName": name, "additionalContext": told}, **shown}
    print(json.dumps({"additional_context": told} if name == _CURSOR_START else context))


def _refuse(_place: Destination, event: Event) -> None:
    raise ValueError(f"answers {', '.join(_EVENTS)}, and not {event['hook_event_name']}")


def _start(place: Destination, event: Event) -> None:
    """Tells what stands in this project, and what failed while nobody watched; a resumed session knows what stands.

    A new, a cleared and a compacted context were told nothing yet.
    """
    _remove_old_notes()
    failed, is_resumed = _failed_before(place), event.get("source") == "resume"
    if not is_resumed:
        _remove(_note("told", _context_of(event)))
    _in_background(lambda: _read_unread(place))
    try:
        standing = "" if is_resumed else _standing(place)
        failed = "\n".join(filter(None, (failed, week_line(place))))
    except (OSError, ValueError) as error:
        is_late = isinstance(error, ConnectionRefusedError) and _own_project(place) is not None
        reason = "Priors is started, and tells what it knows later" if is_late else f"Priors is not asked: {error}"
        _tell(event, "", "; ".join(filter(None, (reason, failed))))
        raise
    _tell(event, standing, failed)


def _read_unread(place: Destination) -> None:
    """Stores the logs of this project that no hook could store, because the machine or its service had stopped."""
    from app.interfaces.cli.unread import catch_up  # noqa: PLC0415 - nobody waits for it

    project = project_here()
    if project is not None and place.url == project.service():
        catch_up(project, place.key)


def week_line(place: Destination) -> str:
    """Returns a line on what memory did in the last seven days, once in as many; "" at other times."""
    noted = _note("week", place.workspace)
    if not os.path.exists(noted):
        write_whole(noted, "")
    if time.time() - _time_of(noted) < _WEEK_SECONDS:
        return ""
    week = place.ask("/api/status")["week"]
    write_whole(noted, "")
    return (
        f"Priors this week: {week['told']:,} lessons told ({week['heeded']:,} heeded, {week['ignored']:,} ignored),"
        f" {week['tokens']:,} tokens; {week['sessions']:,} sessions are stored in all;"
        f" {week['proposals'] + week['quarantined']:,} wait for your decision (`priors status`)"
    )


def _failed_before(place: Destination) -> str:
    """Returns a line on what could not be done since; "" if everything was. What was left out of a log is told once."""
    from app.interfaces.cli import failures  # noqa: PLC0415 - 8 ms, and a session starts once

    found = failures.failures(place.data_dir)
    for item in found:
        if item.what == failures.IN_PART:
            failures.clear(item.what, item.name, data_dir=place.data_dir)
    failed = failures.summary(found)
    return f"Priors: {failed}" if failed else ""


def _standing(place: Destination) -> str:
    """Returns the standing decisions, preferences and corrections of persons, those that are worth most first."""
    now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    standing = [
        cue
        for cue in place.ask(_STANDING)["cues"]
        if cue["trust"] == "person" and "starter" not in cue["tags"] and (cue["valid_until"] or now) >= now
    ]
    lines = [f"- {' '.join(cue['standing'].split())}" for cue in sorted(standing, key=_worth, reverse=True)]
    text = _within(lines, _START_BYTES - len(_STANDING_HEADING) - 2)
    return f"{_STANDING_HEADING}\n\n{text}" if text else ""


def _worth(cue: Mapping[str, Any]) -> tuple[float, str]:
    """Returns what a cue is worth before anybody knows the first act, and its moment: the newer of two comes first.

    A wish holds for every act, a correction or a decision for acts of its own, unless its mistake is a severe one.
    """
    confirmed = len(cue["seen_on"]) + cue["heeded"] - cue["ignored"] + cue["quality"]
    return (cue["kind"] == "preference") + cue["consequence"] + 0.3 * confirmed, cue["valid_from"]


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
    """Tells history and lessons for a prompt."""
    typed = _typed_text(event["prompt"])
    if _is_request(typed):
        _tell(event, _history(place, event, typed))


def _history(place: Destination, event: Event, text: str) -> str:
    """Returns history and lessons for a text."""
    asked = {"query": _ends_of(text), "activate": True, "budget_tokens": PROMPT_BUDGET, **_asker(place, event)}
    found = place.ask("/api/history", asked)
    markdown: str = found["markdown"]
    if "session_id" in event:
        _note_told(event, (found.get("activation") or {}).get("cues", ()))
    return markdown


def _asker(place: Destination, event: Event) -> Mapping[str, str]:
    return {"agent": place.agent[:NAME_CHARACTERS], "run_id": event["session_id"][:NAME_CHARACTERS]}


def _typed_text(prompt: str) -> str:
    """Returns a prompt without what a program put into it."""
    for tag in INSERTED.split() if "</" in prompt else ():
        prompt = re.sub(rf"<{tag}>.*?</{tag}>", "", prompt, flags=re.DOTALL)
    return prompt.strip()


def _is_request(prompt: str) -> bool:
    """Returns False for a command without a request, or about the program itself, and for small talk.

    Small talk has nothing but courtesies and single signs, such as the number of a choice.
    """
    words = prompt.split(None, 1)
    if words and _COMMAND.fullmatch(words[0]) and (len(words) == 1 or words[0][1:] in _OWN_COMMANDS.split()):
        return False
    courtesies = _COURTESIES.split()
    return any(word not in courtesies and len(word) > 1 for word in re.findall(r"\w+", prompt.lower()))


def _ends_of(text: str) -> str:
    """Returns a text, or of a long one its beginning and its end."""
    half = PROMPT_CHARACTERS // 2 - 1
    return text if len(text) <= PROMPT_CHARACTERS else f"{text[:half]}\n{text[-half:]}"


def _before_tool(place: Destination, event: Event) -> None:
    """Tells what was learnt about an act, unless its context was told all of it before.

    It asks without a trace in the log. Only what is told is logged and counts for its cues, and nobody waits for that.
    """
    if event.get("tool_name") in _SPAWNING:
        _note_spawned(event)
    asked = {**_act(event), **_asker(place, event), "budget_tokens": TOOL_BUDGET}
    found = place.ask("/api/activate", {**asked, "trial": True})
    if not found["cues"]:
        return
    if _note_told(event, found["cues"]):
        _tell(event, found["markdown"])
        _in_background(lambda: place._replace(until=0.0).ask("/api/activate", asked))


def _note_told(event: Event, cues: Iterable[Mapping[str, Any]]) -> bool:
    """Notes the cues that a context is told; returns False if it was told all of them before.

    Who was told a lesson for an act to which it hardly applied is told it again for one to which it surely does.
    """
    noted = _note("told", _context_of(event))
    lines = (line.partition(" ") for line in _read(noted).splitlines())
    # The earlier format has no score behind an id.
    known = {name: score or 0 for name, _, score in lines}
    given = {cue["id"]: cue["score"] for cue in cues}
    new = {
        name: score for name, score in given.items() if score >= _SURE > float(known.get(name, 0)) or name not in known
    }
    if new:
        write_whole(noted, "\n".join(f"{name} {score}" for name, score in {**known, **new}.items()))
    return bool(new)


def _act(event: Event) -> dict[str, Any]:
    """Returns the plan of a call of a tool, and the files that it touches."""
    given, cwd = event["tool_input"], f"{event.get('cwd', '')}/"
    command = given.get("command") or given.get("prompt") or ""
    path = given.get("file_path") or given.get("notebook_path")
    names = [name.removeprefix(cwd) for name in ([path] if path else _PATCHED.findall(command))]
    if not names:
        words = (given.get("description"), command)
        return {"plan": "\n".join(filter(None, words))[:PLAN_CHARACTERS] or event["tool_name"]}
    added = "\n".join(line[1:] for line in command.splitlines() if line.startswith("+"))
    content = str(given.get("new_string") or given.get("content") or given.get("new_source") or added)
    plan = f"{event['tool_name']} {' '.join(names)}"[: PLAN_CHARACTERS - CONTENT_CHARACTERS]
    files = [name[:PATH_CHARACTERS] for name in names[:MOST_FILES] if name]
    return {"plan": f"{plan}\n{content[:CONTENT_CHARACTERS]}", "files": files}


def _context_of(event: Event) -> str:
    """Returns the name of the context of an event: a sub-agent has one of its own."""
    agent: str = event.get("agent_id") or ""
    session: str = event["session_id"]
    return f"{session} {agent}" if agent else session


def _note_spawned(event: Event) -> None:
    """Notes what a sub-agent is to do, until it starts."""
    given = event["tool_input"]
    spawned = {"type": given.get("subagent_type") or "", "prompt": given.get("prompt") or ""}
    write_whole(_note("spawned", f"{event['session_id']} {event.get('tool_use_id', '')}"), json.dumps(spawned))


def _agent_start(place: Destination, event: Event) -> None:
    """Tells a sub-agent, whose context is new, what stands in this project and what its prompt calls for."""
    prompt = _typed_text(_spawned_prompt(event))
    found = _history(place, event, prompt) if prompt else ""
    _tell(event, "\n\n".join(filter(None, (_standing(place), found))))


def _spawned_prompt(event: Event) -> str:
    """Returns the first prompt that was noted for a sub-agent of this type, once; "" if none was."""
    folder, mine = os.path.split(_note("spawned", f"{event['session_id']} "))
    notes = [os.path.join(folder, name) for name in os.listdir(folder) if name.startswith(mine)]
    for path in sorted(notes, key=_time_of):
        spawned = json.loads(_read(path) or "{}")
        if spawned.get("type", "") in {"", event.get("agent_type", "")} and _remove(path):
            return str(spawned["prompt"])
    return ""


def _stop(place: Destination, event: Event) -> None:
    """Stores the turns so far, and asks the agent for lessons, once in a session.

    An agent that goes on because it was asked is left alone, and so is a session with a single prompt. The turns are
    stored while the agent goes on: it takes longer to think of a quote, which is looked up there.
    """
    _store_session(place, event)
    session_id = event["session_id"]
    noted = _note("asked", session_id)
    is_asked = event.get("stop_hook_active") or os.path.exists(noted)
    if not place.lessons or is_asked or not _has_prompts(event["transcript_path"]):
        return
    # Only a service that answers can take a lesson.
    place.ask("/health")
    write_whole(noted, "")
    print(json.dumps({"decision": "block", "reason": _ASK.format(session=session_id)}))


def _has_prompts(path: str) -> bool:
    """Tells whether a log has LEAST_PROMPTS of a person: it reads no further than it must."""
    count = 0
    with open(path, "rb") as log:
        for line in log:
            if b'"user"' in line and b'"tool_result"' not in line:
                count += _is_prompt(line)
                if count >= LEAST_PROMPTS:
                    return True
    return False


def _is_prompt(line: bytes) -> bool:
    """Tells whether a record of Claude Code or Codex has a text that was typed."""
    try:
        record = json.loads(line)
        message = record.get("message") or record.get("payload") or {}
        content = message.get("content") or ""
        texts = [content] if isinstance(content, str) else [part.get("text") or "" for part in content]
    except (ValueError, AttributeError):
        return False
    is_own = record.get("isMeta") or record.get("isSidechain") or record.get("isCompactSummary")
    typed = _typed_text("\n".join(texts))
    return message.get("role") == "user" and not is_own and typed != "" and typed[0] not in "<#"


def _session_end(place: Destination, event: Event) -> None:
    """Stores the transcript of a session; before its context is compacted too, as a compacted log may be poorer."""
    if event["hook_event_name"] == "PreCompact":
        _remove(_note("told", _context_of(event)))
        if not os.path.exists(event.get("transcript_path") or ""):
            return
    _store_session(place, event)


def _store_session(place: Destination, event: Event) -> None:
    """Stores the transcript of a session in a copy of this process, for which nobody waits."""
    path = event["transcript_path"]
    with open(path, "rb"):
        pass
    _in_background(lambda: store_log(place, path, os.path.basename(path), event.get("cwd") or ""))


def store_log(place: Destination, path: str, name: str, project: str, *, pauses: Sequence[float] = _PAUSES) -> str:
    """Stores a log under a name, one copy of this process after the other, and notes that it cannot, until one can.

    Returns the reason why it is not stored; "" if it is.

    A failure has the name of the file, so that whoever stores it at last removes the failure. Where no service runs,
    it starts the project's, and waits for it.
    """
    from app.interfaces.cli import failures  # noqa: PLC0415 - nobody waits for it
    from app.interfaces.cli.past_sessions import stamp_of  # noqa: PLC0415 - the same
    from app.interfaces.cli.unread import note_read  # noqa: PLC0415 - the same

    (session, _), reason = os.path.splitext(os.path.basename(path)), ""
    if session.startswith("."):
        # As aider's: each project has a file of this name.
        session = f"{session} of {os.path.dirname(path)}"
    for pause in pauses:
        with take_lock(_note("stored", session)):
            try:
                stamp = stamp_of(path)
                left_out = _send_log(place, path, name)
            except Exception as error:  # noqa: BLE001 - nobody sees it otherwise
                reason = str(error)
                failures.note("session", session, reason, project=project, data_dir=place.data_dir)
                if isinstance(error, ConnectionRefusedError):
                    start_service(place)
            else:
                failures.clear("session", session, data_dir=place.data_dir)
                if left_out is not None:
                    _note_left_out(place, session, left_out, project)
                note_read(place, {path: stamp})
                return ""
        time.sleep(pause)
    return reason


def _note_left_out(place: Destination, session: str, left_out: Sequence[str], project: str) -> None:
    """Notes what of a log could not be read, unless that was noted before; a log that is read whole is no failure."""
    from app.interfaces.cli import failures  # noqa: PLC0415 - nobody waits for it

    noted, reason = _note("unread", session), "; ".join(left_out)
    if reason == _read(noted):
        return
    if reason:
        failures.note(failures.IN_PART, session, reason, project=project, data_dir=place.data_dir)
    else:
        failures.clear(failures.IN_PART, session, data_dir=place.data_dir)
    write_whole(noted, reason)


def _send_log(place: Destination, path: str, name: str) -> Sequence[str] | None:
    """Sends a log as it is, under a name that does not tell where the user works.

    Returns the reasons why parts of it were left out; None if it was not read again, because all of it was known.

    Raises:
        OSError: it cannot be read, or the service cannot be reached.
        ValueError: the service refuses it, or a session in it.
    """
    with open(path, encoding="utf-8", errors="replace") as log:
        content = log.read()
    if not path.endswith(".md") and not _SPOKEN.search(content):
        return None
    sent = {"path": name, "content": content}
    outcome = place._replace(until=time.monotonic() + STORE_SECONDS).ask("/api/reports", sent)
    if outcome["status"] == "failed":
        raise ValueError(outcome["reason"])
    if outcome["status"] == "unchanged" and not outcome["chunks"]:
        return None
    return [*filter(None, [outcome["reason"]]), *outcome["skipped"]]


def _in_background(work: Callable[[], object]) -> None:
    """Does something in a copy of this process that goes on without its streams."""
    sys.stdout.flush()
    if os.fork():
        return
    try:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        work()
    finally:
        os._exit(0)


def _note(folder: str, name: str) -> str:
    """Returns the path of this user's note of a session or a context.

    Its name is in hexadecimal, so that no id leads to another folder. A hash would load OpenSSL: 5 ms.
    """
    place = os.path.join(state_folder(), folder)
    os.makedirs(place, mode=0o700, exist_ok=True)
    return os.path.join(place, name.encode()[:_NOTE_BYTES].hex())


def _remove_old_notes() -> None:
    """Removes the notes of sessions that nobody goes on with."""
    oldest = time.time() - _NOTED_DAYS * 86_400
    for folder in ("asked", "told", "spawned", "stored", "unread", "late"):
        place = os.path.dirname(_note(folder, ""))
        for name in os.listdir(place):
            if _time_of(path := os.path.join(place, name)) < oldest:
                _remove(path)


def _time_of(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return time.time()


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as note:
            return note.read()
    except OSError:
        return ""


def _remove(path: str) -> bool:
    """Removes a note; returns False if another process was faster, or there is none."""
    try:
        os.remove(path)
    except OSError:
        return False
    return True


_EVENTS: Mapping[str, Callable[[Destination, Event], None]] = {
    "SessionStart": _start,
    _CURSOR_START: _start,
    "UserPromptSubmit": _prompt,
    "BeforeAgent": _prompt,
    "PreToolUse": _before_tool,
    "SubagentStart": _agent_start,
    "PreCompact": _session_end,
    "Stop": _stop,
    "SessionEnd": _session_end,
}
