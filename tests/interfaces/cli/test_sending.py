"""`priors ingest` over HTTP has the outcome of every file that the process itself has."""

import asyncio
import shutil
from pathlib import Path

from priors_client import Client

from app.intake.reports.ingest import ingest
from app.intake.reports.store import FileOutcome, Ingestion
from app.interfaces.cli.sending import Sending
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.conftest import workspace_in

MOST_BYTES = 10_000_000
REPORT = "# Ferry {number}\n\nThe ferry of line {number} leaves the harbour at {number}:15 and is seldom late in May.\n"


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
    for path in sorted((shared_data / "reports-scylla").rglob("*"))[:60]:
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
                client=client, language=None, dry_run=dry_run, max_file_bytes=MOST_BYTES, on_progress=lambda *_: None
            )
            return sending.send([folder / "reports", folder / "missing"])

    seen: set[str] = set()
    for step in ("first", "unchanged", "changed"):
        if step == "changed":
            change(folder)
        dry = await asyncio.to_thread(send, dry_run=True)
        sent = await asyncio.to_thread(send)
        found = await ingest(services.intake(own), [folder / "reports", folder / "missing"])
        assert outcomes_of(sent) == outcomes_of(found), step
        assert {outcome.path for outcome in dry.outcomes} == {outcome.path for outcome in found.outcomes}, step
        assert (sent.counts, sent.stored) == (found.counts, found.stored)
        seen |= {outcome.status for outcome in found.outcomes}
    assert seen == {"new", "changed", "moved", "unchanged", "retired", "failed", "left_out"}


def _size(path: Path) -> int:
    return path.stat().st_size
