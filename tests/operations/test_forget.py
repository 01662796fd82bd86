"""A subject is forgotten: its word stands in no table, answer or dump any longer, and comes with no file again."""

import json
from collections import Counter
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import httpx
import pytest

from app.errors import DatabaseUnavailable, InvalidInput
from app.foundation.db import phrases
from app.foundation.db.database import Database
from app.foundation.db.phrases import pattern_of
from app.operations.dump import Dumps
from app.operations.forget import Phrases, checked_phrase
from app.operations.maintenance import empty_trash
from app.storage.tenants.service import Workspaces
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.interfaces.http.calls import embed, get, patch, post

TABLES = """
SELECT relname, EXISTS (SELECT FROM pg_attribute WHERE attrelid = oid AND attname = 'workspace_id') AS owned
FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') ORDER BY 1
"""


async def tables_with(database: Database, client: httpx.AsyncClient, word: str) -> dict[str, int]:
    """Returns the numbers of rows in which a word stands, whatever the column: text, JSON or words of an index.

    Rows that belong to other tests' workspaces are not read: to read all vectors as text takes seconds.
    """
    found = Counter[str]()
    own = (await Workspaces(database=database).resolve(client.headers["X-Workspace"])).workspace_id
    async with database.across() as session:
        for table in await session.rows(TABLES):
            rows = f'SELECT * FROM "{table.relname}"' + (f" WHERE workspace_id = {own}" if table.owned else "")
            statement = f"SELECT count(*) FROM ({rows}) t WHERE t::text ILIKE %(word)s"
            found[table.relname] = await session.value(statement, {"word": f"%{word}%"})
    return {table: count for table, count in found.items() if count}


async def answers_with(client: httpx.AsyncClient, word: str, names: dict[str, str]) -> set[str]:
    """Returns the GET routes whose answers hold a word; `names` fill the routes' parameters."""
    document = (await client.get("/schema/openapi.json")).json()
    found = set[str]()
    for route, methods in document["paths"].items():
        if "get" not in methods or "/stream" in route:
            continue
        address = route
        for name, value in names.items():
            address = address.replace(f"{{{name}}}", quote(value, safe=""))
        answer = None if "{" in address else await client.get(address)
        if answer is not None and answer.status_code == 200 and word.lower() in answer.text.lower():
            found.add(route)
    for path, body in {
        "/api/search": {"query": f"what of {word}"},
        "/api/history": {"query": f"what of {word}"},
        "/api/activate": {"plan": f"write an e-mail to {word}"},
    }.items():
        answer = await client.post(path, json=body)
        shown = {key: value for key, value in answer.json().items() if key not in {"query", "plan"}}
        if word.lower() in json.dumps(shown).lower():
            found.add(path)
    return found


def report(word: str) -> str:
    return (
        f"# Interview notes\n\nDate: 2026-05-05\n\n{word} lives in Leith and asked for a refund of 80 pounds."
        "\n\n## Pumps\n\nPump 3 ran 400 hours before its bearing was changed.\n"
    )


async def store_everywhere(client: httpx.AsyncClient, services: Services, word: str) -> dict[str, str]:
    """Stores a word in every room; returns the names by which routes are asked."""
    await post(client, "/api/reports", {"path": "people.md", "content": report(word)})
    note = await post(
        client, "/api/memories", {"kind": "note", "body": f"{word}'s calls come after six.", "tags": [word]}
    )
    gone = await post(client, "/api/memories", {"kind": "note", "body": f"The cat of {word.upper()} is grey."})
    await patch(client, "/api/memories", {"state": "deleted", "ids": gone["ids"]})
    said = [
        {"role": "user", "text": f"Never write to\n{word} by e-mail, always call. The others get a letter."},
        {"role": "assistant", "text": "Noted.", "tools": [{"name": "Edit", "input": {"file_path": f"crm/{word}.py"}}]},
        {"role": "user", "text": "And close the ticket of the pump."},
    ]
    await post(client, "/api/sessions?wait=true", {"id": f"call {word}", "messages": said})
    run = {"run_id": f"answer-{word}-1", "task": f"Answer the complaint of {word}", "final_score": 8, "remember": True}
    output = f"{word} gets the refund of 80 pounds and a call on Tuesday, and the pump's bearing is changed again."
    await post(client, "/api/runs?wait=true", {**run, "output": output})
    await embed(client, services)
    shown = await post(client, "/api/history", {"query": f"What do we know about {word}?", "run_id": "r2"})
    context = await post(client, "/api/contexts", {"observation": f"{word} writes again"})
    await post(client, "/api/activate", {"plan": f"Write an e-mail to {word}", "run_id": "r2"})
    pump = next(
        item for item in (await get(client, "/api/memories?kind=chunk"))["memories"] if "Pump 3" in item["body"]
    )
    rating = {"rating": 1, "comment": f"right, as {word} said"}
    await post(client, f"/api/memories/{pump['id']}/feedback", rating)
    await post(client, "/api/cues", {"kind": "preference", "trigger": f"a call to {word}", "lesson": "Call after six."})
    return {
        "memory_id": note["ids"][0],
        "session_id": f"call {word}",
        "run_id": run["run_id"],
        "recall_id": shown["recall_id"],
        "context_id": context["id"],
    }


