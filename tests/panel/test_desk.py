"""Journeys of a reviewer, by keys alone: the desk, taking a wrong lesson back, cases, runs, and who did it."""

import re
from time import monotonic

import httpx
import pytest
from playwright.async_api import Page, expect

from app.wiring import Services
from tests.conftest import link_pending, workspace_in
from tests.interfaces.http.calls import NAMES_OF_BRANCHES, embed
from tests.panel.conftest import NARROW, WIDE, Open, tried
from tests.panel.seed import INJECTION, disliked, live
from tests.panel.test_memories import asked, stored
from tests.panel.test_safety import violations

pytestmark = pytest.mark.test_all("browser")

LESSON = "Never drop the column orders.legacy_total before the yearly audit has read it."


class Keys:
    """A reader with a keyboard; a key, a chord and a typed text are one act each."""

    def __init__(self, page: Page) -> None:
        self.page, self.acts = page, 0

    async def press(self, *chord: str) -> None:
        """Presses a key, or the keys of a chord one after the other."""
        self.acts += 1
        await expect(self.page.locator("main h1, .empty h2").first).to_be_attached()
        for key in chord:
            await self.page.keyboard.press(key)

    async def search(self, text: str) -> None:
        """Types into the search of the open pane or of the place: two acts."""
        await self.press("/")
        await expect(self.page.locator("input[type=search]:focus")).to_be_attached()
        self.acts += 1
        await self.page.keyboard.type(text)


async def _taught(api: httpx.AsyncClient, services: Services) -> None:
    """Stores a wrong lesson in four places."""
    for path, text in (("rules/a.md", LESSON), ("rules/b.md", f"- **{LESSON}**")):
        report = {"path": path, "content": f"# Rules of {path}\n\n{text}\n"}
        (await api.post("/api/reports", json=report)).raise_for_status()
    session = {"id": "s1", "messages": [{"role": "user", "text": f"Please note: {LESSON}"}]}
    (await api.post("/api/sessions", json=session)).raise_for_status()
    cue = {
        "kind": "correction", "trigger": "dropping a column of orders", "lesson": LESSON,
        "evidence": [{"session": "s1", "message": 0, "quote": LESSON}],
    }  # fmt: skip
    (await api.post("/api/cues", json=[cue])).raise_for_status()
    await embed(api, services)


async def _reasons(page: Page) -> dict[str, str]:
    texts = await page.get_by_role("navigation", name="Reasons").get_by_role("link").all_inner_texts()
    found = (re.fullmatch(r"(.+?)\s+([\d,]+)", text) for text in texts)
    return {one[1]: one[2] for one in found if one is not None}


