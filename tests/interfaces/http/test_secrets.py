"""No secret is stored, wherever it is sent."""

from urllib.parse import quote

import httpx

from app.foundation.db.database import Database
from app.foundation.db.migrations import SCHEMA
from app.foundation.safety.secrets import mask
from tests.interfaces.http.calls import OUTPUT, get, post


async def test_no_table_holds_a_secret(client: httpx.AsyncClient, database: Database, workspace_name: str) -> None:
    key = "AKIAIOSFODNN7EXAMPLE"
    run_id, seen = f"r {key}", mask(f"r {key}").text
    named: dict[str, str] = {"task": f"audit {key}", "task_type": f"type {key}", "output_path": f"s3://{key}/out.md"}
    judged = {"verdict": f"lost {key}", "issues": [f"has {key}"]}
    run = {
        **named,
        **judged,
        "run_id": run_id,
        "agent": f"scout {key}",
        "queries": [key],
        "output": f"{key} {OUTPUT}",
    }
    await post(client, "/api/runs", {**run, "metadata": {key: {"key": key}}, "stages": {"scout": {"key": key}}})
    story = await get(client, f"/api/runs/{quote(run_id)}")
    assert (story["stored"], story["run"]["metadata"]) == (True, {mask(key).text: {"key": mask(key).text}})
    asked = {name: run[name] for name in ("task", "output", "task_type", "output_path", "run_id", *judged)}
    await post(client, "/api/observations?wait=true", {**asked, "tags": [f"tag {key}"]})
    detail = {"narrative": f"It had {key}.", "facts": [f"see {key}"], **named, "verdict": f"lost {key}"}
    source = {"kind": "other", "uri": f"https://host.example/{key}", "title": key}
    memory = {"kind": "observation", "title": key, "run_id": run_id, "tags": [key], "metadata": {"key": key}}
    (memory_id,) = (await post(client, "/api/memories", {**memory, "source": source, "observation": detail}))["ids"]
    await post(client, f"/api/memories/{memory_id}/feedback", {"rating": 1, "comment": key, "run_id": run_id})
    query = {"query": f"who lost {key}", "run_id": run_id, "agent": f"scout {key}", "filters": {"tags": [key]}}
    await post(client, "/api/search", query)
    await post(client, "/api/history", {**query, "filters": {}, "stable": True})
    story = await get(client, f"/api/runs/{quote(run_id)}")
    assert [memory["run_id"] for memory in story["observations"]] == [seen] * 2
    assert story["given"]
    async with database.across() as session:
        for table in SCHEMA.values():
            if table.of_workspace and table.name != "embeddings":
                held = (
                    f"SELECT t::text FROM {table.name} t JOIN workspaces w USING (workspace_id)"
                    " WHERE w.name = %(workspace)s AND t::text ILIKE %(key)s"
                )
                found = await session.column(held, {"workspace": workspace_name, "key": f"%{key}%"})
                assert list(found) == [], table.name
