"""The list, its filters and search, the detail pane, and judging."""

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from playwright.async_api import Page, Route, expect

from tests.panel.conftest import NARROW, Open

pytestmark = pytest.mark.test_all("browser")

NOTES = [
    {
        "kind": "note",
        "title": f"Lesson {letter}",
        "body": f"What we learned about {topic}.",
        "final_score": score,
    }
    for letter, topic, score in (("A", "registers", 9.0), ("B", "listicles", 4.0), ("C", "seasons", 6.5))
]


async def stored(api: httpx.AsyncClient, *memories: dict[str, Any]) -> list[str]:
    ids = []
    for memory in memories:
        answer = await api.post("/api/memories?wait=true", json=memory)
        assert answer.status_code == 200, answer.text
        ids.append(answer.json()["ids"][0])
    return ids


def asked(page: Page) -> dict[str, list[str]]:
    found = parse_qs(urlsplit(page.url).query)
    for name in ("workspace", "look", "part"):
        found.pop(name, None)
    return found


async def test_an_empty_workspace_says_what_to_do(open_panel: Open) -> None:
    page = await open_panel()
    await expect(page.get_by_role("heading", name="This workspace has no memories yet")).to_be_visible()
    await expect(page.get_by_text("priors ingest reports/")).to_be_visible()


async def test_the_list_is_asked_for_once_and_before_all_else(open_panel: Open, seeded: str) -> None:
    requests: list[str] = []
    page = await open_panel(within=seeded, requests=requests)
    await expect(page.locator(".row")).to_have_count(50)
    await page.wait_for_load_state("networkidle")
    asked_for = [urlsplit(url).path for url in requests if "/api/" in url]
    assert asked_for[0] == "/api/memories"
    assert asked_for.count("/api/memories") == 1


async def test_the_list_goes_on_as_it_is_scrolled(open_panel: Open, seeded: str) -> None:
    page = await open_panel(within=seeded)
    rows = page.locator(".row")
    await expect(page.get_by_text(re.compile(r"^7\d\d memories$"))).to_be_visible()
    await expect(rows).to_have_count(50)
    await rows.last.scroll_into_view_if_needed()
    await expect(rows).to_have_count(100)


async def test_filters_live_in_the_address(open_panel: Open, seeded: str) -> None:
    page = await open_panel(within=seeded)
    await page.get_by_role("button", name="Filters").click()
    await page.get_by_label("Verdict").select_option("reject")
    await page.get_by_label("Task type").select_option("scoring")
    await page.get_by_label("Minimum score").fill("3")
    await expect(page.get_by_role("button", name="Task type: scoring")).to_be_visible()
    assert asked(page) == {"verdict": ["reject"], "task_type": ["scoring"], "min_score": ["3"]}
    rows = page.locator(".row")
    await expect(rows.first.locator(".verdict")).to_have_text("reject")
    shared = await open_panel(within=seeded, params=asked(page))
    await expect(shared.locator(".list-count p")).to_have_text(await page.locator(".list-count p").inner_text())
    await page.go_back()
    await page.go_back()
    assert asked(page) == {"verdict": ["reject"]}
    await expect(page.get_by_role("button", name="Task type: scoring")).to_have_count(0)
    await page.get_by_role("button", name="Clear").click()
    assert asked(page) == {}


async def test_the_order_can_be_chosen(open_panel: Open, api: httpx.AsyncClient) -> None:
    await stored(api, *NOTES)
    page = await open_panel()
    await expect(page.locator(".row-title")).to_have_text(["Lesson C", "Lesson B", "Lesson A"])
    await page.get_by_label("Order").select_option("Worst score first")
    await expect(page.locator(".row-title")).to_have_text(["Lesson B", "Lesson C", "Lesson A"])
    assert asked(page) == {"sort": ["score"], "order": ["asc"]}