@pytest.mark.smoke
async def test_an_empty_desk_says_what_comes_there(open_panel: Open) -> None:
    page = await open_panel("/")
    await expect(page.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
    await expect(page.get_by_label("Did memory help?")).to_contain_text("No run is finished yet")


@pytest.mark.smoke
async def test_what_waits_is_decided_by_one_key_each_and_undone(open_panel: Open, api: httpx.AsyncClient) -> None:
    await api.post("/api/reports", json={"path": "notes/a.md", "content": INJECTION})
    await disliked(api, 3)
    page = await open_panel("/")
    rows = page.locator(".row")
    await expect(rows).to_have_count(4)
    await expect(page.get_by_role("link", name="Prune 3")).to_be_visible()
    found = await _reasons(page)
    assert found == found | {"Held back": "1", "Prune": "3"}
    before = await live(api)
    for key, left in (("r", 3), ("#", 2), ("e", 1)):
        await page.keyboard.press("j" if key == "r" else "Shift")
        await expect(page.locator(".pane-detail h2")).to_be_visible()
        await expect(page.get_by_role("group", name="Decide")).to_be_visible()
        await page.keyboard.press(key)
        await expect(rows).to_have_count(left)
        await expect(rows.first).to_be_focused()
        await expect(rows.first).to_have_attribute("aria-current", "true")
    assert await live(api) == before
    await expect(page.get_by_text("1 item is kept in this browser until something about it changes")).to_be_visible()
    await page.wait_for_timeout(100)
    for left in (2, 3, 4):
        await page.keyboard.press("z")
        await expect(rows).to_have_count(left)
    assert await live(api) == before
    await page.keyboard.press("Escape")
    await page.get_by_role("link", name=re.compile("^Held back")).click()
    await expect(rows).to_have_count(1)
    assert asked(page) == {"reason": ["held"]}


@pytest.mark.smoke
async def test_a_wrong_lesson_is_taken_back_with_all_that_says_it(
    open_panel: Open, api: httpx.AsyncClient, services: Services, axe: str
) -> None:
    await _taught(api, services)
    before = await live(api)
    page = await open_panel("/memory")
    await expect(page.get_by_role("searchbox")).to_be_visible()
    await page.keyboard.press("/")
    await expect(page.get_by_role("searchbox")).to_be_focused()
    await page.keyboard.type("legacy_total audit")
    await expect(page.locator(".row")).not_to_have_count(0)
    await page.keyboard.press("Escape")
    await page.keyboard.press("j")
    await expect(page.locator(".pane-detail h2")).to_be_visible()
    await page.keyboard.press("b")
    same = page.get_by_label("What says the same").get_by_role("listitem")
    await expect(page.get_by_role("button", name=re.compile("^Take back [4-9] memories"))).to_be_focused()
    count = await same.count()
    assert {"chunk", "message", "cue"} <= set(await same.locator(".kind").all_inner_texts())
    assert await violations(page, axe) == []
    await page.keyboard.press("Enter")
    await expect(page.locator(".proof")).to_contain_text("no longer shown")
    await expect(page.locator(".proof")).to_contain_text("no longer fires")
    assert await live(api) == before - count
    await page.keyboard.press("z")
    await expect(page.get_by_text("Change undone")).to_be_visible()
    assert await live(api) == before
    await expect(page.locator(".proof")).to_contain_text("still shown")
    await expect(page.get_by_role("heading", name=f"{count} memories taken back, and restored again")).to_be_visible()
    await expect(page.get_by_role("button", name="Undo", exact=True)).to_have_count(0)


@pytest.mark.smoke
async def test_who_deleted_a_memory_is_found_and_all_of_it_restored(open_panel: Open, api: httpx.AsyncClient) -> None:
    await stored(api, *({"kind": "note", "title": f"Note {n}", "body": f"Lesson {n}."} for n in range(12)))
    page = await open_panel()
    await page.evaluate("localStorage.setItem('priors-reviewer', 'Zoë Ray')")
    await page.get_by_role("button", name="Select all 12").click()
    await page.get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("12 memories deleted")).to_be_visible()
    keys = Keys(await open_panel("/"))
    await keys.press("g", "a")
    await expect(keys.page.get_by_label("Audit log")).to_be_visible()
    await keys.search("lesson 11")
    latest = keys.page.locator(".entries > li")
    await expect(latest.filter(has_text="panel · Zoë Ray deleted 12 memories")).to_contain_text("Note 11")
    await keys.press("Enter")
    await expect(keys.page.get_by_role("button", name="Restore all of them")).to_be_focused()
    await keys.press("Enter")
    await expect(keys.page.get_by_text("12 memories restored")).to_be_visible()
    assert await live(api) == 12
    assert keys.acts <= 8
    await expect(keys.page.get_by_role("button", name="Restore all of them")).to_have_count(0)
    # What was restored is not deleted by one Enter more.
    await keys.search("lesson 11")
    await keys.press("Enter")
    await expect(keys.page.locator(".entries > li").first.get_by_role("link").first).to_be_focused()


