"""A workspace or a user leaves as a dump, comes back with the same answers, and is erased whole."""

import asyncio
import gzip
import json
import os
import re
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from app.errors import InvalidInput, NotFound
from app.foundation.db import whole
from app.foundation.db.database import Database
from app.foundation.db.migrations import SCHEMA
from app.foundation.models.protocols import TokenCounter
from app.interfaces.cli.workspace import _open_dump, _read
from app.operations.access import AuditLog, AuditQuestion
from app.operations.dump import Dumps
from app.operations.maintenance import ForgottenUser, Maintenance
from app.recall.retrieval.recall import Query
from app.recall.retrieval.service import Retrieval
from app.storage.index.models import register
from app.storage.memories.memory import NewMemory
from app.storage.memories.remember import WriteGate
from app.storage.tenants.service import Workspaces
from app.storage.tenants.workspace import UNMADE, Workspace
from app.wiring import Services
from tests.cluster import a_statement_waits
from tests.conftest import workspace_in
from tests.foundation.db.test_row_security import FILL, A, B
from tests.interfaces.cli import forked
from tests.interfaces.worker.working import jobs

"""The migration that makes the log: the schema before it is another version's."""
TEXTS = (
    "The ferry to the island leaves from pier four at nine in the morning.",
    "Zebras eat hay; the keeper feeds them at noon.",
    "The kiosk at the harbour sells forty papers a day (киоск у парома).",
)
QUERY = "when does the ferry to the island leave"
ALL = [name for name in FILL if name not in whole.LEFT_OUT]


async def lines_of(lines: AsyncIterator[bytes]) -> list[bytes]:
    """Returns the lines one by one, as a file gives them."""
    return b"".join([line async for line in lines]).splitlines(keepends=True)


async def named(database: Database, name: str) -> Workspace:
    return await Workspaces(database=database).resolve(name)


async def contents(database: Database, workspace: Workspace) -> dict[str, list[str]]:
    """Returns all rows of a workspace as text, by table, without the ids of the workspace and of the server."""
    found = {}
    async with database.session(workspace, snapshot=True) as session:
        for name, part in (await whole.parts(session)).items():
            found[name] = sorted([row async for page in whole.rows(session, part, user=False) for row in page])
    return found


@pytest_asyncio.fixture
async def filled(services: Services, counter: TokenCounter, workspace: Workspace) -> Workspace:
    """A workspace with a row in each table, and texts with their vectors."""
    notes = [NewMemory(kind="note", body=text) for text in TEXTS]
    await WriteGate(database=services.database, counter=counter).remember(workspace, notes)
    await services.embedder.embed_pending(workspace)
    async with services.database.session(workspace) as session:
        for table, rest in FILL.items():
            if table != "embeddings":
                assert await session.execute(
                    f"INSERT INTO {table} {rest}", {"w": workspace.workspace_id, "a": A, "b": B}
                )
    return await named(services.database, workspace.name)


async def hits(services: Services, workspace: Workspace, *, mode: str = "hybrid") -> dict[str, float]:
    found = await Retrieval(database=services.database, provider=services.provider).search(
        workspace, Query(text=QUERY, k=5)
    )
    assert found.mode == mode, found.degraded
    return {hit.memory.body: hit.score for hit in found.hits}


async def test_a_loaded_dump_has_every_row_and_gives_the_same_answers(services: Services, filled: Workspace) -> None:
    database = services.database
    before = await contents(database, filled)
    assert set(before) == set(ALL)
    assert all(before.values())
    lines = await lines_of(Dumps(database=database).dump(filled))
    target = await workspace_in(database, f"{filled.name}-2")
    loaded = await Dumps(database=database).load(lines, name=target.name)
    assert {name: len(rows) for name, rows in before.items()} == loaded.rows
    again = await named(database, loaded.workspace)
    assert await contents(database, again) == before
    wanted = await hits(services, filled, mode="lexical")  # FILL has a memory that is pending for its vector
    assert next(iter(wanted)) == TEXTS[0]
    assert await hits(services, again, mode="lexical") == pytest.approx(wanted)
    (entry,) = await AuditLog(database=database).entries(filled, AuditQuestion(action="export"))
    assert (entry.object, entry.count) == ("workspace", 1)
    loads = await AuditLog(database=database).entries(again, AuditQuestion())
    assert [(entry.action, entry.object) for entry in loads] == [("add", "workspace")]
    with pytest.raises(InvalidInput, match="has something already"):
        await Dumps(database=database).load(lines, name=loaded.workspace)
    await Maintenance(database=database).erase_workspace(again)


