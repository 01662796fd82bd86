"""`priors ingest` over HTTP has the outcome of every file that the process itself has."""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from priors_client import Client

from app.intake.reports.store import FileOutcome, Ingestion
from app.interfaces.cli.notes import place_name
from app.interfaces.cli.sending import Delivery, Sending
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.conftest import workspace_in
from tests.interfaces.cli import forked

MOST_BYTES = 10_000_000
REPORT = "# Ferry {number}\n\nThe ferry of line {number} leaves the harbour at {number}:15 and is seldom late in May.\n"


@pytest.fixture(scope="module", autouse=True)
def one_process() -> Iterator[None]:
    """The process that runs the commands."""
    with forked.shared():
        yield


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps the notes of this test apart."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def outcomes_of(result: Ingestion) -> list[FileOutcome]:
    """Returns the outcomes in the order of their paths."""
    return sorted(result.outcomes, key=lambda outcome: (outcome.path, outcome.status))


def change(folder: Path) -> None:
    """Moves, deletes, changes and adds files."""
    (folder / "reports" / "moved").mkdir()
    (folder / "reports" / "1.md").rename(folder / "reports" / "moved" / "one.md")
    (folder / "reports" / "2.md").unlink()
    (folder / "reports" / "3.md").write_text(REPORT.format(number=33))
    (folder / "reports" / "empty.md").write_text("# Nothing\n")
    (folder / "reports" / "bad.json").write_text("{")
    (folder / "reports" / "link.md").symlink_to(folder / "nowhere.md")
    (folder / "reports" / "table.csv").write_text("a,b\n")
    (folder / "reports" / "wide.md").write_bytes(b"\xff\xfe" + REPORT.format(number=9).encode("utf-16-le"))


async def test_a_service_has_the_outcome_of_each_file_that_the_process_has(
    shared_data: Path, services: Services, server: str, workspace: Workspace, tmp_path: Path
) -> None:
    own = await workspace_in(services.database, f"{workspace.name}-own")
    folder = tmp_path / "work"
    (folder / "reports").mkdir(parents=True)
    for path in sorted((shared_data / "reports-scylla").rglob("*"))[:60:3]:
        if path.is_file():
            place = folder / "reports" / path.relative_to(shared_data / "reports-scylla")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)
    for log in sorted((shared_data / "real-logs-dev" / "logs" / "cipher-box").glob("*.jsonl"), key=_size)[:1]:
        shutil.copy(log, folder / "reports" / log.name)
    for number in range(5):
        (folder / "reports" / f"{number}.md").write_text(REPORT.format(number=number))

    def send(*, dry_run: bool = False) -> Ingestion:
        with Client(server, workspace=workspace.name) as client:
            sending = Sending(
                client=client,
                language=None,
                dry_run=dry_run,
                max_file_bytes=MOST_BYTES,
                place=place_name(server, workspace.name),
                on_progress=lambda *_: None,
            )
            return sending.send([folder / "reports", folder / "missing"]).result

    seen: set[str] = set()
    for step in ("first", "unchanged", "changed"):
        if step == "changed":
            change(folder)
        dry = await asyncio.to_thread(send, dry_run=True)
        sent = await asyncio.to_thread(send)
        found = await services.ingestions.ingest(own, [folder / "reports", folder / "missing"])
        assert outcomes_of(sent) == outcomes_of(found), step
        assert {outcome.path for outcome in dry.outcomes} == {outcome.path for outcome in found.outcomes}, step
        assert (sent.counts, sent.stored) == (found.counts, found.stored)
        seen |= {outcome.status for outcome in found.outcomes}
    assert seen == {"new", "changed", "moved", "unchanged", "retired", "failed", "left_out"}


@pytest.fixture
def on(server: str, workspace_name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Delivery]:
    """Sends the reports as a machine of this name does, which has notes of its own."""
    (tmp_path / "reports").mkdir()

    def send(machine: str) -> Delivery:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / machine))
        with Client(server, workspace=workspace_name) as client:
            sending = Sending(
                client=client,
                language=None,
                dry_run=False,
                max_file_bytes=MOST_BYTES,
                place=place_name(server, workspace_name),
                on_progress=lambda *_: None,
            )
            return sending.send([tmp_path / "reports"])

    return send


