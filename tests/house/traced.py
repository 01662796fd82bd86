"""Runs the service of the current folder, and notes which functions of its `app/` start while it answers.

A script of its own, because it also measures other checkouts: `python -P traced.py serve|ingest RESULT [FILE]`.
"""

import contextvars
import dis
import inspect
import json
import os
import signal
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import litestar
import uvicorn

REPOSITORY = str(Path.cwd())
APP = os.path.join(REPOSITORY, "app") + os.sep  # noqa: PTH118 - compared with the names of files
LOOPS = ("/asyncio/runners.py", "/asyncio/events.py", "/asyncio/base_events.py", "/concurrent/futures/thread.py")
"""Files that start a function without a caller: the event loop and the threads."""
RESUME, AT_START = dis.opmap["RESUME"], 3
"""The instruction at which a frame starts or goes on; the two lowest bits of its argument are 0 at the start."""
HEADER = "x-traced"
STARTUP_SECONDS, ANSWER_SECONDS, LATE_SECONDS = 120, 60, 0.3
REPORT = {
    "path": "traced/report.md",
    "content": "# Traced\n\n## Findings\n\nThe margin was 12 % in 2025.\n\n## Issues\n\n- Two of nine sources.\n",
}
ASKED = ("pet insurance pricing", "source quality issues in cold brew")
"""Queries of the history: the first one warms the service up, the second one is traced."""

traced: contextvars.ContextVar[bool] = contextvars.ContextVar("traced", default=False)


class Trace:
    """The functions that started, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, str | None]] = []
        """Module, function, and the module that called it; None for one that the event loop or a thread started."""
        self.open = False
        self.whole_process = False

    def note(self, frame: FrameType, event: str, _argument: object) -> None:
        """Takes the events of `sys.setprofile`."""
        if self.open and event == "call" and _in_app(frame) and self._counts() and _starts(frame):
            callers = list(_callers(frame))
            if all(map(_is_function, [frame, *callers])):
                self.calls.append((_module(frame), frame.f_code.co_name, _module(callers[0]) if callers else None))

    def _counts(self) -> bool:
        """Leaves out what the process does beside the traced request."""
        return self.whole_process or traced.get() or threading.current_thread() is not threading.main_thread()

    def install(self) -> None:
        """Traces this thread and those that start from now on."""
        threading.setprofile(self.note)
        sys.setprofile(self.note)


class Marked:
    """Wraps an application: a request with the header is traced."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers one request."""
        traced.set(any(name.decode() == HEADER for name, _ in scope.get("headers", ())))
        await self._app(scope, receive, send)


class Client:
    """Asks the service."""

    def __init__(self, port: int, trace: Trace) -> None:
        self._address, self._trace = f"http://127.0.0.1:{port}", trace

    def ask(self, path: str, body: object = None, *, header: bool = False) -> Any:
        """Returns the answer's JSON."""
        headers = {"content-type": "application/json"} | ({HEADER: "yes"} if header else {})
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._address + path, data=data, headers=headers)  # noqa: S310 - our own
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as response:  # noqa: S310 - our own
            return json.load(response)

    def crossed(self, path: str, body: object) -> list[tuple[str, str, str | None]]:
        """Returns the functions that started while one request was answered."""
        self._trace.calls, self._trace.open = [], True
        self.ask(path, body, header=True)
        time.sleep(LATE_SECONDS)
        self._trace.open = False
        return self._trace.calls

    def wait(self) -> None:
        """Waits until the service is ready, with its model and, if it stores examples, with all of them: the threads
        that store them would be taken for threads of the request."""
        last = time.monotonic() + STARTUP_SECONDS
        while time.monotonic() < last:
            try:
                found = self.ask("/ready")
                if found["ready"] and not found.get("storing_examples"):
                    return
            except OSError:
                pass
            time.sleep(0.2)
        raise TimeoutError("the service did not become ready")


def _in_app(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(APP)


def _module(frame: FrameType) -> str:
    return frame.f_code.co_filename[len(REPOSITORY) + 1 : -len(".py")].replace(os.sep, ".")


def _starts(frame: FrameType) -> bool:
    """Returns False where a coroutine or generator goes on."""
    code, at = frame.f_code.co_code, max(frame.f_lasti, 0)
    return code[at] == RESUME and not code[at + 1] & AT_START


def _is_function(frame: FrameType) -> bool:
    """Returns False for the body of a module or class: an import is no crossing."""
    return bool(frame.f_code.co_flags & inspect.CO_OPTIMIZED)


def _callers(frame: FrameType) -> Iterator[FrameType]:
    """Yields the frames of `app/` that wait for this one, the nearest first, up to the event loop or the thread."""
    outer = frame.f_back
    while outer is not None and not outer.f_code.co_filename.endswith(LOOPS):
        if _in_app(outer):
            yield outer
        outer = outer.f_back


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _mark_requests() -> None:
    load = uvicorn.Config.load

    def marking(config: uvicorn.Config) -> None:
        load(config)
        config.loaded_app = Marked(config.loaded_app)

    uvicorn.Config.load = marking  # type: ignore[assignment, method-assign]


def _drive(client: Client, result: Path) -> None:
    try:
        client.wait()
        for query in ASKED:
            history = client.crossed("/api/history", {"query": query, "agent": "scout", "budget_tokens": 900})
        report = client.crossed("/api/reports", REPORT)
        result.write_text(json.dumps({"POST /api/history": history, "POST /api/reports": report}))
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


def _run(*arguments: str) -> None:
    sys.argv = ["priors", *arguments]
    from app.interfaces import cli  # noqa: PLC0415 - the application of the current folder, traced from its start

    assert str(cli.__file__).startswith(APP), f"{cli.__file__} is not of {APP}"
    cli.main()


def serve(result: Path) -> None:
    """Traces a history and a report over HTTP."""
    port, trace = _free_port(), Trace()
    os.environ["PRIORS_PORT"] = str(port)
    _mark_requests()
    threading.Thread(target=_drive, args=(Client(port, trace), result), daemon=True).start()
    trace.install()
    _run("run")


def ingest(result: Path, file: str) -> None:
    """Traces `priors ingest` of one file, start and end of the process included."""
    trace = Trace()
    trace.open = trace.whole_process = True
    trace.install()
    try:
        _run("ingest", file)
    finally:
        trace.open = False
        result.write_text(json.dumps({"priors ingest": trace.calls}))


if __name__ == "__main__":
    assert litestar.__name__, "imported here, so that its import is not traced"
    if sys.argv[1] == "serve":
        serve(Path(sys.argv[2]))
    else:
        ingest(Path(sys.argv[2]), sys.argv[3])