@pytest.mark.meaning
async def test_a_word_is_forgotten_everywhere(
    client: httpx.AsyncClient, services: Services, database: Database
) -> None:
    word = f"Marlow{uuid4().hex[:8]}"
    names = await store_everywhere(client, services, word)
    assert len(await answers_with(client, word, names)) > 8
    before = await tables_with(database, client, word)
    assert before.keys() >= {
        "memories", "lexical", "sources", "runs", "recalls", "contexts", "activations", "feedback", "cue_evidence",
        "artifacts", "messages", "observations", "audit",
    }  # fmt: skip
    listed = await post(client, "/api/forget", {"phrase": f" {word.lower()} "})
    assert (listed["done"], listed["in_trash"]) == (False, 1)
    assert listed["memories"].keys() == {"chunk", "note", "message", "observation", "cue"}
    assert listed["rows"].keys() >= {"runs", "recalls", "contexts", "feedback", "sources", "artifacts", "activations"}
    assert "people.md" in " ".join(listed["files"])
    assert await tables_with(database, client, word) == before

    done = await post(client, "/api/forget", {"phrase": word, "yes": True})
    assert (done["done"], done["total"]) == (True, listed["total"])
    assert any("backups" in reason for reason in done["stays"])
    assert await tables_with(database, client, word) == {}
    workspace = await Workspaces(database=database).resolve(client.headers["X-Workspace"])
    lines = b"".join([line async for line in Dumps(database=database).dump(workspace)])
    assert word.lower().encode() not in lines.lower()
    again = await post(client, "/api/forget", {"phrase": word, "yes": True})
    assert again["total"] == 0

    kept = await get(client, "/api/memories")
    assert any("Pump 3 ran 400 hours" in item["body"] for item in kept["memories"])
    (run,) = (await get(client, "/api/runs"))["runs"]
    assert run["final_score"] == 8
    assert run["task"].startswith("Answer the complaint of [forgotten ")
    assert await answers_with(client, word, names) == set()
    (entry,) = [item for item in (await get(client, "/api/audit"))["entries"] if item["action"] == "erase"][:1]
    assert (entry["object"], entry["ids"]) == ("phrase", [f"{listed['total']} places"])


async def test_what_was_forgotten_does_not_come_with_the_next_reading(
    client: httpx.AsyncClient, services: Services, database: Database, tmp_path: Path
) -> None:
    word = f"Marlow{uuid4().hex[:8]}"
    workspace = await Workspaces(database=database).resolve(client.headers["X-Workspace"])
    file, log = tmp_path / "people.md", tmp_path / "call.jsonl"
    file.write_text(report(word))
    turns = [{"role": "user", "text": f"Call {word} on Tuesday."}, {"role": "assistant", "text": "I call on Tuesday."}]
    log.write_text("".join(f"{json.dumps(turn)}\n" for turn in turns))
    await services.ingestions.ingest(workspace, [tmp_path])
    workspace = await Workspaces(database=database).resolve(workspace.name)
    await post(client, "/api/forget", {"phrase": word, "yes": True})
    file.write_text(report(word) + "\n## Valves\n\nValve 7 was replaced in June by the plant's own team.\n")
    log.write_text(log.read_text() + json.dumps({"role": "user", "text": "And then write it down."}) + "\n")
    async with database.across() as session:
        aged = "UPDATE memories SET valid_until = now() - interval '40 days' WHERE valid_until IS NOT NULL"
        await session.execute(f"{aged} AND workspace_id = {workspace.workspace_id}")
    await empty_trash(database.across, days=30)
    await services.ingestions.ingest(workspace, [tmp_path])
    assert await tables_with(database, client, word) == {}
    bodies = [item["body"] for item in (await get(client, "/api/memories"))["memories"]]
    assert any("Valve 7" in body for body in bodies)
    assert {"I call on Tuesday.", "And then write it down."} <= set(bodies)


