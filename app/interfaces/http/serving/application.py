"""The HTTP application. `python -m app.interfaces.http.serving.application` prints its OpenAPI document."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, nullcontext
from types import MappingProxyType
from typing import Any

import structlog
from litestar import Litestar
from litestar._openapi.schema_generation import SchemaCreator
from litestar._openapi.schema_generation.plugins.dataclass import DataclassSchemaPlugin
from litestar._openapi.schema_generation.plugins.struct import StructSchemaPlugin
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.di import Provide
from litestar.handlers import BaseRouteHandler, HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Schema
from litestar.typing import FieldDefinition
from msgspec import UNSET, Struct
from msgspec.structs import fields

from app import tracing
from app.foundation.db.audit import actor, note_operation
from app.foundation.safety import scan
from app.foundation.safety import secrets as masking
from app.interfaces.http.administration import (
    AuditController,
    KeysController,
    SettingsController,
    UsersController,
    forget,
)
from app.interfaces.http.admission import WITHOUT_BODY, Admission, Frame
from app.interfaces.http.context import ApplicationContext, Metrics, call_of, key_of
from app.interfaces.http.contexts import ContextsController
from app.interfaces.http.cues import CuesController, why
from app.interfaces.http.insight import effect, graph, novelty
from app.interfaces.http.intake import MemoriesController, ReportsController
from app.interfaces.http.judging import FeedbackController, TendingController
from app.interfaces.http.memories import LinksController
from app.interfaces.http.panel import PanelController, answer_error
from app.interfaces.http.retrieval import RetrievalController, check
from app.interfaces.http.runs import CasesController, RunsController
from app.interfaces.http.schemas import BODY_BYTES, check_query
from app.interfaces.http.sessions import SessionsController
from app.interfaces.http.status import HealthController, StatusController
from app.interfaces.mcp.mount import AgentMount
from app.operations.status import Overview
from app.settings import VERSION, Settings
from app.storage.tenants.keys import READ, WRITE
from app.wiring import Services, open_services

_GAUGE_SECONDS = 30.0
"""The time between two looks at the gauges: half of the interval in which OpenTelemetry exports them."""
RETRY_SECONDS = 10.0
"""The pause between two attempts to load a model."""
_ROUTES = (
    MemoriesController,
    ReportsController,
    SessionsController,
    RetrievalController,
    RunsController,
    CasesController,
    CuesController,
    ContextsController,
    TendingController,
    why,
    check,
    FeedbackController,
    KeysController,
    SettingsController,
    AuditController,
    LinksController,
    novelty,
    effect,
    graph,
    HealthController,
    StatusController,
    UsersController,
    forget,
    PanelController,
)
_OPENAPI = OpenAPIConfig(
    title="Priors",
    version=VERSION,
    description="The memory service for agent pipelines.",
    path="/schema",
    render_plugins=[JsonRenderPlugin(path=["/", "/openapi.json"])],
    use_handler_docstrings=True,
)


class StructAnswers(StructSchemaPlugin):
    """Describes the fields of an answer as there, those with a default too. What requests are made of refuses unknown
    fields; an answer that leaves fields out says so by UNSET or `omit_defaults`."""

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: SchemaCreator) -> Schema:
        """Returns the schema of a struct."""
        schema = super().to_openapi_schema(field_definition, schema_creator)
        kind: type[Struct] = field_definition.type_
        if not kind.__struct_config__.forbid_unknown_fields and not kind.__struct_config__.omit_defaults:
            schema.required = sorted(field.encode_name for field in fields(kind) if field.default is not UNSET)
        for shown in (schema.properties or {}).values():
            if isinstance(shown, Schema) and isinstance(shown.items, Schema):
                # Litestar takes the `...` of a tuple with a limit for a second type of its items.
                of_tuple = shown.items.one_of and shown.items.one_of[-1] == Schema()
                shown.items = shown.items.one_of[0] if of_tuple and shown.items.one_of else shown.items
        return schema


class DataclassAnswers(DataclassSchemaPlugin):
    """Describes the fields of an answer as there; no request is made of a dataclass."""

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: SchemaCreator) -> Schema:
        """Returns the schema of a dataclass."""
        schema = super().to_openapi_schema(field_definition, schema_creator)
        schema.required = sorted(schema.properties or ())
        return schema


logger = structlog.get_logger()


def create_app(settings: Settings, *, services: Services | None = None) -> Litestar:
    """Returns the application without its frame (`in_frame`). If no services are given, it opens its own."""
    context = ApplicationContext(services=services, metrics=Metrics())
    state = State({"context": context, "settings": settings})
    agents = AgentMount(state, body_bytes=BODY_BYTES)

    @asynccontextmanager
    async def lifespan(_app: Litestar) -> AsyncIterator[None]:
        given = open_services(settings) if services is None else nullcontext(services)
        with tracing.exporting():
            tracing.export_metrics(context.metrics.registry)
            async with given as context.services, in_the_background(context, agents.run(), _keep_gauges(context)):
                yield

    return Litestar(
        route_handlers=[*_ROUTES, agents.route()],
        dependencies={"call": Provide(call_of, sync_to_thread=False)},
        guards=[_demand_scope],
        state=state,
        lifespan=[lifespan],
        exception_handlers={Exception: answer_error},
        openapi_config=_OPENAPI,
        plugins=[StructAnswers(), DataclassAnswers()],
        type_encoders={MappingProxyType: dict},
        request_max_body_size=BODY_BYTES,
        logging_config=None,
    )


@asynccontextmanager
async def in_the_background(context: ApplicationContext, *others: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Loads the model, follows the store to another model, and does other work, while requests are answered."""
    follow = context.opened.embedder.follow_for_ever()
    work = (load_model(context), follow, _explain_for_ever(context), *others)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one) for one in work]
        yield
        for task in tasks:
            task.cancel()


