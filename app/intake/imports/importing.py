"""The verb that takes what an earlier harness stored. Running it again adds only what is new."""

import asyncio
from codecs import BOM_UTF8 as BOM
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID

import msgspec

from app.db.database import Database
from app.errors import InvalidInput
from app.intake.imports.exported import (
    REFUSED_BY_THE_DATABASE,
    as_moment,
    filled,
    number_of,
    only_new,
    refusal,
    run_of_line,
    taken_out,
)
from app.intake.imports.harness import (
    HarnessObservation,
    check_detail,
    is_harness,
    key_part,
    missing_entries,
    new_entries,
    read_harness,
    tags_of,
)
from app.memories import changes
from app.memories.admission import reason_to_reject
from app.memories.memory import NewMemory, ObservationDetail, content_hash
from app.memories.remember import remember
from app.models.protocols import TokenCounter
from app.runs import traces
from app.runs.feedback import store as feedback
from app.runs.observations.observation import facts_of
from app.runs.record import check_run, record_run
from app.runs.run import NewRun
from app.safety.secrets import masked_values
from app.workspaces.resolve import made
from app.workspaces.workspace import Workspace

BATCH = 200
LARGEST_LINE = 10_000_000
"""Bytes."""


@dataclass(slots=True)
class Imported:
    """The result of a file's import."""

    path: str
    runs: int = 0
    stored: int = 0
    """Number of observations that were not known."""
    known: int = 0
    ratings: int = 0
    failed: list[str] = field(default_factory=list)
    """Each line or row that was left out, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    database: Database
    counter: TokenCounter
    workspace: Workspace
    mask: bool
    filled: dict[str, frozenset[str]] = field(default_factory=dict)
    """Fields stored of each run before this import: a run's later lines replace its earlier ones, and nothing else."""


async def import_file(
    database: Database, counter: TokenCounter, *, workspace: Workspace, path: Path, mask: bool = True
) -> Imported:
    """Take a harness's SQLite store, or its JSON lines of runs or observations, told by their content.

    A bad line or row is named and left out; the rest goes on. What was judged, rated or taken out since an earlier
    import stays so; what the harness has gained since is added.

    Raises:
        InvalidInput: the file cannot be read at all.
    """
    result = Imported(path=str(path))
    try:
        take_in = _import_harness if is_harness(path) else _import_lines
        target = _Target(database=database, counter=counter, workspace=await made(database, workspace), mask=mask)
        await take_in(target, path, result)
    except OSError as error:
        raise InvalidInput("", f"{path} cannot be read: {error.strerror or error}") from error
    return result


async def _import_lines(target: _Target, path: Path, result: Imported) -> None:
    batch: list[tuple[str, NewMemory]] = []
    for number, line in _lines(path):
        try:
            given = _decoded(line)
            if _is_observation(given):
                batch.append((f"line {number}", _observation(given)))
            else:
                await _take_run(target, run_of_line(given))
                result.runs += 1
        except InvalidInput as error:
            result.failed.append(f"line {number}: {error}")
        except REFUSED_BY_THE_DATABASE as error:
            result.failed.append(f"line {number}: {refusal(error)}")
        if len(batch) >= BATCH:
            await _remember(target, batch, result)
            batch = []
    await _remember(target, batch, result)


async def _take_run(target: _Target, run: NewRun) -> None:
    """Store what is new of a run. A stored judgement stays."""
    check_run(run)
    run = masked_values(run) if target.mask else run
    if run.run_id not in target.filled:
        async with target.database.session(target.workspace, transaction=False) as session:
            target.filled[run.run_id] = await filled(session, run.run_id)
    new = only_new(run, target.filled[run.run_id])
    if new is not None:
        await record_run(target.database, workspace=target.workspace, run=new, mask=target.mask, known_first=True)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: _line(file), b""), start=1):
            if line.strip():
                yield number, line.removeprefix(BOM) if number == 1 else line


def _line(file: BinaryIO) -> bytes:
    """Returns the next line; of one that is too long its beginning."""
    line = rest = file.readline(LARGEST_LINE + 1)
    while len(rest) > LARGEST_LINE and not rest.endswith(b"\n"):
        rest = file.readline(LARGEST_LINE + 1)
    return line


def _decoded(line: bytes) -> dict[str, Any]:
    if len(line) > LARGEST_LINE:
        raise InvalidInput("", f"is longer than {LARGEST_LINE:,} bytes")
    try:
        given = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput("", f"is not JSON: {error}") from error
    if not isinstance(given, dict):
        raise InvalidInput("", "is not a JSON object")
    return given


def _is_observation(given: dict[str, Any]) -> bool:
    said = any(given.get(name) is not None for name in ("narrative", "facts", "observation"))
    return said or given.get("kind") == "observation"


