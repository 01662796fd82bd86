"""How the panel is served, with and without a build; what browsers are told; its types are those of the service."""

import subprocess
from hashlib import sha256
from pathlib import Path

import httpx
import pytest

from app.interfaces.http import panel
from app.interfaces.http.admission import NO_KEY, Admission
from app.interfaces.http.context import ApplicationContext, Metrics
from app.interfaces.http.serving.application import document
from app.settings import Settings
from app.storage.tenants.keys import EVERYTHING


@pytest.fixture
def dist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A build of the test's own."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>Priors</title>")
    (tmp_path / "icon.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (tmp_path / "assets" / "index-abc.js").write_text("export const much = 1;\n" * 200)
    (tmp_path / "secret.txt").write_text("not for the web")
    monkeypatch.setattr(panel, "DIST", tmp_path)
    return tmp_path


@pytest.mark.usefixtures("dist")
async def test_pages_are_never_cached_and_assets_for_ever(client: httpx.AsyncClient) -> None:
    for path in panel.PAGES:
        page = await client.get(path)
        assert (page.status_code, page.headers["cache-control"]) == (200, "no-store")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
    asset = await client.get("/assets/index-abc.js")
    assert asset.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert asset.headers["content-encoding"] == "gzip"
    assert asset.text.startswith("export const much")
    plain = await client.get("/assets/index-abc.js", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.text == asset.text
    assert (await client.get("/icon.svg")).headers["content-type"].startswith("image/svg+xml")


@pytest.mark.usefixtures("dist")
async def test_browsers_are_told_to_run_nothing_else(client: httpx.AsyncClient) -> None:
    for path in ("/", "/assets/index-abc.js", "/icon.svg"):
        headers = (await client.get(path)).headers
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
        assert policy["default-src"] == policy["script-src"] == policy["style-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["base-uri"] == policy["object-src"] == "'none'"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.usefixtures("dist")
@pytest.mark.parametrize("name", ["..%2fsecret.txt", "%2e%2e%2fsecret.txt", "..", "none.js", "../secret.txt", "%00"])
async def test_nothing_beside_the_assets_is_served(client: httpx.AsyncClient, name: str) -> None:
    answer = await client.get(f"/assets/{name}")
    assert "not for the web" not in answer.text
    assert answer.status_code == 404 or answer.url.path in {"/", "/secret.txt"}


async def test_without_a_build_the_page_says_how_to_make_one(
    client: httpx.AsyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(panel, "DIST", tmp_path / "none")
    page = await client.get("/")
    assert page.status_code == 200
    assert "make panel" in page.text
    assert "default-src 'self'" in page.headers["content-security-policy"]


async def test_the_panel_is_open_and_the_data_is_not() -> None:
    admission = Admission(lambda: ApplicationContext(services=None, metrics=Metrics()).keys, Settings(api_key="k"))
    for path in (*panel.PAGES, "/icon.svg", "/assets/index-abc.js", "/health"):
        assert await admission.of({"path": path, "headers": []}) is EVERYTHING  # type: ignore[typeddict-item] # all that is read
    for path in ("/api/memories", "/schema", "/metrics", "/ready", "/assetsx", "/api/assets/x"):
        assert await admission.of({"path": path, "headers": []}) is NO_KEY  # type: ignore[typeddict-item] # all that is read


def test_the_types_are_those_of_the_service(repository: Path) -> None:
    stamp = (repository / "app" / "panel" / "src" / "api" / "schema.ts").read_text().partition("\n")[0]
    assert stamp.endswith(f" sha256 {sha256(document()).hexdigest()}."), "run `make panel-types`"


def test_the_lock_names_no_registry(repository: Path) -> None:
    lock = (repository / "app" / "panel" / "package-lock.json").read_text()
    assert '"resolved"' not in lock
    assert "registry." not in lock


@pytest.mark.parametrize(
    ("version", "fits"),
    [("v20.19.0", True), ("v20.18.3", False), ("v21.7.0", False), ("v22.11.0", False), ("v22.12.0", True),
     ("v24.1.0", True), ("nonsense", False)],
)  # fmt: skip
def test_only_a_node_that_can_build_is_taken(repository: Path, version: str, fits: bool) -> None:  # noqa: FBT001 - a parameter
    done = subprocess.run(["sh", "build.sh", "fits", version], cwd=repository / "app" / "panel", check=False)
    assert (done.returncode == 0) is fits
