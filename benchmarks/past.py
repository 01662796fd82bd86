"""A first `priors connect` in a project with earlier sessions: how long it takes, and how many of them are stored.

The sessions are those of `chaos.week`, real logs in Claude Code's form; each further round of them has other ids and
other texts, so that none is known from an earlier one. Everything starts cold: no store, no service, no model file.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, report
from chaos.week import Session, Week, free_port, sessions

SESSIONS = 200
_MOST_SECONDS = 60.0


def earlier_sessions(project: Path) -> Iterator[Session]:
    """Yields sessions without an end, each with an id and texts of its own."""
    for number in count():
        for session in sessions(project):
            session_id = session.session_id if number == 0 else f"{number:08x}{session.session_id[8:]}"
            lines = [_of_round(json.loads(line), session_id, number) for line in session.lines]
            yield Session(session_id, lines)


def _of_round(record: dict[str, Any], session_id: str, number: int) -> str:
    if "sessionId" in record:
        record["sessionId"] = session_id
    message = record.get("message")
    if number and isinstance(message, dict):
        message["content"] = _numbered(message.get("content"), number)
    return json.dumps(record)


def _numbered(content: Any, number: int) -> Any:  # noqa: ANN401 - a text, or a list of blocks
    if isinstance(content, str):
        return f"{content} ({number})"
    if not isinstance(content, list):
        return content
    return [{**block, "text": f"{block['text']} ({number})"} if "text" in block else block for block in content]


def measure(wanted: int) -> list[Figure]:
    """Connects a project that has so many earlier sessions, and counts what is stored."""
    with tempfile.TemporaryDirectory(prefix="priors-past-") as folder:
        week = Week(home=Path(folder, "home"), project=Path(folder, "home", "shop"), port=free_port())
        week.project.mkdir(parents=True)
        for session in islice(earlier_sessions(week.project), wanted):
            log = week.log_of(session)
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text("".join(f"{line}\n" for line in session.lines), encoding="utf-8")
        started = time.monotonic()
        done = week.call("connect", "claude-code", "--sessions", PORT=str(week.port), EXAMPLES="false")
        took = time.monotonic() - started
        print(done.stdout[-1_500:], done.stderr[-1_500:])
        listed = week.call("api", "GET", "/api/sessions", "limit=200", "--json")
        stored = len(json.loads(listed.stdout)["sessions"]) if listed.returncode == 0 else 0
        for process in week.processes():
            process.kill()
    return [
        Figure(name=f"a cold connect with {wanted} earlier sessions", value=took, unit="s", at_most=_MOST_SECONDS),
        Figure(name="of them stored", value=stored, at_least=wanted),
    ]


def main(arguments: Sequence[str]) -> None:
    """Measures and reports."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.past", description=__doc__)
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    given = parser.parse_args(arguments)
    report("past", measure(given.sessions))


if __name__ == "__main__":
    main(sys.argv[1:])