async def test_an_undo_restores_nothing_that_the_scan_holds(open_panel: Open, api: httpx.AsyncClient) -> None:
    await api.post("/api/reports", json={"path": "notes/a.md", "content": INJECTION})
    (held,) = [one["id"] for one in (await api.get("/api/memories?state=quarantined")).json()["memories"]]
    page = await open_panel("/", {"reason": "held"})
    await page.locator(".row").first.click()
    await expect(page.locator(".pane-detail h2")).to_be_visible()
    await page.keyboard.press("#")
    await expect(page.get_by_text("1 memory deleted")).to_be_visible()
    (await api.patch("/api/memories", json={"state": "live", "ids": [held]})).raise_for_status()
    await page.keyboard.press("z")
    await expect(page.get_by_text("the memory has changed since, or no longer exists")).to_be_visible()
    assert (await api.get(f"/api/memories/{held}")).json()["retired_as"] == "quarantined"
    log = await open_panel("/service", {"part": "audit"})
    await expect(log.locator(".entries li").first).to_be_visible()
    await expect(log.get_by_role("button", name="Restore all of them")).to_have_count(0)


async def _run_that_was_told(api: httpx.AsyncClient, services: Services) -> None:
    """Stores a run that was shown a note and warned by a cue, and one that asked for nothing."""
    await stored(api, {"kind": "note", "title": "Valves", "body": "The valve of line four sticks in winter."})
    cue = {
        "kind": "correction",
        "trigger": "opening a valve in winter",
        "lesson": "Warm the valve before it is opened.",
    }
    (await api.post("/api/cues", json=[cue])).raise_for_status()
    await embed(api, services)
    run = {"run_id": "told", "task": "Winter", "output": "The valve of line four sticks in winter!", "final_score": 8}
    (await api.post("/api/runs", json=run)).raise_for_status()
    (await api.post("/api/runs", json={"run_id": "alone", "task": "Alone"})).raise_for_status()
    asked = {"query": "valve of line four in winter", "run_id": "told", "agent": "researcher"}
    await api.post("/api/history", json=asked)
    await api.post("/api/activate", json={"plan": "open the valve in winter", "run_id": "told"})


@pytest.mark.smoke
async def test_a_run_reads_from_what_it_was_told_to_how_it_was_judged(
    open_panel: Open, api: httpx.AsyncClient, services: Services
) -> None:
    await _run_that_was_told(api, services)
    context = {"observation": "Open the valve of line four.", "goal": "Start the line.", "run_id": "told"}
    (await api.post("/api/contexts", json=context)).raise_for_status()
    page = await open_panel("/runs", {"run": "told"})
    pane = page.locator(".pane-detail")
    await expect(pane.locator(".told .use").first).to_have_text("used")
    await expect(pane.locator(".told > li").first).to_contain_text("The valve of line four sticks in winter.")
    headings = pane.get_by_role("heading", level=3)
    await expect(headings.first).to_have_text("What it was told")
    await expect(pane.get_by_text("What it wrote")).to_be_visible()
    await expect(pane.locator(".score-bar").first).to_be_hidden()
    await pane.get_by_text("What was found and not shown").first.click()
    await expect(pane.get_by_role("link", name="Open the recall with its parameters").first).to_be_visible()
    await pane.get_by_text(re.compile("^Context of ")).click()
    await expect(pane.get_by_label("Text for the model")).to_contain_text("Open the valve of line four.")
    await page.goto(page.url.replace("run=told", "run=alone"))
    await expect(pane.get_by_text("Nothing: it asked for no history")).to_be_visible()


@pytest.mark.smoke
async def test_keys_tell_why_the_researcher_was_told_something(
    open_panel: Open, api: httpx.AsyncClient, services: Services
) -> None:
    await _run_that_was_told(api, services)
    keys = Keys(await open_panel("/"))
    pane = keys.page.locator(".pane-detail")
    await keys.press("g", "r")
    await expect(keys.page.locator(".row").first).to_be_visible()
    await keys.search("told")
    await keys.press("Enter")
    await expect(pane.locator("h2")).to_be_focused()
    await expect(pane.locator(".told > li").first).to_be_visible()
    await keys.search("researcher sticks")
    await expect(pane.locator(".told > li")).to_have_count(1)
    await keys.press("Enter")
    await expect(pane.get_by_text("Why: number 1 for this question")).to_be_focused()
    await expect(pane.locator(".score-bar")).to_be_visible()
    await expect(pane.get_by_text("researcher asked")).to_contain_text("valve of line four in winter")
    assert keys.acts <= 8


