"""The client of Priors: `Client` and `AsyncClient`, their errors, and memory backends over it and without it."""

from priors_client.async_backend import AsyncMemoryBackend, AsyncNotes, AsyncRemote
from priors_client.async_client import AsyncClient
from priors_client.backend import MemoryBackend, Remote
from priors_client.client import Client
from priors_client.entries import Entry, NotAccepted
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
from priors_client.in_memory import AsyncInMemory, InMemory

__all__ = [
    "AsyncClient",
    "AsyncInMemory",
    "AsyncMemoryBackend",
    "AsyncNotes",
    "AsyncRemote",
    "Client",
    "ConnectionFailed",
    "Entry",
    "InMemory",
    "InvalidRequest",
    "MemoryBackend",
    "NotAccepted",
    "NotFound",
    "PriorsError",
    "Problem",
    "ProblemError",
    "Refused",
    "Remote",
    "ServiceFailed",
    "Unauthorized",
    "UnreadableAnswer",
]