def without(lines: list[bytes], place: int) -> list[bytes]:
    return [*lines[:place], *lines[place + 1 :]]


def header(lines: list[bytes], **changed: Any) -> list[bytes]:
    return [json.dumps({**json.loads(lines[0]), **changed}).encode() + b"\n", *lines[1:]]


async def test_a_dump_that_is_not_whole_leaves_nothing(services: Services, filled: Workspace) -> None:
    lines = await lines_of(Dumps(database=services.database).dump(filled))
    name = f"{filled.name}-3"
    row = len(lines) - 2  # of a table to which no other refers
    cases: list[tuple[list[bytes], str]] = [
        ([], "no dump"),
        ([b"{}\n"], "no dump"),
        (lines[:-1], "cut off"),
        (lines[:-9], "cut off"),
        (without(lines, row), "damaged"),
        ([*lines[:row], lines[row].replace(b"0", b"1"), *lines[row + 1 :]], "damaged|cannot be stored"),
        ([lines[0], *lines[2:]], "before any table"),
        ([*lines, b"{}\n"], "after its end"),
        (header(lines, format=99), "newer: upgrade"),
        (header(lines, schema="9999"), "newer: upgrade"),
        (header(lines, workspace={"mean_length": "much"}), "cannot be stored"),
        ([re.sub(rb'"columns":\[("\w+")', rb'"columns":[\1,\1', line) for line in lines], "twice"),
        ([line.replace(b'"columns":["', b'"columns":["unheard_of","', 1) for line in lines], "unheard_of"),
    ]
    for given, reason in cases:
        with pytest.raises(InvalidInput, match=reason):
            await Dumps(database=services.database).load(given, name=name)
        assert (await named(services.database, name)).workspace_id == UNMADE, reason


def signed(lines: list[bytes]) -> list[bytes]:
    """Gives changed lines an end that fits them."""
    rows = sum(not line.startswith(b'{"table":') for line in lines[1:-1])
    end = {"end": rows, "sha256": sha256(b"".join(lines[:-1])).hexdigest()}
    return [*lines[:-1], json.dumps(end, separators=(",", ":")).encode() + b"\n"]


async def test_a_dump_of_an_earlier_schema_is_loaded_without_what_this_one_lacks(
    services: Services, filled: Workspace
) -> None:
    lines = header(await lines_of(Dumps(database=services.database).dump(filled)), schema="0031")
    named_once = [line.replace(b'"columns":["', b'"columns":["unheard_of","', 1) for line in lines]
    gone = [b'{"table":"gone","columns":["memory_id"]}\n', b'{"memory_id":"one"}\n']
    older = signed([*named_once[:-1], *gone, named_once[-1]])
    wanted = await hits(services, filled, mode="lexical")
    name = f"older-{uuid4().hex[:8]}"
    loaded = await Dumps(database=services.database).load(older, name=name)
    assert "gone" not in loaded.rows
    there = await named(services.database, name)
    assert await hits(services, there, mode="lexical") == pytest.approx(wanted)
    # Its words are read again as this version reads them, so the counts are due.
    assert await services.statistics.refresh(services.database.across, there.workspace_id)


async def test_a_dump_whose_vectors_are_of_another_model_lacks_them_all(
    services: Services, filled: Workspace, own_services: Services
) -> None:
    async with services.database.session(filled) as session:
        await session.execute("UPDATE pending_embeddings SET partial = true")
    lines = await lines_of(Dumps(database=services.database).dump(filled))
    async with own_services.database.across() as session:
        await register(session, "another", 384)
    loaded = await Dumps(database=own_services.database).load(lines)
    assert "embeddings" not in loaded.rows
    async with own_services.database.across() as session:
        assert await session.column("SELECT DISTINCT partial FROM pending_embeddings") == [False]


async def test_a_user_leaves_alone(services: Services, counter: TokenCounter, filled: Workspace) -> None:
    database = services.database
    await WriteGate(database=database, counter=counter).remember(
        filled, [NewMemory(kind="note", body="Alice feeds the zebra.", user="alice")]
    )
    lines = await lines_of(Dumps(database=database).dump(filled, user="alice"))
    text = b"".join(lines).decode()
    assert "Alice feeds" in text
    assert not any(other in text for other in TEXTS)
    await Dumps(database=database).load(lines, name=f"{filled.name}-4")
    moved = await contents(database, await named(database, f"{filled.name}-4"))
    assert {name: len(rows) for name, rows in moved.items() if rows} == {
        "memories": 1, "lexical": 1, "pending_embeddings": 1, "pending_links": 1,
    }  # fmt: skip
    counted = await Maintenance(database=database).forget_user(filled, user="alice")
    assert counted.memories == 1
    for entry in await AuditLog(database=database).entries(filled, AuditQuestion()):
        assert entry.user != "alice"
    (erased,) = await AuditLog(database=database).entries(filled, AuditQuestion(action="erase"))
    assert (erased.object, erased.ids) == ("user", ())


