"""The client of Priors: `Client` and `AsyncClient`, their errors, and the values in `priors_client.models`."""

from priors_client.async_client import AsyncClient
from priors_client.client import Client
from priors_client.errors import (
    ConnectionFailed,
    InvalidRequest,
    NotFound,
    PriorsError,
    Problem,
    ProblemError,
    Refused,
    ServiceFailed,
    Unauthorized,
    UnreadableAnswer,
)

__all__ = [
    "AsyncClient",
    "Client",
    "ConnectionFailed",
    "InvalidRequest",
    "NotFound",
    "PriorsError",
    "Problem",
    "ProblemError",
    "Refused",
    "ServiceFailed",
    "Unauthorized",
    "UnreadableAnswer",
]
