"""The audit log: each change has its entry in the same transaction, and nobody changes an entry."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from app.errors import DatabaseUnavailable, NotFound
from app.foundation.db import whole
from app.foundation.db.audit import AUDITED, Actor, acting_as
from app.foundation.db.database import Database
from app.foundation.db.migrations import SCHEMA
from app.foundation.db.session import Session
from app.foundation.models.protocols import TokenCounter
from app.intake.runs.feedback.service import Ratings
from app.intake.runs.feedback.store import FeedbackEntry
from app.operations.access import AuditEntry, AuditLog, AuditQuestion, ManagedKeys, sweep_entries
from app.operations.maintenance import Maintenance
from app.storage.links.relations import Link
from app.storage.links.service import Links
from app.storage.memories.memory import NewMemory
from app.storage.memories.remember import WriteGate
from app.storage.memories.service import Memories
from app.storage.tenants.service import Workspaces
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.storage.tenants.test_keys import a_key, bearer, calling

NOTE = NewMemory(kind="note", body="The harbour closes at noon on the first Sunday of May.")
OTHER = NewMemory(kind="note", body="Twelve ferries leave the pier each hour in summer.")
AGE = "UPDATE audit SET at = now() - interval '3 days' WHERE workspace_id = %(id)s"
RUN = "INSERT INTO runs (workspace_id, run_id) VALUES (%(workspace_id)s, %(run_id)s)"
UNAUDITED: Mapping[str, str] = {
    "audit": "it is the log",
    "workspaces": "a cluster has no triggers on tables of all nodes: what changes settings notes it",
    "embedding_models": "upkeep: the log of the service names a change of model",
    **dict.fromkeys(
        ("lexical", "lexeme_statistics", "embeddings", "pending_embeddings", "titles", "pending_links"),
        "made of memories",
    ),
    **dict.fromkeys(("recall_hits", "run_sections", "activation_cues"), "a part of what logs a read"),
    **dict.fromkeys(("messages", "artifacts", "artifact_touches", "session_acts"), "a part of a session's turns"),
    **dict.fromkeys(("cue_evidence", "cue_revisions"), "a part of a cue"),
    **dict.fromkeys(
        ("judgements", "issues", "issue_occurrences", "compressions", "effects"),
        "made of reports and runs",
    ),
    **dict.fromkeys(("ingestions", "refusals"), "logs"),
    "accesses": "counted from a log",
    "maps": "a cache",
}
"""The tables whose changes are not logged, with the reason."""


async def logged(database: Database, workspace: Workspace | None, **asked: Any) -> list[AuditEntry]:
    return list(await AuditLog(database=database).entries(workspace, AuditQuestion(**asked)))


def test_every_table_is_audited_or_says_why_not() -> None:
    assert set(AUDITED) | set(UNAUDITED) == set(SCHEMA)
    assert not set(AUDITED) & set(UNAUDITED)
    for name, key in AUDITED.items():
        assert set(key) <= set(SCHEMA[name].columns)


async def test_the_triggers_are_those_of_the_audited_tables(database: Database) -> None:
    stated = """
    SELECT tgrelid::regclass::text, string_to_array(encode(tgargs, 'escape'), '\\000') FROM pg_trigger
    WHERE tgname LIKE 'audit%%' AND NOT tgisinternal
    """
    async with database.across() as session:
        rows = await session.rows(stated)
    assert {name for name, _ in rows} == set(AUDITED)
    for name, arguments in rows:
        _, key, marks, workspace, _, identity, _ = arguments
        assert tuple(key.split(",")) == AUDITED[name], name
        assert set(identity.split(",")) == set(SCHEMA[name].key), name
        assert workspace == ("workspace_id" if "workspace_id" in SCHEMA[name].columns else ""), name
        assert {*marks.strip("{}").split(",")} - {""} <= set(SCHEMA[name].columns), name


async def test_links_of_one_pair_are_counted_once_each(
    database: Database, counter: TokenCounter, workspace: Workspace
) -> None:
    gate = WriteGate(database=database, counter=counter)
    one, two = (await gate.remember(workspace, [NOTE, OTHER])).ids
    assert one is not None
    assert two is not None
    for weight in (1.0, 0.5):
        links = [Link(one, two, relation, weight) for relation in ("refines", "contradicts")]
        await Links(database=database).give(workspace, links)
    pair = (f"{one}/{two}",)
    entries = await logged(database, workspace, object="link")
    assert [(entry.action, entry.count, entry.ids) for entry in entries] == [("change", 2, pair), ("add", 2, pair)]


async def test_a_change_is_logged_with_who_asked(
    database: Database, counter: TokenCounter, workspace: Workspace
) -> None:
    with acting_as(Actor("key scout", "POST /api/memories", "r-1")):
        found = await WriteGate(database=database, counter=counter).remember(workspace, [NOTE])
    memory_id = found.ids[0]
    assert memory_id is not None
    await Ratings(database=database).rate(workspace, FeedbackEntry(memory_id=memory_id, rating=1))
    await Memories(database=database).delete(workspace, ids=[memory_id])
    deleted, rated, judged, stored = await logged(database, workspace)
    assert (stored.who, stored.operation, stored.request_id) == ("key scout", "POST /api/memories", "r-1")
    assert (stored.action, stored.object, stored.count, stored.ids) == ("add", "memory", 1, (str(memory_id),))
    assert stored.ids_hash == sha256(str(memory_id).encode()).hexdigest()
    assert {(item.action, item.object) for item in (rated, judged)} == {("add", "rating"), ("change", "memory")}
    assert (deleted.action, deleted.ids, deleted.who) == ("change", (str(memory_id),), "service")


async def test_a_bulk_write_is_one_entry(database: Database, counter: TokenCounter, workspace: Workspace) -> None:
    memories = [NewMemory(kind="note", body=f"The ferry number {place} has {place} decks.") for place in range(30)]
    found = await WriteGate(database=database, counter=counter).remember(workspace, memories)
    (entry,) = await logged(database, workspace)
    assert (entry.action, entry.object, entry.count) == ("add", "memory", 30)
    assert entry.ids == tuple(sorted(map(str, found.ids)))
    assert entry.ids_hash == sha256("\n".join(sorted(map(str, found.ids))).encode()).hexdigest()
    await WriteGate(database=database, counter=counter).remember(workspace, memories)
    assert len(await logged(database, workspace)) == 1, "what changes nothing is not logged"


async def test_what_is_rolled_back_leaves_no_entry(database: Database, workspace: Workspace) -> None:
    with pytest.raises(NotFound):
        await Ratings(database=database).rate(workspace, FeedbackEntry(memory_id=uuid4(), rating=1))

    async def fail() -> None:
        async with database.session(workspace) as session:
            await session.execute(RUN, {"run_id": "r"})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()
    assert await logged(database, workspace) == []


async def test_the_services_role_cannot_change_an_entry(database: Database, workspace: Workspace) -> None:
    async with database.session(workspace) as session:
        await session.execute(RUN, {"run_id": "r"})
    for statement in ("UPDATE audit SET who = 'x'", "DELETE FROM audit", "TRUNCATE audit"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            async with database.session(workspace) as session:
                await session.execute(statement)
    (entry,) = await logged(database, workspace)
    assert (entry.object, entry.who) == ("run", "service")


async def test_an_export_of_a_workspace_that_is_not_made_leaves_no_entry(own_services: Services) -> None:
    async with calling(own_services) as client:
        response = await client.get("/api/feedback/export", headers={"x-workspace": "unmade"})
    assert (response.status_code, response.text) == (200, "")
    async with own_services.database.across() as session:
        assert await session.column("SELECT workspace_id FROM audit WHERE workspace_id = 0") == []


async def test_entries_expire(own_services: Services, counter: TokenCounter) -> None:
    database = own_services.database
    old, new = [await a_workspace(database, counter, name) for name in ("old", "new")]
    async with database.across() as session:
        await session.execute(
            "UPDATE audit SET at = now() - interval '3 days' WHERE workspace_id = %(id)s", {"id": old.workspace_id}
        )
    assert await sweep_entries(database.across, days=0) == 0
    assert await sweep_entries(database.across, days=2) == 1
    assert [len(await logged(database, workspace)) for workspace in (old, new)] == [0, 1]


async def a_workspace(database: Database, counter: TokenCounter, name: str) -> Workspace:
    await WriteGate(database=database, counter=counter).remember(
        await Workspaces(database=database).resolve(name), [NOTE]
    )
    return await Workspaces(database=database).resolve(name)


async def test_an_admin_asks_for_the_log_page_by_page(own_services: Services) -> None:
    admin, writer = [await a_key(own_services, scope, workspaces=("papers",)) for scope in ("admin", "write")]
    everywhere = await a_key(own_services, "admin")
    async with calling(own_services) as client:
        for place in range(3):
            body = {"kind": "note", "body": f"Pier {place} was closed on {place + 1} May."}
            headers = bearer(writer) | {"X-Request-ID": f"request-{place}"}
            assert (await client.post("/api/memories", json=body, headers=headers)).status_code == 200
        await client.get("/api/feedback/export", headers=bearer(admin))
        assert (await client.get("/api/audit", headers=bearer(writer))).status_code == 403
        asked = {"object": "memory", "limit": "2"}
        first = (await client.get("/api/audit", params=asked, headers=bearer(admin))).json()
        rest = (await client.get("/api/audit", params=asked | {"before": first["next"]}, headers=bearer(admin))).json()
        entries = [*first["entries"], *rest["entries"]]
        assert [entry["request_id"] for entry in entries] == ["request-2", "request-1", "request-0"]
        assert {(entry["who"], entry["operation"], entry["key_id"]) for entry in entries} == {
            ("key test", "POST /api/memories", str(writer.key.key_id))
        }
        assert rest["next"] is None
        exported = (await client.get("/api/audit", params={"action": "export"}, headers=bearer(admin))).json()
        assert [entry["object"] for entry in exported["entries"]] == ["rating"]
        assert await spans(client, bearer(admin)) == [4, 0]
        assert (await client.get("/api/audit?store=true", headers=bearer(admin))).status_code == 403
        await ManagedKeys(own_services.database).revoke(writer.key.key_id)
        store = (await client.get("/api/audit?store=true", headers=bearer(everywhere))).json()["entries"]
    assert [(entry["action"], entry["object"]) for entry in store] == [("change", "key"), *[("add", "key")] * 3]


async def test_an_erased_user_takes_nothing_out_of_the_log_of_another(database: Database, workspace: Workspace) -> None:
    for user in ("alice", "bob"):
        async with database.session(workspace.of(user)) as session:
            await session.execute(RUN, {"run_id": f"run of {user}"})
    await Maintenance(database=database).forget_user(workspace, user="alice")
    left = await logged(database, workspace, object="run")
    assert [(entry.user, entry.ids) for entry in left] == [("bob", ("run of bob",))]


async def test_a_user_whose_erasure_was_broken_off_is_erased_by_the_next(
    database: Database, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for writer in (workspace.of("alice"), workspace):
        async with database.session(writer) as session:
            await session.execute(RUN, {"run_id": f"run of {writer.user or 'nobody'}"})
    erase = whole.erase_entries_of

    async def broken_off(session: Session, workspace_id: int, user: str, names: Sequence[str]) -> None:
        of_user = "SELECT count(*) FROM runs WHERE workspace_id = %(workspace)s AND user_id = %(user)s"
        if not await session.value(of_user, {"workspace": workspace_id, "user": user}):
            raise DatabaseUnavailable("the process was killed")
        await erase(session, workspace_id, user, names)

    monkeypatch.setattr(whole, "erase_entries_of", broken_off)
    with pytest.raises(DatabaseUnavailable):
        await Maintenance(database=database).forget_user(workspace, user="alice")
    monkeypatch.undo()
    await Maintenance(database=database).forget_user(workspace, user="alice")
    left = await logged(database, workspace, object="run")
    assert [(entry.user, entry.ids) for entry in left] == [("", ("run of nobody",))]


async def spans(client: httpx.AsyncClient, headers: dict[str, str]) -> list[int]:
    """Returns the numbers of entries after and before an hour ago."""
    hour = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    pages = [await client.get("/api/audit", params={name: hour}, headers=headers) for name in ("since", "until")]
    # A moment without a zone is in UTC, also the first of all.
    first = await client.get("/api/audit", params={"until": "0001-01-01T00:00:00"}, headers=headers)
    assert first.json()["entries"] == []
    early = await client.get("/api/audit", params={"until": "0001-01-01T00:00:00+14:00"}, headers=headers)
    assert (early.status_code, "until" in early.text) == (400, True)
    return [len(page.json()["entries"]) for page in pages]


async def test_each_task_acts_for_its_own(database: Database, workspace: Workspace) -> None:
    async def change(number: int) -> None:
        with acting_as(Actor(f"key {number}")):
            async with database.session(workspace) as session:
                await session.execute(RUN, {"run_id": str(number)})

    await asyncio.gather(*(change(number) for number in range(5)))
    found = {(entry.who, entry.ids) for entry in await logged(database, workspace)}
    assert found == {(f"key {number}", (str(number),)) for number in range(5)}


async def test_the_log_names_the_reviewer_and_every_memory_of_a_batch(client: httpx.AsyncClient) -> None:
    notes = [{"kind": "note", "body": f"Berth {number} is closed in week {number}."} for number in range(30)]
    ids = [(await client.post("/api/memories", json=note)).json()["ids"][0] for note in notes]
    panel = {"Sec-Fetch-Site": "same-origin", "X-Reviewer": "Zo%C3%AB%20Ray"}
    sent = await client.patch("/api/memories", json={"state": "deleted", "ids": ids}, headers=panel)
    assert len(sent.json()["changed"]) == 30
    found = (await client.get("/api/audit", params={"id": ids[7], "action": "change"})).json()["entries"]
    assert [(one["who"], sorted(one["ids"])) for one in found] == [("panel · Zoë Ray", sorted(ids))]
    for who in ("panel", "panel · Zoë Ray"):
        assert (await client.get("/api/audit", params={"who": who})).json()["entries"] == found
    assert (await client.get("/api/audit", params={"who": "panel · Zoë"})).json()["entries"] == []
    # Another program may write the header: it is nobody's name there.
    other = {"X-Reviewer": "Zo%C3%AB%20Ray"}
    await client.patch("/api/memories", json={"state": "live", "ids": ids[:1]}, headers=other)
    latest = (await client.get("/api/audit", params={"id": ids[0]})).json()["entries"][0]
    assert latest["who"] == "anyone"


async def test_the_log_is_found_by_words_of_a_memory_that_is_gone(client: httpx.AsyncClient) -> None:
    notes = [{"kind": "note", "title": f"Berth {n}", "body": f"Berth {n} is closed."} for n in range(12)]
    ids = [(await client.post("/api/memories", json=note)).json()["ids"][0] for note in notes]
    await client.patch("/api/memories", json={"state": "deleted", "ids": ids})
    asked = {"id": "CLOSED berth 11", "action": "change"}
    (entry,) = (await client.get("/api/audit", params=asked)).json()["entries"]
    assert (entry["ids"][0], entry["titles"][0], len(entry["titles"])) == (ids[11], "Berth 11", 10)
    assert (await client.get("/api/audit", params={"id": "berth 99"})).json()["entries"] == []
    assert (await client.get("/api/audit", params={"id": "anyone"})).json()["entries"]


async def test_an_id_finds_the_entries_of_its_memory_and_not_of_those_that_quote_it(client: httpx.AsyncClient) -> None:
    (first,) = (await client.post("/api/memories", json={"kind": "note", "title": "Berth", "body": "Berth 1."})).json()[
        "ids"
    ]
    quoting = {"kind": "note", "title": "Quote", "body": f"See {first}."}
    (second,) = (await client.post("/api/memories", json=quoting)).json()["ids"]
    await client.patch("/api/memories", json={"state": "deleted", "ids": [second]})
    entries = (await client.get("/api/audit", params={"id": first})).json()["entries"]
    assert [entry["ids"] for entry in entries] == [[first]]
