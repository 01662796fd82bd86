"""An application that cannot start, as `app.cli.serving.application` would be."""

from typing import Any

REASON = "nothing works here"


def application() -> Any:
    """Returns the application."""

    async def app(_scope: object, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": REASON})

    return app
