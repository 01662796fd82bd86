"""Writes pictures of every view into `screenshots/`, and those of the README: `python -m tests.panel.screenshots`.

The views show the data that the tests use; the README's pictures show the examples of the first start.
"""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import httpx
import msgspec
from playwright.async_api import Browser, Page

from app.foundation.db.migrations import upgrade
from app.foundation.postgres.embedded import EmbeddedPostgres
from app.interfaces.cli.running import configure_log
from app.interfaces.http.serving.server import address, bound_socket, serve
from app.operations.examples import SESSIONS, Examples
from app.settings import Settings
from app.wiring import open_services
from tests.panel.browser import MISSING, chromium, launched
from tests.panel.seed import examples, seed
from tests.panel.test_sessions import JSON, sessions, tell

REPOSITORY = Path(__file__).parents[2]
FOLDER = REPOSITORY / "screenshots"
IMAGES = REPOSITORY / "docs" / "images"
PANE = ".pane-detail h2"
USED = {"X-Workspace": "used"}
DOCUMENTS: tuple[tuple[str, Literal["light", "dark"], str, str], ...] = (
    ("panel-memories.png", "light", "/memory?q=fourteen+actors+with+revenue+from+the+registry&memory={memory}", PANE),
    ("panel-desk.png", "dark", "/?item=prune+{waiting}", PANE),
)
SIZES = {"1280": (1280, 800), "390": (390, 844)}
UNLIMITED = httpx.Timeout(None)
"""A busy machine takes as long as it takes."""
QUIET = """() => {
    const map = document.querySelector('.map canvas');
    const drawn = map === null || map.width === map.clientWidth;
    return drawn && document.querySelector('.loading, .working, .stale, [aria-busy=true]') === null;
}"""
"""Tells that nothing is loading any more and that the map is drawn."""
VIEWS = {
    "desk": ("/", ".row"),
    "held": ("/?reason=held", ".row"),
    "cases": ("/cases", "main h1"),
    "memories": ("/memory", ".row"),
    "memory": ("/memory?memory={memory}", PANE),
    "search": ("/memory?q=which+sources+count+for+the+judge&memory={memory}&min_score=4", PANE),
    "map": ("/memory?look=map", ".row"),
    "runs": ("/runs", ".row"),
    "run": ("/runs?run=run-024", PANE),
    "session": ("/memory?session=session-47", PANE),
    "cue": ("/memory?memory={cue}", PANE),
    "health": ("/service", ".ingestions li"),
    "audit": ("/service?part=audit", ".entries li"),
}
"""The address of each view, and what is on the page once its content is there."""


@asynccontextmanager
async def seeded_service() -> AsyncIterator[str]:
    """The address of a service over an embedded Postgres that goes away with it."""
    with tempfile.TemporaryDirectory() as folder, EmbeddedPostgres(Path(folder) / "postgres") as postgres:
        settings = Settings(database_url=postgres.start(), data_dir=Path(folder), port=0)
        configure_log(settings, quiet=True)
        await asyncio.to_thread(upgrade, settings.database_url)
        stop, ready = asyncio.Event(), asyncio.Event()
        async with open_services(settings) as services:
            listening = bound_socket(settings)
            serving = asyncio.create_task(serve(services, listening, stop=stop, on_ready=lambda _: ready.set()))
            await ready.wait()
            workspace = await services.workspaces.resolve(settings.workspace)
            first = Examples(services=services)
            await first.begin(workspace)
            await first.play(workspace)
            async with httpx.AsyncClient(base_url=address(listening), timeout=UNLIMITED, headers=USED) as client:
                await seed(client, examples(), services.provider)
            yield address(listening)
            stop.set()
            await serving


async def shown(client: httpx.AsyncClient) -> dict[str, str]:
    """Stores sessions, cues and two contexts; returns the ids that the addresses of VIEWS name."""
    for session in sessions(SESSIONS):
        content = msgspec.json.encode(session)
        (await client.post("/api/sessions?wait=true", content=content, headers=JSON)).raise_for_status()
    asked = {
        "observation": "Which sources count for the judge?",
        "goal": "Write the next report.",
        "session": "session-47",
    }
    made = [
        (await client.post("/api/contexts", json=asked | {"budget": {"total": total}})).raise_for_status().json()["id"]
        for total in (3_000, 900)
    ]
    given = (await client.get("/api/runs/run-024")).raise_for_status().json()["given"]
    return {"memory": given[0]["id"], "cue": (await tell(client))[0], "context": made[1], "other": made[0]}


async def shoot(browser: Browser, where: str) -> None:
    """Every view, in both themes, at both widths."""
    async with httpx.AsyncClient(base_url=where, timeout=UNLIMITED, headers=USED) as client:
        ids = await shown(client)
        (await client.get("/api/graph", params={"limit": 4000})).raise_for_status()
    for theme in ("light", "dark"):
        for size, (width, height) in SIZES.items():
            context = await browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=theme, device_scale_factor=1
            )  # fmt: skip
            context.set_default_timeout(0)  # none
            tab = await context.new_page()
            for name, (path, there) in VIEWS.items():
                url = where + path.format(**ids)
                url += f"{'&' if '?' in url else '?'}workspace={USED['X-Workspace']}"
                await _shoot(tab, url, there, FOLDER / f"{name}-{theme}-{size}.png")
            await context.close()


async def shoot_for_the_documents(browser: Browser, where: str) -> None:
    """The pictures of the README."""
    asked = {"query": "fourteen actors with revenue from the registry", "filters": {"kinds": ["observation"]}}
    async with httpx.AsyncClient(base_url=where, timeout=UNLIMITED) as client:
        memory = (await client.post("/api/search", json=asked)).json()["hits"][0]["id"]
        waiting = (await client.get("/api/memories", params={"state": "prune"})).json()["memories"][0]["id"]
        while (await client.get("/api/status")).json()["pending_links"] > 0:  # noqa: ASYNC110 - the service is asked
            await asyncio.sleep(1)
    for name, theme, path, there in DOCUMENTS:
        page = await browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme=theme)
        page.set_default_timeout(0)  # none
        await _shoot(page, where + path.format(memory=memory, waiting=waiting), there, IMAGES / name)
        await page.close()


async def _shoot(tab: Page, url: str, there: str, file: Path) -> None:
    await tab.goto(url)
    await tab.locator(there).first.wait_for()
    await tab.wait_for_load_state("networkidle")
    await tab.wait_for_function(QUIET)
    await tab.screenshot(path=file)


async def main() -> int:
    """Take the pictures; 1 where there is no browser."""
    path = chromium()
    if path is None:
        print(MISSING, file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    async with launched(path) as browser, seeded_service() as where:
        await shoot_for_the_documents(browser, where)
        await shoot(browser, where)
    print(f"{len(list(FOLDER.glob('*.png')))} pictures in {FOLDER.name}/")
    return 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
