"""Keys and the focus: where they act, where they must not, and what a held one does."""

import httpx
import pytest
from playwright.async_api import Page, Request, expect

from tests.panel.conftest import FOR_THE_MAP, NARROW, WIDE, Open
from tests.panel.test_graph import ROW, shown
from tests.panel.test_memories import NOTES, asked, stored

pytestmark = pytest.mark.test_all("browser")


async def focused(page: Page) -> str:
    """The text of what has the focus."""
    text: str = await page.evaluate("document.activeElement.innerText")
    return text


async def ratings(api: httpx.AsyncClient, memory_id: str) -> list[int]:
    """Returns the ratings in force."""
    log = (await api.get(f"/api/memories/{memory_id}/feedback")).json()
    return [entry["rating"] for entry in log if entry["undone_at"] is None]


@pytest.mark.parametrize("path", ["/", "/memory", "/runs", "/service"])
async def test_escape_closes_the_list_of_keys_and_nothing_behind_it(
    open_panel: Open, api: httpx.AsyncClient, path: str
) -> None:
    ids = await stored(api, *NOTES)
    await api.post("/api/runs", json={"run_id": "r", "task": "t"})
    opened = {"/memory": {"memory": ids[0]}, "/runs": {"run": "r"}}.get(path, {})
    page = await open_panel(path, opened)
    if opened:
        await expect(page.locator(".pane-detail h2")).to_be_visible(timeout=FOR_THE_MAP)
    await page.get_by_role("button", name="Keyboard shortcuts").click()
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    await expect(dialog).to_be_visible()
    listed = await dialog.locator("kbd").all_inner_texts()
    assert ("u" in listed) == (path in {"/", "/memory"})
    assert ("a" in listed) == (path == "/")
    assert ("n" in listed) == (path in {"/memory", "/service"})
    assert ("r" in listed) == (path in {"/", "/memory"})
    assert ("j" in listed) == (path != "/service")
    assert "g m" in listed
    await page.keyboard.press("u")
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    assert asked(page) == {name: [value] for name, value in opened.items()}
    assert await ratings(api, ids[0]) == []


@pytest.mark.smoke
async def test_escape_leaves_a_field_and_keeps_what_is_in_it(open_panel: Open, api: httpx.AsyncClient) -> None:
    (memory_id, *_) = await stored(api, *NOTES)
    page = await open_panel(params={"memory": memory_id})
    comment = page.get_by_label("Comment on the rating")
    await comment.fill("Half a thou")
    await page.keyboard.press("Escape")
    await expect(comment).not_to_be_focused()
    await expect(comment).to_have_value("Half a thou")
    await page.keyboard.press("u")
    await expect(page.get_by_label("Ratings").get_by_text("Half a thou")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator(".pane-detail h2")).to_have_count(0)
    assert asked(page) == {}

    page = await open_panel("/memory?look=map")
    await shown(page, api)
    await page.get_by_role("button", name="Select all").click()
    await page.get_by_label("Tag for the selected memories").fill("north")
    await page.keyboard.press("Escape")
    await expect(page.get_by_text("3 selected")).to_be_visible()
    await expect(page.get_by_label("Tag for the selected memories")).to_have_value("north")


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_the_focus_goes_to_what_is_opened_and_back(
    open_panel: Open, api: httpx.AsyncClient, size: dict[str, int]
) -> None:
    await stored(api, *NOTES)
    for run in ("first", "second"):
        await api.post("/api/runs", json={"run_id": run, "task": f"The {run} task"})
        await api.post("/api/search", json={"query": f"The {run} query"})
    titles = {"/memory": "Lesson B", "/memory?look=map": "Lesson B", "/runs": "The first task"}
    for path, title in titles.items():
        page = await open_panel(path, size=size)
        line = page.locator("a.row", has_text=title)
        await line.focus()
        await page.keyboard.press("Enter")
        heading = page.locator(".pane-detail h2")
        await expect(heading).to_have_text(title)
        await expect(heading).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(line).to_be_focused()
        await line.click()
        await expect(heading).to_be_focused()
        await page.get_by_role("button", name="Close").click()
        await expect(line).to_be_focused()


