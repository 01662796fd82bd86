"""The fields, cursors, inputs, views and problem documents (RFC 9457) that several routes share."""

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from http import HTTPStatus
from operator import getitem
from types import SimpleNamespace
from typing import Annotated, Any, TypeVar
from uuid import UUID

import litestar
import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException, SerializationException
from litestar.exceptions.http_exceptions import RequestEntityTooLarge
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import ParameterKwarg, QueryParameter
from litestar.typing import FieldDefinition
from litestar.utils.scope.state import ScopeState
from msgspec import UNSET, Meta, Struct, UnsetType, field
from msgspec.structs import replace

from app.errors import Forbidden, InvalidInput, NotFound, Refused, StorageFull, Unavailable, check
from app.foundation.text.data import UUID_EXAMPLE, FieldError, faults_of, faults_of_json, sentence_of
from app.intake.runs.feedback.store import Rating
from app.recall.retrieval.rank.presets import Weights
from app.recall.retrieval.recall import Hit, IssueState
from app.storage.memories.filters import as_real
from app.storage.memories.memory import Memory, StoredObservation
from app.storage.recalls.parts import ScoreParts, parts_of
from app.storage.recalls.store import Explanation
from app.storage.tenants.keys import READ
from app.storage.tenants.workspace import NAME_RULE

MEDIA_TYPE = "application/problem+json"
_RETRY_AFTER_SECONDS = "5"
_LIMITS = ("gt", "ge", "lt", "le", "min_length", "max_length")
"""The limits that a parameter may state."""

logger = structlog.get_logger()


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


BODY_BYTES = 64_000_000
"""The largest JSON body: a report of the largest size, escaped as badly as can be."""
UNEXPECTED = "something went wrong here; the log has it under this request_id"
"""The detail of an answer to a request that failed for a reason that nobody expected."""
_MEANINGS = {
    400: "the request cannot be taken; `errors` names the fields",
    401: "the API key is missing or wrong",
    403: "a person must do this: in the panel, on the command line, or with the admin key",
    404: "there is no such thing in this workspace",
    405: "the route does not take this method",
    413: "the body is too large",
    422: "it could be taken, but would not be worth or safe to keep; `reason` says why",
    429: "the key has used up its requests; `Retry-After` says for how long",
    503: "the database, or a part that this needs, does not answer",
    507: "the disk of the database is full: nothing can be written",
}
PROBLEMS = {
    status: ResponseSpec(Problem, media_type=MEDIA_TYPE, description=meaning, generate_examples=False)
    for status, meaning in _MEANINGS.items()
}
"""The answers of requests that are refused or fail, by their status."""


get = partial(litestar.get, responses=PROBLEMS)
put = partial(litestar.put, responses=PROBLEMS)
patch = partial(litestar.patch, responses=PROBLEMS)
post = partial(litestar.post, status_code=200, responses=PROBLEMS)
delete = partial(litestar.delete, status_code=200, responses=PROBLEMS)
ask = partial(post, opt={"scope": READ})
"""The decorators of routes: each describes the problems, and what is done is answered with 200. What is asked by `ask`
changes no memory."""


def problem_response(request: Request[Any, Any, Any], error: Exception) -> Response[Problem]:
    """Returns the answer for any error."""
    status, detail, errors = _describe(error, request)
    headers = {}
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        headers = {"Retry-After": _RETRY_AFTER_SECONDS} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
        reason = {"reason": detail} if isinstance(error, Unavailable) else {"exc_info": error}
        logger.error("request failed", path=request.url.path, **reason)
    if isinstance(error, HTTPException) and error.headers:
        headers |= dict(error.headers)
    problem = Problem(
        title=HTTPStatus(status).phrase,
        status=int(status),
        detail=detail,
        instance=request.url.path,
        request_id=str(structlog.contextvars.get_contextvars().get("request_id", "")),
        errors=errors,
        reason=error.reason if isinstance(error, Refused) else "",
        findings=tuple(dict(item) for item in error.details) if isinstance(error, Refused) else (),
    )
    return Response(problem, status_code=int(status), media_type=MEDIA_TYPE, headers=headers)


def _describe(error: Exception, request: Request[Any, Any, Any]) -> tuple[int, str, tuple[FieldError, ...]]:
    match error:
        case InvalidInput():
            status = HTTPStatus.UNPROCESSABLE_ENTITY if isinstance(error, Refused) else HTTPStatus.BAD_REQUEST
            return status, str(error), (FieldError(field=error.field, message=error.message),)
        case NotFound() | Forbidden():
            return HTTPStatus.NOT_FOUND if isinstance(error, NotFound) else HTTPStatus.FORBIDDEN, str(error), ()
        case Unavailable():
            full = isinstance(error, StorageFull)
            status = HTTPStatus.INSUFFICIENT_STORAGE if full else HTTPStatus.SERVICE_UNAVAILABLE
            return status, str(error), ()
        case UnicodeDecodeError() | RecursionError():
            return HTTPStatus.BAD_REQUEST, "the body is not UTF-8, or nested too deep", ()
        case HTTPException() if error.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
            errors = _validation_errors(error, request)
            return error.status_code, sentence_of(errors) or _public(error, request), errors
    return HTTPStatus.INTERNAL_SERVER_ERROR, UNEXPECTED, ()


