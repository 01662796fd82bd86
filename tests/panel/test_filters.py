"""The filters above the list of runs, whose state is the address."""

import re

import pytest
from playwright.async_api import expect

from tests.panel.conftest import Open
from tests.panel.test_memories import asked

pytestmark = pytest.mark.test_all("browser")

VIEWS = (("/runs", {"task_type": "scoring", "sort": "best"}, "Search runs", None),)
"""Each view with filters, the label of its search, and the filter that it shows as a chip."""


@pytest.mark.parametrize(("path", "given", "label", "chip"), VIEWS)
async def test_filters_are_searched_removed_and_cleared(
    open_panel: Open, seeded: str, path: str, given: dict[str, str], label: str, chip: tuple[str, str] | None
) -> None:
    page = await open_panel(path, {**given, "q": "zebras"}, within=seeded)
    frame = page.get_by_role("group", name="Filters")
    await expect(frame.get_by_role("searchbox", name=label)).to_have_value("zebras")
    left = {name: [value] for name, value in given.items()}
    if chip is not None:
        name, shown = chip
        await frame.get_by_role("button", name=f"{shown} Remove").click()
        await expect(frame.get_by_role("button", name=shown)).to_have_count(0)
        del left[name]
    await frame.get_by_role("searchbox").fill("violins")
    await expect(page).to_have_url(re.compile("q=violins"))
    assert asked(page) == {**left, "q": ["violins"]}
    await frame.get_by_role("button", name="Clear filters").click()
    await expect(page.get_by_role("button", name="Clear filters")).to_have_count(0)
    assert asked(page) == {name: value for name, value in left.items() if name == "sort"}


async def test_what_is_open_stays_as_filters_are_cleared(open_panel: Open, seeded: str) -> None:
    page = await open_panel("/runs", {"run": "run-003", "agent": "scout"}, within=seeded)
    await page.get_by_role("button", name="Clear filters").click()
    await expect(page.locator(".row")).to_have_count(50)
    assert asked(page) == {"run": ["run-003"]}
