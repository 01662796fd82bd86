"""Text from memories is never run; the key stays where it belongs; everybody can read the page."""

import asyncio
import re
from dataclasses import replace
from typing import Any, Literal
from urllib.parse import urlencode

import httpx
import pytest
from playwright.async_api import Page, expect

from app.interfaces.http.serving.server import address, bound_socket, serve
from app.settings import Settings
from app.wiring import Services
from tests.panel.conftest import FOR_THE_MAP, NARROW, WIDE, Open
from tests.panel.seed import INJECTION, linked
from tests.panel.test_memories import stored

pytestmark = pytest.mark.test_all("browser")

ATTACK = '<img src=x onerror="window.broken=1"><script>window.broken=1</script><svg onload="window.broken=1">'
LINKS = """[a](javascript:window.broken=1) [b](JaVaScRiPt:window.broken=1) [c](data:text/html,<script>1</script>)
[d]( javascript:window.broken=1) <javascript:window.broken=1> [e](//evil.example/x) [f](vbscript:x)
[ok](https://example.org/page) ![picture](https://evil.example/pixel.png) ![p](javascript:window.broken=1)
<a href="javascript:window.broken=1">raw</a> <iframe srcdoc="<script>parent.broken=1</script>"></iframe>
"""
RUN = "javascript:window.broken=1"
VIEWS = [
    ("/", {}), ("/", {"reason": "held"}), ("/", {"reason": "prune"}), ("/cases", {}),
    ("/memory", {}), ("/memory", {"q": "which sources count", "min_score": "3"}), ("/memory", {"memory": "first"}),
    ("/memory", {"look": "map"}), ("/memory", {"look": "map", "colour": "quality"}),
    ("/memory", {"look": "map", "memory": "first"}), ("/runs", {}), ("/runs", {"run": "run-024"}), ("/service", {}),
    ("/service", {"part": "audit"}), ("/service", {"part": "keys"}), ("/service", {"part": "keys", "key": "new"}),
]  # fmt: skip
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
COLOURS = {"type": "rule", "values": ["color-contrast"]}
PASSES: tuple[tuple[Any, Literal["light", "dark"], Any], ...] = (
    (WIDE, "light", RULES), (WIDE, "dark", COLOURS), (NARROW, "dark", RULES),
)  # fmt: skip
FOLLOWED = """async (rules) =>
    (await axe.run(document, {runOnly: rules, resultTypes: ['violations']})).violations"""


async def hostile_elsewhere(api: httpx.AsyncClient) -> None:
    """A run, a quarantined and a deleted memory, and an ingested file, each hostile wherever it can be."""
    run = {
        "run_id": RUN, "task": ATTACK, "task_type": ATTACK[:60], "agent": ATTACK[:60], "output": ATTACK + LINKS,
        "final_score": 5, "verdict": ATTACK[:90], "issues": [ATTACK, LINKS], "stages": {ATTACK: {"tokens": 1}},
    }  # fmt: skip
    (await api.post("/api/runs", json=run)).raise_for_status()
    asked = {"query": f"window broken {ATTACK}", "run_id": RUN, "agent": ATTACK[:60]}
    (await api.post("/api/history", json=asked)).raise_for_status()
    report = {"path": f"{ATTACK[:40].replace('/', '')}.md", "content": f"{INJECTION}\n{ATTACK}\n{LINKS}"}
    (await api.post("/api/reports", json=report)).raise_for_status()
    (trash,) = await stored(api, {"kind": "note", "title": ATTACK, "body": f"Deleted: {ATTACK}\n\n{LINKS}"})
    (await api.patch("/api/memories", json={"state": "deleted", "ids": [trash]})).raise_for_status()


