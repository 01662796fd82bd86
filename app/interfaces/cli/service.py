"""The service that a command asks: over HTTP where one runs, else the application in this process."""

import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Annotated

import httpx
import typer
from priors_client import Client, ProblemError, Unauthorized
from priors_client import PriorsError as ClientError

from app.errors import ConfigurationError, PriorsError
from app.interfaces.cli.folder import recorded_url
from app.interfaces.cli.options import WorkspaceOption
from app.settings import LOOPBACK, Settings, from_environment

_PATIENCE_SECONDS = 600.0
"""Longest silence of a service: `cue review` asks a language model up to 20 times before it answers."""
HEALTH_SECONDS = 2.0
"""Longest wait for a service that the data directory's record names; after it, the command does without."""
_RETRIES = 3
NO_KEY, FAILED = 401, 500
_CONNECT_SECONDS = 10.0
"""Longest wait for a connection to a service."""
WORDS = {"`X-Workspace`": "`--workspace`", "X-Workspace": "--workspace"}
"""The words of the service for what the command line calls otherwise."""
_OPTIONS = {
    "k": "-k",
    "min_probability": "--min-probability",
    "half_life_days": "--half-life",
    "min_score": "--min-score",
    "preset": "--preset",
    "language": "--language",
    "consequence": "--consequence",
    "kind": "--kind",
    "state": "--state",
    "format": "--format",
    "limit": "--limit",
    "run_id": "--run-id",
    "files": "--file",
    "budget_tokens": "--budget",
    "budget.total": "--budget",
    "budget.reserve_ratio": "--reserve",
    "budget.allocation": "--allocation",
    "filters.kinds": "--kind",
    "filters.source": "--source",
    "filters.tags": "--tag",
}
"""The options whose values the service checks, by its names for them. Other fields are of arguments, or of a file."""
_INDEX = re.compile(r"\[\d+\]$")

UrlOption = Annotated[
    str,
    typer.Option("--url", help="The service; default PRIORS_URL, else the one that runs on the data directory."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOptions:
    """The options that name the service."""

    url: UrlOption = ""
    key: Annotated[str, typer.Option("--key", help="Its API key; default PRIORS_API_KEY.")] = ""

    @contextmanager
    def connect(self, workspace: str = "", *, owner: bool = False) -> Iterator[Client]:
        """Yields a client of the service, in a workspace or its default.

        For the `owner` of the store it works in this process unless a URL is given: no service asks for a key then.

        Raises:
            PriorsError: there is no store, or the service cannot be reached, or it refuses.
        """
        settings = from_environment()
        url = self.url or settings.url or ("" if owner else running_url(settings))
        key = self.key or settings.api_key
        if self.key and not url:
            raise ConfigurationError("--key is for a service, and none runs here: name it by --url, or leave --key out")
        try:
            if url:
                with client_of(url, key, workspace, _PATIENCE_SECONDS) as client:
                    yield client
            else:
                # Litestar and SQLAlchemy: see `app.interfaces.cli`.
                from app.interfaces.cli.local import client_in_process  # noqa: PLC0415

                with client_in_process(settings, workspace) as client:
                    yield client
        except ProblemError as error:
            raise PriorsError(_reason(error, url, key)) from error
        except ClientError as error:
            raise PriorsError(str(error)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceOptions(ServiceOptions):
    """The options that name the service and the workspace."""

    workspace: WorkspaceOption = None

    def client(self, *, owner: bool = False) -> AbstractContextManager[Client]:
        """Returns a client of the service in this workspace, as `connected` does."""
        return self.connect(self.workspace or os.environ.get("PRIORS_WORKSPACE", ""), owner=owner)


def client_of(url: str, key: str, workspace: str, seconds: float, *, retries: int = _RETRIES) -> Client:
    """Returns a client of the service at a URL.

    Raises:
        ConfigurationError: it is no URL, or its proxy cannot be used.
    """
    if not url.startswith(("http://", "https://")):
        raise ConfigurationError(f"{url} does not begin with http:// or https://")
    timeout = httpx.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS))
    try:
        # A client with a transport of its own reads no proxy from the environment.
        transport = httpx.HTTPTransport() if httpx.URL(url).host in LOOPBACK else None
        address = url.rstrip("/")
        return Client(address, key=key, workspace=workspace, timeout=timeout, retries=retries, transport=transport)
    except (httpx.InvalidURL, ImportError, ValueError) as error:
        raise ConfigurationError(f"{url}: {error}") from error


def running_url(settings: Settings) -> str:
    """Returns the URL of the service on the data directory, if it answers; else ""."""
    url = recorded_url(settings)
    if not url:
        return ""
    try:
        with client_of(url, "", "", HEALTH_SECONDS, retries=0) as client:
            return url if client.admin.health().status == "ok" else ""
    except (ClientError, ConfigurationError):
        return ""


def _reason(error: ProblemError, url: str, key: str) -> str:
    """Returns why the service refuses, in words of the command line."""
    if isinstance(error, Unauthorized) and error.status == NO_KEY:
        refused = "refuses this API key: it is wrong, revoked or expired" if key else "asks for an API key"
        return f"the service at {url} {refused}; set PRIORS_API_KEY, or give --key"
    named = ((_OPTIONS.get(_INDEX.sub("", item.field), item.field), item.message) for item in error.problem.errors)
    fields = "; ".join(f"{name}: {message}" if name else message for name, message in named)
    reason = fields or error.problem.detail or error.problem.title
    if not fields and error.status >= FAILED and error.problem.request_id:
        reason = f"{reason} ({error.problem.request_id})"
    for word, option in WORDS.items():
        reason = reason.replace(word, option)
    return reason
