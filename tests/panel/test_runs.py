"""The list of runs, and the run that is open."""

import re

import httpx
import pytest
from playwright.async_api import expect

from tests.panel.conftest import Open
from tests.panel.test_memories import asked

pytestmark = pytest.mark.test_all("browser")

RUNS = (
    {"run_id": "a", "task": "Survey of registers", "task_type": "market", "agent": "scout", "final_score": 6.0,
     "verdict": "revise", "started_at": "2026-03-01T09:00:00Z", "finished_at": "2026-03-01T09:02:05Z",
     "round_scores": [4, 6], "stages": {"writer": {"input_tokens": 900, "output_tokens": 100, "cost": 0.00004}}},
    {"run_id": "b", "task": "Survey of seasons", "task_type": "market", "agent": "judge", "final_score": 8.0,
     "verdict": "accept", "started_at": "2026-03-02T09:00:00Z", "finished_at": "2026-03-02T10:30:00Z",
     "issues": ["SOM without a method"], "stages": {"writer": {"tokens": 500, "cost": 1.5}},
     "queries": ["seasons of demand"], "output": "One line.", "output_path": "out/b.md", "metadata": {"seed": 7}},
    {"run_id": "c", "task": "Gap analysis", "task_type": "gaps", "started_at": "2026-03-03T09:00:00Z"},
)  # fmt: skip


async def saved(api: httpx.AsyncClient) -> None:
    """Three runs, of which one is not finished."""
    for run in RUNS:
        (await api.post("/api/runs", json=run)).raise_for_status()


async def test_the_runs_have_an_order(open_panel: Open, api: httpx.AsyncClient) -> None:
    await saved(api)
    page = await open_panel("/runs")
    titles = page.locator(".row-title")
    await expect(titles).to_have_text(["Gap analysis", "Survey of seasons", "Survey of registers"])
    row = page.locator(".row", has_text="registers")
    await expect(row).to_contain_text("2 min 5 s")
    await expect(row).to_contain_text("1,000 tokens")
    await expect(row).to_contain_text("cost 0.000040")
    for order, words in (
        ("Worst score first", ["registers", "seasons"]),
        ("Costliest first", ["seasons", "registers"]),
    ):
        await page.get_by_label("Order").select_option(order)
        await expect(titles).to_have_text([re.compile(word) for word in (*words, "Gap")])
    assert asked(page) == {"sort": ["cost"]}


@pytest.mark.smoke
async def test_filters_narrow_the_list(open_panel: Open, api: httpx.AsyncClient) -> None:
    await saved(api)
    page = await open_panel("/runs")
    await page.get_by_label("Search runs").fill("som method")
    await expect(page.locator(".row")).to_have_count(1)
    await expect(page.get_by_text("1 of 3 runs")).to_be_visible()
    assert asked(page) == {"q": ["som method"]}
    await page.get_by_role("button", name="Clear filters").click()
    await page.get_by_label("Agent").select_option("scout")
    await expect(page.locator(".row")).to_have_count(1)
    await page.get_by_label("Verdict").select_option("accept")
    await expect(page.get_by_text("0 of 3 runs")).to_be_visible()


async def test_a_run_shows_all_of_its_fields(open_panel: Open, api: httpx.AsyncClient) -> None:
    await saved(api)
    page = await open_panel("/runs", {"run": "b"})
    detail = page.locator(".pane-detail")
    await expect(detail.locator(".detail-head")).to_contain_text("1 h 30 min")
    await expect(detail).to_contain_text("seasons of demand")
    await detail.get_by_text("Stages and parameters").click()
    await expect(detail).to_contain_text("out/b.md")
    await expect(detail).to_contain_text("9 B")
    await detail.get_by_text("Metadata").click()
    await expect(detail.locator("pre")).to_contain_text('"seed": 7')
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await expect(detail.locator("h2")).to_have_text("Survey of registers")
    await detail.get_by_text("Stages and parameters").click()
    await expect(detail).to_contain_text("input tokens 900, output tokens 100, cost 0.000040")