async def test_many_places_need_their_number(client: httpx.AsyncClient) -> None:
    turns = [{"role": "user", "text": f"Harcourt ordered {number} valves."} for number in range(101)]
    await post(client, "/api/sessions", {"id": "orders", "messages": turns})
    refused = await client.post("/api/forget", json={"phrase": "harcourt", "yes": True})
    assert refused.status_code == 400
    total = (await post(client, "/api/forget", {"phrase": "harcourt"}))["total"]
    assert f"confirm: must be {total}" in refused.json()["detail"]
    done = await post(client, "/api/forget", {"phrase": "harcourt", "yes": True, "confirm": total})
    assert done["memories"] == {"message": 101}
    assert (await get(client, "/api/memories"))["memories"] == []


@pytest.mark.parametrize("phrase", ["", "  ", "Al", "4711", "null", "x" * 300, "a\0bcd"])
def test_a_phrase_that_would_hit_too_much_is_refused(phrase: str) -> None:
    with pytest.raises(InvalidInput, match="phrase"):
        checked_phrase(phrase)


@pytest.mark.parametrize(
    ("phrase", "text", "holds"),
    [
        ("Marlow", "MARLOW's cat", True),
        ("Marlow", "Marlowe", False),
        ("Marlow", "crm/marlow_notes.md", True),
        ("Marlow", json.dumps({"a": "said\nMarlow"}), True),
        ("Ann Marlow", "Ann\n  Marlow", True),
        ("Ann Marlow", json.dumps({"a": "Ann\nMarlow"}), True),
        ("Ann Marlow", "AnnMarlow", False),
        ("O'Neil (Ltd.)", "the firm o'neil (ltd.) pays", True),
        ("Łukasz", "łUKASZ came", True),
        ("José", "Jose\u0301 came", True),
        ('the "Fox"', json.dumps({"a": 'in the "fox"'}), True),
        ("a.c", "abc", False),
        (checked_phrase("王明"), "昨天王明来过", True),
        ("Marlow", "请找Marlow谈", True),
        ("김민수", "김민수는 왔다", True),
    ],
)
async def test_a_phrase_is_found_as_whole_words(database: Database, phrase: str, text: str, *, holds: bool) -> None:
    async with database.across() as session:
        found = await session.value("SELECT %(text)s ~ %(pattern)s", {"text": text, "pattern": pattern_of(phrase)})
    assert found is holds


async def test_names_that_differ_in_case_alone_stay_apart(client: httpx.AsyncClient, database: Database) -> None:
    word = f"Marlow{uuid4().hex[:8]}"
    said = [
        {"role": "user", "text": "Write the class and its factory."},
        {
            "role": "assistant",
            "text": "Done.",
            "tools": [{"name": "Write", "input": {"file_path": f"crm/{name}.py"}} for name in (word, word.lower())],
        },
    ]
    await post(client, "/api/sessions?wait=true", {"id": "factory", "messages": said})
    for name in (word, word.lower(), word.upper()):
        await post(client, "/api/runs?wait=true", {"run_id": f"answer-{name}", "task": "Answer the letter"})
    done = await post(client, "/api/forget", {"phrase": word, "yes": True})
    assert any(reason.startswith("names of users") for reason in done["stays"])
    assert await tables_with(database, client, word) == {}
    names = [run["run_id"] for run in (await get(client, "/api/runs"))["runs"]]
    assert len(set(names)) == 3


async def test_no_key_and_no_fixed_value_is_the_phrase(
    client: httpx.AsyncClient, database: Database, workspace: Workspace
) -> None:
    turns = [
        {
            "role": "assistant",
            "text": "I look.",
            "tools": [{"name": "Read", "input": {"ledger": "valves.md"}, "result": "Valve 4 stands open."}],
        },
    ]
    await post(client, "/api/sessions?wait=true", {"id": "valves", "messages": turns})
    await post(client, "/api/contexts", {"observation": "Valve 4 leaks", "model": "claude-sonnet-4"})
    await post(client, "/api/search", {"query": "valve"})
    before = await documents(database)
    async with database.session(workspace, transaction=False) as session:
        formats = await session.column("SELECT format FROM contexts UNION SELECT format FROM sessions")
    assert any('"result"' in text for text in before)
    for word in (
        "result",
        "name",
        "input",
        "ledger",
        "labels",
        "tokens",
        "claude",
        "contextual",
        "relevance",
        *formats,
    ):
        listed = await post(client, "/api/forget", {"phrase": word, "yes": True})
        assert (word, listed["total"], listed["memories"]) == (word, 0, {})
    assert await documents(database) == before


