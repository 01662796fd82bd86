"""The parts of a compiled context in Ask: bars by tokens, and what was cut and why."""

import httpx
import pytest
from playwright.async_api import expect

from tests.panel.conftest import NARROW, WIDE, Open
from tests.panel.test_layout import LEAST_TARGET, TARGETS
from tests.panel.test_memories import asked, stored
from tests.panel.test_safety import violations

pytestmark = pytest.mark.test_all("browser")

NOTES = [
    {"kind": "note", "title": f"Register of year {year}", "body": f"In {year} the register named producers. " * 12}
    for year in range(2018, 2026)
]


@pytest.mark.smoke
async def test_a_context_shows_its_parts_its_cuts_and_what_is_different_in_another(
    open_panel: Open, api: httpx.AsyncClient, axe: str
) -> None:
    await stored(api, *NOTES)
    page = await open_panel("/ask")
    await page.get_by_role("link", name="Context").click()
    await page.get_by_label("Observation").fill("Which producers does the register name?")
    await page.keyboard.press("Enter")
    bars = page.get_by_label("Compiled context").get_by_role("img")
    await expect(bars).to_have_count(1)
    parts = page.get_by_label("Parts", exact=True).get_by_role("listitem")
    await expect(parts.filter(has_text="Observation")).to_have_count(1)
    assert await bars.locator("rect").count() == await parts.count()
    known = parts.filter(has_text="Knowledge").first
    await known.locator("summary").click()
    await expect(known.locator("pre")).to_contain_text("the register named producers")
    await expect(page.get_by_text("Nothing was cut.")).to_be_visible()
    first = asked(page)["context"]

    await page.get_by_label("Token budget").fill("250")
    await page.get_by_role("button", name="Compile").click()
    cuts = page.get_by_label("Cut parts").get_by_role("listitem")
    await expect(cuts.first).to_contain_text("tokens")
    assert asked(page)["context"] != first
    made = len((await api.get("/api/contexts")).json())
    await page.reload()
    await expect(bars).to_have_count(1)
    assert len((await api.get("/api/contexts")).json()) == made
    assert await violations(page, axe) == []
    for size in (WIDE, NARROW):
        await page.set_viewport_size(size)  # type: ignore[arg-type] # a mapping with the two that it takes
        assert await page.evaluate(TARGETS, LEAST_TARGET) == []
        assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")


async def test_an_unknown_context_and_a_refused_request_are_said(
    open_panel: Open, api: httpx.AsyncClient, complaints: list[str]
) -> None:
    await stored(api, NOTES[0])
    page = await open_panel("/ask", {"for": "context", "context": "nothing"})
    await expect(page.get_by_role("alert")).to_contain_text("there is no such context")
    await page.get_by_label("Observation").fill("Which producers?")
    await page.get_by_label("Token budget").fill("5")
    await page.get_by_role("button", name="Compile").click()
    await expect(page.locator(".notice", has_text="No context was made")).to_be_visible()
    complaints.clear()