@pytest.mark.smoke
async def test_keys_take_a_wrong_lesson_back_with_proof(
    open_panel: Open, api: httpx.AsyncClient, services: Services
) -> None:
    await _taught(api, services)
    keys = Keys(await open_panel("/"))
    await keys.search("legacy_total audit")
    await keys.press("Enter")
    await expect(keys.page.locator(".pane-detail h2")).to_be_focused()
    await keys.press("b")
    await expect(keys.page.get_by_role("button", name=re.compile("^Take back [4-9] memories"))).to_be_focused()
    await keys.press("Enter")
    await expect(keys.page.locator(".proof")).to_contain_text("no longer shown")
    await expect(keys.page.locator(".proof")).to_contain_text("no longer fires")
    assert keys.acts <= 10
    await keys.press("z")
    await expect(keys.page.locator(".pane-detail h2")).to_contain_text("and restored again")
    await expect(keys.page.locator(".proof")).to_contain_text("still fires")


@pytest.mark.smoke
async def test_keys_show_the_issue_that_recurs_most_and_each_return(open_panel: Open, seeded: str) -> None:
    keys = Keys(await open_panel("/", within=seeded))
    await keys.press("g", "c")
    await expect(keys.page.locator(".row").first).to_be_visible()
    await keys.press("j")
    lives = keys.page.get_by_label("Issues").locator("li")
    await expect(lives.first).to_be_visible()
    returns = [
        text.count("came back in") and text.split("came back in")[1].count(",") + 1
        for text in await lives.all_inner_texts()
    ]
    assert returns[0] > 0
    assert returns == sorted(returns, reverse=True)
    await expect(lives.first.get_by_role("img")).to_have_attribute("aria-label", re.compile("; came back in .+"))
    assert keys.acts <= 6
    # Where the open case hides the list, its title has the focus.
    page = await open_panel("/cases", within=seeded, size=NARROW)
    await expect(page.locator(".row").first).to_be_visible()
    await page.keyboard.press("j")
    await expect(page.locator(".pane-detail h2")).to_be_focused()


@pytest.mark.smoke
async def test_the_desk_says_at_once_if_memory_helped(open_panel: Open, seeded: str) -> None:
    keys = Keys(await open_panel("/", within=seeded))
    helped = keys.page.get_by_label("Did memory help?")
    await expect(helped).to_contain_text(re.compile("beyond chance|scored better|scored worse|too few"))
    await expect(helped.get_by_text("What cannot be concluded:")).to_be_visible()
    await keys.press("w")
    await expect(helped.get_by_role("listitem").first).to_be_visible()
    assert keys.acts <= 2


async def test_the_bar_sums_up_to_the_score_with_each_preset(open_panel: Open, seeded: str) -> None:
    page = await tried(await open_panel(within=seeded), "market of pet insurance in Brazil")
    drawer = page.get_by_role("dialog", name="Try")
    for preset in ("default", "classic", "ranks"):
        await drawer.get_by_label("Preset").select_option(preset)
        await drawer.get_by_role("button", name="Ask").click()
        # Until the answer is there, the one before it stays on the page.
        await expect(drawer.locator(".answer.stale")).to_have_count(0)
        hits = drawer.locator(".hits > li")
        await expect(hits).not_to_have_count(0)
        for hit in await hits.all():
            said = await hit.locator(".score-bar").get_attribute("aria-label") or ""
            parts = [float(value.replace("−", "-")) for value in re.findall(r"(−?\d\.\d{3})", said)]
            assert abs(sum(parts) - float(await hit.locator(".match").inner_text())) < 0.01


