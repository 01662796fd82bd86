"""The map: what it shows, what is selected on it, and what is done with what is selected."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any
from uuid import UUID

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route, expect

from app.storage.tenants.service import resolve
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


async def shown(page: Page, client: httpx.AsyncClient, **parameters: str) -> Map:
    """The map of a page, once it is there."""
    graph = (await client.get("/api/graph", params=parameters, timeout=PATIENCE)).json()
    canvas = page.get_by_role("application", name=f"Map of {len(graph['nodes'])} memories")
    await expect(canvas).to_be_visible(timeout=FOR_THE_MAP)
    drawn = "() => document.querySelector('.map canvas').width == document.querySelector('.map').clientWidth"
    await page.wait_for_function(drawn)
    return Map(page, graph, await canvas.bounding_box())


async def qualities(client: httpx.AsyncClient, ids: Sequence[str]) -> list[int]:
    nodes = (await client.get("/api/graph", timeout=PATIENCE)).json()["nodes"]
    found = {node["id"]: node["quality"] for node in nodes}
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
    assert len(found.nodes) == 600
    await expect(entries).to_have_count(len(clusters))
    for entry, cluster in zip(await entries.all(), clusters, strict=True):
        await expect(entry).to_have_text(f"{' · '.join(cluster['terms'])}{cluster['size']}")
    await entries.nth(1).get_by_role("button").click()
    await expect(page.locator(".drift")).to_contain_text(f"{clusters[1]['size']} of 600 memories")
    assert asked(page) == {"cluster": ["1"]}
    await expect(page.locator(".member")).to_have_count(min(100, clusters[1]["size"]))
    await page.go_back()
    await expect(page.locator(".drift")).to_contain_text("600 of 600 memories")


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
    await expect(page.locator(".member.chosen")).to_have_count(min(100, len(inside)))

    await page.get_by_role("button", name="Rate all selected memories up").click()
    said = f"{len(inside)} memories rated up"
    await expect(page.locator(".notice", has_text=said)).to_be_visible(timeout=FOR_THE_MAP)
    assert await qualities(used, inside) == [min(3, quality + 1) for quality in before]
    await undo(page, said)
    await expect(page.get_by_text("Ratings undone")).to_be_visible(timeout=FOR_THE_MAP)
    assert await qualities(used, inside) == before

    await page.get_by_label("Tag for the selected memories").fill("left side")
    await page.get_by_role("button", name="Tag", exact=True).click()
    await expect(page.locator(".member", has_text="left side").first).to_be_visible()
    listed = (await used.get("/api/memories", params={"tag": "left side", "limit": 200})).json()["memories"]
    assert {memory["id"] for memory in listed} == set(inside)
    await undo(page, f"{len(inside)} memories tagged left side")
    await expect(page.locator(".member", has_text="left side")).to_have_count(0)
    assert (await used.get("/api/memories", params={"tag": "left side"})).json()["memories"] == []

    held: list[Route] = []
    await page.route("**/api/memories", lambda route: held.append(route))  # noqa: PLW0108 - Playwright marks it
    await page.get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("Deleting …")).to_be_visible()
    await held[0].continue_()
    await page.unroute("**/api/memories")
    said = f"{len(inside)} memories deleted"
    await expect(page.locator(".notice", has_text=said)).to_be_visible()
    await expect(page.get_by_text("Nothing is selected.")).to_be_visible()
    deleted: dict[str, Any] = {"state": "deleted", "limit": 200}
    assert len((await used.get("/api/memories", params=deleted)).json()["memories"]) == len(inside)
    await undo(page, said)
    await expect(page.get_by_text("Change undone")).to_be_visible()
    assert (await used.get("/api/memories", params=deleted)).json()["memories"] == []
    # What was restored has no vector until the worker comes to it; then it stands where it stood.
    workspace = await resolve(services.database, mapped, language="english")
    ids = [UUID(memory_id) for memory_id in inside]
    await services.embedder.embed_pending(workspace, ids=ids)
    again = (await used.get("/api/graph", timeout=PATIENCE)).json()["nodes"]
    assert {node["id"]: (node["x"], node["y"]) for node in again} == {
        node["id"]: (node["x"], node["y"]) for node in found.nodes
    }
    await expect(page.get_by_text(f"{len(inside)} selected")).to_be_visible(timeout=FOR_THE_MAP)


async def test_those_in_a_lasso_are_listed_and_shift_adds(
    open_panel: Open, mapped: str, used: httpx.AsyncClient
) -> None:
    page = await open_panel("/memory?look=map", within=mapped)
    found = await shown(page, used)
    left, top = found.box["x"] + 2, found.box["y"] + 2
    right, bottom = left + found.box["width"] - 4, top + found.box["height"] - 4

    def depth(place: Place) -> float:
        """Pixels below the diagonal from the upper left to the lower right."""
        return float(place[1] - (top + (place[0] - left) * (bottom - top) / (right - left)))

    below = sum(depth(place) > 0 for place in found.places.values())
    close = sum(abs(depth(place)) < 2 for place in found.places.values())
    await page.get_by_role("button", name="Lasso").click()
    await found.draw((left, top), (left, bottom), (right, bottom))
    said = page.get_by_text(re.compile(r"^\d+ selected$"))
    assert abs(int((await said.inner_text()).split()[0]) - below) <= close
    await page.keyboard.down("Shift")
    await found.draw((left, top), (right, top), (right, bottom))
    await page.keyboard.up("Shift")
    await expect(said).to_have_text(re.compile(rf"^({'|'.join(str(600 - n) for n in range(close + 1))}) selected$"))
    await page.keyboard.press("Escape")
    await expect(said).to_have_count(0)


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


@pytest.mark.parametrize("tool", ["v", "r", "l"])
async def test_looking_at_a_memory_keeps_the_selection(
    open_panel: Open, mapped: str, used: httpx.AsyncClient, tool: str
) -> None:
    page = await open_panel("/memory?look=map", within=mapped)
    found = await shown(page, used)
    place = found.places[found.nodes[7]["id"]]
    await page.get_by_role("button", name="Select all").click()
    await page.keyboard.press(tool)
    await page.mouse.dblclick(*place)
    await page.locator(".pane-detail").get_by_role("button", name="Close").click()
    await expect(page.get_by_text("600 selected")).to_be_visible()
    await page.mouse.click(*place)
    await expect(page.get_by_text("600 selected" if tool == "v" else "599 selected")).to_be_visible()
    await page.keyboard.down("Shift")
    await page.mouse.click(*place)
    await page.keyboard.up("Shift")
    await expect(page.get_by_text("599 selected" if tool == "v" else "600 selected")).to_be_visible()


async def test_a_selection_says_how_much_of_it_is_not_shown(
    open_panel: Open, mapped: str, used: httpx.AsyncClient
) -> None:
    page = await open_panel("/memory?look=map", within=mapped)
    found = await shown(page, used)
    size = found.graph["clusters"][1]["size"]
    await page.get_by_role("button", name="Select all").click()
    await page.get_by_label("Clusters").get_by_role("listitem").nth(1).get_by_role("button").click()
    await expect(page.get_by_text(f"600 selected, {600 - size} not shown")).to_be_visible()


async def test_a_tap_tells_what_is_there_and_its_links(
    api: httpx.AsyncClient, browser: Browser, server: str, workspace_name: str
) -> None:
    pump, *_ = await linked(api)
    context = await browser.new_context(viewport=NARROW, has_touch=True, is_mobile=True)  # type: ignore[arg-type] # a mapping with the two that it takes
    page = await context.new_page()
    await page.goto(f"{server}/memory?look=map&workspace={workspace_name}")
    found = await shown(page, api)
    await page.touchscreen.tap(*found.places[pump])
    await expect(page.get_by_role("tooltip").locator(".tooltip-title")).to_have_text("the mill's pump")
    await expect(page.get_by_label("Links").get_by_role("listitem")).to_have_text(["Derived from 1", "Supersedes 1"])
    await expect(page.get_by_text(re.compile(r"\d selected"))).to_have_count(0)
    await page.touchscreen.tap(found.box["x"] + 5, found.box["y"] + 5)
    await expect(page.get_by_role("tooltip")).to_have_count(0)
    await context.close()


async def test_the_slider_narrows_the_time(open_panel: Open, mapped: str, used: httpx.AsyncClient) -> None:
    page = await open_panel("/memory?look=map", within=mapped)
    found = await shown(page, used)
    moments = sorted(datetime.fromisoformat(node["occurred_at"]) for node in found.nodes)
    upper = page.get_by_role("slider", name="To")
    await upper.focus()
    for _ in range(30):
        await page.keyboard.press("ArrowLeft")
    await expect(upper).to_have_value("10")
    until = moments[0] + (moments[-1] - moments[0]) * 10 / 40
    count = sum(moment <= until for moment in moments)
    assert 100 < count < 200
    await expect(page).to_have_url(re.compile(f"until={until:%Y-%m-%d}"))
    await expect(page.locator(".drift")).to_contain_text(f"{count} of 600 memories")
    await expect(upper).to_have_attribute("aria-valuetext", re.compile("2026$"))
    await page.get_by_role("button", name="Later").click()
    await expect(page.get_by_role("slider", name="From")).to_have_value("5")
    await expect(upper).to_have_value("15")
    await page.get_by_role("button", name="All time").click()
    await expect(page.locator(".drift")).to_contain_text("600 of 600 memories")
    await expect(page).not_to_have_url(re.compile("since="))


async def test_a_brush_on_the_bars_narrows_the_time(open_panel: Open, mapped: str, used: httpx.AsyncClient) -> None:
    page = await open_panel("/memory?look=map", within=mapped)
    found = await shown(page, used)
    box = await page.locator(".brush-plot").bounding_box()
    assert box is not None
    x, y, width = box["x"], box["y"] + box["height"] / 2, box["width"]
    await found.draw((x + width * 0.25 + 1, y), (x + width * 0.5, y))
    lower, upper = (page.get_by_role("slider", name=name) for name in ("From", "To"))
    await expect(lower).to_have_value("10")
    await expect(upper).to_have_value("20")
    await found.draw((x + width * 0.4, y), (x + width * 0.65, y))
    await expect(lower).to_have_value("20")
    await expect(upper).to_have_value("30")
    await found.draw((x + width * 0.75, y), (x + width * 0.9, y))
    await expect(upper).to_have_value("36")
    await expect(page).to_have_url(re.compile("since=.*until="))
    await page.mouse.click(x + width * 0.1, y)
    await expect(page.locator(".drift")).to_contain_text("600 of 600 memories")


async def test_the_map_shows_what_the_filters_of_the_list_let_pass(
    open_panel: Open, mapped: str, used: httpx.AsyncClient
) -> None:
    page = await open_panel("/memory?kind=observation&min_score=8&tag=reviewed", within=mapped)
    await expect(page.get_by_label("Active filters").get_by_role("button")).to_have_count(3)
    page_of = {"kind": "observation", "min_score": "8", "tag": "reviewed"}
    total = (await used.get("/api/memories", params=page_of)).json()["total"]
    await page.get_by_role("navigation", name="Looks").get_by_role("link", name="Map").click()
    await expect(page.get_by_label("Active filters").get_by_role("button")).to_have_count(3)
    await expect(page.get_by_label("Memories on the map").get_by_role("status")).to_have_text(f"{total} memories")
    await page.get_by_role("button", name="Clear filters").click()
    await expect(page.locator(".drift")).to_contain_text("600 of 600 memories")
    await page.get_by_role("navigation", name="Looks").get_by_role("link", name="List").click()
    await expect(page.locator(".list-count")).not_to_contain_text(f"{total} memories")


async def test_the_map_is_searched(open_panel: Open, mapped: str, used: httpx.AsyncClient) -> None:
    page = await open_panel("/memory?look=map", within=mapped)
    found = await shown(page, used)
    await page.keyboard.press("/")
    await page.keyboard.type("oat milk in Sweden")
    titled = sum("oat milk in Sweden" in node["title"] for node in found.nodes)
    await expect(page.locator(".drift")).not_to_contain_text("600 of 600")
    count = int(re.findall(r"(\d+) of 600", await page.locator(".drift").inner_text())[0])
    assert titled <= count < titled + 50
    assert asked(page) == {"q": ["oat milk in Sweden"]}
    await page.get_by_label("Search the map").fill("")
    await expect(page.locator(".drift")).to_contain_text("600 of 600 memories")


async def test_scores_are_told_by_colour_and_by_shape(open_panel: Open, api: httpx.AsyncClient) -> None:
    scores: dict[str, float | None] = {"pumps lift water": 8.0, "violins need rosin": 3.0, "bread wants time": None}
    notes = [{"kind": "note", "title": text, "body": text, "final_score": score} for text, score in scores.items()]
    passed, failed, plain = await stored(api, *notes)
    page = await open_panel("/memory?look=map", {"colour": "score"})
    found = await shown(page, api)
    assert await found.colour_at(found.places[passed]) == await found.meaning("--good")
    assert await found.colour_at(found.places[failed]) == await found.meaning("--bad")
    assert (await found.colour_at(found.places[plain]))[3] < 255
    legend = page.get_by_label("Score legend").get_by_role("listitem")
    await expect(legend).to_have_text(["Score of 7 or more1", "Score from 5 to 70", "Score below 51", "No score1"])


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


async def test_qualities_are_told_by_colour_and_by_shape(open_panel: Open, api: httpx.AsyncClient) -> None:
    texts = ("pumps lift water", "violins need rosin", "bread wants time")
    up, down, plain = await stored(api, *({"kind": "note", "title": text, "body": f"{text}."} for text in texts))
    for memory_id, rating in ((up, 1), (down, -1)):
        await api.post(f"/api/memories/{memory_id}/feedback", json={"rating": rating})
    page = await open_panel("/memory?look=map", {"colour": "quality"})
    found = await shown(page, api)
    assert await found.colour_at(found.places[up]) == await found.meaning("--good")
    assert await found.colour_at(found.places[down]) == await found.meaning("--bad")
    dim = await found.colour_at(found.places[plain])
    assert dim[3] < 255
    legend = page.get_by_label("Quality legend").get_by_role("listitem")
    await expect(legend).to_have_text(["Rated up1", "Rated down1", "Neutral or not rated1"])
    # Upright and on its point: above its middle the one is narrow where the other is wide.
    beside = [(await found.colour_at((found.places[i][0] + 3, found.places[i][1] - 3)))[3] for i in (up, down)]
    assert beside[0] < 128 < beside[1]
    await page.get_by_label("Select bread wants time").check()
    await page.get_by_role("button", name="Rate all selected memories down").click()
    await expect(legend).to_have_text(["Rated up1", "Rated down2", "Neutral or not rated0"])
    assert (await found.colour_at(found.places[plain]))[3] == 255
    await undo(page, "Rated down")
    await expect(legend).to_have_text(["Rated up1", "Rated down1", "Neutral or not rated1"])
    assert (await found.colour_at(found.places[plain]))[3] == dim[3]


@pytest.mark.smoke
async def test_the_keyboard_lists_selects_opens_and_moves(
    open_panel: Open, mapped: str, used: httpx.AsyncClient
) -> None:
    page = await open_panel("/memory?look=map", within=mapped)
    found = await shown(page, used)
    titles = await page.locator(".member .row-title").all_inner_texts()
    for key in ("j", "x", "j", "j", "k", "x"):
        await page.keyboard.press(key)
    await expect(page.get_by_text("2 selected")).to_be_visible()
    await expect(page.locator(".member.current .row-title")).to_have_text(titles[1])
    await page.keyboard.press("Enter")
    await expect(page.locator(".pane-detail h2")).to_have_text(titles[1])
    await page.keyboard.press("Escape")
    await expect(page.get_by_text("2 selected")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_text("2 selected")).to_have_count(0)
    for key, name in (("r", "Rectangle"), ("l", "Lasso"), ("v", "Move")):
        await page.keyboard.press(key)
        await expect(page.get_by_role("button", name=name)).to_have_attribute("aria-pressed", "true")
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
    await expect(page.locator(".member").first).to_contain_text("<script>")
    assert await page.locator("main img, main script, main svg:not(.glyph, .sign, .bars, .brush-plot)").count() == 0
    assert await page.evaluate("window.broken") is None


async def test_nothing_to_map_says_what_to_do(open_panel: Open, api: httpx.AsyncClient, workspace_name: str) -> None:
    page = await open_panel("/memory?look=map", {"kind": "cue"})
    await expect(page.get_by_role("heading", name="There is nothing to map yet")).to_be_visible()
    await expect(page.get_by_text(f"in workspace {workspace_name}")).to_be_visible()
    await stored(api, {"kind": "note", "title": "First", "body": "The first lesson of this workspace."})
    await page.get_by_role("button", name="Show all kinds").click()
    await expect(page.locator(".member")).to_have_count(1, timeout=FOR_THE_MAP)
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
    await page.locator(".member .row-title").first.click()
    await expect(page.locator(".pane-detail h2")).to_be_visible()
    await expect(page.get_by_role("application")).to_be_hidden()
    await page.get_by_role("button", name="Close").click()
    await expect(page.get_by_role("application")).to_be_visible()