@pytest.mark.smoke
async def test_stored_text_is_never_run(
    open_panel: Open, api: httpx.AsyncClient, server: str, workspace_name: str
) -> None:
    observation = {"narrative": ATTACK + LINKS, "facts": [ATTACK, LINKS, f"[wiggum] {ATTACK}"], "verdict": ATTACK[:90]}
    hostile = {
        "kind": "observation", "title": ATTACK, "tags": [ATTACK[:60]], "observation": observation,
        "source": {"kind": "other", "uri": "javascript:window.broken=1", "title": ATTACK}, "ordinal": 0,
        "metadata": {"x": ATTACK}, "run_id": "javascript:window.broken=1",
    }  # fmt: skip
    note = {"kind": "note", "title": "x" + ATTACK, "body": f"{ATTACK}\n\n{LINKS}", "tags": [ATTACK[:60]]}
    ids = await stored(api, hostile, note)
    await api.post(f"/api/memories/{ids[0]}/feedback", json={"rating": -1, "comment": ATTACK})
    await api.post(f"/api/memories/{ids[0]}/feedback", json={"rating": -1, "comment": LINKS})
    await hostile_elsewhere(api)
    requests: list[str] = []
    page = await open_panel("/service", requests=requests)
    for path, params, there in (
        ("/memory", {"memory": ids[0]}, ".pane-detail h2"),
        ("/memory", {"memory": ids[1]}, ".pane-detail h2"),
        ("/memory", {"q": f"window broken {ATTACK}"}, ".row-title"),
        ("/", {}, ".row"),
        ("/", {"reason": "held"}, ".row"),
        ("/", {"reason": "deleted"}, ".row"),
        ("/runs", {"run": RUN}, ".pane-detail .told > li"),
        ("/service", {}, ".ingestions > li"),
        ("/service", {"part": "audit"}, ".entries > li"),
    ):
        await page.goto(f"{server}{path}?{urlencode({**params, 'workspace': workspace_name})}")
        await expect(page.locator(there).first).to_be_visible()
        await page.wait_for_load_state("networkidle")
        for href in await page.locator("main a").evaluate_all(
            "links => links.map((link) => link.getAttribute('href'))"
        ):
            assert href.startswith(("/", "https://example.org/"))
            assert not href.startswith("//")
        assert (
            await page.locator(
                "main :is(img, script, iframe, svg:not([class], [aria-label]), [onload], [onerror])"
            ).count()
            == 0
        )
        assert await page.evaluate("window.broken") is None
    assert not [url for url in requests if "evil" in url]


async def test_a_title_turns_no_letters_round(open_panel: Open, api: httpx.AsyncClient) -> None:
    turned = {"kind": "note", "title": "An invoice \u202efdp.exe", "body": "A lesson about invoices."}
    right_to_left = {"kind": "note", "title": "\u05e9\u05dc\u05d5\u05dd 12", "body": "A lesson about greetings."}
    (memory_id, _) = await stored(api, turned, right_to_left)
    page = await open_panel("/memory", {"memory": memory_id})
    for place in (".row-title", ".pane-detail h2"):
        title = page.locator(place, has_text="An invoice")
        await expect(title).to_have_text("An invoice \ufffdfdp.exe")
        assert await title.locator("bdi").evaluate("element => getComputedStyle(element).unicodeBidi") == "isolate"
    await expect(page.locator(".row-title", has_text="12")).to_have_text("\u05e9\u05dc\u05d5\u05dd 12")
    await page.goto(page.url.replace("/memory?", "/memory?look=map&"))
    await expect(page.locator(".pane-detail h2")).to_have_text("An invoice \ufffdfdp.exe", timeout=FOR_THE_MAP)


async def test_links_of_a_memory_lead_out_without_a_trace(open_panel: Open, api: httpx.AsyncClient) -> None:
    (memory_id,) = await stored(api, {"kind": "note", "title": "Links", "body": LINKS})
    page = await open_panel("/memory", {"memory": memory_id})
    link = page.get_by_role("link", name="ok", exact=True)
    await expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
    await expect(link).to_have_attribute("target", "_blank")
    assert await page.locator(".markdown a").count() == 1


