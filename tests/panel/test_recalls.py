"""The log of recalls in the panel, and the way from it to Ask and back to runs."""

import re
from uuid import UUID

import httpx
import pytest
from playwright.async_api import expect

from app.storage.recalls.store import insert_imported
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.interfaces.http.calls import embed
from tests.panel.conftest import Open
from tests.panel.seed import examples
from tests.panel.test_memories import asked, stored

pytestmark = pytest.mark.test_all("browser")

NOTE = {"kind": "note", "title": "Register", "body": "Verify producers in the register of companies."}


@pytest.mark.smoke
async def test_the_log_shows_what_found_nothing_and_asks_again(open_panel: Open, api: httpx.AsyncClient) -> None:
    await stored(api, NOTE)
    found = {"query": "verify producers register", "agent": "scout", "run_id": "r1", "k": 2, "budget_tokens": 300}
    nothing = {"query": "zebras and submarines", "agent": "judge", "run_id": "r2"}
    for query in ({**found, "filters": {"kinds": ["note"]}}, nothing):
        (await api.post("/api/history", json=query)).raise_for_status()
    page = await open_panel("/recalls")
    rows = page.locator(".row")
    await expect(rows.locator(".row-title")).to_have_text(["zebras and submarines", "verify producers register"])
    await expect(rows.locator(".row-marks")).to_have_text(["nothing", "1 hit"])
    await expect(page.locator(".trend").first).to_contain_text("Recalls a day 2")
    await page.get_by_label("Outcome").select_option("Found nothing")
    await expect(rows).to_have_count(1)
    assert asked(page) == {"outcome": ["empty"]}
    await page.get_by_role("button", name="Clear filters").click()
    await page.get_by_label("Agent").select_option("scout")
    await expect(rows).to_have_count(1)
    await page.keyboard.press("Tab")
    await rows.click()
    detail = page.get_by_label("Recall", exact=True)
    await expect(detail.locator(".hits > li")).to_have_count(1)
    await detail.get_by_role("link", name="Ask again").click()
    assert asked(page) == {
        "q": ["verify producers register"], "agent": ["scout"], "preset": ["default"], "k": ["2"], "budget": ["300"],
        "kind": ["note"],
    }  # fmt: skip
    await expect(page.locator(".hits > li")).to_have_count(1)
    listed = (await api.get("/api/recalls")).json()
    assert [recall["purpose"] for recall in listed] == ["trial", "history", "history"]


async def test_a_run_says_which_recalls_found_nothing(open_panel: Open, api: httpx.AsyncClient) -> None:
    await api.post("/api/runs", json={"run_id": "r1", "task": "t"})
    await api.post("/api/runs", json={"run_id": "r2", "task": "t"})
    await api.post("/api/history", json={"query": "zebras and submarines", "run_id": "r1"})
    page = await open_panel("/runs", {"run": "r1"})
    await page.get_by_role("link", name="1 recall of this run found nothing").click()
    await expect(page.locator(".row")).to_have_count(1)
    page = await open_panel("/runs", {"run": "r2"})
    await expect(page.get_by_text("No recall names this run.")).to_be_visible()


async def test_keys_walk_the_log(open_panel: Open, api: httpx.AsyncClient) -> None:
    await stored(api, NOTE)
    for query in ("pumps", "violins"):
        (await api.post("/api/search", json={"query": query})).raise_for_status()
    page = await open_panel("/recalls")
    await expect(page.locator(".row")).to_have_count(2)
    heading = page.locator(".pane-detail h2")
    for key, query in (("j", "violins"), ("j", "pumps"), ("j", "pumps"), ("k", "violins")):
        await page.keyboard.press(key)
        await expect(heading).to_have_text(query)
        await expect(page.locator(".row", has_text=query)).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(heading).to_have_count(0)
    await expect(page.locator(".row", has_text="violins")).to_be_focused()
    await page.keyboard.press("/")
    await page.keyboard.type("pumps")
    await expect(page.locator(".row")).to_have_count(1)


