"""The view Effect of the panel: the figures, what they do not prove, the setting, and the report as a file."""

from pathlib import Path

import httpx
import pytest
from playwright.async_api import expect

from tests.panel.conftest import Open
from tests.panel.test_memories import asked
from tests.panel.test_safety import violations

pytestmark = pytest.mark.test_all("browser")


async def runs(api: httpx.AsyncClient) -> None:
    """Records two runs with history and one without it."""
    note = {"kind": "note", "title": "Auctions", "body": "The tea auction of Mombasa publishes weekly volumes."}
    (await api.post("/api/memories?wait=true", json=note)).raise_for_status()
    for number, score in enumerate((8.0, 7.0, 5.0)):
        if number < 2:
            query = {"query": "tea auction of Mombasa", "run_id": f"r{number}"}
            (await api.post("/api/history", json=query)).raise_for_status()
        run = {"run_id": f"r{number}", "task_type": "scan", "final_score": score}
        (await api.post("/api/runs", json=run)).raise_for_status()


async def test_an_empty_workspace_says_what_to_do(open_panel: Open) -> None:
    page = await open_panel("/effect")
    await expect(page.locator(".empty")).to_contain_text("No finished runs")


@pytest.mark.smoke
async def test_both_groups_stand_side_by_side_with_what_they_do_not_prove(
    open_panel: Open, api: httpx.AsyncClient, axe: str
) -> None:
    await runs(api)
    page = await open_panel("/effect")
    score = page.get_by_role("row", name="Score").first
    await expect(score).to_contain_text("7.50")
    await expect(score).to_contain_text("5.00")
    await expect(page.locator(".effect-limits")).to_contain_text(
        "2 scored runs with history and 1 without are too little data"
    )
    assert await violations(page, axe) == []


async def test_the_report_is_of_one_task_type_and_saved_as_a_file(
    open_panel: Open, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    await runs(api)
    page = await open_panel("/effect")
    await page.get_by_role("textbox", name="Task type").fill("review")
    await expect(page.locator(".empty")).to_be_visible()
    assert asked(page) == {"task_type": ["review"]}
    await page.get_by_role("textbox", name="Task type").fill("scan")
    await expect(page.get_by_role("heading", name="By task type")).to_be_visible()
    async with page.expect_download() as saving:
        await page.get_by_role("button", name="Save Markdown").click()
    await (await saving.value).save_as(tmp_path / "effect.md")
    assert "What cannot be concluded" in (tmp_path / "effect.md").read_text()


async def test_effects_count_in_the_ranking_once_the_box_is_ticked(open_panel: Open, api: httpx.AsyncClient) -> None:
    await runs(api)
    page = await open_panel("/effect")
    box = page.get_by_label("Let known effects count in the ranking of this workspace")
    await expect(box).not_to_be_checked()
    await box.click()
    await expect(box).to_be_checked()
    assert (await api.get("/api/effect")).json()["uses_effects"] is True
