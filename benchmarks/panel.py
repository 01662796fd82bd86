"""The panel in a real browser: first paint, what a person waits for, and the map's frames a second."""

import argparse
import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import replace

import httpx
from playwright.async_api import Browser, Page

from app.insight.map.service import MOST
from benchmarks.corpus import Corpus, fill
from benchmarks.figures import Figure, percentile, report
from benchmarks.stage import service, stage, workspace_of
from tests.panel.browser import MISSING, chromium, launched

MEMORIES = 10_000
RUNS, SESSIONS, VERSIONS = 1_000, 300, 20
"""Runs are those of cases with so many versions each."""
ROUNDS = 10
WORKSPACE = "benchmark"
PATIENCE_MILLISECONDS = 900_000
"""A first map of many memories may take minutes."""
GESTURES = 120
"""Movements of the pointer, each after a frame, that a measured gesture has."""
FIRST_PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
LISTED = """new MutationObserver((_, watching) => {
  if (!document.querySelector(".row")) return;
  watching.disconnect();
  requestAnimationFrame(() => requestAnimationFrame((now) => { window.listed = now; }));
}).observe(document, { childList: true, subtree: true })"""
"""Notes in the page when the first row of a list is painted: asking from outside would take time of its own."""
FRAMES = """async (moves) => {
  const canvas = document.querySelector("canvas");
  const box = canvas.getBoundingClientRect();
  const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
  const common = { bubbles: true, cancelable: true, view: window };
  const send = (kind, type, more) => (type === "mousedown" || kind === WheelEvent ? canvas : window)
    .dispatchEvent(new kind(type, { ...common, ...more }));
  const frame = () => new Promise(requestAnimationFrame);
  const taken = [];
  for (const wheel of [false, true]) {
    if (!wheel) send(MouseEvent, "mousedown", { clientX: x, clientY: y, button: 0, buttons: 1 });
    let before = await frame();
    for (let move = 1; move <= moves; move += 1) {
      const swing = Math.sin(move / 12);
      if (wheel) send(WheelEvent, "wheel", { clientX: x, clientY: y, deltaY: 40 * swing });
      else send(MouseEvent, "mousemove", { clientX: x + 150 * swing, clientY: y + 80 * swing, buttons: 1 });
      const now = await frame();
      taken.push(now - before);
      before = now;
    }
    if (!wheel) send(MouseEvent, "mouseup", { clientX: x, clientY: y });
  }
  return taken;
}"""
"""Moves the map by a drag and then by the wheel; milliseconds between the frames that followed."""
WATCH = """() => {
  window.frames_taken = [];
  let before = performance.now();
  const next = (now) => { window.frames_taken.push(now - before); before = now; requestAnimationFrame(next); };
  requestAnimationFrame(next);
}"""
"""Notes the milliseconds between all frames from now on."""
TYPED, PAUSE = "drop the column of a table in production", 60
"""What is typed into a search, and the milliseconds between two keys."""
WAIT = """async ([press, shown]) => {
  const before = performance.now();
  document.querySelector(press).click();
  while (!document.querySelector(shown)) await new Promise(requestAnimationFrame);
  return performance.now() - before;
}"""
"""Milliseconds from a press until the page shows its effect."""


async def opened(browser: Browser, address: str, path: str = "/memory", query: str = "") -> Page:
    """A page in a browser that knows nothing yet: nothing is in its cache."""
    context = await browser.new_context(viewport={"width": 1280, "height": 800})
    page = await context.new_page()
    page.set_default_timeout(PATIENCE_MILLISECONDS)
    await page.add_init_script(LISTED)
    await page.goto(f"{address}{path}?workspace={WORKSPACE}{query}")
    return page


async def fill_rest(address: str, runs: int, sessions: int) -> None:
    """Stores judged runs of cases, and sessions."""
    named = {"X-Workspace": WORKSPACE}
    async with httpx.AsyncClient(base_url=address, headers=named, timeout=PATIENCE_MILLISECONDS / 1000) as client:
        for number in range(runs):
            case, version = divmod(number, VERSIONS)
            score = 3 + number * 7 % 60 / 10
            run = {
                "run_id": f"market-{case}-v{version + 1}",
                "task": f"Study market {case}",
                "task_type": "market study",
            }
            judged = {"output": f"Market {case} grew by {number} %.", "final_score": score, "verdict": "fail"}
            faults = {"issues": [f"Sizing of market {case} has no method", "Facts have no date"][: 1 + number % 2]}
            (await client.post("/api/runs", json={**run, **judged, **faults})).raise_for_status()
        for number in range(sessions):
            turns = [{"role": "user", "text": f"Look at table {number}."}, {"role": "assistant", "text": "Done."}] * 4
            content = json.dumps({"id": f"session-{number}", "messages": turns})
            sent = await client.post("/api/sessions", content=content, headers={"Content-Type": "application/json"})
            sent.raise_for_status()


