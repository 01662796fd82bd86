"""`/api/memories`, `/api/memories:bulk`, `/api/memories/{id}`, what there is to filter by, `/api/sources`."""

from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from litestar import Controller, Request, get, post
from litestar.datastructures import State
from litestar.openapi.spec import OpenAPIMediaType, OpenAPIType, Operation, RequestBody, Schema
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter

from app.api.context import Context, WorkspaceHeader, context_of
from app.api.cursors import cursor_of, place_of, sorted_cursor_of, sorted_place_of
from app.api.fields import DegradedView, Kind, SourceKind
from app.api.memory_views import (
    FacetsView,
    MemoryInput,
    MemoryPage,
    MemoryView,
    RejectedLine,
    SourceDetail,
    SourcePage,
    StoredView,
)
from app.api.problems import PROBLEMS, field_error
from app.errors import EmbeddingUnavailable, InvalidInput, Refused, told_apart
from app.index.backfill import embed_waiting, serving_model
from app.memories.browse import LARGEST_PAGE, get_memory, list_facets, list_sources, neighbours_of, page_memories
from app.memories.filters import GLOB_LIMIT, Filters
from app.memories.gate import INVALID
from app.memories.memory import NewMemory, Rejection, Remembered
from app.memories.remember import BATCH, BATCH_CHARACTERS, Door, remember_batch, remember_batches
from app.retrieval.recall import VECTOR

LINE_BYTES = 1_000_000
"""A longer line of a bulk call is rejected; the body itself has no limit, because it is read line by line."""

Wait = Annotated[Literal["embedded"] | None, QueryParameter(description="answer once vectors exist")]
Limit = Annotated[int, QueryParameter(ge=1, le=LARGEST_PAGE)]
Sort = Literal["created", "occurred", "score", "quality"]
Direction = Literal["desc", "asc"]
Cursor = Annotated[str | None, QueryParameter(max_length=200)]


@dataclass(slots=True)
class _Sent:
    """What became of the lines of a call so far."""

    stored: int = 0
    updated: int = 0
    unchanged: int = 0
    rejected: list[RejectedLine] = field(default_factory=list)
    refused: list[Rejection] = field(default_factory=list)
    ids: list[UUID | None] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A memory of a call."""

    number: int
    """Of its line, from 1."""
    place: int
    """Among the memories that were sent, from 0."""
    memory: NewMemory


@dataclass
class BulkOperation(Operation):
    """Says what a streamed body holds, which the handler's parameters do not."""

    def __post_init__(self) -> None:
        """Add the body to what Litestar found out."""
        lines = Schema(
            type=OpenAPIType.STRING, description="One JSON object a line, each as `POST /api/memories` takes it"
        )
        self.request_body = RequestBody(content={"application/x-ndjson": OpenAPIMediaType(schema=lines)}, required=True)


