"""A real browser on a real service that holds the example reports and 600 observations."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from app.foundation.models.protocols import EmbeddingProvider
from app.interfaces.http.panel import DIST
from tests.conftest import WITHOUT_TLS
from tests.panel.browser import MISSING, chromium, launched
from tests.panel.seed import examples, seed

WIDE = {"width": 1280, "height": 800}
PATIENCE = 900.0
"""Seconds that the first map may take on a busy machine."""
FOR_THE_MAP = PATIENCE * 1000
"""The same in milliseconds, as the browser takes it."""
FOR_A_VIEW = 120_000.0
"""Milliseconds that a view may take to show something on a busy machine; a fast one does not wait."""
NARROW = {"width": 390, "height": 844}

Open = Callable[..., Awaitable[Page]]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """The system's Chromium."""
    path = chromium()
    if path is None:
        pytest.skip(MISSING)
    if not (DIST / "index.html").is_file():
        pytest.skip("the panel is not built; run `make panel`")
    expect.set_options(timeout=FOR_A_VIEW)
    async with launched(path) as browser:
        yield browser


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def seeded(server: str, provider: EmbeddingProvider) -> AsyncIterator[str]:
    """A workspace that looks used."""
    name = f"panel-{uuid4().hex[:12]}"
    async with httpx.AsyncClient(base_url=server, headers={"X-Workspace": name}, timeout=120) as client:
        await seed(client, examples(), provider)
    yield name


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def mapped(server: str, seeded: str) -> AsyncIterator[str]:
    """The same workspace once its map is drawn, which takes a minute on a machine that never drew one."""
    async with httpx.AsyncClient(base_url=server, headers={"X-Workspace": seeded}, timeout=PATIENCE) as client:
        (await client.get("/api/graph", params={"limit": 4000})).raise_for_status()
    yield seeded


@pytest_asyncio.fixture(loop_scope="session")
async def api(server: str, workspace_name: str) -> AsyncIterator[httpx.AsyncClient]:
    """The service in the test's own workspace."""
    headers = {"X-Workspace": workspace_name}
    async with httpx.AsyncClient(base_url=server, headers=headers, timeout=60, verify=WITHOUT_TLS) as client:
        yield client


@pytest.fixture(scope="session")
def axe(repository: Path) -> str:
    """The rules' engine, from the panel's own packages."""
    path = repository / "app" / "panel" / "node_modules" / "axe-core" / "axe.min.js"
    if not path.is_file():
        pytest.skip("axe-core is not installed; run `make panel`")
    return path.read_text()


@pytest.fixture
def complaints() -> list[str]:
    """The browser's errors and warnings; a test that expects one takes it out."""
    return []


@pytest_asyncio.fixture(loop_scope="session")
async def open_panel(browser: Browser, server: str, workspace_name: str, complaints: list[str]) -> AsyncIterator[Open]:
    """Opens a path of the panel, in the test's own workspace unless another is named."""
    contexts = []

    async def open_path(
        path: str = "/memory",
        params: dict[str, Any] | None = None,
        *,
        within: str = workspace_name,
        theme: Any = "light",
        size: Any = WIDE,
        where: str = server,
        requests: list[str] | None = None,
    ) -> Page:
        context = await browser.new_context(viewport=size, color_scheme=theme)
        context.set_default_timeout(FOR_A_VIEW)
        contexts.append(context)
        page = await context.new_page()
        page.on("console", lambda said: complaints.append(said.text) if said.type in {"error", "warning"} else None)
        if requests is not None:
            page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        query = urlencode({**(params or {}), "workspace": within}, doseq=True)
        await page.goto(f"{where}{path}{'&' if '?' in path else '?'}{query}")
        return page

    yield open_path
    for context in contexts:
        await context.close()
    assert complaints == []


async def tried(page: Page, query: str, tab: str = "History") -> Page:
    """The drawer with what an agent would get for a query."""
    await page.get_by_role("button", name="Try").click()
    drawer = page.get_by_role("dialog", name="Try")
    await drawer.get_by_role("button", name=tab).click()
    await drawer.locator("textarea").fill(query)
    await drawer.locator("textarea").press("Enter")
    return page
