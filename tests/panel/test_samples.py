"""Several compressions of one output side by side: how they are asked for, rated and chosen."""

from typing import Any

import httpx
import pytest
from playwright.async_api import Page, expect

from tests.interfaces.http.calls import OUTPUT
from tests.panel.conftest import NARROW, WIDE, Open

FITS = "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth"


async def remember(api: httpx.AsyncClient) -> str:
    """Returns the memory of a run's output, which was compressed once."""
    run = {"run_id": "r", "task": "Market of supplements", "output": OUTPUT, "remember": True, "issues": ["No method"]}
    answer = await api.post("/api/runs?wait=true", json=run)
    return str(answer.raise_for_status().json()["observation"]["memory_id"])


async def remember_samples(api: httpx.AsyncClient, count: int = 3) -> str:
    memory_id = await remember(api)
    answer = await api.post("/api/observations?wait=true", json={"run_id": "r", "samples": count})
    assert answer.raise_for_status().json()["samples"] == count
    return memory_id


async def narrative(page: Page) -> str:
    section = page.locator("section", has=page.get_by_role("heading", name="Narrative", exact=True))
    return (await section.locator(".markdown, p").first.inner_text()).strip()


async def test_samples_are_asked_for_on_the_run_and_rated_on_the_memory(
    open_panel: Open, api: httpx.AsyncClient
) -> None:
    memory_id = await remember(api)
    page = await open_panel("/runs", {"run": "r"})
    await page.get_by_role("button", name="Make samples to compare").click()
    await expect(page.get_by_text("3 samples are stored")).to_be_visible()
    await page.get_by_role("link", name="Compare and rate 3 samples of the output").click()
    cards = page.get_by_label("Samples", exact=True).get_by_role("listitem", name="Sample")
    await expect(cards).to_have_count(3)
    await expect(cards.nth(0)).to_contain_text("shown to agents")
    first = await narrative(page)
    # By keyboard alone: the second sample's thumb is reached and pressed.
    up = page.get_by_role("button", name="Rate sample 2 up")
    await up.focus()
    await page.keyboard.press("Enter")
    await expect(up).to_have_attribute("aria-pressed", "true")
    await expect(cards.nth(1)).to_contain_text("shown to agents")
    await expect(cards.nth(0)).not_to_contain_text("shown to agents")
    stored = (await api.get(f"/api/memories/{memory_id}")).json()
    assert (stored["quality"], stored["observation"]["narrative"] != first) == (1, True)
    # The thumbs of the memory are now of the second sample, and its rating is named in the list of ratings.
    await expect(page.get_by_role("button", name="Rate up", exact=True)).to_have_attribute("aria-pressed", "true")
    await expect(page.get_by_label("Ratings", exact=True)).to_contain_text("sample 2")
    await page.get_by_role("button", name="Undo", exact=True).first.click()
    await expect(cards.nth(0)).to_contain_text("shown to agents")
    assert (await api.get(f"/api/memories/{memory_id}")).json()["observation"]["narrative"] == first


async def test_the_keys_rate_the_text_that_is_shown(open_panel: Open, api: httpx.AsyncClient) -> None:
    memory_id = await remember_samples(api)
    await api.post(f"/api/memories/{memory_id}/feedback", json={"rating": 1, "sample": 2})
    page = await open_panel(params={"memory": memory_id})
    await expect(page.get_by_label("Sample 3", exact=True)).to_contain_text("shown to agents")
    await page.keyboard.press("u")
    await expect(page.get_by_role("button", name="Rate sample 3 up")).to_have_attribute("aria-pressed", "true")
    log = (await api.get(f"/api/memories/{memory_id}/feedback")).json()
    assert [entry["sample"] for entry in log] == [2, 2]
    # With no better rating than the first sample, the third one gives its place back, in the list too.
    shown = page.locator(".row .row-excerpt")
    third = await shown.inner_text()
    await page.keyboard.press("d")
    await expect(page.get_by_label("Sample 1", exact=True)).to_contain_text("shown to agents")
    await expect(shown).not_to_have_text(third)


async def test_an_observation_that_was_compressed_once_has_no_samples(open_panel: Open, api: httpx.AsyncClient) -> None:
    page = await open_panel(params={"memory": await remember(api)})
    await expect(page.get_by_role("heading", name="Narrative", exact=True)).to_be_visible()
    await expect(page.get_by_role("heading", name="Samples")).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["1280", "390"])
async def test_samples_fit_every_width_and_theme(
    open_panel: Open, api: httpx.AsyncClient, axe: str, theme: str, size: dict[str, int]
) -> None:
    memory_id = await remember_samples(api, 4)
    await api.post(f"/api/memories/{memory_id}/feedback", json={"rating": 1, "sample": 1})
    page = await open_panel(params={"memory": memory_id}, theme=theme, size=size)
    samples = page.get_by_label("Samples", exact=True)
    await expect(samples.get_by_role("listitem", name="Sample")).to_have_count(4)
    assert await page.evaluate(FITS)
    if size == NARROW:
        button = await page.locator(".pane-detail > .close").bounding_box()
        text = await samples.locator(".samples").bounding_box()
        assert button is not None
        assert text is not None
        assert text["x"] + text["width"] <= button["x"]
    await samples.scroll_into_view_if_needed()
    await page.evaluate(axe)
    found: dict[str, Any] = await page.evaluate("axe.run(document.querySelector('.samples'))")
    assert [violation["id"] for violation in found["violations"]] == []
