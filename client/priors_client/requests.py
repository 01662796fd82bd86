"""Requests, answers, pages and the rules of retrying, which both clients share. Nothing here waits."""

import logging
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from http import HTTPStatus
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx
import msgspec
from msgspec import UNSET

from priors_client.errors import PriorsError, UnreadableAnswer, error_of

T = TypeVar("T")
logger = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
"""Seconds before the first retry, and at most; each pause is twice the last, of which a random half is taken off so
that clients that failed together do not come back together."""
BUSY = frozenset({HTTPStatus.TOO_MANY_REQUESTS})
"""Answers to a request that was not taken."""
PASSING = BUSY | {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
}
"""Answers after which the request may have been taken, and is worth another attempt if it may be repeated."""
UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
"""Errors before anything of a request was sent."""
CLOSED = (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)
"""Errors of a connection that the other side closed."""
PIECE_BYTES = 65_536
"""Bytes of a piece of a stream of lines."""


def log_note(answer: httpx.Response) -> None:
    """Logs what an answer says of the data that it leaves out."""
    if note := answer.headers.get("X-Priors-Note"):
        logger.warning("%s", note)


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """A request, and the type of its answer."""

    method: str
    path: str
    returns: Any
    """The type that the answer is read as: a `T`."""
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = UNSET
    repeatable: bool = False
    """True if sending it twice has the effect of sending it once."""
    headers: Mapping[str, str] = field(default_factory=dict)

    def content(self) -> bytes | None:
        """Returns the body as JSON."""
        return None if self.body is UNSET else msgspec.json.encode(self.body)

    def parameters(self) -> httpx.QueryParams | None:
        """Returns the query's parameters; a list gives several of one name."""
        given = {name: [_text(one) for one in _each(value)] for name, value in self.query.items()}
        return httpx.QueryParams({name: texts for name, texts in given.items() if texts}) if given else None

    def answer(self, response: httpx.Response, *, repeated: bool = False) -> T:
        """Reads an answer. What an earlier attempt may have deleted (`repeated`) is deleted if it is not there now.

        Raises:
            ProblemError: the answer is an error.
            UnreadableAnswer: it has another form than those of the route.
        """
        if (
            repeated
            and self.method == "DELETE"
            and self.returns is None
            and response.status_code == HTTPStatus.NOT_FOUND
        ):
            return None  # type: ignore[return-value]  # T is None
        if not response.is_success:
            raise error_of(response.status_code, response.content)
        if self.returns is None:
            return None  # type: ignore[return-value]  # T is None
        if self.returns is str:
            return response.text  # type: ignore[return-value]  # T is str
        answer: T = decoded(response.content, self.returns)
        return answer


@cache
def _decoder(kind: Any) -> "msgspec.json.Decoder[Any]":  # noqa: ANN401 - a type
    return msgspec.json.Decoder(kind)


def decoded(content: bytes, kind: Any) -> Any:  # noqa: ANN401 - a value of the type `kind`
    """Reads JSON as a value of this type.

    Raises:
        UnreadableAnswer: it is not JSON, or of another form.
    """
    try:
        return _decoder(kind).decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableAnswer(f"the answer is not one of Priors, check the URL: {error}") from error


def _each(value: object) -> Iterable[object]:
    if value is UNSET or value is None:
        return ()
    return value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, datetime) else str(value)


def header_value(name: str, value: str) -> str:
    """Returns the value of a header.

    Raises:
        PriorsError: no header can have it; the message does not show it, as it may be a key.
    """
    if not value.isprintable():
        raise PriorsError(f"the {name} has a line break or another control character, which no header can have")
    return value


def segment(value: object) -> str:
    """Returns a value as one segment of a path.

    Raises:
        PriorsError: a URL with such a segment is that of another route.
    """
    text = str(value)
    if text in {"", ".", ".."}:
        raise PriorsError(f"{text!r} cannot stand in a path")
    return quote(text, safe="")


def lines(items: Iterable[object]) -> Iterator[bytes]:
    """Yields JSON lines in pieces of about PIECE_BYTES."""
    piece = bytearray()
    for item in items:
        piece += msgspec.json.encode(item) + b"\n"
        if len(piece) >= PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    if piece:
        yield bytes(piece)


# Retries.


def pause_after(request: Request[Any], response: httpx.Response, attempt: int) -> float | None:
    """Returns the seconds before the next attempt; None if the answer stands."""
    if response.status_code not in (PASSING if request.repeatable else BUSY):
        return None
    asked = _retry_after(response.headers.get("retry-after", ""))
    return _pause(attempt) if asked is None else min(asked, LONGEST_PAUSE)


def pause_without_answer(request: Request[Any], error: httpx.TransportError, attempt: int) -> float | None:
    """Returns the seconds before the next attempt; None if the request may have been taken and must not be repeated."""
    return _pause(attempt) if request.repeatable or isinstance(error, UNSENT) else None


def _pause(attempt: int) -> float:
    return min(FIRST_PAUSE * 2.0**attempt, LONGEST_PAUSE) * random.uniform(0.5, 1)  # noqa: S311 - no secret


def _retry_after(value: str) -> float | None:
    """Reads a Retry-After header: seconds, or a date."""
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


# Pages: a function reads an answer, and returns its items and the parameters that ask for the next page.

Paging = Callable[[Request[Any], Any], tuple[Sequence[Any], Mapping[str, Any] | None]]


def by_cursor(items: str) -> Paging:
    """Pages that name the cursor of the next one."""

    def read(_request: Request[Any], page: Any) -> tuple[Sequence[Any], Mapping[str, Any] | None]:  # noqa: ANN401
        return getattr(page, items), {"cursor": page.next} if page.next else None

    return read


def by_last(name: str) -> Paging:
    """Pages that begin after an item's id, which is in the attribute `name`."""

    def read(_request: Request[Any], page: Any) -> tuple[Sequence[Any], Mapping[str, Any] | None]:  # noqa: ANN401
        return page, {"before": getattr(page[-1], name)} if page else None

    return read


def by_offset(request: Request[Any], page: Sequence[Any]) -> tuple[Sequence[Any], Mapping[str, Any] | None]:
    """Pages that begin after a number of items."""
    before = request.query.get("offset", UNSET)
    return page, {"offset": (0 if before is UNSET else before) + len(page)} if page else None


def following(request: Request[T], parameters: Mapping[str, Any]) -> Request[T]:
    """Returns the request of the next page."""
    return replace(request, query={**request.query, **parameters})