async def test_a_filter_that_is_none_is_not_shown_as_in_force(open_panel: Open, api: httpx.AsyncClient) -> None:
    await stored(api, *NOTES)
    page = await open_panel(params={"kind": ["bogus", "note"], "min_score": "11", "until": "2026-02-30"})
    await expect(page.locator(".row")).to_have_count(3)
    await expect(page.get_by_label("Active filters").get_by_role("button")).to_have_text("Kind: note")
    said = page.get_by_text("Ignored because the value is not valid: Kind: bogus, Dated to 2026-02-30, Score ≥ 11")
    await expect(said).to_be_visible()
    least = page.get_by_label("Minimum score")
    await expect(least).to_have_attribute("aria-invalid", "true")
    await least.fill("5")
    await expect(least).to_have_attribute("aria-invalid", "false")
    await expect(page.locator(".row")).to_have_count(2)


async def test_the_date_of_a_row_is_the_one_that_filters_use(open_panel: Open, api: httpx.AsyncClient) -> None:
    await stored(api, {**NOTES[0], "occurred_at": "2019-05-01T00:00:00Z"}, NOTES[1])
    page = await open_panel(params={"until": "2019-05-01"})
    await expect(page.locator(".row")).to_have_count(1)
    await expect(page.locator(".row time")).to_have_text("1 May 2019")
    await expect(page.locator(".row .dates")).to_contain_text("stored")
    await page.get_by_label("Order").select_option("Latest event first")
    await expect(page.locator(".row .dates")).to_have_text("1 May 2019")


async def test_a_search_is_logged_once_for_each_of_its_pages(open_panel: Open, api: httpx.AsyncClient) -> None:
    await stored(api, *NOTES)
    page = await open_panel(params={"q": "listicles"})
    await expect(page.locator(".row-title").first).to_have_text("Lesson B")
    # The page after a short one asks for the most.
    await expect(page.get_by_text("Of matches with the same text or title, one is shown.")).to_be_visible()
    await page.clock.install()
    await page.clock.fast_forward(3_600_000)
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await page.get_by_role("link", name="Service").click()
    await expect(page.get_by_role("row", name=re.compile("^trial")).get_by_role("cell").nth(4)).to_have_text("2")
    await page.go_back()
    await expect(page.locator(".row-title").first).to_have_text("Lesson B")
    assert (await api.get("/api/status")).json()["recalls"] == 2


async def test_search_says_how_it_found(open_panel: Open, api: httpx.AsyncClient) -> None:
    await stored(api, *NOTES)
    page = await open_panel()
    await expect(page.locator(".row")).to_have_count(3)
    await page.keyboard.press("/")
    await page.keyboard.type("listicles")
    await expect(page.locator(".row-title").first).to_have_text("Lesson B")
    await expect(page.locator(".mode")).to_contain_text("hybrid")
    assert asked(page) == {"q": ["listicles"]}
    await page.keyboard.press("Escape")
    await page.go_back()
    await expect(page.get_by_role("searchbox")).to_have_value("")
    await expect(page.locator(".row")).to_have_count(3)


async def test_a_search_without_an_answer_offers_the_way_back(open_panel: Open, api: httpx.AsyncClient) -> None:
    await stored(api, *NOTES)
    page = await open_panel(params={"q": "quantum chromodynamics of penguins", "kind": "cue"})
    await expect(page.get_by_role("heading", name="No memory matches this search")).to_be_visible()
    await page.get_by_role("button", name="Show all memories").click()
    await expect(page.locator(".row")).to_have_count(3)


@pytest.mark.smoke
async def test_the_keyboard_moves_rates_and_closes(open_panel: Open, api: httpx.AsyncClient) -> None:
    await stored(api, *NOTES)
    page = await open_panel()
    await expect(page.locator(".row")).to_have_count(3)
    heading = page.locator(".pane-detail h2")
    for key, title in (("j", "Lesson C"), ("j", "Lesson B"), ("j", "Lesson A"), ("k", "Lesson B")):
        await page.keyboard.press(key)
        await expect(heading).to_have_text(title)
    await page.keyboard.press("u")
    quality = page.locator(".judging .quality")
    await expect(quality).to_contain_text("+1")
    await expect(page.locator(".row[aria-current] .quality")).to_contain_text("+1")
    await page.keyboard.press("d")
    await page.keyboard.press("d")
    await expect(quality).to_contain_text("−1")
    await page.keyboard.press("Escape")
    await expect(heading).to_have_count(0)
    await page.keyboard.press("?")
    await expect(page.get_by_role("heading", name="Keyboard shortcuts")).to_be_visible()