class MemoriesController(Controller):
    """Storing and showing memories."""

    path = "/api"
    tags = ("memories",)

    @post("/memories", status_code=200, responses=PROBLEMS)
    async def store(
        self, state: State, data: JSONBody[MemoryInput], workspace: WorkspaceHeader = None, wait: Wait = None
    ) -> StoredView:
        """Store one memory. Known text is not stored twice."""
        context = context_of(state)
        sent = _Sent()
        sent.ids.append(None)
        line = _Line(number=1, place=0, memory=data.memory())
        _note(context, [line], await remember_batch(_door(context, workspace), [line.memory]), sent)
        if sent.refused:
            raise as_error(sent.refused[0])
        return await _answer(context, sent, wait)

    @post(
        "/memories:bulk", status_code=200, responses=PROBLEMS, request_max_body_size=None, operation_class=BulkOperation
    )
    async def store_many(
        self, state: State, request: Request[Any, Any, Any], workspace: WorkspaceHeader = None, wait: Wait = None
    ) -> StoredView:
        """Store many memories, one JSON object a line (`application/x-ndjson`), read as a stream.

        A bad line is rejected with its number and reason, and the rest goes on.
        """
        context = context_of(state)
        door, sent = _door(context, workspace), _Sent()
        waiting: deque[Sequence[_Line]] = deque()

        async def batches() -> AsyncIterator[Sequence[NewMemory]]:
            async for batch in _batches(request, sent):
                waiting.append(batch)
                yield [line.memory for line in batch]

        async for result in remember_batches(door, batches()):
            _note(context, waiting.popleft(), result, sent)
        return await _answer(context, sent, wait)

    @get("/memories", responses=PROBLEMS)
    async def page(  # noqa: PLR0913, PLR0917 - each is a query parameter
        self,
        state: State,
        workspace: WorkspaceHeader = None,
        kind: FromQuery[list[Kind] | None] = None,
        tag: FromQuery[list[str] | None] = None,
        task_type: FromQuery[list[str] | None] = None,
        verdict: FromQuery[list[str] | None] = None,
        source: Annotated[str, QueryParameter(max_length=GLOB_LIMIT, description="glob of the source's path")] = "",
        source_id: FromQuery[UUID | None] = None,
        since: FromQuery[datetime | None] = None,
        until: FromQuery[datetime | None] = None,
        min_quality: FromQuery[int | None] = None,
        max_quality: FromQuery[int | None] = None,
        min_score: FromQuery[float | None] = None,
        max_score: FromQuery[float | None] = None,
        sort: FromQuery[Sort] = "created",
        order: FromQuery[Direction] = "desc",
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> MemoryPage:
        """Live memories that meet every condition, newest first or in another order."""
        context = context_of(state)
        filters = Filters(
            kinds=tuple(kind or ()), tags=tuple(tag or ()), task_types=tuple(task_type or ()),
            verdicts=tuple(verdict or ()), source=source, since=since, until=until, min_quality=min_quality,
            max_quality=max_quality, min_score=min_score, max_score=max_score,
        )  # fmt: skip
        found = await page_memories(
            context.opened.database,
            workspace=context.workspace(workspace),
            filters=filters,
            source_id=source_id,
            order=(sort, order),
            limit=limit,
            after=sorted_place_of(cursor, sort),
            counted=cursor is None,
        )
        return MemoryPage(
            memories=[MemoryView.of(memory) for memory in found.memories],
            next=None if found.end is None else sorted_cursor_of(*found.end),
            total=found.total,
        )

    @get("/memories/facets", responses=PROBLEMS)
    async def facets(self, state: State, workspace: WorkspaceHeader = None) -> FacetsView:
        """Kinds, task types, verdicts and tags to filter by, each with how many live memories have it."""
        context = context_of(state)
        return FacetsView.of(await list_facets(context.opened.database, workspace=context.workspace(workspace)))

    @get("/memories/{memory_id:uuid}/neighbours", responses=PROBLEMS)
    async def neighbours(
        self, state: State, memory_id: FromPath[UUID], workspace: WorkspaceHeader = None
    ) -> Sequence[MemoryView]:
        """The live memories up to two places before and after one in its source."""
        context = context_of(state)
        found = await neighbours_of(
            context.opened.database, workspace=context.workspace(workspace), memory_id=memory_id
        )
        return [MemoryView.of(memory) for memory in found]

    @get("/memories/{memory_id:uuid}", responses=PROBLEMS)
    async def show(self, state: State, memory_id: FromPath[UUID], workspace: WorkspaceHeader = None) -> MemoryView:
        """One memory, live or retired."""
        context = context_of(state)
        found = await get_memory(context.opened.database, workspace=context.workspace(workspace), memory_id=memory_id)
        return MemoryView.of(found)

    @get("/sources", responses=PROBLEMS)
    async def sources(
        self,
        state: State,
        workspace: WorkspaceHeader = None,
        kind: FromQuery[SourceKind | None] = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> SourcePage:
        """Sources, the retired ones included, newest first."""
        context = context_of(state)
        found = await list_sources(
            context.opened.database,
            workspace=context.workspace(workspace),
            kind=kind,
            limit=limit,
            before=place_of(cursor),
        )
        following = cursor_of(found[-1].created_at, found[-1].source_id) if len(found) == limit else None
        return SourcePage(sources=[SourceDetail.of(source) for source in found], next=following)


async def _lines(request: Request[Any, Any, Any]) -> AsyncIterator[tuple[int, bytes | None]]:
    """The body's lines with their numbers from 1, blank ones left out; None for one that is too long."""
    number, rest, too_long = 0, b"", False
    async for piece in request.stream():
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            number += 1
            if too_long or line.strip():
                yield number, None if too_long or len(line) > LINE_BYTES else line
            too_long = False
        if len(rest) > LINE_BYTES:
            rest, too_long = b"", True
    if too_long or rest.strip():
        yield number + 1, None if too_long or len(rest) > LINE_BYTES else rest


_decoder = msgspec.json.Decoder(MemoryInput)


def _parsed(line: bytes | None) -> NewMemory | str:
    """The memory of a line, or why it is none."""
    if line is None:
        return f"the line is longer than {LINE_BYTES:,} bytes"
    try:
        return _decoder.decode(line).memory()
    except msgspec.ValidationError as error:
        wrong = field_error(str(error))
        return f"{wrong.field}: {wrong.message}" if wrong.field else wrong.message
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"is not JSON: {error}"


def as_error(rejection: Rejection) -> InvalidInput:
    """Why a memory was not stored, as the error of its call."""
    said = told_apart(rejection.reason)
    if rejection.code == INVALID:
        return InvalidInput(*said)
    return Refused(*said, reason=rejection.code, details=rejection.details)


def _door(context: Context, workspace: str | None) -> Door:
    services = context.opened
    return Door(
        services.database,
        services.counter,
        context.workspace(workspace),
        services.settings.language,
        mask=services.settings.mask_secrets,
        provider=services.provider,
    )


async def _batches(request: Request[Any, Any, Any], sent: _Sent) -> AsyncIterator[Sequence[_Line]]:
    """The memories of the body, as many at once as a transaction takes; lines that are none are noted."""
    batch: list[_Line] = []
    characters = 0
    async for number, line in _lines(request):
        memory = _parsed(line)
        sent.ids.append(None)
        if isinstance(memory, str):
            sent.rejected.append(RejectedLine(line=number, reason=memory))
            continue
        batch.append(_Line(number=number, place=len(sent.ids) - 1, memory=memory))
        characters += len(line or b"") - _vector_characters(memory)
        if len(batch) >= BATCH or characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _vector_characters(memory: NewMemory) -> int:
    """What a line has for its vector: four characters for three bytes; it is small once it is read."""
    return 0 if memory.embedding is None else len(memory.embedding.numbers) * 4 // 3


def _note(context: Context, batch: Sequence[_Line], result: Remembered, sent: _Sent) -> None:
    sent.refused += result.rejected
    context.metrics.note_remembered(result)
    sent.stored += result.stored
    sent.updated += result.updated
    sent.unchanged += result.unchanged
    for line, memory_id in zip(batch, result.ids, strict=True):
        sent.ids[line.place] = memory_id
    sent.rejected += [
        RejectedLine(line=batch[item.index].number, reason=item.reason, code=item.code) for item in result.rejected
    ]


async def _answer(context: Context, sent: _Sent, wait: str | None) -> StoredView:
    embedded: Any = msgspec.UNSET
    degraded: Any = msgspec.UNSET
    if wait == "embedded":
        embedded, degraded = await _embed(context, [memory_id for memory_id in sent.ids if memory_id])
    return StoredView(
        stored=sent.stored,
        updated=sent.updated,
        unchanged=sent.unchanged,
        rejected=sorted(sent.rejected, key=lambda item: item.line),
        ids=sent.ids,
        embedded=embedded,
        degraded=degraded,
    )


async def _embed(context: Context, ids: Sequence[UUID]) -> tuple[int, list[DegradedView]]:
    services = context.opened
    if not services.provider.enabled:
        return 0, [DegradedView(arm=VECTOR, reason="embeddings are switched off (PRIORS_EMBEDDING_PROVIDER=noop)")]
    try:
        if await serving_model(services.database, services.provider) is None:
            return 0, [DegradedView(arm=VECTOR, reason="the stored vectors are of another model; see `priors doctor`")]
        # A worker may have embedded some of them first: in the end each has its vector.
        await embed_waiting(services.database, services.provider, ids=ids)
    except EmbeddingUnavailable as error:
        return 0, [DegradedView(arm=VECTOR, reason=str(error))]
    return len(set(ids)), []
