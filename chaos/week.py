"""A week of a connected project: `python -m chaos.week`. Real sessions, hooks as real processes, and what may happen.

Each day has sessions of a coding program: their logs grow in Claude Code's place, and the hooks that `priors connect`
wrote are called as the program calls them. Meanwhile the service and Postgres are killed, the machine restarts with
what was left behind, and the port is taken, so that no service can start. At the end every session that happened
must be in the store with all its turns, and nothing may have failed without a word.
"""

import argparse
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import msgspec
import psutil  # type: ignore[import-untyped]  # it has no types

from app.intake.sessions.formats.detect import read_log
from app.interfaces.cli.failures import FILE as FAILURES

DATA = Path(__file__).parents[2] / "shared" / "data"
PRIORS = Path(sys.executable).with_name("priors")
HOOK_LIMIT_SECONDS = 10.0
"""The longest time that the program gives a hook, as `priors connect` writes it."""
SETTLE_SECONDS = 300.0
"""The longest wait at the end of the week, until everything is stored."""
_NAMES = UUID("0198c0de-7b1c-7e21-9f3a-5d2c8e4b6a10")
_PIECES = 3
"""Pieces in which a log grows: a prompt stands at the end of each."""
_PORTS = range(21_000, 32_000)


@dataclass(slots=True)
class Session:
    """A session that happens in the week."""

    session_id: str
    lines: Sequence[str]
    done: int = 0
    """Lines that are in its log."""


@dataclass(slots=True)
class Week:
    """The machine of a user: the home, the project, and what happened."""

    home: Path
    project: Path
    port: int
    happened: list[Session] = field(default_factory=list)
    hooks: Mapping[str, str] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """What no hook may do: end with a code other than 0, or take longer than the program waits."""
    told: list[str] = field(default_factory=list)
    """What hooks said to the user about failures."""

    @property
    def data_dir(self) -> Path:
        """The data directory of the service."""
        return self.home / "share" / "priors"

    def environment(self) -> dict[str, str]:
        """Returns the environment of the program and of its hooks."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PRIORS_", "CLAUDE"))}
        path = f"{PRIORS.parent}:{kept.get('PATH', '')}"
        own = {"HOME": self.home, "XDG_STATE_HOME": self.home / "state", "XDG_DATA_HOME": self.home / "share"}
        return {**kept, "PATH": path, **{name: str(value) for name, value in own.items()}}

    def call(self, *words: str, **settings: str) -> "subprocess.CompletedProcess[str]":
        """Runs `priors` in the project."""
        environ = {**self.environment(), **{f"PRIORS_{name}": value for name, value in settings.items()}}
        return subprocess.run(
            [PRIORS, *words], cwd=self.project, env=environ, capture_output=True, text=True, check=False
        )

    def log_of(self, session: Session) -> Path:
        """Returns the path of a session's log, where Claude Code has it."""
        folder = re.sub(r"[^A-Za-z0-9]", "-", str(self.project))
        return self.home / ".claude" / "projects" / folder / f"{session.session_id}.jsonl"

    def hook(self, session: Session, event: str, **fields: Any) -> None:  # noqa: ANN401 - any payload
        """Calls the hook of an event as the program does, and notes how long it takes and what it says."""
        if (command := self.hooks.get(event)) is None:
            return
        payload = {
            "session_id": session.session_id,
            "transcript_path": str(self.log_of(session)),
            "cwd": str(self.project),
            "hook_event_name": event,
            "permission_mode": "default",
            **fields,
        }
        environ = {**self.environment(), "CLAUDE_PROJECT_DIR": str(self.project)}
        begun = time.monotonic()
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", command],
                input=json.dumps(payload),
                cwd=self.project,
                env=environ,
                capture_output=True,
                text=True,
                check=False,
                timeout=HOOK_LIMIT_SECONDS,
            )
        except subprocess.TimeoutExpired:
            self.wrong.append(f"{event} took longer than {HOOK_LIMIT_SECONDS:.0f} s")
            return
        self.seconds.setdefault(event, []).append(time.monotonic() - begun)
        if done.returncode:
            self.wrong.append(f"{event} ended with {done.returncode}: {done.stderr}")
        if done.stdout.strip() and (notice := json.loads(done.stdout).get("systemMessage")):
            self.told.append(notice)

    def processes(self) -> list[psutil.Process]:
        """Returns the processes of this machine: services, Postgres, copies of hooks."""
        return [process for process in psutil.process_iter() if self._is_own(process)]

    def _is_own(self, process: psutil.Process) -> bool:
        with suppress(psutil.Error, OSError):
            if any(str(self.home) in word for word in process.cmdline()):
                return True
            return bool(process.environ().get("XDG_STATE_HOME") == str(self.home / "state"))
        return False

    def strike(self, wanted: Callable[[psutil.Process], bool], what: str) -> None:
        """Kills the processes that are wanted."""
        struck = [process for process in self.processes() if wanted(process)]
        for process in struck:
            with suppress(psutil.Error):
                process.send_signal(signal.SIGKILL)
        psutil.wait_procs(struck, timeout=10)
        self.faults.append(f"{what} ({len(struck)} processes)")


