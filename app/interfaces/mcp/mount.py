"""`/mcp`: streamable HTTP without sessions, so that any process may answer any request."""

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from litestar import Request, asgi
from litestar.datastructures import State
from litestar.exceptions import HTTPException, MethodNotAllowedException
from litestar.exceptions.http_exceptions import RequestEntityTooLarge
from litestar.handlers import ASGIRouteHandler
from litestar.types import Receive, Scope, Send

from app.interfaces.http.context import Call, key_of

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.requests import Request as StarletteRequest

_PATH = "/mcp"
JSON = "application/json"


class AgentMount:
    """The MCP server below `_PATH` of an application, whose state has the services."""

    def __init__(self, state: State, *, body_bytes: int) -> None:
        self._state, self._body_bytes = state, body_bytes
        self._sessions: StreamableHTTPSessionManager | None = None
        self._open = asyncio.Event()

    def route(self) -> ASGIRouteHandler:
        """Returns the route to mount."""

        @asgi(_PATH, copy_scope=True, opt={"scope": ""})
        async def mcp(scope: Scope, receive: Receive, send: Send) -> None:
            await self._answer(scope, receive, send)

        return mcp

    async def run(self) -> None:
        """Takes requests until it is cancelled."""
        sessions = await asyncio.to_thread(self._make_manager)
        async with sessions.run():
            self._sessions = sessions
            self._open.set()
            await asyncio.Event().wait()

    def _make_manager(self) -> "StreamableHTTPSessionManager":
        # The SDK takes 0.85 s of a core and 30 MB; the service answers other requests meanwhile.
        from app.interfaces.mcp.server import manager_for  # noqa: PLC0415

        return manager_for(self._call, body_bytes=self._body_bytes)

    def _call(self, request: "StarletteRequest | None") -> Call:
        assert request is not None, "every message comes with a request"  # noqa: S101
        key = key_of(cast("Scope", request.scope))
        return Call(self._state, request.headers.get("x-workspace"), key, user="", shared=True)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request[Any, Any, Any](scope, receive)
        if request.method != "POST":
            raise MethodNotAllowedException(
                detail="this server keeps no sessions and no streams: POST is its only method",
                headers={"Allow": "POST"},
            )
        if not request.headers.get("content-type", "").startswith(JSON):
            raise HTTPException(status_code=HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail=f"the body must be {JSON}")
        body = await self._body(receive)
        await self._open.wait()
        assert self._sessions is not None, "it is open"  # noqa: S101
        await self._sessions.handle_request(scope, _replay(body, receive), send)  # type: ignore[arg-type]  # as ASGI has it

    async def _body(self, receive: Receive) -> bytes:
        """Returns the body, so that one that breaks off or is too large gets the answer that it gets elsewhere."""
        parts, size, more = list[bytes](), 0, True
        while more:
            message: Any = await receive()
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            more = message.get("more_body", False)
            if size > self._body_bytes:
                raise RequestEntityTooLarge
        return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Returns a channel that gives the body, and then what the connection gives."""
    given = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def replay() -> Any:  # noqa: ANN401 - a message of any type
        return next(given, None) or await receive()

    return replay
