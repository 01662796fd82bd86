"""The errors of the client.

PriorsError
├── ConnectionFailed     no answer came
├── UnreadableAnswer     the answer is not one of Priors; the URL may be that of another service
└── ProblemError         the service refused; `problem` is the document that says why
    ├── InvalidRequest   400, 405, 413: the request cannot be taken
    ├── Unauthorized     401, 403: the key is missing or wrong, or a person must do this
    ├── NotFound         404: there is no such thing in this workspace
    ├── Refused          422: it would not be worth or safe to keep; `problem.reason` says why
    └── ServiceFailed    408, 429, 5xx: later may help
"""

from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import Struct


class FieldError(Struct, frozen=True):
    """An error of one field."""

    field: str
    message: str


class Problem(Struct, frozen=True):
    """A problem document (RFC 9457)."""

    title: str = ""
    status: int = 0
    detail: str = ""
    instance: str = ""
    type: str = "about:blank"
    request_id: str = ""
    errors: tuple[FieldError, ...] = ()
    reason: str = ""
    findings: tuple[dict[str, Any], ...] = ()


class PriorsError(Exception):
    """The root of the tree: catch this to catch all that the client raises on purpose."""


class ConnectionFailed(PriorsError):
    """No answer came: the service cannot be reached, or took longer than the timeout."""


class UnreadableAnswer(PriorsError):
    """The answer is not one of Priors; the URL may be that of another service, or of a page before it."""


class ProblemError(PriorsError):
    """The service answered with an error."""

    def __init__(self, problem: Problem) -> None:
        said = problem.detail or problem.title or f"the service answered {problem.status}"
        unsaid = [f"{error.field}: {error.message}" for error in problem.errors if error.message not in said]
        super().__init__("; ".join([said, *unsaid]))
        self.problem = problem

    @property
    def status(self) -> int:
        """The status of the answer."""
        return self.problem.status


class InvalidRequest(ProblemError):
    """The request cannot be taken; `problem.errors` names the fields."""


class Unauthorized(ProblemError):
    """The key is missing or wrong, or a person must do this."""


class NotFound(ProblemError):
    """There is no such thing in this workspace."""


class Refused(ProblemError):
    """It would not be worth or safe to keep; `problem.reason` and `problem.findings` say why."""


class ServiceFailed(ProblemError):
    """The service, or a part that this needs, does not work; later may help."""


_KINDS: dict[int, type[ProblemError]] = {
    HTTPStatus.UNAUTHORIZED: Unauthorized,
    HTTPStatus.FORBIDDEN: Unauthorized,
    HTTPStatus.NOT_FOUND: NotFound,
    HTTPStatus.REQUEST_TIMEOUT: ServiceFailed,
    HTTPStatus.UNPROCESSABLE_ENTITY: Refused,
    HTTPStatus.TOO_MANY_REQUESTS: ServiceFailed,
}


def error_of(status: int, content: bytes) -> ProblemError:
    """Returns the error of an answer, also of one that comes from a proxy and has no problem document."""
    try:
        problem = msgspec.structs.replace(msgspec.json.decode(content, type=Problem), status=status)
    except (msgspec.DecodeError, UnicodeDecodeError):
        said = content[:200].decode(errors="replace")
        problem = Problem(status=status, detail=f"the service answered {status}: {said}")
    failed = ServiceFailed if status >= HTTPStatus.INTERNAL_SERVER_ERROR else InvalidRequest
    return _KINDS.get(status, failed)(problem)