def is_service(process: psutil.Process) -> bool:
    """Tells whether a process is a service."""
    with suppress(psutil.Error):
        return "run" in process.cmdline()[-1:]
    return False


def is_postgres(process: psutil.Process) -> bool:
    """Tells whether a process is the Postgres server that has the others."""
    with suppress(psutil.Error):
        return process.name() == "postgres" and "-D" in process.cmdline()
    return False


def sessions(project: Path) -> Iterator[Session]:
    """Yields real sessions as if of a project: those in Claude Code's own form, and those of other logs in it."""
    for path in sorted((DATA / "real-logs-dev" / "logs" / "cipher-box").glob("*.jsonl")):
        lines = path.read_text(encoding="utf-8").splitlines()
        yield Session(path.stem, [_in_folder(line, project) for line in lines])
    for line in (DATA / "cues-dev" / "sessions.jsonl").read_text(encoding="utf-8").splitlines():
        found = json.loads(line)
        session_id = str(uuid5(_NAMES, found["session"]))
        yield Session(session_id, list(_in_form_of_claude_code(session_id, found, project)))


def _in_folder(line: str, project: Path) -> str:
    """Returns a record with the project as its working folder."""
    record = json.loads(line)
    return json.dumps({**record, "cwd": str(project)}) if "cwd" in record else line


def _in_form_of_claude_code(session_id: str, found: Mapping[str, Any], project: Path) -> Iterator[str]:
    begun = datetime.fromisoformat(found["started_at"]).astimezone(UTC)
    before: str | None = None
    for number, message in enumerate(found["messages"]):
        record_id = str(uuid5(_NAMES, f"{session_id} {number}"))
        role = "assistant" if message["role"] == "assistant" else "user"
        content = message["text"] if role == "user" else [{"type": "text", "text": message["text"]}]
        yield json.dumps(
            {
                "parentUuid": before,
                "isSidechain": False,
                "userType": "external",
                "cwd": str(project),
                "sessionId": session_id,
                "version": "2.1.38",
                "type": role,
                "message": {"role": role, "content": content},
                "uuid": record_id,
                "timestamp": (begun + timedelta(minutes=number)).isoformat().replace("+00:00", "Z"),
            }
        )
        before = record_id


def play(week: Week, session: Session, chance: random.Random, faults: Sequence[Callable[[], None]]) -> None:
    """Lets a session happen; a fault strikes at one of its moments, and with the last one it ends with no event."""
    log = week.log_of(session)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.touch()
    week.happened.append(session)
    week.hook(session, "SessionStart", source="startup")
    struck = chance.randrange(_PIECES + 2) if faults else -1
    for number in range(_PIECES):
        if number == struck:
            chance.choice(faults)()
        piece = session.lines[session.done : len(session.lines) * (number + 1) // _PIECES]
        week.hook(session, "UserPromptSubmit", prompt=_prompt_in(piece))
        with log.open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in piece)
        session.done += len(piece)
        for name, given in _acts_in(piece)[:2]:
            week.hook(session, "PreToolUse", tool_name=name, tool_input=given, tool_use_id=f"toolu_{number}")
        week.hook(session, "Stop", stop_hook_active=False)
    if struck == _PIECES:
        # Its end is never told: the machine restarted, or the program was killed.
        chance.choice(faults)()
        return
    week.hook(session, "SessionEnd", reason="prompt_input_exit")


def _prompt_in(piece: Sequence[str]) -> str:
    """Returns the first text of a person in a piece of a log."""
    for line in piece:
        message = json.loads(line).get("message") or {}
        if message.get("role") == "user" and isinstance(message.get("content"), str):
            return str(message["content"])
    return "go on"


def _acts_in(piece: Sequence[str]) -> list[tuple[str, Mapping[str, Any]]]:
    acts: list[tuple[str, Mapping[str, Any]]] = []
    for line in piece:
        content = (json.loads(line).get("message") or {}).get("content")
        blocks = [block for block in content if block.get("type") == "tool_use"] if isinstance(content, list) else []
        acts += [(block["name"], block["input"]) for block in blocks if block["name"] in {"Bash", "Edit", "Write"}]
    return acts


def free_port() -> int:
    """Returns a port that the system hands out to nobody by itself."""
    for port in _PORTS:
        with closing(socket.socket()) as free, suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port
    raise OSError("no port is free")


