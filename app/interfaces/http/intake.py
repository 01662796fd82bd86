"""`POST /api/memories`, `/api/memories:bulk`, `/api/reports`, `/api/imports`: storing memories and files."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from tempfile import NamedTemporaryFile
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from litestar import Controller, Request
from litestar.openapi.spec import OpenAPIMediaType, OpenAPIType, Operation, RequestBody, Schema
from litestar.params import JSONBody
from msgspec import UNSET, Meta, Struct, UnsetType, structs

from app.errors import EmbeddingUnavailable, InvalidInput, Refused, check, told_apart
from app.foundation.text.data import faults_of_json, read_json, sentence_of, unstorable
from app.intake.imports.service import Imported
from app.intake.reports.scan import SUFFIXES_SHOWN, Discovery, ReportFile, without_secrets
from app.intake.reports.store import FileOutcome, Ingestion, IngestionOptions
from app.interfaces.http.context import Metrics, ThisCall, Wait
from app.interfaces.http.memories import MemoryViewsController
from app.interfaces.http.schemas import DegradedView, Input, convert, post
from app.recall.retrieval.recall import VECTOR
from app.storage.memories.gate import INVALID
from app.storage.memories.memory import URI_LIMIT, Name, NewMemory, Rejection, Remembered
from app.storage.memories.remember import BATCH_CHARACTERS, batch_sizes
from app.storage.tenants.workspace import Workspace
from app.wiring import Services

_LOG_BODY_BYTES = 200_000_000
"""The largest body with a log: JSON may take twice the bytes of the longest one, which has 100 MB."""
_LINE_BYTES = 1_000_000
"""A longer line of a bulk call is rejected; the body itself has no limit, because it is read line by line."""
_PATH = f"a relative path; of the suffixes {SUFFIXES_SHOWN}"


class RejectedLine(Struct, frozen=True):
    """A memory that was not stored."""

    line: int
    """The number of its line, from 1."""
    reason: str
    code: str = "invalid"
    """The name by which statistics count it."""


class StoredView(Struct, frozen=True, omit_defaults=True):
    """The numbers of memories that a call stored, changed and left as they were, and those it rejected."""

    stored: int
    updated: int
    unchanged: int
    rejected: Sequence[RejectedLine]
    ids: Sequence[UUID | None]
    embedded: int | UnsetType = UNSET
    """With `?wait=true`: how many got their vector."""
    degraded: Sequence[DegradedView] | UnsetType = UNSET


class ReportInput(Input):
    """The content of a report file, or of a log of sessions."""

    path: Annotated[str, Meta(min_length=1, max_length=URI_LIMIT, description=_PATH)]
    content: str
    language: Name | None = None


class SentFile(Input):
    """A file as `priors ingest` found it on its machine."""

    path: Annotated[str, Meta(min_length=1, max_length=URI_LIMIT, description="its absolute path there")]
    shown: Annotated[str, Meta(min_length=1, max_length=URI_LIMIT, description="the path that people see")]
    content: Annotated[bytes, Meta(description="its bytes in Base64")]
    dated: datetime | None = None
    """The date of the judgement beside it, if there is one."""


class SentFiles(Input):
    """Files of one ingestion, or a part of them."""

    files: Sequence[SentFile] = ()
    gone: Sequence[str] = ()
    """Paths of stored files that are no longer there: a new file of this content was moved."""
    roots: Sequence[str] = ()
    """The paths that were searched: what is gone below them is retired. It goes with the last part."""
    failures: Mapping[str, str] = {}
    """The reasons why files could not be read, by path."""
    left_out: Mapping[str, str] = {}
    """The suffixes of files that are no reports, by path."""
    language: Name | None = None
    dry_run: bool = False


class HarnessFile(Input):
    """A file of an earlier harness."""

    name: Annotated[str, Meta(min_length=1, max_length=URI_LIMIT, description="its name, for the answer")]
    content: Annotated[bytes, Meta(description="the bytes of its SQLite store or JSON lines, in Base64")]


@dataclass(slots=True)
class _Sent:
    """The results of a call's lines so far."""

    stored: int = 0
    updated: int = 0
    unchanged: int = 0
    rejected: list[RejectedLine] = field(default_factory=list)
    ids: list[UUID | None] = field(default_factory=list)


class _Line(NamedTuple):
    """A memory of a call."""

    number: int
    """The number of its line, from 1."""
    place: int
    """Its place among the memories that were sent, from 0."""
    memory: NewMemory


