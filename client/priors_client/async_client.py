"""The asynchronous client. `client.py` is made from this file by `client/generate.py`."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
from msgspec import UNSET, UnsetType

from priors_client.async_operations import AsyncOperations
from priors_client.async_run import AsyncRun
from priors_client.errors import ConnectionFailed, ProblemError, error_of
from priors_client.models import NewMemory, StoredView
from priors_client.requests import (
    BUSY,
    CLOSED,
    UNSENT,
    Paging,
    Request,
    decoded,
    following,
    header_value,
    lines,
    log_note,
    pause_after,
    pause_without_answer,
)

T = TypeVar("T")

DEFAULT_URL = "http://127.0.0.1:8000"
TIMEOUT_SECONDS = 30.0
RETRIES = 3


class AsyncClient(AsyncOperations):
    """A client of one service and workspace, with a pool of connections. It may be shared by tasks."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        key: str = "",
        workspace: str = "",
        timeout: float | httpx.Timeout = TIMEOUT_SECONDS,
        retries: int = RETRIES,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`timeout` holds for each step of an attempt, in seconds; `retries` are the attempts after the first.

        Raises:
            PriorsError: the key or the workspace has a line break or another control character.
        """
        key, workspace = header_value("key", key), header_value("workspace", workspace)
        given = {"X-Workspace": workspace, "Authorization": f"Bearer {key}" if key else ""}
        headers = httpx.Headers({name: value for name, value in given.items() if value}, encoding="utf-8")
        self._http = httpx.AsyncClient(base_url=url, headers=headers, timeout=timeout, transport=transport)
        self._retries = retries

    async def __aenter__(self) -> Self:
        """Returns the client; the end of the block closes it."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the client."""
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    def run(
        self,
        task: str,
        *,
        agent: str = "",
        task_type: str = "",
        run_id: str = "",
        user: str = "",
        case: str = "",
        version: str = "",
    ) -> AsyncRun:
        """Returns a run for a block: `async with priors.run(task, agent="scout") as run`.

        With `case` and `version` it is a version of a case, and shown what earlier versions were marked down for.
        """
        return AsyncRun(
            self, task, agent=agent, task_type=task_type, run_id=run_id, user=user, case=case, version=version
        )

    async def store_many(
        self,
        memories: Iterable[NewMemory | Mapping[str, Any]],
        *,
        wait: bool | UnsetType = UNSET,
    ) -> StoredView:
        """Stores many memories, which are read and sent as a stream. A stream that broke off is not sent again.

        Raises:
            ProblemError: the service refused all of them. `rejected` of the answer names single ones.
            ConnectionFailed: no answer came; what was sent may have been stored.
        """
        request: Request[StoredView] = Request("POST", "/api/memories:bulk", StoredView, {"wait": wait})

        async def pieces() -> AsyncIterator[bytes]:
            for piece in lines(memories):
                yield piece

        kind = {"Content-Type": "application/x-ndjson"}
        try:
            response = await self._http.post(request.path, params=request.parameters(), content=pieces(), headers=kind)
        except httpx.TransportError as error:
            refused = await self._refusal(request) if isinstance(error, CLOSED) else None
            raise refused or ConnectionFailed(_said(self._http, error)) from error
        return request.answer(response)

    async def call(self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: Any = UNSET) -> str:  # noqa: ANN401 - any JSON
        """Returns the answer of any route as the text that it is; the other methods read it.

        Raises:
            ProblemError: the answer is an error.
            ConnectionFailed: no answer came.
        """
        return await self._send(Request(method, path, str, query or {}, body, repeatable=method == "GET"))

    async def _refusal(self, request: Request[Any]) -> ProblemError | None:
        """Asks with an empty stream why the service, or a proxy before it, took none: the answer was lost."""
        kind = {"Content-Type": "application/x-ndjson"}
        try:
            response = await self._http.post(request.path, params=request.parameters(), content=b"", headers=kind)
        except httpx.TransportError:
            return None
        return None if response.is_success else error_of(response.status_code, response.content)

    async def _send(self, request: Request[T]) -> T:
        content, parameters = request.content(), request.parameters()
        headers = dict(request.headers)
        if content is not None:
            headers["Content-Type"] = "application/json"
        attempt, repeated = 0, False
        while True:
            try:
                response = await self._http.request(
                    request.method, request.path, params=parameters, content=content, headers=headers
                )
            except httpx.TransportError as error:
                pause = pause_without_answer(request, error, attempt)
                if pause is None or attempt >= self._retries:
                    raise ConnectionFailed(_said(self._http, error)) from error
                repeated = repeated or not isinstance(error, UNSENT)
            else:
                pause = pause_after(request, response, attempt)
                if pause is None or attempt >= self._retries:
                    return request.answer(response, repeated=repeated)
                repeated = repeated or response.status_code not in BUSY
            await asyncio.sleep(pause)
            attempt += 1

    async def _each(self, request: Request[Any], paging: Paging) -> AsyncIterator[Any]:
        while True:
            items, parameters = paging(request, await self._send(request))
            for item in items:
                yield item
            if parameters is None:
                return
            request = following(request, parameters)

    async def _lines(self, request: Request[Any]) -> AsyncIterator[Any]:
        try:
            async with self._http.stream(request.method, request.path, params=request.parameters()) as response:
                if not response.is_success:
                    raise error_of(response.status_code, await response.aread())
                log_note(response)
                # httpx also ends a line at U+2028 and U+0085, which texts may have.
                rest = b""
                async for piece in response.aiter_bytes():
                    *whole, rest = (rest + piece).split(b"\n")
                    for line in whole:
                        yield decoded(line, Any)
                if rest:
                    yield decoded(rest, Any)
        except httpx.TransportError as error:
            raise ConnectionFailed(_said(self._http, error)) from error


def _said(http: httpx.AsyncClient, error: httpx.TransportError) -> str:
    return f"no answer came from {http.base_url}: {str(error) or type(error).__name__}"
