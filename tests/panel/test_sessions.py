"""Sessions with their cues and artifacts, the cues, and activation in Ask."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import msgspec
import pytest
import pytest_asyncio
from playwright.async_api import expect

from app.intake.sessions.formats.detect import read_log
from app.operations.examples import SESSIONS
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.panel.conftest import NARROW, WIDE, Open, tried
from tests.panel.test_layout import LEAST_TARGET, TARGETS
from tests.panel.test_memories import asked
from tests.panel.test_safety import violations
from tests.recall.cues.extraction.test_records import NYGARD

pytestmark = pytest.mark.test_all("browser")

JSON = {"Content-Type": "application/json"}
RULE = "Never drop columns directly in production migrations."
QUOTE = "never drop columns directly in production migrations"
CUES: tuple[dict[str, Any], ...] = (
    {
        "kind": "correction", "trigger": "A migration drops a column", "lesson": RULE, "consequence": "severe",
        "evidence": [{"session": "session-47", "message": 3, "quote": QUOTE}], "files": ["docs/migrations.md"],
        "action_types": ["schema-change:column-removal"],
    },
    {
        "kind": "decision", "trigger": "The public API gets a new version", "lesson": "The version stands in the path.",
        "details": {"subject": "API versions", "choice": "path", "alternatives": ["header", "query parameter"]},
        "evidence": [{"session": "session-118", "message": 2, "quote": "go with the version in the path"}],
        "action_types": ["api-design"],
    },
    {
        "kind": "correction", "trigger": "Dropping a column of a table in production", "trust": "imported",
        "lesson": "A column outlives the last release that knows of it.",
        "action_types": ["schema-change:column-removal"],
    },
)  # fmt: skip


def sessions(folder: Path) -> Iterator[dict[str, Any]]:
    """Yields the example sessions as they are posted."""
    for path in sorted(folder.glob("*.jsonl")):
        log = read_log(path.read_bytes(), suffix=path.suffix, session_id=path.stem)
        assert log is not None
        (session,) = log.transcripts
        turns = [
            {
                "role": turn.role,
                "text": turn.text,
                "at": turn.at and turn.at.isoformat(),
                "tools": [{"name": tool.name, "input": tool.input, "result": tool.result} for tool in turn.tools],
            }
            for turn in session.turns
        ]
        yield {"id": session.session_id, "title": session.title, "folder": session.folder, "messages": turns}


async def tell(api: httpx.AsyncClient) -> list[str]:
    """Stores the three cues; returns their ids."""
    return [(await api.post("/api/cues", json=cue)).raise_for_status().json()["id"] for cue in CUES]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def taught(server: str) -> AsyncIterator[str]:
    """A workspace with the example sessions and cues, which its tests leave as it is."""
    name = f"taught-{uuid4().hex[:12]}"
    async with httpx.AsyncClient(base_url=server, headers={"X-Workspace": name}, timeout=120) as client:
        for session in sessions(SESSIONS):
            content = msgspec.json.encode(session)
            (await client.post("/api/sessions?wait=true", content=content, headers=JSON)).raise_for_status()
        await tell(client)
    yield name


@pytest.mark.smoke
async def test_a_session_shows_its_turns_and_cues(open_panel: Open, taught: str) -> None:
    page = await open_panel(params={"session": "session-47"}, within=taught)
    turns = page.locator(".turn")
    await expect(turns).to_have_count(10)
    correction = turns.nth(3)
    await expect(correction.locator("mark")).to_contain_text(QUOTE)
    await expect(correction.locator(".turn-cue", has_text="A migration drops a column")).to_be_visible()
    tool = turns.nth(2).locator(".tool").last
    await expect(tool.locator("pre").first).to_be_hidden()
    await tool.locator("summary").click()
    await expect(tool.locator("pre").first).to_contain_text("op.drop_column")
    await page.locator(".learnt").get_by_role("link", name="turn 3").first.click()
    await expect(correction).to_be_focused()
    assert asked(page) == {"session": ["session-47"], "turn": ["3"]}
    await correction.locator(".turn-cue", has_text="A migration drops a column").get_by_role("link").click()
    await expect(page.get_by_label("Memory", exact=True).last).to_contain_text(RULE)
    await page.get_by_role("link", name="session-47, turn 3").click()
    await expect(turns.nth(3)).to_be_focused()


@pytest.mark.smoke
async def test_cues_are_edited_and_retired(open_panel: Open, api: httpx.AsyncClient) -> None:
    ids = await tell(api)
    page = await open_panel(params={"kind": "cue"})
    rows = page.locator(".row")
    await expect(rows).to_have_count(3)
    await rows.filter(has_text=RULE).click()
    await page.get_by_role("button", name="Edit").click()
    await page.get_by_label("Lesson").fill("Drop a column one release after the code stops using it.")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Cue saved")).to_be_visible()
    pane = page.locator(".pane-detail")
    await expect(pane).to_contain_text("Drop a column one release after the code stops using it.")
    await page.keyboard.press("z")
    await expect(pane).to_contain_text(RULE)
    await page.get_by_role("button", name="Retire").click()
    await expect(page.get_by_text("This cue is retired.")).to_be_visible()
    assert (await api.get(f"/api/cues/{ids[0]}")).json()["state"] == "retired"
    await page.get_by_role("button", name="Restore").click()
    await expect(page.get_by_text("This cue is retired.")).to_have_count(0)


async def test_ask_shows_what_a_plan_fires_and_what_nearly_fires(open_panel: Open, taught: str, server: str) -> None:
    page = await tried(await open_panel(within=taught), "drop column deprecated_flag in a production migration", "Plan")
    fired = page.get_by_label("Fired cues").locator("li")
    await expect(fired.first).to_contain_text(RULE)
    await expect(fired.first).to_contain_text("in session-47")
    await fired.first.locator("summary").click()
    await expect(fired.first.locator(".numbers")).to_contain_text("Acts")
    nearly = page.get_by_label("Cues that nearly fired").locator("li")
    await expect(nearly).to_contain_text(["neither a person said it nor an agent concluded it"])
    await expect(page.locator("pre")).to_contain_text("## Before you act")
    async with httpx.AsyncClient(base_url=server, headers={"X-Workspace": taught}) as client:
        assert {cue["fired"] for cue in (await client.get("/api/cues")).json()["cues"]} == {0}
    await fired.first.get_by_role("link").first.click()
    await expect(page.locator(".pane-detail")).to_contain_text(RULE)


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("/memory", {"session": "session-47", "turn": "3"}),
        ("/memory", {"kind": "cue", "memory": "first"}),
    ],
)
async def test_everybody_can_use_them(
    open_panel: Open, server: str, taught: str, axe: str, path: str, params: dict[str, str]
) -> None:
    if "memory" in params:
        async with httpx.AsyncClient(base_url=server, headers={"X-Workspace": taught}) as client:
            found = (await client.get("/api/cues?kind=decision")).json()["cues"]
        params = {**params, "memory": found[0]["id"]}
    page = await open_panel(path, params, within=taught)
    await page.wait_for_load_state("networkidle")
    assert await violations(page, axe) == []
    for size in (WIDE, NARROW):
        await page.set_viewport_size(size)  # type: ignore[arg-type] # a mapping with the two that it takes
        assert await page.evaluate(TARGETS, LEAST_TARGET) == []
        heights = await page.evaluate("[document.documentElement.scrollHeight, innerHeight]")
        assert heights[0] == heights[1]


async def test_the_evidence_of_a_record_leads_to_its_file(
    open_panel: Open, api: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    report = {"path": "docs/adr/0007.md", "content": NYGARD.format(status="Accepted")}
    (await api.post("/api/reports", json=report)).raise_for_status()
    (chunk, *_) = (await api.get("/api/memories", params={"kind": "chunk"})).json()["memories"]
    await services.extraction.extract_decision(workspace, UUID(chunk["source"]["id"]))
    (cue,) = (await api.get("/api/cues")).json()["cues"]
    page = await open_panel(params={"memory": cue["id"]})
    evidence = page.locator(".evidence").get_by_role("link")
    await expect(evidence).to_contain_text("docs/adr/0007.md")
    await evidence.click()
    await expect(page.locator(".pane-detail")).to_contain_text("We will keep the sessions of users in Postgres")
    assert list(asked(page)) == ["memory"]
