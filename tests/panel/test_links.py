"""Links of memories: in the detail pane, on the map, and in Ask."""

import re

import httpx
import pytest
from playwright.async_api import expect

from tests.panel.conftest import Open, tried
from tests.panel.seed import LINKED, linked
from tests.panel.test_graph import shown
from tests.panel.test_memories import asked, stored

pytestmark = pytest.mark.test_all("browser")


async def test_a_memory_shows_its_links_and_they_lead_to_the_others(open_panel: Open, api: httpx.AsyncClient) -> None:
    pump, spares, _ = await linked(api)
    page = await open_panel(params={"memory": pump})
    links = page.locator(".pane-detail").get_by_label("Links")
    await expect(links.locator(".linked")).to_have_text(["Derived fromspares0.50", "Supersedesdough"])
    await links.get_by_role("link", name="spares").click()
    assert asked(page) == {"memory": [spares]}
    await expect(links.locator(".linked")).to_have_text(["Gave rise tothe mill's pump0.50"])
    await page.go_back()
    await expect(links.locator(".linked")).to_have_count(2)


async def test_a_memory_without_links_says_nothing_of_them(open_panel: Open, api: httpx.AsyncClient) -> None:
    (lonely,) = await stored(api, LINKED[0])
    page = await open_panel(params={"memory": lonely})
    await expect(page.locator(".pane-detail").get_by_role("heading", name="Runs")).to_be_visible()
    await page.wait_for_load_state("networkidle")
    await expect(page.get_by_label("Links")).to_have_count(0)


async def test_a_trial_says_that_a_link_lifted_a_hit(open_panel: Open, api: httpx.AsyncClient) -> None:
    pump, *_ = await linked(api)
    page = await tried(await open_panel(), "why did the northern mill's pump fail")
    hit = page.get_by_label("History").locator(".hits > li", has_text="the mill's pump")
    await expect(hit.locator(".score-bar .part-links")).to_have_count(1)
    await expect(hit.locator(".score-bar")).to_have_attribute("aria-label", re.compile("Links"))
    await hit.get_by_role("link").click()
    assert asked(page) == {"memory": [pump]}


async def test_the_map_draws_the_links_of_the_memory_that_is_pointed_at(
    open_panel: Open, api: httpx.AsyncClient
) -> None:
    pump, spares, dough = await linked(api)
    page = await open_panel("/memory?look=map")
    found = await shown(page, api)
    legend = page.get_by_label("Links").get_by_role("listitem")

    async def drawn(one: str, other: str) -> bool:
        """Returns True if there is a line between them: somewhere in its middle, because it may be dashed."""
        (x, y), (a, b) = found.places[one], found.places[other]
        middle = [0.4 + step / 50 for step in range(11)]
        return any([(await found.colour_at((x + (a - x) * t, y + (b - y) * t)))[3] > 128 for t in middle])

    async def lines() -> list[bool]:
        return [await drawn(pump, spares), await drawn(pump, dough), await drawn(spares, dough)]

    assert await lines() == [False, False, False]
    await page.mouse.move(*found.places[pump])
    await expect(legend).to_have_text(["Derived from 1", "Supersedes 1"])
    assert await lines() == [True, True, False]
    await page.mouse.move(*found.places[dough])
    await expect(legend).to_have_text(["Supersedes 1"])
    assert await lines() == [False, True, False]
    await page.mouse.move(found.box["x"] + 5, found.box["y"] + 5)
    await expect(legend).to_have_count(0)
    assert await lines() == [False, False, False]


async def test_links_to_what_the_map_does_not_show_are_counted(open_panel: Open, api: httpx.AsyncClient) -> None:
    _, spares, _ = await linked(api)
    page = await open_panel("/memory?look=map", {"memory": spares, "limit": "2"})
    await expect(page.locator(".map").get_by_label("Links").get_by_role("listitem")).to_have_text(["Not shown 1"])
