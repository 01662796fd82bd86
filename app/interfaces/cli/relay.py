"""Passes the messages of an MCP client over standard input and output to a service, and its answers back.

Each session of an agent has a process of this for as long as it lasts. The service keeps no sessions, so each request
is one of HTTP. With the SDK on both sides it took 1.0 s of a core to start, and 92 MB.
"""

import json
import os
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from threading import Lock, Thread
from typing import Any

from app.interfaces.cli.hooks import REFUSED, Destination, place_of, project_here
from app.interfaces.cli.projects import recorded_url

_CALL_SECONDS, _HEALTH_SECONDS = 30.0, 20.0
"""Longest waits for the service: for an answer, and until it is known to be there, which it may be while it starts."""
_NAMES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter of a request that revision 2026-07-28 of the protocol repeats in a header."""
_VERSION = "io.modelcontextprotocol/protocolVersion"
_ACCEPTED = "application/json, text/event-stream"
_NO_KEY = 401
_NO_JSON, _NO_REQUEST, _FAILED = -32700, -32600, -32603
"""Codes of errors of JSON-RPC."""


def serves(words: Sequence[str]) -> bool:
    """Serves by the service that options, the environment or the project name; returns False if none answers."""
    place = place_of(words)
    if place is None or not _is_named(words) or refusal(place):
        return False
    # It is looked up again for each request: a service that was started again may have another port.
    pass_on(lambda: place_of(words) or place)
    return True


def _is_named(words: Sequence[str]) -> bool:
    if "--url" in words or os.environ.get("PRIORS_URL"):
        return True
    if os.environ.get("PRIORS_DATABASE_URL"):
        # The service of a data directory may work on another database.
        return False
    data_dir = os.environ.get("PRIORS_DATA_DIR")
    return bool(recorded_url(data_dir)) if data_dir else project_here() is not None


def refusal(place: Destination) -> str:
    """Returns the reason why a service cannot be asked; "" if it answers."""
    try:
        status, _ = place.exchange("GET", "/api/status", b"", {}, time.monotonic() + _HEALTH_SECONDS)
    except (OSError, ValueError) as error:
        return f"the service at {place.url} cannot be asked: {error}"
    if status == _NO_KEY:
        return f"the service at {place.url} asks for its API key: set PRIORS_API_KEY to it"
    return "" if status < REFUSED else f"the service at {place.url} answers with status {status}"


def pass_on(find: Callable[[], Destination]) -> None:
    """Passes each request of standard input on, several at once, until the input ends and all are answered.

    Notifications end here: a service without sessions has no use for them.
    """
    relay, threads = _Relay(find), list[Thread]()
    for line in sys.stdin.buffer:
        if line.strip():
            threads = [thread for thread in threads if thread.is_alive()]
            threads.append(Thread(target=relay.answer, args=(line,)))
            threads[-1].start()
    for thread in threads:
        thread.join()


class _Relay:
    """Answers messages by the service."""

    def __init__(self, find: Callable[[], Destination]) -> None:
        self._find, self._lock = find, Lock()
        self._version = ""
        """The revision of the protocol that was agreed upon at the start, in the earlier revisions that have one."""

    def answer(self, line: bytes) -> None:
        """Prints the answer to a line, if it gets one."""
        try:
            message = json.loads(line)
        except ValueError as error:
            self._print(_error(None, _NO_JSON, f"the message is no JSON: {error}"))
            return
        if not isinstance(message, dict) or ("method" in message) is not isinstance(message.get("method"), str):
            self._print(_error(None, _NO_REQUEST, "the message is no object with a method"))
        elif "id" in message and "method" in message:
            try:
                answer = self._ask_service(message)
            except Exception as error:  # noqa: BLE001 - a client waits for an answer to each request
                answer = _error(message["id"], _FAILED, f"the request cannot be passed on: {error}")
            self._print(answer)

    def _ask_service(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        place = self._find()
        try:
            until = time.monotonic() + _CALL_SECONDS
            status, body = place.exchange("POST", "/mcp", json.dumps(message).encode(), self._headers(message), until)
        except (OSError, ValueError) as error:
            return _error(message["id"], _FAILED, f"the service at {place.url} cannot be asked: {error}")
        try:
            answer: Mapping[str, Any] = json.loads(body)
        except ValueError:
            answer = {}
        if "jsonrpc" not in answer:
            reason = answer.get("detail") or f"it answers with status {status}"
            return _error(message["id"], _FAILED, f"the service at {place.url} refuses: {reason}")
        if message["method"] == "initialize":
            self._version = (answer.get("result") or {}).get("protocolVersion", "")
        return answer

    def _headers(self, message: Mapping[str, Any]) -> dict[str, str]:
        params = message.get("params") or {}
        version = (params.get("_meta") or {}).get(_VERSION) or self._version
        name = params.get(_NAMES.get(message["method"], ""))
        headers = {"accept": _ACCEPTED, "mcp-protocol-version": version, "mcp-method": message["method"]}
        headers["mcp-name"] = name
        return {key: _header(value) for key, value in headers.items() if value and isinstance(value, str)}

    def _print(self, answer: Mapping[str, Any]) -> None:
        with self._lock:
            sys.stdout.write(f"{json.dumps(answer)}\n")
            sys.stdout.flush()


def _header(value: str) -> str:
    """Returns a value as a header has it: encoded, if it is not of plain characters."""
    is_plain = value.isascii() and value.isprintable() and value.strip() == value and not value.startswith("=?base64?")
    return value if is_plain else f"=?base64?{b64encode(value.encode()).decode()}?="


def _error(message_id: object, code: int, reason: str) -> Mapping[str, Any]:
    return {"jsonrpc": "2.0", "id": message_id, "error": {"code": code, "message": reason}}