async def test_keys_that_move_on_stay_in_the_list_and_say_what_is_open(
    open_panel: Open, api: httpx.AsyncClient
) -> None:
    await stored(api, *NOTES)
    page = await open_panel()
    await expect(page.locator(".row")).to_have_count(3)
    heading = page.locator(".pane-detail h2")
    for title in ("Lesson C", "Lesson B"):
        await page.keyboard.press("j")
        await expect(page.locator("[aria-live=polite]", has_text=f"Open: {title}")).to_have_count(1)
        await expect(page.locator(".row", has_text=title)).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(heading).to_be_focused()
    await page.keyboard.press("k")
    await expect(heading).to_have_text("Lesson C")
    await page.set_viewport_size(NARROW)  # type: ignore[arg-type] # a mapping with the two that it takes
    await page.keyboard.press("j")
    await expect(heading).to_have_text("Lesson B")
    await expect(heading).to_be_focused()


async def test_a_held_key_rates_once_and_asks_for_where_it_rests(open_panel: Open, seeded: str) -> None:
    page = await open_panel(within=seeded)
    await expect(page.locator(".row")).to_have_count(50)
    await page.wait_for_load_state("networkidle")
    sent: list[str] = []

    def heard(request: Request) -> None:
        sent.append(f"{request.method} {request.url.split('?')[0]}")

    page.on("request", heard)
    await page.clock.install(time=0)
    await page.clock.pause_at(1000)
    for _ in range(30):
        await page.keyboard.down("j")
    await page.keyboard.up("j")
    (memory_id,) = asked(page)["memory"]
    await expect(page.locator(".row").nth(29)).to_have_attribute("aria-current", "true")
    await page.clock.resume()
    await expect(page.locator(".pane-detail").get_by_role("heading", name="Runs")).to_be_visible()
    await expect(page.locator(".pane-detail")).to_contain_text("Not given to any run yet")
    asked_for = [one for one in sent if "/api/memories/" in one]
    first = await page.locator(".row").first.get_attribute("href") or ""
    named = {one.split("/api/memories/")[1].split("/")[0] for one in asked_for}
    assert named == {memory_id, first.split("memory=")[1]}
    sent.clear()
    for _ in range(30):
        await page.keyboard.down("u")
    await page.keyboard.up("u")
    await expect(page.locator(".notice", has_text="Rated up")).to_have_count(1)
    await page.wait_for_load_state("networkidle")
    assert sum(one.startswith("POST") for one in sent) == 1
    await page.keyboard.press("z")
    await expect(page.get_by_text("Rating undone")).to_be_visible()


async def test_after_a_deletion_keys_go_on_from_where_it_was(open_panel: Open, api: httpx.AsyncClient) -> None:
    await stored(api, *({"kind": "note", "title": f"Note {n}", "body": f"Lesson {n}."} for n in range(6)))
    page = await open_panel()
    await expect(page.locator(".row")).to_have_count(6)
    heading = page.locator(".pane-detail h2")
    for title in ("Note 5", "Note 4", "Note 3"):
        await page.keyboard.press("j")
        await expect(heading).to_have_text(title)
    await page.get_by_role("button", name="Delete").click()
    await expect(page.locator(".row")).to_have_count(5)
    await page.keyboard.press("j")
    await expect(heading).to_have_text("Note 2")
    await page.keyboard.press("Escape")
    await page.keyboard.press("j")
    await expect(heading).to_have_text("Note 1")
    await page.get_by_role("button", name="Delete").click()
    await expect(page.locator(".row")).to_have_count(4)
    await page.keyboard.press("k")
    await expect(heading).to_have_text("Note 2")


