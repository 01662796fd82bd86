"""API keys: they are made, shown once, copied, rotated and revoked, and only by whoever may."""

from datetime import UTC, datetime, timedelta

import httpx
import pytest
from playwright.async_api import Locator, Page, expect

from app.operations.access import ManagedKeys
from app.storage.tenants.keys import READ, NewKey
from app.wiring import Services
from tests.conftest import serving
from tests.panel.conftest import Open
from tests.panel.test_safety import violations

pytestmark = pytest.mark.test_all("browser")

DEFAULT = "default"


def secret_of(page: Page) -> Locator:
    return page.get_by_role("region", name="Secret").locator("pre")


async def enter_key(page: Page, key: str) -> None:
    await page.get_by_label("API key", exact=True).fill(key)
    await page.keyboard.press("Enter")


async def status(where: str, secret: str = "") -> int:
    """The status that the service answers to a key, or to none."""
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    async with httpx.AsyncClient(base_url=where, headers=headers, timeout=60) as client:
        return (await client.get("/api/memories")).status_code


async def test_the_first_key_closes_the_service_and_the_page_goes_on_with_it(
    open_panel: Open, own_services: Services, axe: str
) -> None:
    async with serving(own_services) as where:
        page = await open_panel("/memory", within="", where=where)
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await page.get_by_role("link", name="Service").click()
        await page.get_by_role("link", name="API keys").click()
        await expect(page.get_by_role("heading", name="No API keys yet")).to_be_visible()
        await page.keyboard.press("n")
        await expect(page.get_by_label("admin")).to_be_checked()
        await expect(page.get_by_label("admin")).to_be_disabled()
        await page.get_by_label("Name, which tells it from other keys").fill("ops")
        await page.keyboard.press("Enter")
        await expect(secret_of(page)).to_contain_text("priors_")
        secret = await secret_of(page).inner_text()
        await page.get_by_role("button", name="Copy").click()
        await expect(page.get_by_text("Copied", exact=True)).to_be_visible()
        assert await page.evaluate("navigator.clipboard.readText()") == secret
        assert [await status(where), await status(where, secret)] == [401, 200]
        assert await violations(page, axe) == []
        await page.get_by_role("link", name="Service").click()
        await expect(page.get_by_text("No recalls yet")).to_be_visible()
        await page.go_back()
        await page.get_by_role("button", name="Hide it for good").click()
        await expect(secret_of(page)).to_have_count(0)
        assert secret not in await page.content()
        await page.context.close()


@pytest.mark.smoke
async def test_a_key_is_made_rotated_and_revoked_by_an_admin_alone(
    open_panel: Open, own_services: Services, complaints: list[str]
) -> None:
    admin = await ManagedKeys(own_services.database).make(NewKey(name="ops", scopes=("admin",)))
    async with serving(own_services) as where:
        page = await open_panel("/service?part=keys", within="", where=where)
        await enter_key(page, admin.secret)
        await page.get_by_role("button", name="Make a key").click()
        await page.get_by_label("Name, which tells it from other keys").fill("scout")
        await page.get_by_label("rate").check()
        make = page.get_by_role("button", name="Make the key")
        await expect(make).to_be_disabled()
        await page.get_by_label("Names of workspaces").fill(f"papers\n{DEFAULT}")
        ends = datetime.now(UTC) + timedelta(days=30)
        await page.get_by_label("Last day").fill(f"{ends:%Y-%m-%d}")
        await make.click()
        row, old = page.get_by_role("row", name="scout"), secret_of(page)
        await expect(row.get_by_role("cell").nth(1)).to_have_text("rate, read")
        await expect(row.get_by_role("cell").nth(2)).to_have_text("default, papers")
        await expect(row).to_contain_text(f"expires {ends + timedelta(days=1):%-d %b %Y}")
        await expect(row).to_contain_text("never used")
        first = await old.inner_text()
        assert await status(where, first) == 200
        await row.get_by_role("button", name="Rotate").click()
        await expect(row).to_have_count(2)
        await expect(secret_of(page)).not_to_have_text(first)
        second = await secret_of(page).inner_text()
        assert [await status(where, key) for key in (first, second)] == [200, 200]

        revoke = row.first.get_by_role("button", name="Revoke …")
        await revoke.click()
        await expect(page.get_by_role("button", name="Keep it")).to_be_focused()
        await page.keyboard.press("Enter")
        assert await status(where, second) == 200
        await revoke.click()
        await page.get_by_role("button", name="Revoke it for good").click()
        await expect(page.get_by_text("The key scout is revoked")).to_be_visible()
        await expect(row.first).to_contain_text("revoked")
        await expect(revoke).to_have_count(0)
        assert [await status(where, key) for key in (first, second)] == [200, 401]

        await page.get_by_role("button", name="Settings").click()
        await page.get_by_role("button", name="Enter another API key").click()
        await enter_key(page, first)
        await expect(page.get_by_role("heading", name="Only a key with the scope admin")).to_be_visible()
        await expect(page.get_by_text("this one has rate, read")).to_be_visible()
        await page.get_by_role("button", name="Enter another API key").click()
        await enter_key(page, admin.secret)
        await expect(page.locator("tbody tr")).to_have_count(3)
        await page.context.close()
    assert {complaint.split("status of ")[1][:3] for complaint in complaints} == {"401", "403"}
    complaints.clear()


async def test_keys_that_cannot_be_shown_or_made_say_why(
    open_panel: Open, own_services: Services, complaints: list[str]
) -> None:
    kept = await ManagedKeys(own_services.database).make(NewKey(name="agent", scopes=(READ,)))
    await ManagedKeys(own_services.database).revoke(kept.key.key_id)
    async with serving(own_services) as where:
        page = await open_panel("/service?part=keys", within="", where=where)
        await expect(page.locator("tbody tr")).to_contain_text("revoked")
        await page.route(
            "**/api/keys", lambda route: route.fulfill(status=503, json={"detail": "the database is away"})
        )
        await page.keyboard.press("n")
        await page.get_by_label("Name, which tells it from other keys").fill("ops")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("The key could not be made: the database is away")).to_be_visible()
        await page.reload()
        await expect(page.get_by_role("heading", name="The list of API keys cannot be shown")).to_be_visible()
        await page.unroute("**/api/keys")
        await page.get_by_role("button", name="Try again").click()
        await expect(page.locator("tbody tr")).to_have_count(1)
        await page.context.close()
    complaints.clear()
