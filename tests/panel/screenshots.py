"""Writes pictures of every view into `screenshots/`: `python -m tests.panel.screenshots [ADDRESS]`.

Without an address it starts a service of its own with the data that the tests use.
"""

import asyncio
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from playwright.async_api import Browser

from app.api.server import address, bound_socket, serve
from app.cli.running import configure_log
from app.db.migrations import upgrade
from app.postgres.embedded import EmbeddedPostgres
from app.settings import Settings
from app.wiring import open_services
from tests.panel.browser import MISSING, chromium, launched
from tests.panel.seed import examples, seed

REPOSITORY = Path(__file__).parents[2]
FOLDER = REPOSITORY / "screenshots"
IMAGES = REPOSITORY / "docs" / "images"
SHOWN = {"search-light-1280": "panel-memories.png", "ask-dark-1280": "panel-ask.png"}
SIZES = {"1280": (1280, 800), "390": (390, 844)}
UNLIMITED = httpx.Timeout(None)
"""A busy machine takes as long as it takes."""
QUIET = """() => {
    const map = document.querySelector('.map canvas');
    const drawn = map === null || map.width === map.clientWidth;
    return drawn && document.querySelector('.loading, .working, .stale, [aria-busy=true]') === null;
}"""
"""Tells that nothing is loading any more and that the map is drawn."""
PANE = ".pane-detail h2"
VIEWS = {
    "memories": ("/", ".row"),
    "memory": ("/?memory={memory}", PANE),
    "search": ("/?q=which+sources+count+for+the+judge&memory={memory}&min_score=4", PANE),
    "review": ("/review", ".case"),
    "quarantine": ("/review?tab=quarantined", ".case"),
    "graph": ("/graph", ".member"),
    "runs": ("/runs", ".run"),
    "run": ("/runs?run=run-024", PANE),
    "recalls": ("/recalls", ".row"),
    "ask": ("/ask?q=scout+actors+results+BADs+Russia&agent=director", ".hits li"),
    "health": ("/status", ".ingestions li"),
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
            async with httpx.AsyncClient(base_url=address(listening), timeout=UNLIMITED) as client:
                await seed(client, examples(REPOSITORY))
            yield address(listening)
            stop.set()
            await serving


async def shoot(browser: Browser, where: str) -> None:
    """Every view, in both themes, at both widths."""
    async with httpx.AsyncClient(base_url=where, timeout=UNLIMITED) as client:
        given = (await client.get("/api/runs/run-024")).json()["given"]
        (await client.get("/api/graph")).raise_for_status()
    for theme in ("light", "dark"):
        for size, (width, height) in SIZES.items():
            context = await browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=theme, device_scale_factor=1
            )  # fmt: skip
            context.set_default_timeout(0)  # none
            tab = await context.new_page()
            for name, (path, there) in VIEWS.items():
                await tab.goto(where + path.format(memory=given[0]["id"]))
                await tab.locator(there).first.wait_for()
                await tab.wait_for_load_state("networkidle")
                await tab.wait_for_function(QUIET)
                await tab.screenshot(path=FOLDER / f"{name}-{theme}-{size}.png")
            await context.close()


def keep_for_the_documents() -> None:
    """Two pictures stand in the README."""
    IMAGES.mkdir(exist_ok=True)
    for view, name in SHOWN.items():
        shutil.copyfile(FOLDER / f"{view}.png", IMAGES / name)


async def main(words: list[str]) -> int:
    """Take the pictures; 1 where there is no browser."""
    path = chromium()
    if path is None:
        print(MISSING, file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    async with launched(path) as browser:
        if words:
            await shoot(browser, words[0])
        else:
            async with seeded_service() as where:
                await shoot(browser, where)
    keep_for_the_documents()
    print(f"{len(list(FOLDER.glob('*.png')))} pictures in {FOLDER.name}/")
    return 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main(sys.argv[1:])))