@pytest.mark.smoke
async def test_the_page_asks_for_the_key_and_keeps_it_for_the_tab(
    open_panel: Open, services: Services, settings: Settings, api: httpx.AsyncClient, complaints: list[str]
) -> None:
    (await api.post("/api/reports", json={"path": "notes/a.md", "content": INJECTION})).raise_for_status()
    keys = replace(settings, api_key="s3cret", admin_key="adm1n", embedded_worker=False)
    guarded = replace(services, settings=keys)
    stop, ready = asyncio.Event(), asyncio.Event()
    listening = bound_socket(settings)
    serving = asyncio.create_task(serve(guarded, listening, stop=stop, on_ready=lambda _: ready.set()))
    await ready.wait()
    page = await open_panel("/", {"reason": "held"}, where=address(listening))
    heading = page.get_by_role("heading", name="This service needs an API key")
    await expect(heading).to_be_visible()
    await page.get_by_label("API key", exact=True).fill("wrong")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("That key was refused.")).to_be_visible()
    await page.get_by_label("API key", exact=True).fill("s3cret")
    await page.keyboard.press("Enter")
    cases = page.locator(".row")
    await expect(cases).to_have_count(1)
    assert await page.evaluate("[sessionStorage.length, localStorage.length]") == [1, 0]
    await page.reload()
    await expect(cases).to_have_count(1)
    await page.keyboard.press("j")
    decide = page.get_by_role("group", name="Decide")
    await expect(decide).to_be_visible()
    await page.keyboard.press("r")
    await expect(page.locator(".notice", has_text="Nothing was released")).to_contain_text("PRIORS_ADMIN_KEY")
    await expect(cases).to_have_count(1)
    await page.get_by_role("button", name="Settings").click()
    await page.get_by_role("button", name="Enter another API key").click()
    await page.get_by_label("API key", exact=True).fill("adm1n")
    await page.keyboard.press("Enter")
    await expect(decide).to_be_visible()
    await page.keyboard.press("r")
    await expect(page.get_by_role("heading", name="Nothing here")).to_be_visible()
    await page.get_by_role("status").get_by_role("button", name="Undo").click()
    await expect(cases).to_have_count(1)
    await page.context.close()
    stop.set()
    await serving
    listening.close()
    assert {re.findall(r"status of (\d+)", complaint)[0] for complaint in complaints} == {"401", "403"}
    complaints.clear()


async def violations(page: Page, axe: str) -> list[tuple[Any, ...]]:
    """Returns the broken rules at both widths and in both themes; a theme changes colours alone."""
    await page.evaluate(axe)
    found: list[tuple[Any, ...]] = []
    for size, theme, rules in PASSES:
        await page.set_viewport_size(size)
        await page.emulate_media(color_scheme=theme)
        broken = await page.evaluate(FOLLOWED, rules)
        found += [(size, theme, item["id"], [node["html"] for node in item["nodes"][:3]]) for item in broken]
    return found


@pytest.mark.parametrize(
    ("path", "params"),
    [
        pytest.param(path, params, id=f"{path}{'&'.join(params)}", marks=[] if params else [pytest.mark.smoke])
        for path, params in VIEWS
    ],
)
async def test_everybody_can_use_it(
    open_panel: Open, server: str, mapped: str, axe: str, path: str, params: dict[str, str]
) -> None:
    if "memory" in params:
        async with httpx.AsyncClient(base_url=server, headers={"X-Workspace": mapped}) as client:
            found = (await client.get("/api/memories?kind=observation&verdict=reject&limit=1")).json()
        params = {"memory": found["memories"][0]["id"]}
    page = await open_panel(path, params, within=mapped)
    await page.wait_for_load_state("networkidle")
    assert await violations(page, axe) == []


async def test_everybody_can_use_links(open_panel: Open, api: httpx.AsyncClient, axe: str) -> None:
    pump, *_ = await linked(api)
    # With more links of one kind than are shown at once.
    sources = await stored(api, *({"kind": "note", "title": f"Report {n}", "body": f"Visit {n}."} for n in range(10)))
    links = [{"from_id": pump, "to_id": source, "relation": "derived_from"} for source in sources]
    (await api.post("/api/links", json={"links": links})).raise_for_status()
    for path, params, there in (
        ("/memory", {"memory": pump}, ".linked"),
        ("/memory?look=map", {"memory": pump}, ".map canvas"),
    ):
        page = await open_panel(path, params)
        await expect(page.locator(there).first).to_be_visible(timeout=FOR_THE_MAP)
        assert await violations(page, axe) == [], path