async def test_notices_wait_for_their_reader_and_failures_stay(
    open_panel: Open, api: httpx.AsyncClient, complaints: list[str]
) -> None:
    (memory_id, *_) = await stored(api, *NOTES)
    page = await open_panel(params={"memory": memory_id})
    await page.clock.install()
    await page.get_by_role("button", name="Rate up").click()
    notice = page.locator(".notice")
    await expect(notice).to_have_text("Rated upUndo")
    await notice.get_by_role("button", name="Undo").focus()
    await page.clock.run_for(20_000)
    await expect(notice).to_have_count(1)
    await page.locator("body").evaluate("document.activeElement.blur()")
    await notice.hover()
    await page.clock.run_for(20_000)
    await expect(notice).to_have_count(1)
    await page.mouse.move(5, 300)
    await page.clock.run_for(9_000)
    await expect(notice).to_have_count(0)
    await page.route("**/feedback", lambda route: route.fulfill(status=503, json={"detail": "the database is away"}))
    for _ in range(2):
        await page.get_by_role("button", name="Rate down").click()
        await expect(notice).to_have_text("The rating could not be saved: the database is away")
    await page.clock.run_for(60_000)
    await expect(notice).to_have_count(1)
    await notice.get_by_role("button", name="Dismiss").click()
    await expect(notice).to_have_count(0)
    await page.close()
    complaints.clear()


async def test_the_map_s_list_is_walked_to_its_end_and_rated(open_panel: Open, mapped: str, server: str) -> None:
    async with httpx.AsyncClient(base_url=server, headers={"X-Workspace": mapped}) as client:
        page = await open_panel("/memory?look=map", within=mapped)
        found = await shown(page, client)
        titles = [node["title"] for node in found.nodes]
        rows = page.locator(ROW)
        heading = page.locator(".pane-detail h2")
        await rows.nth(99).locator("a").click()
        await expect(heading).to_have_text(titles[99])
        await page.keyboard.press("j")
        await expect(heading).to_have_text(titles[100])
        memory_id = found.nodes[100]["id"]
        before = await ratings(client, memory_id)
        await page.keyboard.press("d")
        await expect(page.get_by_text("Rated down")).to_be_visible()
        assert await ratings(client, memory_id) == [*before, -1]
        await page.keyboard.press("z")
        await expect(page.get_by_text("Rating undone")).to_be_visible()
        await page.keyboard.press("j")
        await expect(heading).to_have_text(titles[101])
        await page.keyboard.press("u")
        await expect(page.get_by_text("Rated up")).to_be_visible()
        await page.keyboard.press("z")
        await expect(page.get_by_text("Rating undone")).to_have_count(2)
        assert await ratings(client, memory_id) == before
        await page.keyboard.press("Escape")
        await expect(rows.nth(101).locator("a")).to_be_focused()


@pytest.mark.parametrize("path", ["/", "/memory?look=map", "/runs", "/service"])
async def test_search_is_a_key_away_from_every_view(open_panel: Open, path: str) -> None:
    page = await open_panel(path)
    await expect(page.locator("main h1")).to_have_count(1)
    await page.keyboard.press("/")
    await expect(page.get_by_role("searchbox")).to_be_focused()
    await expect(page.get_by_role("searchbox")).to_have_value("")
    assert asked(page) == {}


@pytest.mark.smoke
async def test_two_keys_lead_to_each_place_and_rate_nothing(open_panel: Open, api: httpx.AsyncClient) -> None:
    (memory_id, *_) = await stored(api, *NOTES)
    page = await open_panel(params={"memory": memory_id})
    await expect(page.locator(".pane-detail h2")).to_be_visible()
    for key, place in (("d", "Desk"), ("c", "Cases"), ("r", "Runs"), ("m", "Memory"), ("s", "Service")):
        await page.keyboard.press("g")
        await page.keyboard.press(key)
        await expect(page.get_by_role("link", name=place, exact=True)).to_have_attribute("aria-current", "page")
    assert await ratings(api, memory_id) == []


