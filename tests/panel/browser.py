"""The system's browser, driven."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = "there is no Chromium here; install one, for example with `apt-get install chromium`"


def chromium() -> str | None:
    """Returns the path of the system's Chromium; None if there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@asynccontextmanager
async def launched(path: str) -> AsyncIterator[Browser]:
    """The browser; as root it has no sandbox to use."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        await browser.close()