@dataclass
class BulkOperation(Operation):
    """Documents the streamed body, which the handler's parameters do not name."""

    def __post_init__(self) -> None:
        """Adds the body to the operation that Litestar has described."""
        lines = Schema(
            type=OpenAPIType.STRING, description="One JSON object a line, each as `POST /api/memories` takes it"
        )
        self.request_body = RequestBody(content={"application/x-ndjson": OpenAPIMediaType(schema=lines)}, required=True)


class MemoriesController(MemoryViewsController):
    """Stores and shows memories. One controller has all methods of a path."""

    @post("/memories")
    async def store(self, call: ThisCall, data: JSONBody[NewMemory], wait: Wait = False) -> StoredView:
        """Store one memory. Known text is not stored twice."""
        sent = _Sent(ids=[None])
        line = _Line(number=1, place=0, memory=data.with_facts())
        tenant = await call.tenant()
        result = await call.services.write_gate.remember_batch(tenant, [line.memory])
        _note(call.metrics, [line], result, sent)
        if result.rejected:
            raise as_error(result.rejected[0])
        return await _answer(call.services, tenant, sent, wait=wait)

    @post("/memories:bulk", request_max_body_size=None, operation_class=BulkOperation)
    async def store_many(self, call: ThisCall, request: Request[Any, Any, Any], wait: Wait = False) -> StoredView:
        """Store many memories, one JSON object a line (`application/x-ndjson`), read as a stream.

        A bad line is rejected with its number and reason, and the rest goes on.
        """
        tenant, sent = await call.tenant(), _Sent()
        waiting: deque[Sequence[_Line]] = deque()

        async def batches() -> AsyncIterator[Sequence[NewMemory]]:
            async for batch in _batches(request, sent):
                waiting.append(batch)
                yield [line.memory for line in batch]

        async for result in call.services.write_gate.remember_batches(tenant, batches()):
            _note(call.metrics, waiting.popleft(), result, sent)
        return await _answer(call.services, tenant, sent, wait=wait)


class ReportsController(Controller):
    """Takes report files in, and the files of earlier harnesses."""

    path = "/api"
    tags = ("reports",)

    @post("/reports", request_max_body_size=_LOG_BODY_BYTES)
    async def ingest(self, call: ThisCall, data: JSONBody[ReportInput]) -> FileOutcome:
        """Take in the content of one report file or log of sessions, as `priors ingest` takes a file.

        A log that has grown is given whole again: only what is new is stored.
        """
        content = data.content.encode(errors="surrogatepass")
        options = IngestionOptions(language=data.language)
        outcome = await call.services.ingestions.ingest_content(await call.tenant(), data.path, content, options)
        call.metrics.reports.labels(outcome.status).inc()
        return outcome

    @post("/reports:batch", request_max_body_size=_LOG_BODY_BYTES)
    async def ingest_files(self, call: ThisCall, data: JSONBody[SentFiles]) -> Ingestion:
        """Take in files of another machine, as `priors ingest` takes those of its own: also moved and deleted ones."""
        options = IngestionOptions(language=data.language, dry_run=data.dry_run)
        found = await call.services.ingestions.ingest_found(await call.tenant(), _discovery_of(data), options)
        for outcome in found.outcomes:
            call.metrics.reports.labels(outcome.status).inc()
        return found

    @post("/imports", request_max_body_size=_LOG_BODY_BYTES)
    async def import_file(self, call: ThisCall, data: JSONBody[HarnessFile]) -> Imported:
        """Take in the store of an earlier harness, as `priors import` does: its runs, observations and feedback.

        A bad line or row is named and left out. Another import adds only what is new.
        """
        target = await call.tenant()
        with NamedTemporaryFile(prefix="priors-import-") as file:
            await asyncio.to_thread(Path(file.name).write_bytes, data.content)
            found = await call.services.imports.import_file(target, Path(file.name))
        return replace(found, path=data.name)


def _discovery_of(sent: SentFiles) -> Discovery:
    """Returns the files that were sent, as a search on this machine would find them.

    Raises:
        InvalidInput: a path is not valid.
    """
    check(reason for file in sent.files for reason in unstorable({"path": file.path, "shown": file.shown}))
    files = [
        ReportFile(path=Path(file.path), shown=without_secrets(PurePosixPath(file.shown)), content=file.content)
        for file in sent.files
    ]
    return Discovery(
        files={file.path: file for file in files},
        failures=dict(sent.failures),
        left_out=dict(sent.left_out),
        roots=[Path(root) for root in sent.roots],
        gone=frozenset(sent.gone),
        dates={Path(file.path): file.dated for file in sent.files if file.dated is not None},
    )