@pytest.mark.smoke
async def test_a_rating_with_a_comment_is_seen_and_undone(open_panel: Open, api: httpx.AsyncClient) -> None:
    (memory_id, *_) = await stored(api, *NOTES)
    page = await open_panel(params={"memory": memory_id})
    await page.get_by_label("Comment on the rating").fill("It held up.")
    await page.get_by_role("button", name="Rate up").click()
    await expect(page.locator(".judging .quality")).to_contain_text("+1")
    await expect(page.get_by_label("Ratings").get_by_text("It held up.")).to_be_visible()
    await page.get_by_role("status").get_by_role("button", name="Undo").click()
    await expect(page.locator(".judging .quality")).to_contain_text("0")
    await expect(page.get_by_text("Removed", exact=True)).to_be_visible()
    log = (await api.get(f"/api/memories/{memory_id}/feedback")).json()
    assert [(entry["comment"], entry["undone_at"] is not None) for entry in log] == [("It held up.", True)]


async def test_a_refused_rating_is_taken_back_on_screen(
    open_panel: Open, api: httpx.AsyncClient, complaints: list[str]
) -> None:
    (memory_id, *_) = await stored(api, *NOTES)
    page = await open_panel(params={"memory": memory_id})
    await page.route("**/feedback", lambda route: route.fulfill(status=503, json={"detail": "the database is away"}))
    await page.get_by_role("button", name="Rate down").click()
    await expect(page.get_by_text("The rating could not be saved: the database is away")).to_be_visible()
    await expect(page.locator(".judging .quality")).to_contain_text("0")
    await page.close()
    complaints.clear()


@pytest.mark.smoke
async def test_an_observation_shows_its_whole_story(open_panel: Open, api: httpx.AsyncClient) -> None:
    observation = {
        "task_type": "scoring", "narrative": "The **judge** took points.", "verdict": "revise",
        "facts": ["[1] The register", "[x] checked", "[wiggum] SOM without a method", "[wiggumish] fine"],
    }  # fmt: skip
    source = {"kind": "run", "uri": "runs/7"}
    body = {"kind": "observation", "title": "Judged", "observation": observation, "source": source, "run_id": "run-7"}
    around = [{"kind": "note", "body": f"Place {place}", "source": source, "ordinal": place} for place in (0, 2, 9)]
    memory_id, *_ = await stored(api, {**body, "ordinal": 1, "tags": ["spain"]}, *around)
    await api.post("/api/runs", json={"run_id": "run-8", "task": "t", "final_score": 8, "verdict": "accept"})
    for _ in range(3):
        await api.post("/api/history", json={"query": "judge took points for sources", "run_id": "run-8"})
    page = await open_panel(params={"memory": memory_id})
    detail = page.locator(".pane-detail")
    await expect(detail.locator("strong").get_by_text("judge", exact=True)).to_be_visible()
    await expect(detail.locator(".fact-list li")).to_have_count(4)
    await expect(detail.locator(".fact-list li").first).to_have_text("[1] The register")
    await expect(detail.get_by_text("Given 3 times")).to_be_visible()
    await expect(detail.locator(".neighbours li")).to_have_text(
        ["0Place 0", re.compile("^1Judged The judge took"), "2Place 2"]
    )
    await expect(detail.get_by_role("link", name="run-7")).to_be_visible()
    await expect(detail.get_by_role("row", name=re.compile("run-8")).first).to_contain_text("accept")
    await detail.get_by_role("link", name="spain").click()
    assert asked(page) == {"tag": ["spain"]}


async def test_deleting_can_be_undone(open_panel: Open, api: httpx.AsyncClient) -> None:
    (memory_id, *_) = await stored(api, *NOTES)
    page = await open_panel(params={"memory": memory_id})
    await expect(page.locator(".row")).to_have_count(3)
    await page.get_by_role("button", name="Delete").click()
    await expect(page.locator(".row")).to_have_count(2)
    await expect(page.get_by_text("This memory is deleted")).to_be_visible()
    await page.get_by_role("status").get_by_role("button", name="Undo").click()
    await expect(page.locator(".row")).to_have_count(3)


