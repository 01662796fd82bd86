"""Every error as `application/problem+json` (RFC 9457), unhandled ones included."""

import re
from http import HTTPStatus
from typing import Any

import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.exceptions.http_exceptions import RequestEntityTooLarge
from litestar.openapi.datastructures import ResponseSpec
from msgspec import Struct

from app.api.arrival import BODY_BYTES
from app.errors import Forbidden, InvalidInput, NotFound, QuotaReached, Refused, StorageFull, Unavailable

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = "5"
AT = re.compile(r"^(?P<message>.*?)(?: - at `(?:key in )?\$?\.?(?P<field>.*?)`)?$", re.DOTALL)
"""The place of a value as msgspec writes it: ``Expected `str`, got `int` - at `$.body` ``."""

NAMES = {"workspace": "X-Workspace"}
"""The HTTP names of parameters that have another name in the code."""

logger = structlog.get_logger()


class FieldError(Struct, frozen=True):
    """An error of one field."""

    field: str
    message: str


class Problem(Struct, frozen=True, omit_defaults=True):
    """A problem document."""

    title: str
    status: int
    detail: str
    instance: str
    type: str = "about:blank"
    request_id: str = ""
    errors: tuple[FieldError, ...] = ()
    reason: str = ""
    """The short name of why something is not kept: `injection`, `echo`, `empty`, `boilerplate`, `stack_trace`, …"""
    findings: tuple[dict[str, Any], ...] = ()
    """The places that the reason points at, each with its rule and span where it has them."""


def _documented(status: int, meaning: str) -> dict[int, ResponseSpec]:
    return {
        status: ResponseSpec(
            Problem,
            media_type=MEDIA_TYPE,
            description=meaning,
            generate_examples=False,
        )
    }


UNEXPECTED = "something went wrong here; the log has it under this request_id"
"""The detail of an answer to a request that failed for a reason that nobody expected."""
PROBLEMS: dict[int, ResponseSpec] = {
    **_documented(400, "the request cannot be taken; `errors` names the fields"),
    **_documented(401, "the API key is missing or wrong"),
    **_documented(403, "a person must do this: in the panel, on the command line, or with the admin key; or no room"),
    **_documented(404, "there is no such thing in this workspace"),
    **_documented(405, "the route does not take this method"),
    **_documented(408, "the rest of the request did not come in time"),
    **_documented(413, "the body is too large"),
    **_documented(422, "it could be taken, but would not be worth or safe to keep; `reason` says why"),
    **_documented(
        429, "the key has used up its requests or bytes, or the workspace its jobs; `Retry-After` says for how long"
    ),
    **_documented(503, "the database, or a part that this needs, does not answer"),
    **_documented(507, "the disk of the database is full: nothing can be written"),
}


def problem_response(request: Request[Any, Any, Any], error: Exception) -> Response[Problem]:
    """Returns the answer for any error."""
    status, detail, errors = _described(error)
    headers = {}
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        headers = {"Retry-After": RETRY_AFTER_SECONDS} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
        reason = {"reason": detail} if isinstance(error, Unavailable) else {"exc_info": error}
        logger.error("request failed", path=request.url.path, **reason)
    if isinstance(error, QuotaReached) and error.passes:
        headers = {"Retry-After": RETRY_AFTER_SECONDS}
    if isinstance(error, HTTPException) and error.headers:
        headers |= dict(error.headers)
    problem = Problem(
        title=HTTPStatus(status).phrase,
        status=int(status),
        detail=detail,
        instance=request.url.path,
        request_id=str(structlog.contextvars.get_contextvars().get("request_id", "")),
        errors=errors,
        reason=error.reason if isinstance(error, Refused | QuotaReached) else "",
        findings=tuple(dict(item) for item in error.details) if isinstance(error, Refused | QuotaReached) else (),
    )
    return Response(problem, status_code=int(status), media_type=MEDIA_TYPE, headers=headers)


def field_error(text: str) -> FieldError:
    """Returns the field and the message of one of msgspec's validation errors."""
    match = AT.match(text)
    assert match is not None, "every part of the pattern is optional"  # noqa: S101
    return FieldError(field=match["field"] or "", message=match["message"])


def _described(error: Exception) -> tuple[int, str, tuple[FieldError, ...]]:
    match error:
        case InvalidInput():
            status = HTTPStatus.UNPROCESSABLE_ENTITY if isinstance(error, Refused) else HTTPStatus.BAD_REQUEST
            return status, str(error), (FieldError(field=error.field, message=error.message),)
        case NotFound() | Forbidden():
            return HTTPStatus.NOT_FOUND if isinstance(error, NotFound) else HTTPStatus.FORBIDDEN, str(error), ()
        case Unavailable():
            return _status_of(error), str(error), ()
        case UnicodeDecodeError() | RecursionError():
            return HTTPStatus.BAD_REQUEST, "the body is not UTF-8, or nested too deep", ()
        case HTTPException() if error.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
            return error.status_code, _told(error), _validation_errors(error)
    return HTTPStatus.INTERNAL_SERVER_ERROR, UNEXPECTED, ()


def _told(error: HTTPException) -> str:
    if isinstance(error, RequestEntityTooLarge):
        return f"the body is larger than {BODY_BYTES:,} bytes: send it in parts, or memories by POST /api/memories:bulk"
    return error.detail


def _status_of(error: Unavailable) -> HTTPStatus:
    """Returns the status of what is not there. Of a full workspace it is the caller's affair, and no fault here."""
    if isinstance(error, QuotaReached):
        return HTTPStatus.TOO_MANY_REQUESTS if error.passes else HTTPStatus.FORBIDDEN
    return HTTPStatus.INSUFFICIENT_STORAGE if isinstance(error, StorageFull) else HTTPStatus.SERVICE_UNAVAILABLE


def _validation_errors(error: HTTPException) -> tuple[FieldError, ...]:
    if not isinstance(error.extra, list):
        return ()
    return tuple(
        FieldError(field=NAMES.get(item.get("key", ""), str(item.get("key", ""))), message=str(item.get("message", "")))
        for item in error.extra
        if isinstance(item, dict)
    )
