"""Every view on the page: its height, its navigation, its targets for fingers, and where the focus stays."""

import itertools
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from tests.panel.conftest import FOR_THE_MAP, NARROW, WIDE, Open
from tests.panel.test_memories import stored

pytestmark = pytest.mark.test_all("browser")

VIEWS = ("/", "/?reason=held", "/cases", "/memory", "/memory?q=sources", "/memory?look=map", "/runs",
         "/runs?run=run-024", "/service", "/service?part=audit", "/service?part=keys&key=new")  # fmt: skip
READY = {
    "/": ".row",
    "/cases": ".row",
    "/memory": ".row",
    "/runs": ".row",
    "/service": ".ingestions li, .entries li, input[type=date]",
}
LEAST_TARGET = 24
"""Pixels; WCAG 2.2, success criterion 2.5.8."""
TARGETS = """(least) => [...document.querySelectorAll('button, select, input, summary, nav a, .row, .chip')]
    .filter((element) => element.checkVisibility({opacityProperty: true, visibilityProperty: true}))
    .map((element) => [element, (element.closest('label') ?? element).getBoundingClientRect()])
    .filter(([, box]) => box.width > 0 && (box.width < least || box.height < least))
    .map(([element, box]) => `${element.outerHTML.slice(0, 120)} ${box.width} × ${box.height}`)"""

LINES = """(link) => {
    const text = document.createRange();
    text.selectNodeContents(link.lastChild);
    return text.getClientRects().length;
}"""
SHOWS_ITS_FACTS = """(row) => [...row.querySelectorAll('.row-facts > :not(.name)')]
    .every((fact) => fact.scrollWidth <= fact.clientWidth + 1 &&
        fact.getBoundingClientRect().right <= row.getBoundingClientRect().right)"""
"""Tells that nothing beside a row's name is cut."""


def parted(view: str) -> tuple[str, dict[str, str]]:
    """The path and the parameters of a view."""
    path, _, query = view.partition("?")
    return path, dict(part.replace("+", " ").split("=") for part in query.split("&") if part)


async def filled(open_panel: Open, view: str, within: str, **options: Any) -> Page:
    """A view with its content."""
    path, params = parted(view)
    page = await open_panel(path, params, within=within, **options)
    await expect(page.locator(READY[path]).first).to_be_visible(timeout=FOR_THE_MAP)
    return page


@pytest.mark.parametrize("view", VIEWS)
async def test_no_view_scrolls_away_and_pointers_hit_every_target(open_panel: Open, mapped: str, view: str) -> None:
    page = await filled(open_panel, view, mapped)
    assert await page.evaluate(TARGETS, LEAST_TARGET) == []
    for size in (WIDE, NARROW):
        await page.set_viewport_size(size)  # type: ignore[arg-type] # a mapping with the two that it takes
        heights = await page.evaluate("[document.documentElement.scrollHeight, innerHeight]")
        assert heights == [size["height"], size["height"]]
        for x, y in itertools.product((0.25, 0.9), (0.3, 0.8)):
            await page.mouse.move(size["width"] * x, size["height"] * y)
            await page.mouse.wheel(0, 20_000)
        for key in ("End", "Space", "PageDown"):
            await page.keyboard.press(key)
        assert await page.evaluate("[scrollY, document.querySelector('main').scrollTop]") == [0, 0]


@pytest.mark.parametrize("width", [760, 761, 820, 900, 950, 1100, 1101])
async def test_the_navigation_breaks_no_word(open_panel: Open, width: int) -> None:
    page = await open_panel(size={"width": width, "height": 700})
    links = page.get_by_role("navigation", name="Places").get_by_role("link")
    assert await links.count() == 5
    for link in await links.all():
        assert await link.evaluate(LINES) == 1
    assert await page.evaluate("document.documentElement.scrollWidth") == width
    workspace, nav = [await page.locator(place).bounding_box() for place in (".workspace", "header nav")]
    assert workspace is not None
    assert nav is not None
    assert width <= 760 or nav["x"] + nav["width"] <= workspace["x"]


async def test_nothing_is_cut_off_on_a_narrow_page(open_panel: Open, mapped: str) -> None:
    page = await filled(open_panel, "/service", mapped)
    times = page.get_by_role("region", name="Response times")
    for width in (1101, 800, 390):
        await page.set_viewport_size({"width": width, "height": 800})
        sizes = await times.evaluate("element => [element.scrollWidth - element.clientWidth, element.clientWidth]")
        assert sizes[0] == 0, (width, sizes)
    page = await filled(open_panel, "/", mapped, size=NARROW)
    for reason in await page.get_by_role("navigation", name="Reasons").get_by_role("link").all():
        assert await reason.evaluate(LINES) == 1
    assert await page.evaluate("document.documentElement.scrollWidth") == NARROW["width"]
    page = await filled(open_panel, "/cases", mapped, size=NARROW)
    for row in await page.locator(".row").all():
        assert await row.evaluate(SHOWS_ITS_FACTS), await row.inner_text()


async def test_fingers_hit_every_target(browser: Browser, server: str, mapped: str) -> None:
    context = await browser.new_context(viewport=NARROW, has_touch=True, is_mobile=True)  # type: ignore[arg-type] # a mapping with the two that it takes
    page = await context.new_page()
    for view in VIEWS:
        path, _ = parted(view)
        await page.goto(f"{server}{view}{'&' if '?' in view else '?'}workspace={mapped}")
        there = READY[path] if "run=" not in view else ".pane-detail h2"
        await expect(page.locator(there).first).to_be_visible(timeout=FOR_THE_MAP)
        assert await page.evaluate(TARGETS, LEAST_TARGET) == [], view
    await context.close()


@pytest.mark.smoke
async def test_the_focus_never_falls_to_the_body(open_panel: Open, api: httpx.AsyncClient) -> None:
    (memory_id,) = await stored(api, {"kind": "note", "title": "Alone", "body": "A lesson about registers."})
    page = await open_panel("/memory", {"memory": memory_id})
    held = "document.activeElement !== document.body"
    await page.get_by_role("button", name="Delete").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("This memory is deleted")).to_be_visible()
    await page.wait_for_function(f"() => {held}")
    await page.get_by_role("status").get_by_role("button", name="Undo").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("This memory is deleted")).to_have_count(0)
    await page.wait_for_function(f"() => {held}")
    await page.get_by_label("Comment on the rating").focus()
    await page.keyboard.press("Escape")
    await page.wait_for_function(f"() => {held}")