async def test_a_missing_memory_and_a_service_away_are_said(
    open_panel: Open, api: httpx.AsyncClient, complaints: list[str]
) -> None:
    await stored(api, *NOTES)
    page = await open_panel(params={"memory": "00000000-0000-0000-0000-000000000000"})
    await expect(page.get_by_role("heading", name="The memory cannot be shown")).to_be_visible()
    await page.route("**/api/memories?*", lambda route: route.abort())
    await page.goto(page.url + "&kind=note")
    await expect(page.get_by_text("the service cannot be reached")).to_be_visible(timeout=15_000)
    await page.unroute("**/api/memories?*")
    await page.get_by_role("button", name="Try again").first.click()
    await expect(page.locator(".row")).to_have_count(3)
    await page.close()
    complaints.clear()


async def test_a_narrow_page_shows_one_thing_at_a_time(open_panel: Open, seeded: str) -> None:
    page = await open_panel(within=seeded, size=NARROW)
    await page.locator(".row").first.click()
    await expect(page.locator(".pane-detail h2")).to_be_visible()
    await expect(page.locator(".row").first).to_be_hidden()
    await page.get_by_role("button", name="Close").click()
    await expect(page.locator(".row").first).to_be_visible()
    width = await page.evaluate("document.documentElement.scrollWidth")
    assert width == NARROW["width"]


@pytest.mark.parametrize(("params", "listing"), [({}, "/api/memories"), ({"q": "sources"}, "/api/search")])
async def test_the_first_rows_wait_for_one_answer_alone(
    open_panel: Open, seeded: str, params: dict[str, str], listing: str
) -> None:
    """The benchmark measures how soon they come."""
    page = await open_panel("/service", within=seeded)
    sent: list[str] = []

    async def answered(route: Route) -> None:
        path = urlsplit(route.request.url).path
        sent.append(path)
        if path == listing:
            await route.continue_()

    await page.route("**/api/**", answered)
    await page.goto(
        page.url.replace("/service", "/memory") + "".join(f"&{name}={value}" for name, value in params.items())
    )
    await expect(page.locator(".row").first).to_be_visible()
    assert sent.count(listing) == 1
    await page.unroute("**/api/**")


async def test_rows_say_what_they_are(open_panel: Open, api: httpx.AsyncClient) -> None:
    text = "# Channels\n\n" + "Shops sell most of it. " * 20 + "The **register** of producers is checked in spring."
    note = {"kind": "note", "title": "Report › Channels", "body": text}
    await stored(api, note, {"kind": "note", "body": "No title here, only a text."})
    page = await open_panel()
    rows = page.locator(".row")
    await expect(rows.last.locator(".row-title")).to_have_text("Channels in Report")
    await expect(rows.last.locator(".row-excerpt")).to_have_text(re.compile("^Shops sell most of it"))
    await expect(rows.first.locator(".row-excerpt")).to_have_count(0)
    await expect(rows.locator(".row-marks")).to_have_text(["", ""])
    await page.get_by_label("Search memories").fill("registers of the producers")
    excerpt = rows.first.locator(".row-excerpt")
    await expect(excerpt.locator("mark")).to_have_text(["register", "producers"])
    await expect(excerpt).to_have_text(re.compile("^… .*register of producers is checked"))


async def test_texts_keep_their_lines_and_their_direction(open_panel: Open, api: httpx.AsyncClient) -> None:
    report = {
        "path": "a/judgement.json",
        "content": '{"version": "v3", "reasoning": "The sizing holds.", "advice": "Keep its two sources."}',
    }
    (await api.post("/api/reports", json=report)).raise_for_status()
    (chunk,) = (await api.get("/api/memories")).json()["memories"]
    page = await open_panel(params={"memory": chunk["id"]})
    lines = page.locator(".markdown.lines p")
    await expect(lines).to_contain_text("advice: Keep its two sources.")
    box = await lines.bounding_box()
    assert box is not None
    assert box["height"] >= 18 * len(chunk["body"].splitlines())
    hebrew = "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd"
    (memory_id,) = await stored(api, {"kind": "note", "title": "Greeting", "body": f"{hebrew}\n\nAnd in English."})
    page = await open_panel(params={"memory": memory_id})
    await expect(page.locator(".markdown p")).to_have_count(2)
    directions = "(all) => all.map((one) => getComputedStyle(one).direction)"
    assert await page.locator(".markdown p").evaluate_all(directions) == ["rtl", "ltr"]
    excerpt = page.locator(".row", has_text="Greeting").locator(".row-excerpt")
    await expect(excerpt).to_have_count(1)
    assert await excerpt.evaluate_all(directions) == ["rtl"]