async def typing(browser: Browser, address: str) -> float:
    """The longest frame in milliseconds while somebody types into the search of memories."""
    page = await opened(browser, address)
    await page.wait_for_selector(".row")
    await page.wait_for_load_state("networkidle")
    await page.focus("input[type=search]")
    await page.evaluate(WATCH)
    await page.keyboard.type(TYPED, delay=PAUSE)
    longest = float(await page.evaluate("Math.max(...window.frames_taken.slice(1))"))
    await page.context.close()
    return longest


async def paints(browser: Browser, address: str, rounds: int, path: str = "/memory") -> tuple[list[float], list[float]]:
    """Milliseconds until something is painted, and until the first row of a list is."""
    first, listed = [], []
    for _ in range(rounds):
        page = await opened(browser, address, path)
        listed.append(float(await (await page.wait_for_function("() => window.listed")).json_value()))
        first.append(float(await (await page.wait_for_function(FIRST_PAINT)).json_value()))
        await page.context.close()
    return first, listed


async def waits(browser: Browser, address: str, rounds: int) -> tuple[list[float], list[float]]:
    """Milliseconds until a memory that is pressed shows as chosen, and until a rating shows."""
    selected, rated = [], []
    page = await opened(browser, address)
    await page.wait_for_selector(".row")
    for number in range(1, rounds + 1):
        row = f".list li:nth-child({number}) > .row"
        selected.append(float(await page.evaluate(WAIT, [row, f"{row}[aria-current]"])))
        await page.wait_for_selector(".pane-detail .thumb.good")
        rated.append(float(await page.evaluate(WAIT, [".pane-detail .thumb.good", ".row[aria-current] .quality.good"])))
    await page.context.close()
    return selected, rated


async def frames(browser: Browser, address: str, nodes: int, moves: int) -> list[float]:
    """Milliseconds from frame to frame while a map of so many memories is moved and zoomed."""
    page = await opened(browser, address, query=f"&look=map&limit={nodes}")
    await page.wait_for_selector(f'canvas[aria-label="Map of {nodes} memories"]')
    await page.wait_for_load_state("networkidle")
    taken: list[float] = await page.evaluate(FRAMES, moves)
    await page.context.close()
    return taken


async def measure(browser: Browser, given: argparse.Namespace) -> list[Figure]:
    """The figures at these sizes."""
    async with stage() as services:
        await fill(services, Corpus(), await workspace_of(services, WORKSPACE), given.memories)
        with service(replace(services.settings, embedded_worker=False)) as (address, _):
            await fill_rest(address, given.runs, given.sessions)
            first, listed = await paints(browser, address, given.rounds)
            others = {
                place: (await paints(browser, address, given.rounds, f"/{place}"))[1] for place in ("runs", "cases")
            }
            selected, rated = await waits(browser, address, given.rounds)
            longest = await typing(browser, address)
            before = time.perf_counter()
            taken = await frames(browser, address, given.nodes, given.moves)
            drawn_in = time.perf_counter() - before
    name, drawn = f"{given.memories:,} memories", f"{given.nodes:,} nodes"
    return [
        Figure(name=f"{name}: first paint, p50", value=percentile(first, 50), unit="ms"),
        Figure(name=f"{name}: first paint, slowest", value=max(first), unit="ms", at_most=1000),
        Figure(name=f"{name}: memories listed, p50", value=percentile(listed, 50), unit="ms"),
        Figure(name=f"{name}: memories listed, slowest", value=max(listed), unit="ms", at_most=600),
        *(
            Figure(
                name=f"{given.runs:,} runs, {given.sessions} sessions: {place} listed, slowest",
                value=max(times),
                unit="ms",
            )
            for place, times in others.items()
        ),
        Figure(name=f"{name}: the longest frame while somebody types", value=longest, unit="ms", at_most=50),
        Figure(name=f"{drawn}: the first map, with its {given.moves} movements", value=drawn_in, unit="s"),
        Figure(name=f"{name}: a memory chosen, slowest", value=max(selected), unit="ms", at_most=100),
        Figure(name=f"{name}: a rating shown, slowest", value=max(rated), unit="ms", at_most=100),
        Figure(name=f"{drawn}: frames a second, moved and zoomed", value=1000 * len(taken) / sum(taken), at_least=30),
        Figure(name=f"{drawn}: frames a second, slowest in twenty", value=1000 / percentile(taken, 95), at_least=30),
    ]


async def measured(given: argparse.Namespace) -> list[Figure]:
    """The same, in a browser of its own."""
    path = chromium()
    if path is None:
        raise SystemExit(MISSING)
    async with launched(path) as browser:
        return await measure(browser, given)


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=MEMORIES)
    parser.add_argument("--nodes", type=int, default=MOST)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--moves", type=int, default=GESTURES)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    figures = asyncio.run(measured(parser.parse_args(arguments)))
    report("panel", figures)
    return figures


if __name__ == "__main__":
    main()