def _observation(given: dict[str, Any]) -> NewMemory:
    """Returns an observation whose fields stand beside each other or below `observation`."""
    inner = given.get("observation")
    fields = {**given, **inner} if isinstance(inner, dict) else given
    detail = ObservationDetail(
        task=_text(fields, "task"),
        task_type=_text(fields, "task_type"),
        narrative=_text(fields, "narrative"),
        facts=tuple(facts_of(fields.get("facts") or "")),
        output_path=_text(fields, "output_path") or None,
        verdict=_text(fields, "verdict") or _text(fields, "final"),
    )
    check_detail(detail)
    score, metadata = fields.get("final_score"), fields.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise InvalidInput("metadata", "must be an object")
    return NewMemory(
        kind="observation",
        title=_text(fields, "title"),
        body=_text(fields, "body") or detail.body,
        tags=_tags(fields.get("tags")),
        metadata=metadata or {},
        run_id=_text(fields, "run_id") or None,
        final_score=None if score is None else number_of("final_score", score),
        occurred_at=as_moment(fields.get("occurred_at")) or as_moment(fields.get("timestamp")),
        observation=detail,
    )


def _tags(value: Any) -> tuple[str, ...]:  # noqa: ANN401 - any JSON value
    if value is None or isinstance(value, str):
        return tags_of(value or "")
    if not isinstance(value, list) or not all(isinstance(tag, str | int | float) for tag in value):
        raise InvalidInput("tags", "must be a list of texts, or a text with commas between them")
    return tuple(str(tag) for tag in value)


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if isinstance(value, dict | list | bool):
        raise InvalidInput(name, "must be a text")
    return "" if value is None else str(value)


async def _remember(target: _Target, items: Sequence[tuple[str, NewMemory]], result: Imported) -> Sequence[UUID | None]:
    """Returns the memory of each; None where it was refused, or was taken out of the store and stays so."""
    if not items:
        return []
    hashes = await asyncio.to_thread(_hashes, target, [memory for _, memory in items])
    async with target.database.session(target.workspace, transaction=False) as session:
        retired = await taken_out(session, {item for item in hashes if item is not None})
    out = [item in retired for item in hashes]
    result.known += sum(out)
    ids = iter(await _stored(target, list(compress(items, (not is_out for is_out in out))), result))
    return [None if is_out else next(ids) for is_out in out]


def _hashes(target: _Target, memories: Sequence[NewMemory]) -> list[bytes | None]:
    """Returns the content hashes under which they are stored; None for what is refused anyway."""
    return [
        content_hash(masked_values(memory) if target.mask else memory, target.workspace.language)
        if reason_to_reject(memory) is None
        else None
        for memory in memories
    ]


async def _stored(target: _Target, items: Sequence[tuple[str, NewMemory]], result: Imported) -> Sequence[UUID | None]:
    """Store a batch; one that the database refuses is halved, until what it refuses stands alone."""
    if not items:
        return []
    try:
        remembered = await remember(
            target.database,
            target.counter,
            workspace=target.workspace,
            memories=[memory for _, memory in items],
            mask=target.mask,
            runs=traces,
            known_first=True,
        )
    except REFUSED_BY_THE_DATABASE as error:
        if len(items) == 1:
            result.failed.append(f"{items[0][0]}: {refusal(error)}")
            return [None]
        middle = len(items) // 2
        halves = (items[:middle], items[middle:])
        return [memory_id for half in halves for memory_id in await _stored(target, half, result)]
    result.stored += remembered.stored
    result.known += remembered.unchanged + remembered.updated
    result.failed += [f"{items[refused.index][0]}: {refused.reason}" for refused in remembered.rejected]
    return remembered.ids


async def _import_harness(target: _Target, path: Path, result: Imported) -> None:
    batch: list[HarnessObservation] = []
    for item in read_harness(path):
        if isinstance(item, str):
            result.failed.append(item)
            continue
        batch.append(item)
        if len(batch) >= BATCH:
            await _remember_harness(target, batch, result)
            batch = []
    await _remember_harness(target, batch, result)


async def _remember_harness(target: _Target, batch: list[HarnessObservation], result: Imported) -> None:
    items = [(f"observation {item.row_id}", item.memory) for item in batch]
    ids = await _remember(target, items, result)
    for (name, _), item, memory_id in zip(items, batch, ids, strict=True):
        if memory_id is None or not (item.ratings or item.quality):
            continue
        try:
            result.ratings += await _carry_over(target, memory_id, item)
        except REFUSED_BY_THE_DATABASE as error:
            result.failed.append(f"{name}: its ratings: {refusal(error)}")


async def _carry_over(target: _Target, memory_id: UUID, item: HarnessObservation) -> int:
    """Append the new ratings of the old log, then ratings that make up the difference to the old quality.

    Returns how many ratings of the log were new.
    """
    prefix = f"import:{memory_id}:{key_part(item.row_id)}:"
    async with target.database.session(target.workspace) as session:
        if not await changes.lock_for_rating(session, memory_id):
            return 0
        before = await feedback.keyed(session, memory_id, prefix)
        entries = new_entries(prefix, item, before, mask=target.mask)
        difference = missing_entries(prefix, item, before, entries)
        for entry in (*entries, *difference):
            await feedback.append(session, memory_id, **entry)
        if entries or difference:
            await feedback.set_quality(session, memory_id)
    return len(entries)