async def _lines(request: Request[Any, Any, Any]) -> AsyncIterator[tuple[int, bytes | None]]:
    """Yields the body's lines with their numbers from 1, without blank lines; None for a line that is too long."""
    number, rest, too_long = 0, b"", False
    async for piece in request.stream():
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            number += 1
            if too_long or line.strip():
                yield number, None if too_long or len(line) > _LINE_BYTES else line
            too_long = False
        if len(rest) > _LINE_BYTES:
            rest, too_long = b"", True
    if too_long or rest.strip():
        yield number + 1, None if too_long or len(rest) > _LINE_BYTES else rest


def _parse_line(line: bytes | None) -> NewMemory | str:
    """Returns the memory of a line, or the reason why the line is not a memory."""
    if line is None:
        return f"the line is longer than {_LINE_BYTES:,} bytes"
    read = read_json(line, NewMemory)
    if not isinstance(read, str):
        return read.with_facts()
    return sentence_of(faults_of_json(line, NewMemory, read))


def as_error(rejection: Rejection) -> InvalidInput:
    """Returns the error of a call whose memory was rejected."""
    said = told_apart(rejection.reason)
    if rejection.code == INVALID:
        return InvalidInput(*said)
    return Refused(*said, reason=rejection.code, details=rejection.details)


async def _batches(request: Request[Any, Any, Any], sent: _Sent) -> AsyncIterator[Sequence[_Line]]:
    """Yields the memories of the body in batches of one transaction each; notes the lines that are not memories."""
    batch: list[_Line] = []
    characters, sizes = 0, batch_sizes()
    most = next(sizes)
    async for number, line in _lines(request):
        memory = _parse_line(line)
        sent.ids.append(None)
        if isinstance(memory, str):
            sent.rejected.append(RejectedLine(line=number, reason=memory))
            continue
        batch.append(_Line(number=number, place=len(sent.ids) - 1, memory=memory))
        characters += len(line or b"") - _vector_characters(memory)
        if len(batch) >= most or characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters, most = [], 0, next(sizes)
    if batch:
        yield batch


def _vector_characters(memory: NewMemory) -> int:
    """Returns the characters that the vector takes in its line: four for every three bytes."""
    return 0 if memory.embedding is None else len(memory.embedding.numbers) * 4 // 3


def _note(metrics: Metrics, batch: Sequence[_Line], result: Remembered, sent: _Sent) -> None:
    metrics.note_remembered(result)
    sent.stored += result.stored
    sent.updated += result.updated
    sent.unchanged += result.unchanged
    for line, memory_id in zip(batch, result.ids, strict=True):
        sent.ids[line.place] = memory_id
    sent.rejected += [
        RejectedLine(line=batch[item.index].number, reason=item.reason, code=item.code) for item in result.rejected
    ]


async def _answer(services: Services, workspace: Workspace, sent: _Sent, *, wait: bool) -> StoredView:
    view = convert(sent, StoredView, rejected=sorted(sent.rejected, key=lambda item: item.line))
    if not wait:
        return view
    embedded, degraded = await embed(services, workspace, [memory_id for memory_id in sent.ids if memory_id])
    return structs.replace(view, embedded=embedded, degraded=degraded)


async def embed(services: Services, workspace: Workspace, ids: Sequence[UUID]) -> tuple[int, list[DegradedView]]:
    """Embeds memories; returns the number of those that have a vector now, and the reason why others have none."""
    if not services.provider.enabled:
        return 0, [DegradedView(arm=VECTOR, reason="embeddings are switched off (PRIORS_EMBEDDING_PROVIDER=noop)")]
    try:
        if await services.embedder.serving_model() is None:
            return 0, [
                DegradedView(arm=VECTOR, reason="the stored vectors are of another model; see `priors store doctor`")
            ]
        # A worker may have embedded some of them before this call did: now each has its vector.
        workspace = await services.workspaces.get_or_create(workspace)
        await services.embedder.embed_pending(workspace, ids=ids)
    except EmbeddingUnavailable as error:
        return 0, [DegradedView(arm=VECTOR, reason=str(error))]
    return len(set(ids)), []