async def test_to_erase_a_user_of_no_workspace_asks_for_no_work(own_services: Services) -> None:
    unmade = await named(own_services.database, "nowhere")
    assert await Maintenance(database=own_services.database).forget_user(unmade, user="alice") == ForgottenUser()
    assert await jobs(own_services) == set()


@forked.shared()
def test_the_commands_tell_what_was_erased_and_the_log_by_which_command(own_database_url: str, tmp_path: Path) -> None:
    settings = {"PRIORS_DATABASE_URL": own_database_url, "PRIORS_DATA_DIR": str(tmp_path)}

    def call(*words: str) -> CompletedProcess[str]:
        return forked.run([*words], {"PATH": os.environ["PATH"], **settings})

    erased = call("workspace", "erase", "-w", "nowhere", "--user", "alice", "--yes")
    assert (erased.returncode, erased.stdout) == (
        0, "nothing is stored of the user alice of the workspace nowhere\n",
    )  # fmt: skip
    assert "nothing was ever written" in call("workspace", "erase", "-w", "nowhere", "--yes").stderr
    assert call("workspace", "language", "de", "-w", "papers").returncode == 0
    assert call("workspace", "dump", "-w", "papers", "--user", "alice").stderr.startswith("0 rows, ")
    assert call("key", "create", "scout").returncode == 0
    entries = json.loads(call("api", "GET", "/api/audit", "store=true", "--owner", "--json").stdout)["entries"]
    shown = [(entry["who"], entry["operation"], entry["action"], entry["object"]) for entry in entries]
    assert ("cli", "priors key create", "add", "key") in shown
    refused = call("api", "GET", "/api/audit", "action=fly", "--owner")
    assert (refused.returncode, "action: " in refused.stderr) == (2, True), refused.stderr


async def test_an_erased_workspace_leaves_no_row(services: Services, filled: Workspace) -> None:
    database = services.database
    counts = await Maintenance(database=database).erase_workspace(filled)
    assert set(counts) == {*FILL, "workspaces"}
    assert counts["memories"] == len(TEXTS) + 2
    async with database.across() as session:
        for table in SCHEMA.values():
            if table.of_workspace:
                left = f"SELECT count(*) FROM {table.name} WHERE workspace_id = %(id)s"
                assert await session.value(left, {"id": filled.workspace_id}) == 0, table.name
        jobs = "SELECT count(*) FROM procrastinate_jobs WHERE args ->> 'workspace_id' = %(id)s::text"
        assert await session.value(jobs, {"id": filled.workspace_id}) == 0
    erased = await AuditLog(database=database).entries(None, AuditQuestion(action="erase"))
    assert [filled.name] in [list(entry.ids) for entry in erased]
    with pytest.raises(NotFound):
        await Maintenance(database=database).erase_workspace(await named(database, filled.name))


async def test_what_is_written_while_a_workspace_is_erased_goes_with_it(services: Services, filled: Workspace) -> None:
    database = services.database
    async with database.session(filled) as session:
        await session.execute("INSERT INTO runs (workspace_id, run_id) VALUES (%(workspace_id)s, 'late')")
        erasing = asyncio.create_task(Maintenance(database=database).erase_workspace(filled))
        while not erasing.done() and not await a_statement_waits(database.url):  # noqa: ASYNC110 - the database tells it
            await asyncio.sleep(0.01)
    assert (await erasing)["runs"] == 2


@pytest.mark.parametrize("name", ["dump.jsonl", "dump.jsonl.gz"])
def test_a_file_is_read_as_it_was_written(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with _open_dump(path) as file:
        file.writelines(b"%d\n" % number for number in range(2000))
    with _read(path) as lines:
        assert list(lines) == [b"%d\n" % number for number in range(2000)]
    assert (gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()).count(b"\n") == 2000
    assert sorted(tmp_path.iterdir()) == [path]
    assert not path.stat().st_mode & 0o077
    if name.endswith(".gz"):
        path.write_bytes(path.read_bytes()[:-20])
        with _read(path) as lines, pytest.raises(InvalidInput, match="damaged or cut off"):
            list(lines)