def live_through(week: Week, days: int, per_day: int, chance: random.Random) -> None:
    """Lets the days pass."""
    every = list(sessions(week.project))
    chance.shuffle(every)

    def restart_machine() -> None:
        week.strike(lambda _: True, "the machine restarts")

    def kill_service() -> None:
        week.strike(is_service, "the service is killed")

    def kill_postgres() -> None:
        week.strike(is_postgres, "Postgres is killed")

    faults = (restart_machine, kill_service, kill_postgres)
    for day in range(days):
        is_away = day == days // 2
        blocked = _away(week) if is_away else None
        for _ in range(per_day):
            if every:
                play(week, every.pop(), chance, () if is_away or chance.random() < 1 / 3 else faults)
        if blocked is not None:
            blocked.close()
            week.faults.append("the service can start again")
        print(f"day {day + 1}: {len(week.happened)} sessions, {len(week.faults)} faults", flush=True)


def _away(week: Week) -> socket.socket:
    """Ends the service for a day: another program has its port."""
    week.strike(lambda _: True, "the service is away for a day")
    blocked = socket.socket()
    blocked.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    blocked.bind(("127.0.0.1", week.port))
    return blocked


def lost(week: Week) -> list[str]:
    """Returns what is missing in the store: sessions that are not there, or not with all their turns."""
    found = week.call("session", "list", "--limit", "200", "--json")
    if found.returncode:
        return [f"the sessions cannot be listed: {found.stderr}"]
    stored = {item["id"]: item["turns"] for item in msgspec.json.decode(found.stdout)}
    missing = []
    for session in week.happened:
        for session_id, turns in _turns_of(week.log_of(session)):
            if session_id not in stored:
                missing.append(f"{session_id}: {turns} turns")
            elif stored[session_id] < turns:
                missing.append(f"{session_id}: {stored[session_id]} of {turns} turns")
    return missing


def _turns_of(log: Path) -> list[tuple[str, int]]:
    read = read_log(log.read_bytes(), suffix=log.suffix, session_id=log.stem)
    return [(item.session_id, len(item.turns)) for item in (read.transcripts if read else ()) if item.turns]


def unsaid(week: Week, missing: Sequence[str]) -> list[str]:
    """Returns what is missing, and what nothing in the log of failures names."""
    files = [place / FAILURES for place in (week.data_dir, week.home / "state" / "priors")]
    said = "".join(path.read_text() for path in files if path.exists())
    return [line for line in missing if line.split(":")[0] not in said]


def main(arguments: Sequence[str]) -> int:
    """Plays a week and prints what came of it; returns 1 if anything was lost, or failed without a word."""
    parser = argparse.ArgumentParser(prog="python -m chaos.week", description=__doc__)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--sessions", type=int, default=9, help="a day")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="priors-week-") as folder:
        # Postgres runs as an account of its own where this is root.
        Path(folder).chmod(0o755)
        week = Week(home=Path(folder), project=Path(folder) / "work" / "shop", port=free_port())
        (week.project / ".git").mkdir(parents=True)
        try:
            return _played(week, given.days, given.sessions, random.Random(given.seed))
        finally:
            week.strike(lambda _: True, "the end")


def _played(week: Week, days: int, per_day: int, chance: random.Random) -> int:
    made = week.call("connect", "claude-code", "--lessons", PORT=str(week.port), EXAMPLES="false")
    print(made.stdout, made.stderr, flush=True)
    settings = json.loads((week.project / ".claude" / "settings.local.json").read_text())
    week.hooks = {event: groups[-1]["hooks"][0]["command"] for event, groups in settings["hooks"].items()}
    live_through(week, days, per_day, chance)
    until = time.monotonic() + SETTLE_SECONDS
    week.hook(Session(str(uuid5(_NAMES, "after the week")), ()), "SessionStart", source="startup")
    while (missing := lost(week)) and time.monotonic() < until:
        time.sleep(5)
    silent = unsaid(week, missing)
    print(week.call("status").stdout)
    for event, seconds in week.seconds.items():
        middle, latest = sorted(seconds)[len(seconds) // 2], max(seconds)
        print(f"{event}: {len(seconds)} hooks, median {middle * 1000:.0f} ms, longest {latest * 1000:.0f} ms")
    faults = Counter(fault.partition(" (")[0] for fault in week.faults)
    print(f"faults: {', '.join(f'{what} {count} times' for what, count in faults.items())}")
    starts = len(week.seconds["SessionStart"])
    print(f"starts of sessions that told the user of a failure or of a start: {len(week.told)} of {starts}")
    for line in (*missing, *week.wrong):
        print(f"wrong: {line}")
    print(f"{len(week.happened)} sessions happened, {len(missing)} lost, {len(silent)} of them without a word")
    return 1 if missing or silent or week.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
