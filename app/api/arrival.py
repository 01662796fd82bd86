"""The arrival of a request: one that stops in the middle ends, whether its client went away or only keeps silent."""

import asyncio
from http import HTTPStatus
from typing import Any

from litestar.exceptions import ClientException, HTTPException
from litestar.types import HTTPReceiveMessage, Receive
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

BODY_BYTES = 64_000_000
"""The largest JSON body: a report of the largest size, escaped as badly as can be."""
CLOSED = 499
"""The status that logs and metrics note where a client went away before its answer; nobody receives it."""


class Late(HTTPException):
    """The rest of a request did not come in time."""

    status_code = HTTPStatus.REQUEST_TIMEOUT


class Gone(ClientException):
    """The client went away before it had sent its whole request."""


class Arrival:
    """Receives the body of one request, each piece within some seconds. Without a body there is nothing to wait for."""

    def __init__(self, receive: Receive, *, has_body: bool, seconds: float) -> None:
        self._receive, self._seconds = receive, seconds
        self._complete = not has_body
        self.broken_off = False
        """True where the client went away in the middle of the body."""

    async def receive(self) -> HTTPReceiveMessage:
        """Returns the next piece; once the body is complete it waits for the end of the connection, however long.

        Raises:
            Late: no piece came in time.
            Gone: the client went away in the middle of the body.
        """
        if self._complete:
            return await self._receive()  # type: ignore[return-value]  # an HTTP request gets no other messages
        message: Any = await self._next()
        if message["type"] == "http.disconnect":
            self.broken_off = True
            raise Gone(detail="the client went away before it had sent its whole request")
        self._complete = not message.get("more_body", False)
        return message  # type: ignore[no-any-return]  # the same

    async def _next(self) -> Any:  # noqa: ANN401 - a message of any type
        try:
            async with asyncio.timeout(self._seconds):
                return await self._receive()
        except TimeoutError:
            raise Late(
                detail=f"the rest of the request did not come within {self._seconds:g} s; send it again",
                headers={"Connection": "close"},
            ) from None


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which would wait for ever for the rest of a request's head."""

    read_timeout = 30.0
    """Seconds that the head of a request may take."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Expect the first head."""
        super().connection_made(transport)
        self._head_timer: asyncio.TimerHandle | None = None
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        """Take more of a request; the time for a head begins with its first byte, or with the connection."""
        if self._head_timer is None and (self.cycle is None or self.cycle.response_complete):
            self._expect_head()
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """Wait no longer: from here on the application receives."""
        self._stop()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        self._head_timer = self.loop.call_later(self.read_timeout, self.timeout_keep_alive_handler)

    def _stop(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def protocol_with(read_timeout: float) -> type[PatientProtocol]:
    """Returns the protocol whose heads may take so many seconds."""
    return type("PatientProtocol", (PatientProtocol,), {"read_timeout": read_timeout})
