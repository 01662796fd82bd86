"""Applications that cannot start, as `app.interfaces.cli.serving.application` would be."""

from typing import Any

REASON = "nothing works here"


def application() -> Any:
    """Returns an application that cannot open what it needs."""

    async def app(_scope: object, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": REASON})

    return app


def unmade() -> Any:
    """Fails, as a module does that cannot be imported."""
    raise RuntimeError(REASON)
