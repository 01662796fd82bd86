"""Commands that ask a service elsewhere, by its client: `priors --url … history …`.

A command gives `answered` two ways to its answer, and prints either in the same way: the views of an answer over HTTP
have the attributes of the rooms' values.
"""

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from app.cli.running import ELSEWHERE, in_workspace
from app.errors import InvalidInput, PriorsError

if TYPE_CHECKING:
    from priors_client import Client

    from app.wiring import Services
    from app.workspaces.workspace import Workspace

T = TypeVar("T")

PATIENCE_SECONDS = 600.0
"""Longest silence of a service: `cues tend` asks a language model up to 20 times before it answers."""
COMMANDS = ("activate", "context", "cue", "cues", "history", "search", "session", "why")
"""The commands and groups that can ask a service elsewhere."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A service elsewhere."""

    url: str
    key: str

    @contextmanager
    def client(self, workspace: str | None) -> Iterator["Client"]:
        """Yields a client in this workspace, or else in that of PRIORS_WORKSPACE, or else in the service's default.

        Raises:
            PriorsError: the service cannot be reached, or refuses.
        """
        from priors_client import Client  # noqa: PLC0415 - httpx: see `app.cli`
        from priors_client import PriorsError as ClientError  # noqa: PLC0415 - the same

        key = self.key or os.environ.get("PRIORS_API_KEY", "")
        try:
            named = workspace or os.environ.get("PRIORS_WORKSPACE", "")
            with Client(self.url, key=key, workspace=named, timeout=PATIENCE_SECONDS) as client:
                yield client
        except ClientError as error:
            raise PriorsError(str(error)) from error


def given(command: str, url: str, key: str) -> None:
    """Notes the service that a command is to ask, if a URL is given.

    Raises:
        InvalidInput: the command cannot ask one, or the URL is none.
    """
    ELSEWHERE.set(None)
    if key and not url:
        raise InvalidInput("--key", "goes with --url")
    if not url:
        return
    if command not in COMMANDS:
        raise InvalidInput("--url", f"is for {', '.join(COMMANDS)}; other commands work on this machine's store")
    if not url.startswith(("http://", "https://")):
        raise InvalidInput("--url", f"{url} does not begin with http:// or https://")
    ELSEWHERE.set(Remote(url, key))


def answered(
    workspace: str | None,
    here: "Callable[[Services, Workspace], Awaitable[T]]",
    there: "Callable[[Client], T]",
) -> T:
    """Returns what a command prints: `there` from the service elsewhere, if one is given, and else `here`."""
    service = ELSEWHERE.get()
    if service is None:
        return in_workspace(workspace, here)
    with service.client(workspace) as client:
        return there(client)


def viewed(answer: object, view: object) -> T:  # type: ignore[type-var]  # the room's value, for which the view stands
    """Returns a client's answer as a view, which stands for the room's value: it has the same attributes.

    Raises:
        PriorsError: the service is of another version, which answers otherwise.
    """
    import msgspec  # noqa: PLC0415 - see `app.cli`

    try:
        found: T = msgspec.convert(msgspec.to_builtins(answer), view, strict=False)
    except msgspec.ValidationError as error:
        raise PriorsError(f"the service is of a version that this command does not know: {error}") from error
    return found