def _largest_body(request: Request[Any, Any, Any]) -> int:
    """Returns the bytes that the body of a request to its route may have."""
    handler = request.scope.get("route_handler")
    largest = handler.resolve_request_max_body_size() if isinstance(handler, HTTPRouteHandler) else None
    return largest or BODY_BYTES


def _public(error: HTTPException, request: Request[Any, Any, Any]) -> str:
    if isinstance(error, RequestEntityTooLarge):
        most = f"the body is larger than {_largest_body(request):,} bytes"
        return f"{most}: send it in parts, or memories by POST /api/memories:bulk"
    asked = f"{request.method} {request.url.path}"
    if error.status_code == HTTPStatus.NOT_FOUND and error.detail == HTTPStatus.NOT_FOUND.phrase:
        return f"there is no route {asked}, or the id in it is not one such as {UUID_EXAMPLE}"
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return f"there is a route {request.url.path}, but none for {request.method}"
    if isinstance(error.__cause__, SerializationException):
        return f"the body cannot be read as JSON: {error.detail}"
    return error.detail


def _validation_errors(error: HTTPException, request: Request[Any, Any, Any]) -> tuple[FieldError, ...]:
    """Returns all faults of a request: those of its body, and those of its parameters."""
    given = [item for item in error.extra if isinstance(item, dict)] if isinstance(error.extra, list) else []
    of_body = [item for item in given if item.get("source") == "body"]
    found = [_of_parameter(item, request) for item in given if item not in of_body]
    if of_body:
        found += _body_faults(request, of_body)
    return tuple(found)


def _of_parameter(item: dict[str, Any], request: Request[Any, Any, Any]) -> FieldError:
    key, message = str(item.get("key", "")), str(item.get("message", ""))
    if key == "workspace":
        return FieldError("X-Workspace", NAME_RULE)
    known = _parameters(request.route_handler).get(key)
    if known is None or not isinstance(known.kwarg_definition, ParameterKwarg):
        return FieldError(key, message)
    name = known.kwarg_definition.name or key
    values = request.query_params.getall(name, [])
    if not values:
        return FieldError(name, message)
    limits = {limit: getattr(known.kwarg_definition, limit) for limit in _LIMITS}
    meta = Meta(**{limit: most for limit, most in limits.items() if most is not None})
    # A limit can only be set on a type without None, and no given value is None.
    given_types = [one.annotation for one in known.inner_types if not one.is_none_type] if known.is_optional else []
    kind = getitem(Annotated, ((given_types or [known.annotation])[0], meta))
    given = values if known.is_non_string_sequence else values[-1]
    return FieldError(name, faults_of(given, kind, message, strict=False)[0].message)


@cache
def _parameters(handler: HTTPRouteHandler) -> Mapping[str, FieldDefinition]:
    """Returns the parameters of a route and of what it depends on, by their names in Python."""
    depends = (provider.parsed_fn_signature for provider in handler.resolve_dependencies().values())
    signatures = (*depends, handler.parsed_fn_signature)
    return {name: item for signature in signatures for name, item in signature.parameters.items()}


def check_query(given: Iterable[str], handler: HTTPRouteHandler) -> None:
    """Checks that a route takes these query parameters: a filter that is misspelt must not answer with everything.

    Raises:
        InvalidInput: it does not take one of them.
    """
    kwargs = ((name, item.kwarg_definition) for name, item in _parameters(handler).items())
    taken = sorted({kwarg.name or name for name, kwarg in kwargs if isinstance(kwarg, QueryParameter)})
    unknown = [name for name in given if name not in taken]
    listed = f"it takes {', '.join(taken)}" if taken else "it takes none"
    check([f"{name}: is no query parameter of this route; {listed}" for name in dict.fromkeys(unknown)])


def _body_faults(request: Request[Any, Any, Any], given: list[dict[str, Any]]) -> list[FieldError]:
    """Returns the faults of the body; those that were found first where it cannot be read again."""
    first = [FieldError(str(item.get("key", "")), str(item.get("message", ""))) for item in given]
    data, body = request.route_handler.parsed_data_field, ScopeState.from_scope(request.scope).body
    if body == b"":
        return [FieldError("", "the body is empty; the route takes JSON")]
    if data is None or not isinstance(body, bytes):
        return first
    return list(faults_of_json(body, data.annotation, first[0].message))


T = TypeVar("T")
P = TypeVar("P")
N = TypeVar("N")

_SORT_RANGE = (-10.0, 20.0)
"""The range of scores and qualities, and of the values that stand for missing ones."""


