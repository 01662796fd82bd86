"""How a command gets its services, beside a running service or alone."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from app.wiring import Services

T = TypeVar("T")


def with_services(work: "Callable[[Services], Awaitable[T]]") -> T:
    """Run `work` with the services of this environment, on a database that is migrated.

    Raises:
        PriorsError: a setting, the database or the work itself.
    """
    from app import logs  # noqa: PLC0415 - heavy
    from app.settings import from_environment  # noqa: PLC0415 - heavy

    settings = from_environment()
    logs.configure(settings, quiet=True)

    async def opened() -> T:
        from app.db.migrations import current, head, upgrade  # noqa: PLC0415 - heavy
        from app.errors import ConfigurationError  # noqa: PLC0415 - heavy
        from app.wiring import open_services  # noqa: PLC0415 - heavy

        async with open_services(settings) as services:
            revision = await current(services.database)
            if revision is None and not settings.database_url:
                await asyncio.to_thread(upgrade, services.database.url)
            elif revision != head():
                raise ConfigurationError("the database lacks migrations; run `priors migrate` first")
            return await work(services)

    return asyncio.run(opened())
