"""What the handlers share: the services, the metrics, and how a workspace is named."""

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, cast

from litestar.datastructures import State
from litestar.params import HeaderParameter

from app.api.metrics import Metrics
from app.wiring import Services

WorkspaceHeader = Annotated[
    str | None,
    HeaderParameter(
        name="X-Workspace",
        description="the tenant; made at the first write. Without it, the configured default workspace.",
        max_length=64,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
    ),
]


@dataclass(slots=True)
class Context:
    """One application's services."""

    services: Services | None
    metrics: Metrics
    model_loaded: bool = False
    model_tried: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the model was loaded, or could not be at the first attempt."""

    @property
    def opened(self) -> Services:
        """The services, once the application has started."""
        assert self.services is not None, "requests come after the start"  # noqa: S101
        return self.services

    def workspace(self, given: str | None) -> str:
        """The workspace that a request means."""
        return given or self.opened.settings.workspace


def context_of(state: State) -> Context:
    """The application's context."""
    return cast("Context", state.context)