async def test_many_are_selected_and_changed(open_panel: Open, api: httpx.AsyncClient) -> None:
    ids = await stored(api, *NOTES, {"kind": "note", "title": "Lesson D", "body": "What we learned about pumps."})
    page = await open_panel()
    await page.get_by_label("Select Lesson D").check()
    await page.get_by_label("Select Lesson B").click(modifiers=["Shift"])
    await expect(page.locator(".list-count p")).to_have_text("3 selected")
    await page.get_by_label("Tag for the selected memories").fill("spring")
    await page.keyboard.press("Enter")
    await expect(page.locator(".notice", has_text="3 memories tagged spring")).to_be_visible()
    tagged = (await api.get("/api/memories", params={"tag": "spring"})).json()["memories"]
    assert {memory["id"] for memory in tagged} == set(ids[1:])
    await expect(page.locator(".list-count p")).to_have_text("3 selected")
    await page.keyboard.press("Escape")
    await page.keyboard.press("z")
    await expect(page.get_by_text("Tag removed")).to_be_visible()
    assert (await api.get("/api/memories", params={"tag": "spring"})).json()["memories"] == []
    await page.get_by_role("button", name="Rate all selected memories up").click()
    await expect(page.locator(".row .quality.good")).to_have_count(3)
    await page.get_by_role("group", name="Change the selected memories").get_by_role("button", name="Delete").click()
    await expect(page.locator(".row")).to_have_count(1)
    await page.locator(".notice", has_text="3 memories deleted").get_by_role("button", name="Undo").click()
    await expect(page.locator(".row")).to_have_count(4)
    await expect(page.locator(".list-count p")).to_have_text("3 selected")


async def test_the_keyboard_selects_a_range(open_panel: Open, api: httpx.AsyncClient) -> None:
    await stored(api, *NOTES)
    page = await open_panel()
    await expect(page.locator(".row")).to_have_count(3)
    await page.keyboard.press("j")
    await page.keyboard.press("x")
    await expect(page.locator(".picked-row.chosen")).to_have_count(1)
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await page.keyboard.press("Shift+X")
    await expect(page.locator(".picked-row.chosen")).to_have_count(3)
    await page.keyboard.press("Escape")
    await page.keyboard.press("Escape")
    await expect(page.locator(".picked-row.chosen")).to_have_count(0)


async def test_a_note_is_written(open_panel: Open, api: httpx.AsyncClient) -> None:
    await stored(api, *NOTES)
    page = await open_panel()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    await expect(page.locator(".row")).to_have_count(3)
    await page.keyboard.press("n")
    await expect(page.get_by_label("Title")).to_be_focused()
    await page.get_by_label("Title").fill("Pumps")
    await page.get_by_label("Text (Markdown)").fill("  ")
    await page.keyboard.press("Control+Enter")
    await page.get_by_label("Text (Markdown)").fill("The pump wants a **new** seal in spring.")
    await page.get_by_label("Tags, separated by commas").fill("mill, spring , mill")
    await page.keyboard.press("Control+Enter")
    await expect(page.locator(".pane-detail h2")).to_have_text("Pumps")
    await expect(page.locator(".row")).to_have_count(4)
    assert len(sent) == 1
    (note,) = (await api.get("/api/memories", params={"tag": "mill"})).json()["memories"]
    assert asked(page) == {"memory": [note["id"]]}
    assert (note["kind"], note["title"], note["tags"]) == ("note", "Pumps", ["mill", "spring"])
    await page.locator(".notice", has_text="Note saved").get_by_role("button", name="Undo").click()
    await expect(page.locator(".row")).to_have_count(3)