def in_frame(app: Litestar) -> Frame:
    """Returns the application as it is served: with request ids, the bearer token, the access log and metrics."""
    context: ApplicationContext = app.state.context
    settings: Settings = app.state.settings
    admission = Admission(lambda: context.keys, settings)
    return Frame(app, admission=admission, metrics=context.metrics)


async def _demand_scope(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Checks that the key of a request has the scope of its route, and names the route in the audit log.

    Then it checks the names of the query parameters, which may tell more about a route than a stranger should know.
    """
    scope = connection.scope
    method, route = str(scope.get("method", "")), str(scope.get("path_template", ""))
    if not actor().operation:  # a command has named its own
        note_operation(f"{method} {route}")
    if demanded := scope_of(handler, method):
        key_of(scope).demand(demanded)
    if connection.query_params and isinstance(handler, HTTPRouteHandler) and route.startswith("/api/"):
        check_query(connection.query_params, handler)


def scope_of(handler: BaseRouteHandler, method: str) -> str:
    """Returns the scope that a route demands: `write` for what changes something, unless the route says otherwise.

    "" stands for a route that demands one by itself for each operation that it is asked for.
    """
    return str(handler.opt.get("scope", READ if method in WITHOUT_BODY else WRITE))


def document() -> bytes:
    """Returns the OpenAPI document that the panel's types are made from. The same routes give the same bytes.

    It leaves out the answers of failed requests, because each of them has the schema `Problem`.
    """
    schema = create_app(Settings()).openapi_schema.to_schema()
    for methods in schema["paths"].values():
        for operation in methods.values():
            answers = operation["responses"]
            operation["responses"] = {status: answer for status, answer in answers.items() if status.startswith("2")}
    return json.dumps(schema, indent=1, sort_keys=True).encode() + b"\n"


async def _explain_for_ever(context: ApplicationContext) -> None:
    """Logs slow recalls with the plans of their statements, one after the other."""
    while True:
        slow = await context.slow.get()
        try:
            slow.note(plans=await context.opened.retrieval.plans_of(slow.recall))
        except Exception as error:  # noqa: BLE001 - whatever it was, the recall was slow
            slow.note(without_plans=f"{type(error).__name__}: {error}")


async def _keep_gauges(context: ApplicationContext) -> None:
    """Keeps the gauges that are exported up to date: where nobody reads /metrics, nothing else does."""
    while tracing.is_on():
        try:
            context.metrics.note_gauges(await Overview(database=context.opened.database).gauges())
        except Exception as error:  # noqa: BLE001 - whatever it was, requests are answered, and the next look may succeed
            logger.warning("the gauges cannot be read", reason=f"{type(error).__name__}: {error}")
        await asyncio.sleep(_GAUGE_SECONDS)


async def load_model(context: ApplicationContext) -> None:
    """Loads the model and the other parts that are slow at their first use; tries again until this succeeds.

    Meanwhile requests are answered by the lexical arm.
    """
    services = context.opened
    if services.settings.mask_secrets:
        await asyncio.to_thread(masking.load)
    await asyncio.to_thread(scan.load)
    while not await try_model(services):
        context.model_tried.set()
        await asyncio.sleep(RETRY_SECONDS)
    context.model_loaded = True
    context.model_tried.set()


async def try_model(services: Services) -> bool:
    """Tries to load the model; returns False if that fails, and logs the reason."""
    try:
        await services.embedder.prepare(services.database.across)
    except Exception as error:  # noqa: BLE001 - whatever it was, a service that gave up would never be ready
        logger.warning("the embedding model is not ready", reason=str(error) or repr(error))
        return False
    return True


if __name__ == "__main__":
    sys.stdout.buffer.write(document())