async def test_an_imported_recall_has_no_score(
    open_panel: Open, api: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    ids = [UUID(memory_id) for memory_id in await stored(api, NOTE)]
    async with services.database.session(workspace) as session:
        await insert_imported(session, "old-1", task="Market of 2024", agent="scout", ids=ids)
    page = await open_panel("/runs", {"run": "old-1"})
    hit = page.locator(".pane-detail .hits > li")
    await expect(hit).to_have_text("Register")
    await page.get_by_role("link", name="Recalls", exact=True).click()
    await page.locator(".row", has_text="Market of 2024").click()
    await expect(hit).to_have_text("Register")
    await expect(page.locator(".pane-detail .row-facts")).to_have_text(re.compile(r"^importscoutold-1\d+ \w+ 2026"))
    await expect(page.get_by_role("heading", name="Parameters")).to_have_count(0)


async def test_ask_says_how_large_the_budget_must_be(open_panel: Open, api: httpx.AsyncClient) -> None:
    await stored(api, NOTE)
    page = await open_panel("/ask", {"q": "verify producers register", "preset": "default", "budget": "10"})
    said = page.get_by_text(re.compile(r"The token budget is too small: the best hit needs \d+ tokens"))
    await expect(said).to_be_visible()
    page = await open_panel("/ask", {"q": "zebras and submarines", "preset": "default"})
    await expect(page.get_by_text("No stored memory is relevant enough.")).to_be_visible()


async def test_issues_are_shown_with_their_states(
    open_panel: Open, api: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    known = examples()
    for path in ("bads-russia/v2/judgement.json", "bads-russia/v6/judgement.json", "bads-russia/v7/judgement.json"):
        (await api.post("/api/reports", json={"path": path, "content": known[path]})).raise_for_status()
    await services.cases.match(workspace)
    await embed(api, services)
    told = "TAM and SAM without methodology"
    page = await open_panel("/ask", {"q": told, "preset": "default", "k": "8", "budget": "4000"})
    issues = page.get_by_label("States of its issues").get_by_role("listitem")
    await expect(issues.filter(has_text=f"not named since v7: {told}").first).to_be_visible()
    page = await open_panel(
        "/ask", {"q": "Score the next version of BADs Russia", "preset": "default", "budget": "4000"}
    )
    first = page.locator(".hits > li").first
    score = await first.locator(".match").inner_text()
    await expect(first.locator(".score-bar")).to_have_attribute(
        "aria-label", f"Score components: State of the case {score}"
    )
    page = await open_panel("/", {"q": told})
    await expect(page.locator(".row .states", has_text="not named since v7").first).to_be_visible()


async def test_a_question_makes_no_workspace(open_panel: Open, api: httpx.AsyncClient, workspace_name: str) -> None:
    page = await open_panel("/ask", {"q": "anything", "preset": "default"})
    await expect(page.get_by_text("No stored memory is relevant enough.")).to_be_visible()
    names = {item["name"] for item in (await api.get("/api/workspaces")).json()}
    assert workspace_name not in names


async def test_an_unknown_workspace_is_said_to_be_unknown(open_panel: Open, api: httpx.AsyncClient) -> None:
    await stored(api, NOTE)
    page = await open_panel()
    await expect(page.get_by_label("Workspace")).not_to_have_attribute("aria-invalid", "true")
    page = await open_panel(within="nobody-wrote-here")
    await expect(page.locator(".empty")).to_contain_text("There is no workspace named nobody-wrote-here.")
    await expect(page.locator(".workspace [role=status]")).to_have_text(
        "There is no workspace named nobody-wrote-here."
    )
    await expect(page.get_by_label("Workspace")).to_have_attribute("aria-invalid", "true")


async def test_a_reviewer_has_one_rating_that_can_be_changed(open_panel: Open, api: httpx.AsyncClient) -> None:
    (memory_id,) = await stored(api, NOTE)
    page = await open_panel(params={"memory": memory_id})
    await page.get_by_role("button", name="Settings").click()
    await page.get_by_label("Your name, shown with your ratings").fill("Ada")
    await page.keyboard.press("Enter")
    quality, ratings = page.locator(".judging .quality"), page.get_by_label("Ratings")
    for _ in range(5):
        await page.keyboard.press("u")
        await expect(quality).to_contain_text("+1")
    await expect(page.get_by_role("button", name="Rate up", exact=True)).to_have_attribute("aria-pressed", "true")
    await expect(ratings.get_by_text("Ada")).to_have_count(1)
    await page.get_by_label("Comment on the rating").fill("It held up.")
    await page.keyboard.press("Enter")
    await expect(ratings.get_by_text("It held up.")).to_be_visible()
    await expect(quality).to_contain_text("+1")
    await page.keyboard.press("Escape")
    await page.keyboard.press("d")
    await expect(page.locator(".notice", has_text="Rated down")).to_be_visible()
    await expect(quality).to_contain_text("−1")
    await page.keyboard.press("z")
    await expect(page.locator(".notice", has_text="Rating undone")).to_be_visible()
    await expect(quality).to_contain_text("+1")
    log = (await api.get(f"/api/memories/{memory_id}/feedback")).json()
    standing = [(item["rating"], item["comment"], item["reviewer"]) for item in log if item["undone_at"] is None]
    assert standing == [(1, "It held up.", "Ada")]


async def test_a_note_is_edited_into_a_new_version(open_panel: Open, api: httpx.AsyncClient) -> None:
    (old,) = await stored(api, {**NOTE, "tags": ["north"]})
    page = await open_panel(params={"memory": old})
    await page.get_by_role("button", name="Edit").click()
    await page.get_by_label("Text (Markdown)").fill("Verify producers in the state register.")
    await page.get_by_role("button", name="Save as a new version").click()
    await expect(page.locator(".markdown")).to_have_text("Verify producers in the state register.")
    (note,) = (await api.get("/api/memories")).json()["memories"]
    assert (note["title"], note["tags"]) == ("Register", ["north"])
    assert [memory["id"] for memory in (await api.get("/api/memories/superseded")).json()] == [old]
    notice = page.locator(".notice", has_text="Saved as a new version")
    await notice.get_by_role("button", name="Undo").click()
    await expect(page.get_by_text("The old version is back")).to_be_visible()
    assert [memory["id"] for memory in (await api.get("/api/memories")).json()["memories"]] == [old]