async def documents(database: Database) -> list[str]:
    statement = """
    SELECT document::text || format || model FROM contexts UNION SELECT tools::text FROM messages
    UNION SELECT format FROM sessions ORDER BY 1
    """
    async with database.across(transaction=False) as session:
        return await session.column(statement)


async def test_a_key_stays_where_its_word_is_taken_out_of_a_value(
    client: httpx.AsyncClient, database: Database
) -> None:
    word = f"Marlow{uuid4().hex[:8]}"
    metadata = {
        word: 1.10,
        "by": [f"{word} wrote", {"said": f'the "{word}"\nand José'}],
        "figure": 12345678901234567890,
    }
    await post(
        client, "/api/runs?wait=true", {"run_id": f"r-{word}", "task": "Answer the letter", "metadata": metadata}
    )
    job = "SELECT priors_enqueue('extract_cues', 1, 'x', %(lock)s, %(arguments)s::jsonb, 90000)"
    workspace = await Workspaces(database=database).resolve(client.headers["X-Workspace"])
    given = {"workspace_id": workspace.workspace_id, "session_id": f"call {word}"}
    lock = f"extract_cues:{workspace.workspace_id}:call {word}"
    async with database.across() as session:
        await session.value(job, {"lock": lock, "arguments": json.dumps(given)})
    await post(client, "/api/forget", {"phrase": word, "yes": True})
    async with database.across() as session:
        (stored,) = await session.column(
            "SELECT metadata FROM runs WHERE workspace_id = %(own)s", {"own": workspace.workspace_id}
        )
        (row,) = await session.rows(
            "SELECT args, queueing_lock FROM procrastinate_jobs WHERE args ->> 'workspace_id' = %(own)s::text"
            " AND task_name = 'extract_cues'",
            {"own": workspace.workspace_id},
        )
    assert stored.keys() == metadata.keys()
    assert (stored[word], stored["figure"]) == (1.1, 12345678901234567890)
    sign = stored["by"][0].removesuffix(" wrote")
    assert sign.startswith("[forgotten ")
    assert stored["by"][1] == {"said": f'the "{sign}"\nand José'}
    assert row.args == {**given, "session_id": f"call {sign}"}
    assert row.queueing_lock == f"extract_cues:{workspace.workspace_id}:call {sign}"


async def test_a_failure_in_between_removes_nothing(
    client: httpx.AsyncClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = f"Marlow{uuid4().hex[:8]}"
    await post(client, "/api/memories", {"kind": "note", "body": f"{word} calls after six."})
    await post(client, "/api/runs?wait=true", {"run_id": "r1", "task": f"Answer {word}"})
    before = await tables_with(database, client, word)
    workspace = await Workspaces(database=database).resolve(client.headers["X-Workspace"])
    redact = phrases.redact

    async def break_off(*given: object) -> None:
        await redact(*given)  # type: ignore[arg-type]
        raise DatabaseUnavailable("the server was stopped")

    monkeypatch.setattr(phrases, "redact", break_off)
    with pytest.raises(DatabaseUnavailable):
        await Phrases(database=database).forget(workspace, word, yes=True)
    assert await tables_with(database, client, word) == before
    monkeypatch.undo()
    assert (await Phrases(database=database).forget(workspace, word, yes=True)).memories["note"] == 1
    assert await tables_with(database, client, word) == {}


async def test_a_forgotten_turn_stays_away_when_its_session_is_deleted_and_sent_again(
    client: httpx.AsyncClient, database: Database
) -> None:
    word = f"Marlow{uuid4().hex[:8]}"
    turns = [
        {"role": "user", "text": f"Call {word} on Tuesday.", "id": "m1"},
        {"role": "assistant", "text": "I call on Tuesday.", "id": "m2"},
        {
            "role": "assistant",
            "text": "",
            "id": "m3",
            "tools": [{"name": "Write", "input": {"file_path": f"{word}.md"}}],
        },
    ]
    await post(client, "/api/sessions?wait=true", {"id": "call", "messages": turns})
    await post(client, "/api/forget", {"phrase": word, "yes": True})
    assert (await client.delete("/api/sessions/call")).is_success
    await post(client, "/api/sessions?wait=true", {"id": "call", "messages": turns})
    shown = (await get(client, "/api/sessions/call"))["messages"]
    assert [message["text"] for message in shown] == ["I call on Tuesday."]
    assert await tables_with(database, client, word) == {}
