"""The drawer by which a reviewer tries what an agent would get, from any place, by keys."""

import httpx
import pytest
from playwright.async_api import expect

from app.wiring import Services
from tests.interfaces.http.calls import embed
from tests.panel.conftest import NARROW, Open, tried
from tests.panel.test_memories import stored
from tests.panel.test_safety import violations

pytestmark = pytest.mark.test_all("browser")


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_a_context_is_compiled_and_says_what_it_holds(
    open_panel: Open, api: httpx.AsyncClient, services: Services, axe: str, theme: str
) -> None:
    await stored(api, {"kind": "note", "title": "Valves", "body": "The valve of line four sticks in winter."})
    await embed(api, services)
    page = await tried(await open_panel("/cases", theme=theme), "Open the valve of line four in winter", "Context")
    drawer = page.get_by_role("dialog", name="Try")
    await expect(drawer.get_by_label("Text for the model")).to_contain_text("The valve of line four sticks in winter.")
    await expect(drawer.get_by_label("Compiled context")).to_contain_text("tokens")
    assert await violations(page, axe) == []
    await page.set_viewport_size(NARROW)  # type: ignore[arg-type] # a mapping with the two that it takes
    assert await page.evaluate("document.documentElement.scrollWidth") == NARROW["width"]
    assert len((await api.get("/api/contexts")).json()) == 1


async def test_what_is_open_is_tried_by_one_key(open_panel: Open, api: httpx.AsyncClient, services: Services) -> None:
    (memory_id,) = await stored(api, {"kind": "note", "title": "Valves", "body": "The valve of line four sticks."})
    await embed(api, services)
    page = await open_panel("/memory", {"memory": memory_id})
    await expect(page.locator(".pane-detail h2")).to_be_visible()
    await page.keyboard.press("t")
    drawer = page.get_by_role("dialog", name="Try")
    await expect(drawer.locator("textarea")).to_have_value("The valve of line four sticks.")
    await expect(drawer.locator(".hits > li").first).to_contain_text("Valves")
    await page.keyboard.press("Escape")
    await expect(drawer).to_have_count(0)
    assert (await api.get("/api/recalls", params={"purpose": "history"})).json() == []
