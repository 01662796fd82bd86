"""Links of memories: in the detail pane, beside the map, and in Try."""

import re

import httpx
import pytest
from playwright.async_api import expect

from tests.panel.conftest import FOR_THE_MAP, Open, tried
from tests.panel.seed import LINKED, linked
from tests.panel.test_memories import asked, stored

pytestmark = pytest.mark.test_all("browser")


async def test_a_memory_shows_its_links_and_they_lead_to_the_others(open_panel: Open, api: httpx.AsyncClient) -> None:
    pump, spares, _ = await linked(api)
    page = await open_panel(params={"memory": pump})
    links = page.locator(".pane-detail").get_by_label("Links")
    apart = r"note\d+ \w+ \d{4}$"
    shown = [re.compile(rf"^Derived fromspares0\.50{apart}"), re.compile(rf"^Supersedesdough{apart}")]
    await expect(links.locator(".linked")).to_have_text(shown)
    await links.get_by_role("link", name="spares").click()
    assert asked(page) == {"memory": [spares]}
    await expect(links.locator(".linked")).to_have_text([re.compile(rf"^Gave rise tothe mill's pump0\.50{apart}")])
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


async def test_the_pane_beside_the_map_has_the_links(open_panel: Open, api: httpx.AsyncClient) -> None:
    pump, spares, _ = await linked(api)
    page = await open_panel("/memory?look=map", {"memory": spares})
    await page.locator(".pane-detail").get_by_label("Links").get_by_role("link").first.click()
    assert asked(page) == {"memory": [pump]}
    await expect(page.locator(".map canvas")).to_be_visible(timeout=FOR_THE_MAP)
