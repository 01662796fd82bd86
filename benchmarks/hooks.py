"""`priors hook` as Claude Code starts it, a process for each event, beside a running service: time and tokens.

The time on a core is that of the process alone. It says how fast the hook is where other work fills the machine.
"""

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import psutil  # type: ignore[import-untyped]  # it has no types

from app.foundation.models.tokens import BundledTokenCounter
from app.operations import examples
from benchmarks.corpus import Corpus, fill
from benchmarks.figures import Figure, by_size, percentile
from benchmarks.stage import service, stage, workspace_of

SIZES = (10_000,)
ROUNDS = 40
WARM = 3
"""First events of each kind that are not counted."""
SESSION = {"cwd": "/home/ada/shop", "permission_mode": "default"}
LOG = {"sessionId": "s", "cwd": "/home/ada/shop", "timestamp": "2026-11-20T10:00:00.000Z", "type": "user"}
TURNS = 100
"""Turns of the log that a session has when it stops or ends."""
PROMPT = "Remove the deprecated flag from the accounts table and tell me what else reads it"
EVENTS: Mapping[str, Mapping[str, Any]] = {
    "SessionStart": {"hook_event_name": "SessionStart", "source": "startup"},
    "UserPromptSubmit": {"hook_event_name": "UserPromptSubmit", "prompt": PROMPT},
    "UserPromptSubmit, small talk": {"hook_event_name": "UserPromptSubmit", "prompt": "thanks, looks good to me!"},
    "PreToolUse, ordinary": {
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "npm test -- --watch=false", "description": "Run the tests"},
    },
    "PreToolUse, with a lesson": {
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "psql -c 'ALTER TABLE accounts DROP COLUMN flag'", "description": "Drop a column"},
    },
    "Stop": {"hook_event_name": "Stop", "stop_hook_active": False},
    "SessionEnd": {"hook_event_name": "SessionEnd", "reason": "other"},
}
LEAVING = ("Stop", "SessionEnd")
"""Events that leave a process which stores the transcript."""
MOST_MS = {
    "UserPromptSubmit": 120.0,
    "PreToolUse, ordinary": 90.0,
    "PreToolUse, with a lesson": 90.0,
    "Stop": 300.0,
    "SessionEnd": 300.0,
}
MOST_TOKENS = {"Stop": 100, "SessionStart": 200, "UserPromptSubmit": 800, "PreToolUse, with a lesson": 200}
ORDINARY = (
    *("ls -la", "git status", "git diff HEAD~1", "npm ci", "pytest -q tests/api", "grep -rn TODO src", "cat README.md"),
    *("make lint", "docker compose up -d", "curl -s localhost:8080/health", "python -m http.server", "cargo build"),
    *("mkdir -p build", "sed -n 1,40p main.go", "go vet ./...", "tail -f app.log", "node scripts/seed.js", "whoami"),
    *("git commit -m 'Fix the header'", "npx eslint src"),
)
"""Commands of a working day that no lesson of the examples is about."""


class Answered(NamedTuple):
    """Says what an event took, from the start of the process to its end, and what the model is told."""

    ms: float
    core_ms: float
    """Milliseconds of a core."""
    told: str


def answered(command: Sequence[str], event: Mapping[str, Any], number: int, folder: Path) -> Answered:
    """Returns what became of an event."""
    log = folder / f"{number}.jsonl"
    log.write_text("".join(record(number, turn) for turn in range(TURNS)))
    given = {**SESSION, **event, "session_id": f"session-{number}", "transcript_path": str(log)}
    environment = {**os.environ, "XDG_STATE_HOME": str(folder)}
    started, used = time.perf_counter(), _core_seconds()
    done = subprocess.run(command, input=json.dumps(given).encode(), capture_output=True, check=True, env=environment)
    took, used = (time.perf_counter() - started) * 1_000, (_core_seconds() - used) * 1_000
    if done.stderr:
        raise RuntimeError(done.stderr.decode())
    given = json.loads(done.stdout) if done.stdout else {}
    told = given.get("hookSpecificOutput", {}).get("additionalContext") or given.get("reason", "")
    return Answered(took, used, told)


def record(number: int, turn: int) -> str:
    """Returns a line of a session's log."""
    role = "assistant" if turn % 2 else "user"
    message = {"role": role, "content": f"{PROMPT} ({number}, {turn})"}
    return json.dumps({**LOG, "type": role, "uuid": f"u{turn}", "sessionId": f"s{number}", "message": message}) + "\n"


def _core_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def hook_figures(address: str, workspace: str, rounds: int) -> list[Figure]:
    """Returns the figures of each event; the events are taken in turn, so that the machine's drift falls on all.

    The stop of an agent and the end of a session leave a process that stores the transcript. The next event waits until
    it has ended: no prompt follows the end of its session, and a person reads an answer first.
    """
    priors = str(Path(sys.executable).with_name("priors"))
    command = [priors, "hook", "--url", address, "--workspace", workspace]
    taken: dict[str, list[Answered]] = {name: [] for name in EVENTS}
    bare: list[float] = []
    counter = BundledTokenCounter()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds + WARM):
            started = time.perf_counter()
            subprocess.run([sys.executable, "-c", "pass"], check=True)
            bare.append((time.perf_counter() - started) * 1_000)
            for place, (name, event) in enumerate(EVENTS.items()):
                taken[name].append(answered(command, event, number * len(EVENTS) + place, Path(folder)))
                if name in LEAVING:
                    _await_end(command)
        silent = [
            not answered(command, ordinary(words), 10_000 + number, Path(folder)).told
            for number, words in enumerate(ORDINARY)
        ]
    figures = [Figure(name="a Python process that does nothing, p50", value=percentile(bare[WARM:], 50), unit="ms")]
    for name, found in taken.items():
        times = [item.ms for item in found[WARM:]]
        tokens = max(counter.count(item.told) for item in found)
        figures += [
            Figure(name=f"{name}, p50", value=percentile(times, 50), unit="ms"),
            Figure(name=f"{name}, p95", value=percentile(times, 95), unit="ms", at_most=MOST_MS.get(name)),
            Figure(name=f"{name}, of a core, p50", value=percentile([item.core_ms for item in found], 50), unit="ms"),
            Figure(name=f"{name}, tokens", value=tokens, at_most=MOST_TOKENS.get(name, 0)),
        ]
    share = sum(silent) / len(silent)
    return [*figures, Figure(name="ordinary commands that are told nothing", value=share, at_least=0.9)]


def _await_end(command: Sequence[str]) -> None:
    """Waits until no process of this command runs."""
    own = list(command)
    while any((process.info["cmdline"] or [])[-len(own) :] == own for process in psutil.process_iter(["cmdline"])):
        time.sleep(0.05)


def ordinary(words: str) -> Mapping[str, Any]:
    """Returns the event of a command."""
    return {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": words}}


async def measure(size: int, rounds: int) -> list[Figure]:
    """Returns the figures in a workspace of so many chunks, which has the example sessions with their cues, too."""
    async with stage() as services:
        workspace = await workspace_of(services, "benchmark")
        await fill(services, Corpus(), workspace, size)
        await examples.Examples(services=services).begin(workspace)
        with service(replace(services.settings, embedded_worker=False)) as (address, _):
            return await asyncio.to_thread(hook_figures, address, workspace.name, rounds)


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measures and reports."""
    return by_size("hooks", __doc__ or "", measure, arguments, sizes=SIZES, rounds=ROUNDS)


if __name__ == "__main__":
    main()