@pytest.mark.parametrize("browsers", [1, 2])
async def test_a_rating_in_one_window_appears_in_another_within_two_seconds(
    open_panel: Open, api: httpx.AsyncClient, browsers: int
) -> None:
    (memory_id,) = await stored(api, {"kind": "note", "title": "Pump", "body": "Drain the pump on Mondays."})
    mine = await open_panel(params={"memory": memory_id})
    theirs = await open_panel(params={"memory": memory_id}) if browsers == 2 else await mine.context.new_page()
    await theirs.goto(mine.url)
    quality = ".judging .quality"
    await expect(mine.locator(quality)).to_have_text(re.compile("0"))
    taken = []
    # A busy machine takes longer than the panel: the quickest of four ratings counts.
    for rate, shown in (("Rate up", "+1"), ("Rate down", "−1")) * 2:
        await theirs.get_by_role("button", name=rate).click()
        await expect(theirs.locator(quality)).to_contain_text(shown)
        start = monotonic()
        await expect(mine.locator(quality)).to_contain_text(shown)
        taken.append(monotonic() - start)
    assert min(taken) < 2, taken
    await expect(mine.locator(".row .quality")).to_contain_text("−1")


async def test_what_is_kept_waits_in_other_browsers_and_again_once_it_changes(
    open_panel: Open, api: httpx.AsyncClient
) -> None:
    (first, *_) = await disliked(api, 2)
    before = (await api.get(f"/api/memories/{first}")).json()["tags"]
    page = await open_panel("/")
    await expect(page.locator(".row")).to_have_count(2)
    await page.locator(".row", has_text="Doubtful 0").click()
    await expect(page.get_by_role("group", name="Decide")).to_be_visible()
    await page.keyboard.press("e")
    await expect(page.locator(".row")).to_have_count(1)
    await expect(page.get_by_role("link", name="Prune 1")).to_be_visible()
    assert (await api.get(f"/api/memories/{first}")).json()["tags"] == before
    window = await page.context.new_page()
    await window.goto(page.url)
    await expect(window.locator(".row")).to_have_count(1)
    await window.get_by_role("button", name="Show").click()
    await expect(page.locator(".row")).to_have_count(2)
    await window.locator(".row", has_text="Doubtful 0").click()
    await window.keyboard.press("e")
    await expect(page.locator(".row")).to_have_count(1)
    other = await open_panel("/")
    await expect(other.locator(".row")).to_have_count(2)
    for reviewer in ("Ada", "Bob"):  # the second finds the quality where it stays, at -3
        await api.post(f"/api/memories/{first}/feedback", json={"rating": -1, "reviewer": reviewer})
        await page.reload()
        await expect(page.locator(".row")).to_have_count(2)
        await page.locator(".row", has_text="Doubtful 0").click()
        await page.keyboard.press("e")
        await expect(page.locator(".row")).to_have_count(1)


async def test_a_memory_that_is_held_back_has_one_button_for_each_act(open_panel: Open, api: httpx.AsyncClient) -> None:
    await api.post("/api/reports", json={"path": "notes/a.md", "content": INJECTION})
    page = await open_panel("/", {"reason": "held"})
    await page.locator(".row").click()
    pane = page.locator(".pane-detail")
    for name in ("Release", "Delete"):
        await expect(pane.get_by_role("button", name=name)).to_have_count(1)


