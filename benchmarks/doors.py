"""Real session logs through every door: how many are stored, with all their turns.

The logs are those of `real-logs-dev`. What a log holds is what its reader finds in it; a door is right for a log when
the store has as many turns of it.
"""

import asyncio
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256
from pathlib import Path

import httpx
import msgspec

from app.intake.sessions.formats.detect import read_log
from app.intake.sessions.transcript import Transcript, Turn
from benchmarks.field import Store
from benchmarks.figures import Figure, report
from benchmarks.stage import SHARED_DATA, service, stage

LOGS = SHARED_DATA / "real-logs-dev" / "logs"
HOOKS = ("SessionEnd", "Stop")
_STORED_SECONDS = 120.0
"""Longest wait for a log that a background process stores."""


def logs() -> list[Path]:
    """Returns the logs of all programs."""
    return sorted(path for path in LOGS.glob("*/*") if path.suffix in {".md", ".jsonl"})


def sessions_in(log: Path) -> Sequence[Transcript]:
    """Returns the sessions that the log's reader finds."""
    found = read_log(log.read_bytes(), suffix=log.suffix, session_id=log.name)
    return () if found is None else found.transcripts


def turns_in(log: Path) -> int:
    """Returns the number of turns that the log's reader finds."""
    return sum(len(transcript.turns) for transcript in sessions_in(log))


def _hook(store: Store, log: Path, event: str) -> None:
    given = {"hook_event_name": event, "session_id": log.stem, "transcript_path": str(log), "cwd": str(log.parent)}
    store.priors("hook", event=given)


def _session_end(store: Store, log: Path) -> None:
    _hook(store, log, "SessionEnd")


def _stop(store: Store, log: Path) -> None:
    _hook(store, log, "Stop")


def _ingest(store: Store, log: Path) -> None:
    store.priors("ingest", str(log))


def _reports_route(store: Store, log: Path) -> None:
    store.post("/api/reports", {"path": log.name, "content": log.read_text(encoding="utf-8")})


def _sessions_route(store: Store, log: Path) -> None:
    for transcript in sessions_in(log):
        sent = {"id": transcript.session_id, "title": transcript.title, "folder": transcript.folder}
        messages = [_message(turn) for turn in transcript.turns]
        store.post("/api/sessions", {**sent, "started_at": _written(transcript.started_at), "messages": messages})


def _message(turn: Turn) -> Mapping[str, object]:
    """Returns a turn with every field that it has."""
    fields = dict(msgspec.to_builtins(turn))
    del fields["ordinal"]
    return {**fields, "id": fields.pop("message_id")}


def _written(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _watcher(store: Store, log: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, _watching(store, Path(folder)):
        Path(folder, log.name).write_bytes(log.read_bytes())
        _await_turns(store, turns_in(log))


@contextmanager
def _watching(store: Store, folder: Path) -> Iterator[None]:
    """Runs `ingest --watch` on a folder."""
    with store.started("ingest", str(folder), "--watch") as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=_STORED_SECONDS)


DOORS: Mapping[str, Callable[[Store, Path], None]] = {
    "SessionEnd": _session_end,
    "Stop": _stop,
    "ingest": _ingest,
    "POST /api/reports": _reports_route,
    "POST /api/sessions": _sessions_route,
    "watcher": _watcher,
}


def _stored(store: Store) -> int:
    return sum(session["turns"] for session in store.get("/api/sessions?limit=100")["sessions"])


def _await_turns(store: Store, wanted: int) -> int:
    """Returns the number of turns in the store, once it is the wanted one or the wait is over."""
    until = time.monotonic() + _STORED_SECONDS
    while (stored := _stored(store)) != wanted and time.monotonic() < until:
        time.sleep(0.2)
    return stored


def _taken(door: str) -> list[Path]:
    """Returns the logs that a door takes: a hook is given those of its program."""
    return [log for log in logs() if door not in HOOKS or log.suffix == ".jsonl"]


def _is_whole(address: str, door: str, log: Path) -> bool:
    """Takes a log in by a door, into a workspace of its own, and tells whether all its turns are stored."""
    with tempfile.TemporaryDirectory() as home:
        name = f"{door.rpartition('/')[2].lower()}-{sha256(log.name.encode()).hexdigest()[:8]}"
        store = Store(address, name, Path(home))
        try:
            DOORS[door](store, log)
            wanted = turns_in(log)
            stored = _await_turns(store, wanted)
        except (httpx.HTTPError, OSError, ValueError) as error:
            print(f"{door}: {log.name}: {error}")
            return False
        finally:
            store.http.close()
        if stored != wanted:
            print(f"{door}: {log.name}: {stored} of {wanted} turns are stored")
        return stored == wanted


def measured(address: str, doors: Sequence[str] = tuple(DOORS)) -> list[Figure]:
    """Returns, for each door, the share of its logs that are stored whole."""
    figures = []
    for door in doors:
        taken = _taken(door)
        whole = sum(_is_whole(address, door, log) for log in taken)
        figures.append(Figure(name=f"{door}: logs stored whole, of {len(taken)}", value=whole, at_least=len(taken)))
    return figures


async def measure() -> list[Figure]:
    """Measures on a service of its own."""
    async with stage() as services:
        with service(services.settings) as (address, _):
            return await asyncio.to_thread(measured, address)


def main() -> None:
    """Measures and reports."""
    if not LOGS.is_dir():
        print(f"the logs are not at {LOGS}")
        return
    report("doors", asyncio.run(measure()))


if __name__ == "__main__":
    main()