async def test_the_letters_of_a_note_do_nothing_else(open_panel: Open, api: httpx.AsyncClient) -> None:
    (memory_id, *_) = await stored(api, *NOTES)
    page = await open_panel(params={"memory": memory_id})
    await page.get_by_role("button", name="Rate up").click()
    await expect(page.get_by_text("Rated up")).to_be_visible()
    await page.keyboard.press("n")
    await expect(page.get_by_label("Title")).to_be_focused()
    await page.keyboard.type("zebras and dudes")
    await expect(page.get_by_label("Title")).to_have_value("zebras and dudes")
    assert await ratings(api, memory_id) == [1]
    await page.keyboard.press("Escape")
    await page.keyboard.press("Escape")
    await page.reload()
    await expect(page.locator(".row")).to_have_count(3)
    await page.keyboard.press("n")
    await expect(page.get_by_label("Title")).to_have_value("zebras and dudes")


async def _again(page: Page, memory: str) -> None:
    """Leaves what is written by Escape, looks at another place, comes back and loads the page anew."""
    for _ in range(2):
        await page.keyboard.press("Escape")
    await page.get_by_role("link", name="Cases", exact=True).click()
    await expect(page.get_by_role("heading", name="No cases yet")).to_be_visible()
    await page.goto(str(httpx.URL(page.url).copy_with(path="/memory").copy_merge_params({"memory": memory})))
    await page.reload()
    await expect(page.locator(".row").first).to_be_visible()


async def test_what_is_written_survives_escape_another_place_and_a_reload(
    open_panel: Open, api: httpx.AsyncClient
) -> None:
    (memory_id, *_) = await stored(api, *NOTES)
    body = {"kind": "correction", "trigger": "dropping a column", "lesson": "Never in one release."}
    (cue,) = (await api.post("/api/cues", json=[body])).json()["ids"]
    page = await open_panel(params={"memory": memory_id})
    await page.get_by_label("Comment on the rating").fill("Half a thou")
    await page.get_by_role("button", name="Edit").click()
    await page.get_by_label("Text (Markdown)").fill("Half a note")
    await _again(page, cue)
    await page.get_by_role("button", name="Edit").click()
    await page.get_by_role("textbox", name="Lesson").fill("Half a lesson")
    await _again(page, cue)
    await page.get_by_role("button", name="Edit").click()
    await expect(page.get_by_role("textbox", name="Lesson")).to_have_value("Half a lesson")
    await page.get_by_role("button", name="Cancel").click()
    await page.get_by_role("button", name="Edit").click()
    await expect(page.get_by_role("textbox", name="Lesson")).to_have_value("Never in one release.")
    await _again(page, memory_id)
    await expect(page.get_by_label("Comment on the rating")).to_have_value("Half a thou")
    await page.keyboard.press("t")
    await page.locator(".drawer textarea").fill("Half a plan")
    await page.keyboard.press("Escape")
    await expect(page.locator(".drawer")).to_have_count(0)
    await _again(page, memory_id)
    await page.keyboard.press("t")
    await expect(page.locator(".drawer textarea")).to_have_value("Half a plan")
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Edit").click()
    await expect(page.get_by_label("Text (Markdown)")).to_have_value("Half a note")
    await page.get_by_role("button", name="Save as a new version").click()
    await expect(page.get_by_text("Saved as a new version")).to_be_visible()
    assert await page.evaluate("Object.keys(sessionStorage).filter((key) => key.includes('note'))") == []


async def test_tab_leaves_a_list_without_an_end(open_panel: Open, seeded: str) -> None:
    requests: list[str] = []
    page = await open_panel(within=seeded, requests=requests)
    await expect(page.locator(".row")).to_have_count(50)
    await page.locator(".row").first.focus()
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Show more")).to_be_focused()
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    await page.keyboard.press("Tab")
    assert await page.evaluate("document.activeElement.closest('.list') === null")
    assert sum("/api/memories?" in url for url in requests) == 1
    await page.get_by_role("button", name="Show more").press("Enter")
    await expect(page.locator(".row")).to_have_count(100)
