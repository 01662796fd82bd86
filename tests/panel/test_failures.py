"""Failures: a part of the page does not load, an address is wrong, the service refuses, the workspace changes."""

from uuid import uuid4

import httpx
import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.panel.conftest import Open
from tests.panel.seed import live
from tests.panel.test_memories import NOTES, stored

pytestmark = pytest.mark.test_all("browser")


async def refuse(page: Page, path: str) -> None:
    await page.route(path, lambda route: route.fulfill(status=503, json={"detail": "the database is away"}))


SWITCH = """(name) => {
    const address = new URL(location.href);
    address.searchParams.set('workspace', name);
    for (const opened of ['memory', 'run']) address.searchParams.delete(opened);
    history.pushState(null, '', address);
    dispatchEvent(new PopStateEvent('popstate'));
}"""


async def switch(page: Page, workspace: str) -> None:
    """Leads the page to another workspace, as a link within it does."""
    await page.evaluate(SWITCH, workspace)


def undo(page: Page) -> Locator:
    return page.get_by_role("status").get_by_role("button", name="Undo")


async def test_a_view_whose_code_does_not_come_can_be_tried_again(open_panel: Open, complaints: list[str]) -> None:
    page = await open_panel()
    await expect(page.get_by_role("heading", name="This workspace has no memories yet")).to_be_visible()
    await page.route("**/assets/*", lambda route: route.abort())
    await page.get_by_role("link", name="Map").click()
    await expect(page.get_by_role("heading", name="The view cannot be shown")).to_be_visible()
    await page.get_by_role("link", name="Runs").click()
    await expect(page.get_by_role("heading", name="No runs yet")).to_be_visible()
    await page.go_back()
    await page.unroute("**/assets/*")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("heading", name="There is nothing to map yet")).to_be_visible()
    complaints.clear()


@pytest.mark.parametrize("memory", ["facets", "../status", "not-an-id"])
async def test_an_address_that_names_no_memory_says_so(open_panel: Open, memory: str) -> None:
    page = await open_panel("/memory", {"memory": memory})
    await expect(page.get_by_text(f"there is no memory {memory}")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_text(f"there is no memory {memory}")).to_have_count(0)
    await expect(page.get_by_role("heading", name="This workspace has no memories yet")).to_be_visible()


async def test_an_address_that_names_no_memory_keeps_the_map(open_panel: Open, mapped: str) -> None:
    page = await open_panel("/memory?look=map", {"memory": "facets"}, within=mapped)
    await expect(page.get_by_text("there is no memory facets")).to_be_visible()
    await expect(page.locator(".map canvas").first).to_be_visible()


@pytest.mark.parametrize("path", ["/", "/memory", "/runs", "/service"])
async def test_a_workspace_that_none_can_have_is_said(open_panel: Open, path: str) -> None:
    page = await open_panel(path, within="д")
    await expect(page.get_by_text("д is not a valid workspace name").first).to_be_visible()


async def test_a_browser_that_thinks_itself_offline_still_sends(open_panel: Open, api: httpx.AsyncClient) -> None:
    (memory_id, *_) = await stored(api, *NOTES)
    page = await open_panel(params={"memory": memory_id})
    await expect(page.locator(".pane-detail h2")).to_be_visible()
    await page.evaluate("window.dispatchEvent(new Event('offline'))")
    await page.get_by_role("button", name="Rate up").click()
    await expect(page.get_by_text("Rated up")).to_be_visible()
    assert [entry["rating"] for entry in (await api.get(f"/api/memories/{memory_id}/feedback")).json()] == [1]
    await page.get_by_role("link", name="Service").click()
    await expect(page.get_by_text("All memories have a vector")).to_be_visible()


async def test_an_undo_goes_to_the_workspace_of_what_was_done(open_panel: Open, api: httpx.AsyncClient) -> None:
    await stored(api, *NOTES)
    page = await open_panel()
    await page.locator(".row").first.click()
    await page.get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("1 memory deleted")).to_be_visible()
    await switch(page, f"other-{uuid4().hex[:12]}")
    await undo(page).click()
    await expect(page.get_by_text("Change undone")).to_be_visible()
    assert await live(api) == 3


async def test_a_rating_is_taken_back_where_it_was_given(open_panel: Open, api: httpx.AsyncClient) -> None:
    (memory_id, *_) = await stored(api, *NOTES)
    page = await open_panel(params={"memory": memory_id})
    await page.get_by_role("button", name="Rate up").click()
    await expect(page.get_by_text("Rated up")).to_be_visible()
    await switch(page, f"other-{uuid4().hex[:12]}")
    await undo(page).click()
    await expect(page.get_by_text("Rating undone")).to_be_visible()
    assert (await api.get(f"/api/memories/{memory_id}")).json()["quality"] == 0


async def test_an_undo_that_changes_nothing_is_no_success(
    open_panel: Open, api: httpx.AsyncClient, complaints: list[str]
) -> None:
    (memory_id, *_) = await stored(api, *NOTES)
    page = await open_panel(params={"memory": memory_id})
    await page.get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("1 memory deleted")).to_be_visible()
    await api.patch("/api/memories", json={"state": "live", "ids": [memory_id]})
    await undo(page).click()
    await expect(page.locator(".notice")).to_have_text(
        ["Undo failed: the memory has changed since, or no longer exists"]
    )
    await page.get_by_role("button", name="Rate up").click()
    await expect(page.get_by_text("Rated up")).to_be_visible()
    await refuse(page, "**/api/feedback/*")
    await undo(page).click()
    await expect(page.get_by_text("Undo failed: the database is away")).to_be_visible()
    await expect(page.locator(".notice.bad")).to_have_count(2)
    await page.close()
    complaints.clear()


@pytest.mark.smoke
async def test_the_memories_of_another_workspace_are_never_shown(
    open_panel: Open, api: httpx.AsyncClient, seeded: str
) -> None:
    await stored(api, *NOTES)
    page = await open_panel()
    await expect(page.locator(".row")).to_have_count(3)
    held: list[Route] = []
    await page.route("**/api/memories?*", lambda route: held.append(route))  # noqa: PLW0108 - Playwright marks what it is given
    await switch(page, seeded)
    await expect(page.get_by_text("Loading memories …")).to_be_visible()
    await expect(page.locator(".row")).to_have_count(0)
    for route in held:
        await route.continue_()
    await expect(page.locator(".row")).to_have_count(50)


async def test_a_comment_outlives_a_refused_rating(
    open_panel: Open, api: httpx.AsyncClient, complaints: list[str]
) -> None:
    (memory_id, *_) = await stored(api, *NOTES)
    page = await open_panel(params={"memory": memory_id})
    await refuse(page, "**/feedback")
    comment = page.get_by_label("Comment on the rating")
    await comment.fill("It held up in March.")
    await page.get_by_role("button", name="Rate up").click()
    await expect(page.get_by_text("The rating could not be saved")).to_be_visible()
    await expect(comment).to_have_value("It held up in March.")
    await page.close()
    complaints.clear()