def convert(value: object, kind: type[T], **given: object) -> T:
    """Returns a `kind` with the attributes of `value`, at any depth; a `given` attribute replaces its own."""
    if given:
        names: Iterable[str] = getattr(kind, "__struct_fields__", ()) or getattr(kind, "__dataclass_fields__", ())
        shared = {name: getattr(value, name) for name in names if name not in given and hasattr(value, name)}
        value = SimpleNamespace(**shared, **given)
    return msgspec.convert(value, kind, from_attributes=True)


class Input(Struct, forbid_unknown_fields=True):
    """A part of a request's body: a field that is misspelt must not be left out in silence."""


class DegradedView(Struct, frozen=True):
    """An arm that did not serve in full, and why."""

    arm: str
    reason: str


class SourceView(Struct, frozen=True):
    """The source of a memory."""

    source_id: UUID = field(name="id")
    source_kind: str = field(name="kind")
    source_uri: str = field(name="uri")
    source_title: str = field(name="title")


class _MemoryFields(Struct, frozen=True):
    memory_id: UUID = field(name="id")
    kind: str
    title: str
    body: str
    source: SourceView | None
    ordinal: int | None
    occurred_at: datetime | None
    tags: Sequence[str]
    metadata: dict[str, Any]
    final_score: float | None
    quality: int
    created_at: datetime
    suspect: bool
    user: str
    """The user whom it belongs to; "" for nobody."""
    accessed_at: datetime | None
    access_count: int


class MemoryView(_MemoryFields, frozen=True):
    """A stored memory."""

    language: str
    run_id: str | None
    tokens: int
    uses: int
    valid_until: datetime | None
    retired_as: str | None
    findings: Sequence[dict[str, Any]] | None
    observation: StoredObservation | None


class ListedMemory(MemoryView, frozen=True):
    """A stored memory in a list."""

    reason: Annotated[str, Meta(description="with `state=prune`: what speaks against it")] | UnsetType = UNSET
    ratings: (
        Annotated[Sequence[Rating], Meta(description="with `state=prune`: its ratings that stand, the latest first")]
        | UnsetType
    ) = UNSET


class HitView(_MemoryFields, frozen=True):
    """A memory that was found, with every component of its score."""

    score: float
    explain: Explanation
    parts: ScoreParts
    """The score is the sum of these."""
    issues: Sequence[IssueState]
    """The issues that it states, and whose present state it does not say."""
    around: Sequence[MemoryView] | UnsetType = UNSET
    """The memories before and after it in its source, where they were asked for."""


def memory_view(memory: Memory) -> MemoryView:
    """Returns the view of a stored memory."""
    return convert(memory, MemoryView, source=_source_of(memory))


def listed_memory(memory: Memory, **given: object) -> ListedMemory:
    """Returns the view of a memory in a list, with the further attributes that are `given`."""
    return convert(memory, ListedMemory, source=_source_of(memory), **given)


def hit_view(hit: Hit, weights: Weights | None, around: Sequence[Memory] | None = None) -> HitView:
    """Returns the view of a hit, with the memories around it where they were asked for."""
    parts = parts_of(hit.score, hit.explain, None if weights is None else weights.quality)
    given = {"score": hit.score, "explain": hit.explanation, "parts": parts, "issues": hit.issues}
    view = convert(hit.memory, HitView, source=_source_of(hit.memory), **given)
    return view if around is None else replace(view, around=[memory_view(memory) for memory in around])


def _source_of(memory: Memory) -> Memory | None:
    """Returns the memory itself, whose attributes describe its source; None if it has no source."""
    return None if memory.source_id is None else memory


def cursor_of(place: datetime | float, identity: UUID | str) -> str:
    """Returns the cursor for the page after an item; `place` is the item's value in the order of the page."""
    shown = place.isoformat() if isinstance(place, datetime) else repr(float(place))
    return base64.urlsafe_b64encode(f"{shown} {identity}".encode()).decode()


def place_of(cursor: str | None, value: Callable[[str], P], identity: Callable[[str], N]) -> tuple[P, N] | None:
    """Returns the value and the identity of the last item of the page before; None for the first page.

    `value` and `identity` read them; they raise ValueError for a text that they cannot read.

    Raises:
        InvalidInput: it is not a cursor of this service, or belongs to another order.
    """
    if cursor is None:
        return None
    try:
        shown, _, named = base64.urlsafe_b64decode(cursor.encode()).decode().partition(" ")
        if "\0" not in named:
            return value(shown), identity(named)
    except ValueError:
        pass
    raise InvalidInput("cursor", "is not one that a page gave; leave it out for the first page")


def sort_value(text: str) -> float:
    """Returns the score or quality in a cursor.

    Raises:
        ValueError: no memory has it.
    """
    value = float(text)
    if not _SORT_RANGE[0] <= value <= _SORT_RANGE[1]:
        raise ValueError(text)
    return as_real(value)