def written(path: Path, number: int) -> Path:
    """Writes a report, and returns its path."""
    path.write_text(REPORT.format(number=number))
    return path


async def test_a_machine_retires_only_what_it_has_sent(on: Callable[[str], Delivery], tmp_path: Path) -> None:
    mine, shared = written(tmp_path / "reports" / "mine.md", 1), written(tmp_path / "reports" / "shared.md", 2)
    assert (await asyncio.to_thread(on, "one")).result.counts["new"] == 2
    # Another machine with the same folder, such as a fresh container, which has other files in it.
    mine.unlink()
    shared.unlink()
    other = written(tmp_path / "reports" / "other.md", 3)
    sent = await asyncio.to_thread(on, "two")
    assert (sent.result.counts["new"], sent.result.counts["retired"]) == (1, 0)
    assert sorted(sent.kept) == [str(mine), str(shared)]
    # It changes a file that the first machine has sent too, and which that machine deletes then.
    written(shared, 4)
    assert (await asyncio.to_thread(on, "two")).result.counts["changed"] == 1
    shared.unlink()
    other.unlink()
    sent = await asyncio.to_thread(on, "one")
    assert [outcome.path for outcome in sent.result.outcomes if outcome.status == "retired"] == [str(mine)]
    assert sorted(sent.kept) == [str(other), str(shared)]


async def test_the_command_counts_the_files_that_stay(server: str, workspace_name: str, tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    words = ["ingest", str(folder), "--url", server, "-w", workspace_name]

    def ingest_on(machine: str) -> str:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PRIORS_")}
        environ = {**kept, "XDG_STATE_HOME": str(tmp_path / machine), "XDG_DATA_HOME": str(tmp_path / "data")}
        done = forked.run(words, environ, within=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stderr + done.stdout

    report = written(folder / "1.md", 1)
    await asyncio.to_thread(ingest_on, "one")
    report.unlink()
    shown = await asyncio.to_thread(ingest_on, "two")
    assert f"kept 1 stored files that are not here, such as {report}: this machine has not sent them" in shown
    assert "1 retired" in await asyncio.to_thread(ingest_on, "one")


async def test_a_service_takes_in_the_store_of_a_harness_that_writes_to_it(
    server: str, workspace_name: str, tmp_path: Path
) -> None:
    store = tmp_path / "memory.db"
    words = ["import", str(store), "--url", server, "-w", workspace_name]
    with closing(sqlite3.connect(store)) as harness:
        harness.execute("PRAGMA journal_mode = wal")
        harness.execute("CREATE TABLE observations (id INTEGER PRIMARY KEY, title TEXT, narrative TEXT, facts TEXT)")
        harness.execute("INSERT INTO observations VALUES (1, 'Ferries', 'The ferry of line 4 leaves at 4:15.', '[]')")
        harness.commit()
        first = await asyncio.to_thread(call, tmp_path, *words)
    again = await asyncio.to_thread(call, tmp_path, *words)
    assert first == f"{store}: 0 runs, 1 observations stored, 0 known, 0 ratings, 0 left out\n"
    assert again == f"{store}: 0 runs, 0 observations stored, 1 known, 0 ratings, 0 left out\n"
    assert f"{workspace_name} (english)" in await asyncio.to_thread(
        call, tmp_path, "workspace", "list", "--url", server
    )


def call(folder: Path, *words: str) -> str:
    """Returns the output of a command that takes nothing from the environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PRIORS_")}
    environ = {**kept, "XDG_DATA_HOME": str(folder / "data")}
    done = forked.run(words, environ, within=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_a_machine_that_has_lost_its_notes_retires_after_it_has_sent_again(
    on: Callable[[str], Delivery], tmp_path: Path
) -> None:
    report = written(tmp_path / "reports" / "1.md", 1)
    await asyncio.to_thread(on, "before")
    assert (await asyncio.to_thread(on, "after")).result.counts["unchanged"] == 1
    report.unlink()
    sent = await asyncio.to_thread(on, "after")
    assert (sent.result.counts["retired"], sent.kept) == (1, [])


def _size(path: Path) -> int:
    return path.stat().st_size
