"""How a command gets its services, beside a running service or alone."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from app.wiring import Services

T = TypeVar("T")
TERMINATED = 128 + signal.SIGTERM


def run_until_told(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, which a SIGTERM ends as cleanly as Ctrl-C does: what was opened is closed."""

    async def cancellable() -> T:
        task = asyncio.current_task()
        if task is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await work

    with asyncio.Runner(loop_factory=_fastest_loop()) as runner:
        try:
            return runner.run(cancellable())
        except asyncio.CancelledError:
            raise SystemExit(TERMINATED) from None


def _fastest_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - heavy, and not for every system
    except ImportError:
        return None
    return uvloop.new_event_loop


def with_services(work: "Callable[[Services], Awaitable[T]]") -> T:
    """Run `work` with the services of this environment, on a database that is migrated.

    Raises:
        PriorsError: a setting, the database or the work itself.
    """
    from app.cli import logs  # noqa: PLC0415 - heavy
    from app.settings import from_environment  # noqa: PLC0415 - heavy

    settings = from_environment()
    logs.configure(settings, quiet=True)

    async def opened() -> T:
        from app.db.migrations import current, lacking, upgrade  # noqa: PLC0415 - heavy
        from app.errors import ConfigurationError  # noqa: PLC0415 - heavy
        from app.wiring import open_services  # noqa: PLC0415 - heavy

        async with open_services(settings) as services:
            revision = await current(services.database)
            if revision is None and not settings.database_url:
                await asyncio.to_thread(upgrade, services.database.url)
            elif mend := lacking(revision):
                raise ConfigurationError(mend)
            return await work(services)

    return run_until_told(opened())
