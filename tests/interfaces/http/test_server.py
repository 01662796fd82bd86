"""The server in its process."""

import asyncio
import gc
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.errors import DatabaseUnavailable, StorageFull
from app.interfaces.http.context import ApplicationContext, Metrics
from app.interfaces.http.serving import application, server
from app.interfaces.http.serving.application import load_model
from app.interfaces.http.serving.server import bound_socket, serve, watch_database
from app.wiring import Services
from tests.conftest import serving
from tests.fakes.providers import Lent


async def test_what_existed_when_a_server_began_is_collected_after_its_end(services: Services) -> None:
    async with serving(services):
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


async def test_nothing_runs_on_beside_a_server_that_fails(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    services = replace(services, settings=replace(services.settings, embedded_worker=False, port=0))
    began, ended = asyncio.Event(), asyncio.Event()

    async def helper(_: Services) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def failing(_server: object, sockets: object) -> None:  # noqa: ARG001 - uvicorn names it
        await began.wait()
        raise OSError("the port is gone")

    monkeypatch.setattr(server, "watch_database", helper)
    monkeypatch.setattr(server._Server, "serve", failing)
    before, stop = asyncio.all_tasks(), asyncio.Event()
    with bound_socket(services.settings) as listening, pytest.raises(OSError, match="the port is gone"):
        await serve(services, listening, stop=stop)
    assert ended.is_set()
    assert stop.is_set()
    assert asyncio.all_tasks() <= before


async def test_a_database_that_dies_after_its_disk_was_full_starts_again(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "WATCH_SECONDS", 0)
    errors, revived = iter([StorageFull("read-only"), DatabaseUnavailable("it is away")]), asyncio.Event()

    async def check() -> None:
        if (error := next(errors, None)) is not None:
            raise error

    async def revive() -> None:
        revived.set()

    database = cast("Any", SimpleNamespace(check=check, pool=SimpleNamespace(trouble="it was away")))
    watching = asyncio.create_task(watch_database(replace(services, database=database, revive=revive)))
    await asyncio.wait_for(revived.wait(), 30)
    watching.cancel()
    assert next(errors, None) is None


class Closed(Lent):
    """Fails once as a client does that a change of the store's model has closed."""

    starts = 0

    async def start(self) -> None:
        self.starts += 1
        if self.starts == 1:
            raise RuntimeError("the client has been closed")


async def test_a_service_becomes_ready_after_any_failure_of_its_model(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application, "RETRY_SECONDS", 0)
    provider = Closed(services.provider)
    context = ApplicationContext(services=replace(services, provider=provider), metrics=Metrics())
    await load_model(context)
    assert context.model_loaded
    assert provider.starts == 2
