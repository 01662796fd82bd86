"""Every view on the page: its height, its navigation, its targets for fingers, and where the focus stays."""

import itertools
import re
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from tests.panel.conftest import FOR_THE_MAP, NARROW, WIDE, Open
from tests.panel.test_memories import stored
from tests.panel.test_review import disliked

pytestmark = pytest.mark.test_all("browser")

VIEWS = ("/", "/?q=sources", "/review", "/review?tab=quarantined", "/graph", "/runs", "/runs?run=run-024",
         "/recalls", "/ask?q=sources+and+method", "/status", "/keys?key=new")  # fmt: skip
READY = {
    "/": ".row",
    "/review": ".case",
    "/graph": ".member",
    "/runs": ".run",
    "/recalls": ".row",
    "/ask": ".hits li",
    "/status": ".ingestions li",
    "/keys": "input[type=date]",
}
LEAST_TARGET = 24
"""Pixels; WCAG 2.2, success criterion 2.5.8."""
TARGETS = """(least) => [...document.querySelectorAll('button, select, input, summary, nav a, .row, .tile, .chip')]
    .filter((element) => element.checkVisibility({opacityProperty: true, visibilityProperty: true}))
    .map((element) => [element, (element.closest('label') ?? element).getBoundingClientRect()])
    .filter(([, box]) => box.width > 0 && (box.width < least || box.height < least))
    .map(([element, box]) => `${element.outerHTML.slice(0, 120)} ${box.width} × ${box.height}`)"""

LINES = """(link) => {
    const text = document.createRange();
    text.selectNodeContents(link.lastChild);
    return text.getClientRects().length;
}"""


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
    links = page.get_by_role("navigation", name="Views").get_by_role("link")
    assert await links.count() >= 6
    for link in await links.all():
        assert await link.evaluate(LINES) == 1
    assert await page.evaluate("document.documentElement.scrollWidth") == width
    workspace, nav = [await page.locator(place).bounding_box() for place in (".workspace", "header nav")]
    assert workspace is not None
    assert nav is not None
    assert width <= 760 or nav["x"] + nav["width"] <= workspace["x"]


async def test_nothing_is_cut_off_on_a_narrow_page(open_panel: Open, mapped: str) -> None:
    page = await filled(open_panel, "/status", mapped)
    times = page.get_by_role("region", name="Response times")
    for width in (1101, 800, 390):
        await page.set_viewport_size({"width": width, "height": 800})
        sizes = await times.evaluate("element => [element.scrollWidth - element.clientWidth, element.clientWidth]")
        assert sizes[0] == 0, (width, sizes)
    page = await filled(open_panel, "/review", mapped, size=NARROW)
    for tab in await page.get_by_role("navigation", name="Lists to review").get_by_role("link").all():
        assert await tab.evaluate(LINES) == 1
    said = page.get_by_label("Comments").locator("time").first
    await expect(said).to_have_text(re.compile("2026"))
    await expect(said).to_be_visible()


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


async def test_titles_are_told_to_fingers(browser: Browser, server: str, mapped: str) -> None:
    context = await browser.new_context(viewport=NARROW, has_touch=True, is_mobile=True)  # type: ignore[arg-type] # a mapping with the two that it takes
    page = await context.new_page()
    await page.goto(f"{server}/?q=sources&workspace={mapped}")
    await page.locator(".mode", has_text="hybrid").tap()
    hint = page.locator(".hint")
    await expect(hint).to_contain_text("Found by words and meaning")
    await page.locator(".list-count").tap()
    await expect(hint).to_have_count(0)
    theme = page.get_by_role("button", name="Theme: system. Change the theme")
    box = await theme.bounding_box()
    assert box is not None
    session = await context.new_cdp_session(page)
    finger = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    await session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [finger]})
    await expect(hint).to_have_text("Theme: system")
    await session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    await expect(theme).to_be_visible()
    await context.close()


async def test_the_focus_goes_on_after_a_deletion(open_panel: Open, api: httpx.AsyncClient) -> None:
    await disliked(api, 3)
    page = await open_panel("/review")
    await expect(page.locator(".case")).to_have_count(3)
    titles = await page.locator(".case .row-title").all_inner_texts()
    await page.get_by_label(f"Select {titles[0]}").check()
    await page.get_by_role("button", name="Delete").focus()
    await page.keyboard.press("Enter")
    await expect(page.locator(".case", has_text=titles[1]).get_by_role("link")).to_be_focused()
    await page.get_by_label("Select all 2").check()
    await page.get_by_role("button", name="Delete").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Nothing to prune")).to_be_visible()
    await expect(page.locator(".review")).to_be_focused()


@pytest.mark.smoke
async def test_the_focus_never_falls_to_the_body(open_panel: Open, api: httpx.AsyncClient) -> None:
    (memory_id,) = await stored(api, {"kind": "note", "title": "Alone", "body": "A lesson about registers."})
    page = await open_panel("/", {"memory": memory_id})
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


async def test_the_empty_pane_has_an_overview(open_panel: Open, mapped: str) -> None:
    page = await open_panel(within=mapped)
    overview = page.get_by_label("Overview")
    await expect(overview.get_by_role("link", name=re.compile(r"^600 observations$"))).to_be_visible()
    await expect(overview.get_by_role("link", name=re.compile(r"^60 runs$"))).to_be_visible()
    await expect(overview.locator(".point")).to_have_count(60)
    await overview.get_by_role("link", name=re.compile("prune candidates$")).click()
    await expect(page.locator(".case").first).to_be_visible()
    await page.go_back()
    await overview.locator(".point").first.click()
    await expect(page.get_by_label("Run", exact=True).locator("h2")).to_be_visible()


async def test_the_overview_of_an_empty_workspace_counts_nothing(open_panel: Open) -> None:
    page = await open_panel()
    await expect(page.get_by_role("heading", name="This workspace has no memories yet")).to_be_visible()
    await page.wait_for_load_state("networkidle")
    await expect(page.get_by_label("Overview")).to_have_text("")


async def test_the_overview_says_how_to_remove_the_examples(open_panel: Open, api: httpx.AsyncClient) -> None:
    await api.post("/api/memories", json={"kind": "note", "title": "mine", "body": "The pump failed at noon."})
    overview = (page := await open_panel()).get_by_label("Overview")
    await expect(overview.get_by_role("link", name="1 note")).to_be_visible()
    await expect(overview.get_by_text("priors workspace examples --remove")).to_have_count(0)
    note = {"kind": "note", "title": "example", "body": "Seals wait for six weeks.", "tags": ["priors-example"]}
    await api.post("/api/memories", json=note)
    await page.reload()
    await expect(overview.get_by_text("priors workspace examples --remove")).to_be_visible()
    await overview.get_by_role("link", name="1 of the memories").click()
    await expect(page.locator(".row-title")).to_have_text(["example"])
