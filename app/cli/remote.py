"""Commands that ask a service elsewhere, by its client: `priors --url … history …`."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from app.errors import InvalidInput, PriorsError

if TYPE_CHECKING:
    from priors_client import Client

COMMANDS = ("history", "search")
"""The commands that can ask a service elsewhere."""


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
            with Client(self.url, key=key, workspace=workspace or os.environ.get("PRIORS_WORKSPACE", "")) as client:
                yield client
        except ClientError as error:
            raise PriorsError(str(error)) from error


def given(context: typer.Context, url: str, key: str) -> None:
    """Notes the service that the command is to ask, if a URL is given.

    Raises:
        InvalidInput: the command cannot ask one, or the URL is none.
    """
    if key and not url:
        raise InvalidInput("--key", "goes with --url")
    if not url:
        return
    if context.invoked_subcommand not in COMMANDS:
        raise InvalidInput("--url", f"is for {' and '.join(COMMANDS)}; other commands work on this machine's store")
    if not url.startswith(("http://", "https://")):
        raise InvalidInput("--url", f"{url} does not begin with http:// or https://")
    context.obj = Remote(url, key)


def remote(context: typer.Context) -> Remote | None:
    """Returns the service that a command is to ask; None if it works on this machine's store."""
    return context.find_object(Remote)
