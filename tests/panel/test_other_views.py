"""Runs and the service, and the way between the places."""

import re

import httpx
import pytest
from playwright.async_api import expect

from tests.panel.conftest import Open
from tests.panel.test_memories import asked, stored

pytestmark = pytest.mark.test_all("browser")


async def test_empty_views_say_what_to_do(open_panel: Open) -> None:
    page = await open_panel("/runs")
    await expect(page.get_by_role("heading", name="No runs yet")).to_be_visible()
    await page.get_by_role("link", name="Service").click()
    await expect(page.get_by_role("heading", name="No reports ingested yet")).to_be_visible()
    await expect(page.get_by_text("No recalls yet")).to_be_visible()
    await page.go_back()
    await expect(page.get_by_role("heading", name="No runs yet")).to_be_visible()


async def test_an_unknown_view_leads_home(open_panel: Open, complaints: list[str]) -> None:
    page = await open_panel("/memories")
    await expect(page.get_by_role("heading", name="There is no place /memories")).to_be_visible()
    assert ["404" in complaint for complaint in complaints] == [True]
    complaints.clear()
    await page.get_by_role("link", name="Go to the desk").click()
    await expect(page.get_by_role("heading", name="Nothing waits for you")).to_be_visible()


@pytest.mark.smoke
async def test_only_a_page_that_is_missing_is_answered_by_the_panel(api: httpx.AsyncClient) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    missing = await api.get("/memories", headers=browser)
    assert (missing.status_code, missing.headers["content-type"].split(";")[0]) == (404, "text/html")
    assert "frame-ancestors 'none'" in missing.headers["content-security-policy"]
    for path, headers in (("/memories", {}), ("/api/nowhere", browser), ("/assets/nothing.js", browser)):
        answer = await api.get(path, headers=headers)
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    endless = await api.get("/memories", headers={"Accept": "text/html;q=inf"})
    assert (endless.status_code, endless.headers["content-type"]) == (404, "application/problem+json")


@pytest.mark.smoke
async def test_a_run_and_its_memories_link_to_each_other(open_panel: Open, api: httpx.AsyncClient) -> None:
    (memory_id,) = await stored(api, {"kind": "note", "title": "Register", "body": "Verify producers in the register."})
    run = {
        "run_id": "bads/v7", "task": "Market of supplements", "task_type": "market", "agent": "director",
        "output": "# Market\n\nIt **grew** by 11 % in 2025, after 9 % in 2024.", "round_scores": [6, 8.2],
        "final_score": 8.2, "verdict": "accept", "issues": ["SOM without a method"],
        "stages": {"scout": {"tokens": 1200, "cost": 0.02}, "judge": {"input_tokens": 300, "cost": 0.01}},
    }  # fmt: skip
    await api.post(
        "/api/history", json={"query": "verify producers register", "run_id": "bads/v7", "agent": "director"}
    )
    saved = await api.post("/api/runs?wait=true", json={**run, "remember": True})
    assert saved.json()["observation"]["outcome"] == "stored"
    page = await open_panel("/runs")
    row = page.locator(".row")
    await expect(row).to_contain_text("1,500")
    await expect(row).to_contain_text("0.030")
    await page.keyboard.press("j")
    detail = page.locator(".pane-detail")
    await expect(detail.get_by_role("heading", name="Market of supplements")).to_be_visible()
    await expect(detail).to_contain_text("rounds 6.0 → 8.2")
    await expect(detail.locator(".detail-head")).to_contain_text("1,500 tokens")
    await expect(detail.locator(".detail-head")).to_contain_text("cost 0.030")
    await expect(detail).to_contain_text("SOM without a method")
    await expect(detail.locator("strong", has_text="grew")).to_be_visible()
    await expect(detail.locator(".told > li")).to_have_count(1)
    await expect(detail.get_by_text("The observation was stored.")).to_be_visible()
    assert asked(page) == {"run": ["bads/v7"]}
    await detail.get_by_role("link", name="Register").click()
    assert asked(page) == {"memory": [memory_id]}
    await page.locator(".pane-detail").get_by_role("link", name="bads/v7").click()
    await expect(detail.get_by_role("heading", name="Market of supplements")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(detail.get_by_role("heading")).to_have_count(0)


async def test_runs_are_narrowed(open_panel: Open, seeded: str) -> None:
    page = await open_panel("/runs", within=seeded)
    await expect(page.get_by_text("60 runs")).to_be_visible()
    await expect(page.locator(".row")).to_have_count(50)
    await page.get_by_label("Task type").select_option("gap analysis")
    await expect(page.locator(".row")).to_have_count(12)
    await page.get_by_label("Verdict").select_option("accept")
    assert asked(page) == {"task_type": ["gap analysis"], "verdict": ["accept"]}
    await expect(page.locator(".row .verdict").first).to_have_text("accept")


async def test_a_run_that_is_missing_is_said(open_panel: Open, complaints: list[str]) -> None:
    page = await open_panel("/runs", {"run": "never"})
    await expect(page.get_by_role("heading", name="The run cannot be shown")).to_be_visible()
    await page.close()
    complaints.clear()


async def test_health_shows_the_store_and_its_files(open_panel: Open, api: httpx.AsyncClient) -> None:
    report = {"path": "a/b.md", "content": "# Lesson\n\nThe scout found twelve producers in the register."}
    await api.post("/api/reports", json=report)
    await api.post("/api/search", json={"query": "producers"})
    page = await open_panel("/service")
    await expect(page.locator(".mode")).to_have_text("hybrid")
    await expect(page.get_by_text("All memories have a vector")).to_be_visible()
    await expect(page.get_by_text(re.compile("All memories are linked|1 memory is pending for links"))).to_be_visible()
    await expect(page.get_by_role("row", name=re.compile("^search"))).to_contain_text("100 %")
    await page.get_by_text("1 new").click()
    await expect(page.get_by_role("row", name="a/b.md")).to_contain_text("new")


async def test_the_log_of_ingestions_goes_on(open_panel: Open, api: httpx.AsyncClient) -> None:
    for place in range(23):
        report = {"path": f"a/{place}.md", "content": f"# Lesson {place}\n\nThe scout found {place} producers."}
        (await api.post("/api/reports", json=report)).raise_for_status()
    page = await open_panel("/service")
    lines = page.locator(".ingestions > li")
    await expect(lines).to_have_count(20)
    await page.get_by_role("button", name="Show more").click()
    await expect(lines).to_have_count(23)
    await expect(page.get_by_role("button", name="Show more")).to_have_count(0)
    await page.get_by_label("Only ingestions with failed files").check()
    await expect(page.get_by_text("No ingestion has failed files.")).to_be_visible()


async def test_the_theme_is_kept(open_panel: Open) -> None:
    page = await open_panel()
    await page.get_by_role("button", name="Theme: system. Change the theme").click()
    await page.get_by_role("button", name="Theme: light. Change the theme").click()
    assert await page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
    await page.reload()
    assert await page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"


async def test_the_workspace_goes_along(open_panel: Open, api: httpx.AsyncClient, seeded: str) -> None:
    await stored(api, {"kind": "note", "title": "Alone", "body": "A lesson of this workspace alone."})
    page = await open_panel()
    await expect(page.locator(".row")).to_have_count(1)
    await page.get_by_label("Workspace").select_option(seeded)
    await expect(page.locator(".row")).to_have_count(50)
    await page.get_by_role("link", name="Runs", exact=True).click()
    await expect(page.locator(".row")).to_have_count(50)
