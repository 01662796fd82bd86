"""The application for one client in this process, and the services of the store."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from typing import Any, TypeVar

import httpx
from litestar.types import Receive, Scope, Send
from priors_client import Client

from app.errors import ConfigurationError
from app.foundation.db.migrations import current, state, upgrade
from app.interfaces.cli.places import check_store, settings_here, workspace_here
from app.interfaces.cli.running import Loop, configure_log, run_to_end
from app.interfaces.http.context import KEY, join_name
from app.interfaces.http.serving.application import create_app
from app.settings import Settings
from app.storage.tenants.keys import SCOPES, Key
from app.storage.tenants.workspace import Workspace
from app.wiring import Services, open_services

T = TypeVar("T")
_OWNER = Key(name="cli", scopes=frozenset(SCOPES), workspaces=None, personal=True)
"""The powers of a command in the process: whoever runs it can read the database anyway."""


class _Bridge(httpx.BaseTransport):
    """Answers the requests of a blocking client by an application on a loop."""

    def __init__(self, loop: Loop, services: Services) -> None:
        application: Any = create_app(services.settings, services=services)

        async def asked_by_owner(scope: Scope, receive: Receive, send: Send) -> None:
            request: Any = {**scope, KEY: _OWNER}
            join_name(request)
            await application(request, receive, send)

        self._loop, self._transport = loop, httpx.ASGITransport(asked_by_owner)  # type: ignore[arg-type]  # Litestar's types are stricter

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Returns the whole answer."""
        return self._loop.run(self._answer(request))

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        answer = await self._transport.handle_async_request(request)
        return httpx.Response(answer.status_code, headers=answer.headers, content=await answer.aread())


@contextmanager
def client_in_process(settings: Settings, workspace: str, *, makes_store: bool = False) -> Iterator[Client]:
    """Yields a client of the application in this process, on the store of the settings.

    Raises:
        PriorsError: a setting or the database; there is no store, and the command makes none.
    """
    if not makes_store:
        check_store(settings)
    configure_log(settings, quiet=True)
    with closing(Loop()) as loop:
        stack = AsyncExitStack()
        try:
            services = loop.run(stack.enter_async_context(_own_services(settings)))
            transport = _Bridge(loop, services)
            with Client(workspace=workspace, retries=0, transport=transport) as client:
                yield client
        finally:
            loop.run(stack.aclose())


def with_services(work: Callable[[Services], Awaitable[T]], *, makes_store: bool = False) -> T:
    """Runs `work` with the services of this environment, on a database that is migrated.

    Raises:
        PriorsError: a setting, the database or the work itself; there is no store, and the command makes none.
    """
    settings = settings_here()
    # Who names a service wants its store, and no second one made in silence.
    if not makes_store or settings.url:
        check_store(settings)
    configure_log(settings, quiet=True)

    async def open_and_work() -> T:
        async with _own_services(settings) as services:
            return await work(services)

    return run_to_end(open_and_work())


def in_workspace(
    name: str | None, work: Callable[[Services, Workspace], Awaitable[T]], *, makes_store: bool = False
) -> T:
    """Runs `work` as `with_services` does, in the workspace of this name, or else in that of this folder."""

    async def work_in_workspace(services: Services) -> T:
        return await work(services, await workspace_of(services, name or workspace_here()))

    return with_services(work_in_workspace, makes_store=makes_store)


@asynccontextmanager
async def _own_services(settings: Settings) -> AsyncIterator[Services]:
    """Yields services that embed by the model of the stored vectors, as the service does."""
    async with open_services(settings) as services:
        if not settings.database_url and await current(services.database) is None:
            await asyncio.to_thread(upgrade, services.database.admin_url)
        await check_migrated(services)
        await services.embedder.follow()
        yield services


async def workspace_of(services: Services, name: str | None = None) -> Workspace:
    """Returns the workspace of this name, or the configured default if the name is None.

    Raises:
        InvalidInput: a workspace may not have this name.
    """
    settings = services.settings
    return await services.workspaces.resolve(name or settings.workspace)


async def check_migrated(services: Services) -> None:
    """Raises ConfigurationError if the database does not have the schema of this version."""
    if mend := (await state(services.database)).mend:
        raise ConfigurationError(mend)
