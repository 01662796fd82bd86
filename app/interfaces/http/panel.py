"""The web panel at `/`: pages, which are never cached; assets, which always are; and its content security policy."""

import gzip
import html
import mimetypes
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from litestar import Controller, Request, Response, get
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from app.interfaces.http.schemas import problem_response

DIST = Path(__file__).parents[2] / "panel" / "dist"
PAGES = ["/", "/cases", "/runs", "/memory", "/service"]
"""Every page is the same document; the panel's own code shows the view that belongs to the address."""
_ICON = "/icon.svg"
_ASSETS = "/assets/"
SERVICE = ("/api/", "/schema/", _ASSETS)
"""The paths below which there are no pages."""
JSON, HTML = "application/json", "text/html"

_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
_GUARDED = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
NEVER, FOREVER = "no-store", "public, max-age=31536000, immutable"
_LEAST_COMPRESSED = 1_000
"""Least size of an answer that is compressed, in bytes: compressing a smaller one saves no packet."""

_UNBUILT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Priors</title>
<h1>The panel is not built</h1>
<p>The service itself runs: its API is described at <a href="/schema">/schema</a>.</p>
<p>To build the panel, run <code>make panel</code> in the project's folder and load this page again.
It takes Node 20.19, 22.12 or newer from the system, or fetches one from the Python registry.</p>
<p>It was looked for in <code>{folder}</code>.</p></html>
"""


@dataclass(frozen=True, slots=True)
class _Asset:
    """A file of the build."""

    media_type: str
    plain: bytes
    compressed: bytes | None


def is_open(path: str) -> bool:
    """Tells whether a path belongs to the panel's files. They hold no data, so they need no key."""
    return path in PAGES or path == _ICON or path.startswith(_ASSETS)


class PanelController(Controller):
    """Serves the files that a browser loads."""

    path = "/"
    include_in_schema = False

    @get(PAGES)
    async def page(self, request: Request[Any, Any, Any]) -> Response[bytes]:
        """The panel's document, or how to build it."""
        return _panel_page(request)

    @get(_ICON)
    async def icon(self, request: Request[Any, Any, Any]) -> Response[bytes]:
        """The icon, whose name has no hash."""
        return _answer(request, _asset("icon.svg"), "public, max-age=86400")

    @get("/assets/{name:str}")
    async def asset(self, request: Request[Any, Any, Any], name: FromPath[str]) -> Response[bytes]:
        """A file whose name changes with its content."""
        return _answer(request, _asset(f"assets/{name}"), FOREVER)


def _panel_page(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Returns the panel's document, or how to build it."""
    if not (DIST / "index.html").is_file():
        text = _UNBUILT.format(folder=html.escape(str(DIST)))
        return Response(text.encode(), media_type="text/html", headers=_headers(NEVER))
    # Not cached in the process either: a new build of the panel is served without a restart.
    return _answer(request, _read(DIST / "index.html"), NEVER)


def answer_error(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
    """Returns the answer for any error: a problem document, or the panel if a browser asks for a page."""
    problem = problem_response(request, error)
    if problem.status_code != HTTPStatus.NOT_FOUND or not _is_page(request):
        return problem
    page = _panel_page(request)
    page.status_code = HTTPStatus.NOT_FOUND
    return page


def _is_page(request: Request[Any, Any, Any]) -> bool:
    if request.method != "GET" or request.url.path.startswith(SERVICE):
        return False
    try:
        return request.accept.best_match([JSON, HTML], default=JSON) == HTML
    except OverflowError:  # `q=inf`
        return False


def _answer(request: Request[Any, Any, Any], asset: _Asset, caching: str) -> Response[bytes]:
    headers = _headers(caching)
    if asset.compressed is None or "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(asset.plain, media_type=asset.media_type, headers=headers)
    return Response(asset.compressed, media_type=asset.media_type, headers={**headers, "Content-Encoding": "gzip"})


def _headers(caching: str) -> dict[str, str]:
    return {**_GUARDED, "Cache-Control": caching, "Vary": "Accept-Encoding"}


def _asset(name: str) -> _Asset:
    path = DIST / name
    if ".." in path.parts or not path.is_file():
        raise NotFoundException(detail=f"the panel has no file {name}")
    return _asset_of(path, path.stat().st_mtime_ns)


@cache
def _asset_of(path: Path, _changed: int) -> _Asset:
    return _read(path)


def _read(path: Path) -> _Asset:
    plain = path.read_bytes()
    media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    compressed = gzip.compress(plain, mtime=0) if len(plain) >= _LEAST_COMPRESSED else None
    return _Asset(media_type, plain, compressed)