async def test_a_possible_lesson_is_accepted_with_its_quote_and_taken_back(
    open_panel: Open, api: httpx.AsyncClient, services: Services, axe: str
) -> None:
    cues = [
        {
            "kind": "correction", "trigger": "starting on a task", "lesson": lesson,
            "action_types": ["version-control:push"],
            "evidence": [{"session": f"s{place}", "message": 1, "quote": lesson}],
        }
        for place, lesson in enumerate(NAMES_OF_BRANCHES)
    ]  # fmt: skip
    (await api.post("/api/cues", json=cues)).raise_for_status()
    await embed(api, services)
    await link_pending(services.database, await workspace_in(services.database, api.headers["X-Workspace"]))
    assert (await api.post("/api/cues:tend")).raise_for_status().json()["proposed"] == {"broaden": 1}
    active = len((await api.get("/api/cues?state=active")).json()["cues"])
    page = await open_panel("/")
    await expect(page.get_by_role("link", name="Possible lessons 1")).to_be_visible()
    await page.keyboard.press("5")
    await expect(page.locator(".row")).to_have_count(1)
    await page.keyboard.press("j")
    pane = page.locator(".pane-detail")
    await expect(pane.get_by_text(NAMES_OF_BRANCHES[0]).first).to_be_visible()
    assert await violations(page, axe) == []
    await page.keyboard.press("a")
    await expect(page.get_by_role("heading", name="Nothing here")).to_be_visible()
    assert len((await api.get("/api/cues?state=active")).json()["cues"]) == active + 1
    await page.keyboard.press("z")
    await expect(page.get_by_text("The cues are as they were")).to_be_visible()
    assert len((await api.get("/api/cues?state=active")).json()["cues"]) == active
    await expect(page.get_by_role("link", name="Possible lessons 1")).to_be_visible()


@pytest.mark.parametrize("size", [WIDE, NARROW])
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_a_case_has_its_issues_and_two_versions_side_by_side(
    open_panel: Open, seeded: str, axe: str, theme: str, size: dict[str, int]
) -> None:
    page = await open_panel("/cases", {"case": "bads-russia"}, within=seeded, theme=theme, size=size)
    pane = page.locator(".pane-detail")
    await expect(pane.get_by_label("Issues").locator("li").first).to_be_visible()
    await pane.get_by_label("One version").select_option(index=0)
    assert asked(page)["one"]
    await expect(pane.get_by_role("heading", name="Two versions side by side")).to_be_visible()
    assert await violations(page, axe) == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= size["width"]


async def test_a_service_that_is_away_is_said_and_asked_again_once_it_is_back(
    open_panel: Open, api: httpx.AsyncClient, complaints: list[str]
) -> None:
    (memory_id,) = await stored(api, {"kind": "note", "title": "Pump", "body": "Drain the pump on Mondays."})
    page = await open_panel("/", {"reason": "prune"})
    await expect(page.get_by_role("heading", name="Nothing here")).to_be_visible()
    away = page.get_by_text("The service does not answer.")
    await page.route("**/api/**", lambda route: route.abort())
    await expect(away).to_be_visible()
    await page.keyboard.press("g")
    await page.keyboard.press("m")
    await expect(page.get_by_role("heading", name="The list of memories cannot be shown")).to_be_visible()
    await expect(away).to_be_visible()
    await page.unroute("**/api/**")
    await expect(away).to_have_count(0)
    await page.locator(".row", has_text="Pump").click()
    await page.route("**/api/**", lambda route: route.abort())
    await page.get_by_label("Comment on the rating").fill("It leaks.")
    await page.keyboard.press("Escape")
    await page.keyboard.press("d")
    await expect(page.get_by_text("The rating could not be saved")).to_be_visible()
    await expect(page.get_by_label("Comment on the rating")).to_have_value("It leaks.")
    await expect(away).to_be_visible()
    await page.unroute("**/api/**")
    await expect(away).to_have_count(0)
    await page.keyboard.press("d")
    await expect(page.get_by_label("Ratings").get_by_text("It leaks.")).to_be_visible()
    assert (await api.get(f"/api/memories/{memory_id}")).json()["quality"] == -1
    await page.close()
    complaints.clear()


async def test_everybody_can_use_the_drawer(open_panel: Open, seeded: str, axe: str) -> None:
    page = await tried(await open_panel("/", within=seeded), "which sources count for the judge")
    await expect(page.locator(".drawer .hits > li").first).to_be_visible()
    assert await violations(page, axe) == []
    await page.set_viewport_size(NARROW)  # type: ignore[arg-type] # a mapping with the two that it takes
    assert await page.evaluate("document.documentElement.scrollWidth") == NARROW["width"]
