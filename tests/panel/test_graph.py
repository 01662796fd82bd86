"""The map: what it shows, what is selected on it, and what is done with what is selected."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from uuid import UUID

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, Route, expect

from app.wiring import Services
from tests.conftest import WITHOUT_TLS
from tests.panel.conftest import FOR_THE_MAP, NARROW, PATIENCE, Open
from tests.panel.seed import linked
from tests.panel.test_memories import asked, stored
from tests.panel.test_safety import ATTACK

pytestmark = pytest.mark.test_all("browser")

MARGIN = 28
"""Pixels around the map, as the panel leaves them,"""
CONTROLS = 28
"""and on the right beyond them."""
REACH = 9
"""Pixels around a memory that still mean it."""
MOST = 4000
"""The memories that the panel asks the map for."""
ROW = ".map-side .picked-row"
Place = tuple[float, float]


@pytest_asyncio.fixture(loop_scope="session")
async def used(server: str, mapped: str) -> AsyncIterator[httpx.AsyncClient]:
    """The service in the workspace that looks used."""
    headers = {"X-Workspace": mapped}
    async with httpx.AsyncClient(base_url=server, headers=headers, timeout=PATIENCE, verify=WITHOUT_TLS) as client:
        yield client


@dataclass(frozen=True)
class Map:
    """A map as it stands on a page."""

    page: Page
    graph: dict[str, Any]
    box: Any

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """The memories on it."""
        nodes: list[dict[str, Any]] = self.graph["nodes"]
        return nodes

    @property
    def middle(self) -> Place:
        """The middle of the memories on the page."""
        return self.box["x"] + (self.box["width"] - CONTROLS) / 2, self.box["y"] + self.box["height"] / 2

    @property
    def places(self) -> dict[str, Place]:
        """The place of each memory on the page, before anybody zooms."""
        xs, ys = ([node[name] for node in self.nodes] for name in ("x", "y"))
        width, height = max(xs) - min(xs), max(ys) - min(ys)
        each = min((self.box["width"] - CONTROLS - 2 * MARGIN) / width, (self.box["height"] - 2 * MARGIN) / height)
        return {
            node["id"]: (
                self.middle[0] + (node["x"] - min(xs) - width / 2) * each,
                self.middle[1] - (node["y"] - min(ys) - height / 2) * each,
            )
            for node in self.nodes
        }

    async def draw(self, *corners: Place) -> None:
        """Drag the pointer from corner to corner."""
        await self.page.mouse.move(*corners[0])
        await self.page.mouse.down()
        for corner in corners[1:]:
            await self.page.mouse.move(*corner, steps=4)
        await self.page.mouse.up()

    async def picture(self) -> str:
        """The map as an image, once the browser has drawn."""
        script = """async () => {
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            return document.querySelector('.map canvas').toDataURL();
        }"""
        found: str = await self.page.evaluate(script)
        return found

    async def colour_at(self, place: Place) -> list[int]:
        """Returns the colour of the pixel there, once the browser has drawn."""
        script = """async ([x, y]) => {
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            const canvas = document.querySelector('.map canvas'), box = canvas.getBoundingClientRect();
            const copy = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
            copy.drawImage(canvas, box.left - x, box.top - y, box.width, box.height);
            return [...copy.getImageData(0, 0, 1, 1).data];
        }"""
        found: list[int] = await self.page.evaluate(script, place)
        return found

    async def meaning(self, name: str) -> list[int]:
        """A colour of the style sheet."""
        script = """(name) => {
            const probe = document.body.appendChild(document.createElement('i'));
            probe.style.color = `var(${name})`;
            const found = getComputedStyle(probe).color.match(/\\d+/g).map(Number);
            probe.remove();
            return [...found, 255];
        }"""
        found: list[int] = await self.page.evaluate(script, name)
        return found


async def drawn(client: httpx.AsyncClient) -> dict[str, Any]:
    """The map as the panel asks for it."""
    graph: dict[str, Any] = (await client.get("/api/graph", params={"limit": MOST}, timeout=PATIENCE)).json()
    return graph


def listed(page: Page) -> Locator:
    """What the list beside the map says of itself."""
    return page.locator(".map-side .list-count p")


async def shown(page: Page, client: httpx.AsyncClient) -> Map:
    """The map of a page, once it is there."""
    graph = await drawn(client)
    canvas = page.get_by_role("application", name=f"Map of {len(graph['nodes'])} memories")
    await expect(canvas).to_be_visible(timeout=FOR_THE_MAP)
    await page.wait_for_function(
        "() => document.querySelector('.map canvas').width == document.querySelector('.map').clientWidth"
    )
    return Map(page, graph, await canvas.bounding_box())


async def qualities(client: httpx.AsyncClient, ids: Sequence[str]) -> list[int]:
    found = {node["id"]: node["quality"] for node in (await drawn(client))["nodes"]}
    return [found[memory_id] for memory_id in ids]


async def undo(page: Page, said: str) -> None:
    """Take back what a notice says was done."""
    notice = page.locator(".notice", has_text=said)
    await notice.get_by_role("button", name="Undo").click()
    await expect(notice).to_have_count(0)


async def test_each_cluster_is_labelled_and_can_be_shown_alone(
    open_panel: Open, mapped: str, used: httpx.AsyncClient
) -> None:
    page = await open_panel("/memory?look=map", within=mapped)
    found = await shown(page, used)
    entries = page.get_by_label("Clusters").get_by_role("listitem")
    clusters = found.graph["clusters"]
    assert len(found.nodes) > 600
    await expect(entries).to_have_count(len(clusters))
    for entry, cluster in zip(await entries.all(), clusters, strict=True):
        await expect(entry).to_have_text(f"{' · '.join(cluster['terms'])}{cluster['size']}")
    await entries.nth(1).get_by_role("button").click()
    await expect(listed(page)).to_have_text(f"{clusters[1]['size']} of {len(found.nodes)} memories")
    assert asked(page) == {"cluster": ["1"]}
    await expect(page.locator(ROW)).to_have_count(min(100, clusters[1]["size"]))
    await page.go_back()
    await expect(listed(page)).to_have_text(f"{len(found.nodes)} memories")
    rows = len(found.nodes) // 100
    for _ in range(rows):
        await page.get_by_role("button", name="Show more").click()
    await expect(page.locator(ROW)).to_have_count(len(found.nodes))


async def test_those_in_a_rectangle_are_rated_tagged_and_deleted_and_each_is_undone(
    open_panel: Open, services: Services, mapped: str, used: httpx.AsyncClient
) -> None:
    page = await open_panel("/memory?look=map", within=mapped)
    found = await shown(page, used)
    left, top = found.box["x"] + 2, found.box["y"] + 2
    # The edge stands in the widest gap between two memories, because the browser rounds the pointer's place.
    xs = sorted(x for x, _ in found.places.values())[len(found.nodes) // 30 : len(found.nodes) // 10]
    left_one, right_one = max(pairwise(xs), key=lambda pair: pair[1] - pair[0])
    corner = (left_one + right_one) / 2, top + found.box["height"] - 4
    inside = [memory_id for memory_id, (x, _) in found.places.items() if x < corner[0]]
    before = await qualities(used, inside)
    await page.keyboard.press("r")
    await found.draw((left, top), corner)
    await expect(page.get_by_text(f"{len(inside)} selected")).to_be_visible()
    await expect(page.locator(f"{ROW}.chosen")).to_have_count(min(100, len(inside)))

    await page.get_by_role("button", name="Rate all selected memories up").click()
    said = f"{len(inside)} memories rated up"
    await expect(page.locator(".notice", has_text=said)).to_be_visible(timeout=FOR_THE_MAP)
    assert await qualities(used, inside) == [min(3, quality + 1) for quality in before]
    await undo(page, said)
    await expect(page.get_by_text("Ratings undone")).to_be_visible(timeout=FOR_THE_MAP)
    assert await qualities(used, inside) == before

    await page.get_by_label("Tag for the selected memories").fill("left side")
    await page.get_by_role("button", name="Tag", exact=True).click()
    await expect(page.locator(ROW, has_text="left side").first).to_be_visible()
    tagged = (await used.get("/api/memories", params={"tag": "left side", "limit": 200})).json()["memories"]
    assert {memory["id"] for memory in tagged} == set(inside)
    await undo(page, f"{len(inside)} memories tagged left side")
    await expect(page.locator(ROW, has_text="left side")).to_have_count(0)
    assert (await used.get("/api/memories", params={"tag": "left side"})).json()["memories"] == []

    held: list[Route] = []
    await page.route("**/api/memories", lambda route: held.append(route))  # noqa: PLW0108 - Playwright marks it
    await page.get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("Deleting …")).to_be_visible()
    await held[0].continue_()
    await page.unroute("**/api/memories")
    said = f"{len(inside)} memories deleted"
    await expect(page.locator(".notice", has_text=said)).to_be_visible()
    await expect(listed(page)).to_have_text(f"{len(found.nodes) - len(inside)} memories")
    deleted: dict[str, Any] = {"state": "deleted", "limit": 200}
    assert len((await used.get("/api/memories", params=deleted)).json()["memories"]) == len(inside)
    await undo(page, said)
    await expect(page.get_by_text("Change undone")).to_be_visible()
    assert (await used.get("/api/memories", params=deleted)).json()["memories"] == []
    # What was restored has no vector until the worker comes to it; then it stands where it stood.
    workspace = await services.workspaces.resolve(mapped)
    ids = [UUID(memory_id) for memory_id in inside]
    await services.embedder.embed_pending(workspace, ids=ids)
    again = (await drawn(used))["nodes"]
    assert {node["id"]: (node["x"], node["y"]) for node in again} == {
        node["id"]: (node["x"], node["y"]) for node in found.nodes
    }
    await expect(page.get_by_text(f"{len(inside)} selected")).to_be_visible(timeout=FOR_THE_MAP)


async def test_a_second_rectangle_replaces_the_selection_and_with_shift_adds_to_it(
    open_panel: Open, mapped: str, used: httpx.AsyncClient
) -> None:
    page = await open_panel("/memory?look=map", within=mapped)
    found = await shown(page, used)
    left, top = found.box["x"] + 2, found.box["y"] + 2
    right, bottom = left + found.box["width"] - 4, top + found.box["height"] - 4
    ys = sorted(y for _, y in found.places.values())[len(found.nodes) // 3 : -len(found.nodes) // 3]
    upper, lower = max(pairwise(ys), key=lambda pair: pair[1] - pair[0])
    middle = (upper + lower) / 2
    above = sum(y < middle for _, y in found.places.values())
    await page.get_by_role("button", name="Select", exact=True).click()
    await found.draw((left, middle), (right, bottom))
    await expect(listed(page)).to_have_text(f"{len(found.nodes) - above} selected")
    await found.draw((right, middle), (left, top))
    await expect(listed(page)).to_have_text(f"{above} selected")
    await page.keyboard.down("Shift")
    await found.draw((left, bottom), (right, middle))
    await page.keyboard.up("Shift")
    await expect(listed(page)).to_have_text(f"{len(found.nodes)} selected")
    await page.keyboard.press("Escape")
    await expect(listed(page)).to_have_text(f"{len(found.nodes)} memories")


async def test_pointing_tells_what_it_is_and_two_clicks_open_it(
    open_panel: Open, mapped: str, used: httpx.AsyncClient
) -> None:
    page = await open_panel("/memory?look=map", within=mapped)
    found = await shown(page, used)
    by_id = {node["id"]: node for node in found.nodes}
    x, y = found.places[found.nodes[7]["id"]]
    near = {by_id[i]["title"] for i, (a, b) in found.places.items() if abs(a - x) <= REACH and abs(b - y) <= REACH}
    await page.mouse.move(x, y)
    tooltip = page.get_by_role("tooltip")
    await expect(tooltip).to_contain_text("observation")
    assert await tooltip.locator(".tooltip-title").inner_text() in near
    await page.mouse.dblclick(x, y)
    await expect(page.locator(".pane-detail h2")).to_be_visible()
    ((memory_id,),) = asked(page).values()
    assert by_id[memory_id]["title"] in near
    await expect(page.locator(".pane-detail h2")).to_have_text(by_id[memory_id]["title"])
    await page.get_by_role("button", name="Close").click()
    await expect(page.get_by_role("application")).to_be_visible()
    await expect(page.get_by_text(re.compile(r"\d selected"))).to_have_count(0)


@pytest.mark.parametrize("selecting", [False, True])
async def test_looking_at_a_memory_keeps_the_selection(
    open_panel: Open, mapped: str, used: httpx.AsyncClient, *, selecting: bool
) -> None:
    page = await open_panel("/memory?look=map", within=mapped)
    found = await shown(page, used)
    place = found.places[found.nodes[7]["id"]]
    every, without = (f"{len(found.nodes) - less} selected" for less in (0, 1))
    await page.get_by_role("button", name="Select all").click()
    if selecting:
        await page.keyboard.press("r")
    await page.mouse.dblclick(*place)
    await page.locator(".pane-detail").get_by_role("button", name="Close").click()
    await expect(page.get_by_text(every)).to_be_visible()
    await page.mouse.click(*place)
    await expect(page.get_by_text(without if selecting else every)).to_be_visible()
    await page.keyboard.down("Shift")
    await page.mouse.click(*place)
    await page.keyboard.up("Shift")
    await expect(page.get_by_text(every if selecting else without)).to_be_visible()


async def test_what_is_not_shown_is_not_changed_with_the_selection(
    open_panel: Open, mapped: str, used: httpx.AsyncClient
) -> None:
    page = await open_panel("/memory?look=map", within=mapped)
    found = await shown(page, used)
    size = found.graph["clusters"][1]["size"]
    await page.get_by_role("button", name="Select all").click()
    await page.get_by_label("Clusters").get_by_role("listitem").nth(1).get_by_role("button").click()
    await expect(listed(page)).to_have_text(f"{size} selected")


async def test_a_tap_tells_what_is_there(
    api: httpx.AsyncClient, browser: Browser, server: str, workspace_name: str
) -> None:
    pump, *_ = await linked(api)
    context = await browser.new_context(viewport=NARROW, has_touch=True, is_mobile=True)  # type: ignore[arg-type] # a mapping with the two that it takes
    page = await context.new_page()
    await page.goto(f"{server}/memory?look=map&workspace={workspace_name}")
    found = await shown(page, api)
    await page.touchscreen.tap(*found.places[pump])
    await expect(page.get_by_role("tooltip").locator(".tooltip-title")).to_have_text("the mill's pump")
    await expect(page.get_by_text(re.compile(r"\d selected"))).to_have_count(0)
    await page.touchscreen.tap(found.box["x"] + 5, found.box["y"] + 5)
    await expect(page.get_by_role("tooltip")).to_have_count(0)
    await context.close()


async def test_the_map_shows_what_the_filters_of_the_list_let_pass(
    open_panel: Open, mapped: str, used: httpx.AsyncClient
) -> None:
    page = await open_panel("/memory?kind=observation&min_score=8&tag=reviewed", within=mapped)
    await expect(page.get_by_label("Active filters").get_by_role("button")).to_have_count(3)
    page_of = {"kind": "observation", "min_score": "8", "tag": "reviewed"}
    total = (await used.get("/api/memories", params=page_of)).json()["total"]
    await page.get_by_role("navigation", name="Looks").get_by_role("link", name="Map").click()
    await expect(page.get_by_label("Active filters").get_by_role("button")).to_have_count(3)
    every = len((await drawn(used))["nodes"])
    await expect(listed(page)).to_have_text(re.compile(rf"^{total} of \d+ memories$"))
    await page.get_by_role("button", name="Clear filters").click()
    await expect(listed(page)).to_have_text(f"{every} memories")
    await page.get_by_label("Dated to").fill("2026-02-01")
    until = {"until": "2026-02-02T00:00:00Z"}
    dated = (await used.get("/api/memories", params=until)).json()["total"]
    assert 0 < dated < every
    await expect(listed(page)).to_have_text(f"{dated} of {every} memories")
    await page.get_by_role("button", name="Clear filters").click()
    await page.get_by_role("navigation", name="Looks").get_by_role("link", name="List").click()
    await expect(page.locator(".list-count")).not_to_contain_text(f"{total} memories")


async def test_the_map_is_searched(open_panel: Open, mapped: str, used: httpx.AsyncClient) -> None:
    page = await open_panel("/memory?look=map", within=mapped)
    found = await shown(page, used)
    await page.keyboard.press("/")
    await page.keyboard.type("oat milk in Sweden")
    titled = sum("oat milk in Sweden" in node["title"] for node in found.nodes)
    await expect(listed(page)).to_have_text(re.compile(rf"^\d+ of {len(found.nodes)} memories$"))
    count = int((await listed(page).inner_text()).split()[0])
    assert titled <= count < titled + 50
    assert asked(page) == {"q": ["oat milk in Sweden"]}
    await page.keyboard.press("Enter")
    first = page.locator(".pane-detail h2")
    best = (await used.post("/api/search", json={"query": "oat milk in Sweden", "k": 50, "trial": True})).json()["hits"]
    await expect(first).to_have_text(best[0]["title"])
    await page.keyboard.press("Escape")
    await page.get_by_label("Search memories").fill("")
    await expect(listed(page)).to_have_text(f"{len(found.nodes)} memories")


async def test_clusters_are_told_by_colour_and_by_shape(open_panel: Open, api: httpx.AsyncClient) -> None:
    texts = ("pumps lift water", "violins need rosin", "bread wants time")
    ids = await stored(api, *({"kind": "note", "title": text, "body": f"{text}."} for text in texts))
    page = await open_panel("/memory?look=map")
    found = await shown(page, api)
    for memory_id in ids:
        cluster = next(node["cluster"] for node in found.nodes if node["id"] == memory_id)
        assert await found.colour_at(found.places[memory_id]) == await found.meaning(f"--series-{cluster % 8}")
    signs = await page.locator(".map-legend path").evaluate_all("paths => paths.map(path => path.getAttribute('d'))")
    assert len(set(signs)) == len(signs) == len(found.graph["clusters"])


async def test_labels_stay_on_the_map(open_panel: Open, mapped: str, used: httpx.AsyncClient) -> None:
    page = await open_panel("/service", within=mapped)
    await page.add_init_script("""
        window.labels = [];
        window.words = [];
        const fill = CanvasRenderingContext2D.prototype.fillText;
        CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
            const half = this.measureText(text).width / 2;
            window.labels.push([x - half, x + half, y]);
            window.words.push(text);
            return fill.call(this, text, x, y);
        };
    """)
    await page.goto(page.url.replace("/service?", "/memory?look=map&"))
    found = await shown(page, used)
    width, height = found.box["width"], found.box["height"]
    middle = found.box["x"] + width / 2, found.box["y"] + height / 2
    for x, y in ((-0.4, 0), (0.8, 0), (-0.4, -0.4)):
        await found.draw(middle, (middle[0] + x * width / 2, middle[1] + y * height / 2))
    await page.wait_for_function("() => window.labels.length > 30")
    for left, right, y in await page.evaluate("() => window.labels"):
        assert left >= 0
        assert right <= width
        assert y >= 6
    clusters = found.graph["clusters"]
    known = {" · ".join(cluster["terms"][:2]) for cluster in clusters}
    said = set(await page.evaluate("() => window.words"))
    assert said
    assert said <= known


@pytest.mark.smoke
async def test_the_keyboard_lists_selects_opens_and_moves(
    open_panel: Open, mapped: str, used: httpx.AsyncClient
) -> None:
    page = await open_panel("/memory?look=map", within=mapped)
    found = await shown(page, used)
    titles = await page.locator(f"{ROW} .row-title").all_inner_texts()
    heading = page.locator(".pane-detail h2")
    for key in ("j", "x", "j", "j", "k", "x"):
        await page.keyboard.press(key)
    await expect(heading).to_have_text(titles[1])
    await page.keyboard.press("Escape")
    await expect(listed(page)).to_have_text("2 selected")
    await expect(page.locator(ROW).nth(1).locator("a")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(heading).to_have_text(titles[1])
    await page.keyboard.press("Escape")
    await expect(listed(page)).to_have_text("2 selected")
    await page.keyboard.press("Escape")
    await expect(page.get_by_text("2 selected")).to_have_count(0)
    select = page.get_by_role("button", name="Select", exact=True)
    for pressed in ("true", "false"):
        await page.keyboard.press("r")
        await expect(select).to_have_attribute("aria-pressed", pressed)
    await page.get_by_role("application").focus()
    seen = [await found.picture()]
    for key in ("ArrowRight", "ArrowDown", "+", "+"):
        await page.keyboard.press(key)
        seen.append(await found.picture())
    assert len(set(seen)) == len(seen)
    await page.keyboard.press("0")
    assert await found.picture() == seen[0]


async def test_the_map_follows_the_wheel_and_the_hand(open_panel: Open, mapped: str, used: httpx.AsyncClient) -> None:
    page = await open_panel("/memory?look=map", within=mapped)
    found = await shown(page, used)
    # The outermost memory: a hand that moved it away from the middle would leave the map.
    x, y = max(found.places.values())
    to = x - 120, y + (40 if y < found.middle[1] else -40)
    await page.mouse.move(x, y)
    await page.mouse.wheel(0, -600)
    await found.draw((x, y), to)
    await page.mouse.dblclick(*to)
    await expect(page.locator(".pane-detail h2")).to_be_visible()
    opened = asked(page)["memory"][0]
    at = found.places[opened]
    assert abs(at[0] - x) <= REACH
    assert abs(at[1] - y) <= REACH


async def test_text_of_memories_is_not_run_on_the_map(open_panel: Open, api: httpx.AsyncClient) -> None:
    hostile = {"kind": "note", "title": ATTACK, "body": ATTACK, "tags": [ATTACK[:60]]}
    untitled = {"kind": "note", "body": f"{ATTACK} and more of it"}
    ids = await stored(api, hostile, untitled)
    page = await open_panel("/memory?look=map")
    found = await shown(page, api)
    for memory_id in ids:
        await page.mouse.move(*found.places[memory_id])
        await expect(page.get_by_role("tooltip")).to_contain_text("<img src=x onerror=")
    await expect(page.locator(ROW).first).to_contain_text("<script>")
    assert await page.locator("main img, main script, main svg:not(.glyph, .sign)").count() == 0
    assert await page.evaluate("window.broken") is None


async def test_nothing_to_map_says_what_to_do(open_panel: Open, api: httpx.AsyncClient, workspace_name: str) -> None:
    page = await open_panel("/memory?look=map", {"kind": "cue"})
    await expect(page.get_by_role("heading", name="There is nothing to map yet")).to_be_visible()
    await expect(page.get_by_text(f"in workspace {workspace_name}")).to_be_visible()
    await stored(api, {"kind": "note", "title": "First", "body": "The first lesson of this workspace."})
    await page.get_by_role("button", name="Clear filters").click()
    await expect(page.locator(ROW)).to_have_count(1, timeout=FOR_THE_MAP)
    assert asked(page) == {}


async def test_a_sketch_stands_until_the_first_map_is_drawn(open_panel: Open, api: httpx.AsyncClient) -> None:
    await stored(api, *({"kind": "note", "body": f"Lesson {number} about pumps."} for number in range(3)))
    page = await open_panel("/memory?look=map")
    await shown(page, api)
    go_on = asyncio.Event()

    async def held(route: Route) -> None:
        if "sketch" not in route.request.url:
            await go_on.wait()
        await route.continue_()

    await page.route("**/api/graph?*", held)
    await page.reload()
    await expect(page.get_by_role("application", name="Map of 3 memories")).to_be_visible()
    await expect(page.get_by_text("Drawing the map")).to_be_visible()
    go_on.set()
    await expect(page.get_by_text("Drawing the map")).to_have_count(0)
    await expect(page.get_by_role("application", name="Map of 3 memories")).to_be_visible()


async def test_drawing_takes_its_time_and_says_so(
    open_panel: Open, api: httpx.AsyncClient, complaints: list[str]
) -> None:
    await stored(api, *({"kind": "note", "body": f"Lesson {number} about pumps."} for number in range(3)))
    page = await open_panel("/memory?look=map")
    await shown(page, api)
    go_on = asyncio.Event()
    seen: list[str] = []

    async def held(route: Route) -> None:
        seen.append(route.request.url)
        await go_on.wait()
        await route.continue_()

    await page.route("**/api/graph?*", held)
    await page.get_by_role("button", name="Redraw").click()
    await expect(page.get_by_text("Drawing the map")).to_be_visible()
    await expect(page.get_by_text("The service stores each map")).to_be_visible()
    await expect(page.get_by_role("button", name="Redraw")).to_be_disabled()
    go_on.set()
    await expect(page.get_by_text("Drawing the map")).to_have_count(0, timeout=FOR_THE_MAP)
    assert "refresh=true" in seen[0]
    await page.unroute("**/api/graph?*")
    problem = {"detail": "the map took longer than 300 s"}
    await page.route("**/api/graph?*", lambda route: route.fulfill(status=503, json=problem))
    await page.reload()
    await expect(page.get_by_text("the map took longer than 300 s")).to_be_visible()
    await page.unroute("**/api/graph?*")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("application")).to_be_visible()
    await page.close()
    complaints.clear()


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_a_narrow_page_has_the_map_above_the_list(
    open_panel: Open, mapped: str, used: httpx.AsyncClient, theme: str
) -> None:
    page = await open_panel("/memory?look=map", within=mapped, size=NARROW, theme=theme)
    found = await shown(page, used)
    ground = await found.meaning("--surface")
    # A label may cover some of the marks.
    marks = [await found.colour_at(found.places[node["id"]]) for node in found.nodes[:12]]
    assert any(mark != ground for mark in marks)
    assert await page.evaluate("document.documentElement.scrollWidth") == NARROW["width"]
    await page.locator(f"{ROW} .row-title").first.click()
    await expect(page.locator(".pane-detail h2")).to_be_visible()
    await expect(page.get_by_role("application")).to_be_hidden()
    await page.get_by_role("button", name="Close").click()
    await expect(page.get_by_role("application")).to_be_visible()


async def test_titles_take_the_room_beside_them(open_panel: Open, mapped: str) -> None:
    page = await open_panel("/memory", {"look": "map"}, within=mapped, size=NARROW)
    titles = page.locator(f"{ROW} .row-title")
    await expect(titles.first).to_be_visible()
    lines = "all => all.map(one => Math.round(one.clientHeight / parseFloat(getComputedStyle(one).lineHeight)))"
    assert {1, 2} >= set(await titles.evaluate_all(lines)) >= {2}
    run = await open_panel("/runs", {"run": "run-024"}, within=mapped, size=NARROW)
    shown = run.locator(".told .row-title")
    await expect(shown.first).to_be_visible()
    cut = "all => all.filter(one => one.scrollHeight > one.clientHeight + 1 || one.scrollWidth > one.clientWidth + 1)"
    assert await shown.evaluate_all(f"all => ({cut})(all).length") == 0
