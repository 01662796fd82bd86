"""The verb that takes what an earlier harness stored. Running it again changes nothing."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from app.db.engine import Database
from app.embeddings.provider import TokenCounter
from app.errors import InvalidInput
from app.feedback import store as feedback
from app.feedback.rating import replayed
from app.memories.memory import NewMemory, ObservationDetail
from app.memories.remember import remember
from app.observations.harness import HarnessObservation, is_harness, read_harness
from app.observations.reply import facts_of
from app.runs.exported import as_moment, run_of_line
from app.runs.record import record_run
from app.workspaces import store as workspaces

BATCH = 200
LARGEST_LINE = 10_000_000
"""Bytes."""
CARRIED_OVER = "carried over from an earlier store"


@dataclass(slots=True)
class Imported:
    """What became of a file."""

    path: str
    runs: int = 0
    stored: int = 0
    """Observations that were not known."""
    known: int = 0
    ratings: int = 0
    failed: list[str] = field(default_factory=list)
    """Each line or row that was left out, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    database: Database
    counter: TokenCounter
    workspace: str
    language: str
    mask: bool


async def import_file(
    database: Database, counter: TokenCounter, *, workspace: str, language: str, path: Path, mask: bool = True
) -> Imported:
    """Take a harness's SQLite store, or its JSON lines of runs or observations, told by their content.

    A bad line is named and left out; the rest goes on.

    Raises:
        InvalidInput: the file cannot be read at all.
    """
    target = _Target(database=database, counter=counter, workspace=workspace, language=language, mask=mask)
    result = Imported(path=str(path))
    try:
        if is_harness(path):
            await _import_harness(target, path, result)
        else:
            await _import_lines(target, path, result)
    except OSError as error:
        raise InvalidInput("", f"{path} cannot be read: {error.strerror or error}") from error
    return result


async def _import_lines(target: _Target, path: Path, result: Imported) -> None:
    waiting: list[tuple[int, NewMemory]] = []
    for number, line in _lines(path):
        try:
            given = _decoded(line)
            if _is_observation(given):
                waiting.append((number, _observation(given)))
            else:
                run = run_of_line(given)
                await record_run(
                    target.database, workspace=target.workspace, language=target.language, run=run, mask=target.mask
                )
                result.runs += 1
        except InvalidInput as error:
            result.failed.append(f"line {number}: {error}")
        if len(waiting) >= BATCH:
            await _remember_lines(target, waiting, result)
            waiting = []
    await _remember_lines(target, waiting, result)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(LARGEST_LINE + 1), b""), start=1):
            if line.strip():
                yield number, line


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
    return bool({"narrative", "facts", "observation"} & given.keys()) or given.get("kind") == "observation"


def _observation(given: dict[str, Any]) -> NewMemory:
    """An observation, its fields beside each other or below `observation`."""
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
    score, tags, metadata = fields.get("final_score"), fields.get("tags"), fields.get("metadata")
    if score is not None and (isinstance(score, bool) or not isinstance(score, int | float)):
        raise InvalidInput("final_score", "must be a number")
    return NewMemory(
        kind="observation",
        title=_text(fields, "title"),
        body=_text(fields, "body") or detail.body,
        tags=tuple(str(tag) for tag in tags) if isinstance(tags, list) else (),
        metadata=metadata if isinstance(metadata, dict) else {},
        run_id=_text(fields, "run_id") or None,
        final_score=None if score is None else float(score),
        occurred_at=as_moment(fields.get("occurred_at")) or as_moment(fields.get("timestamp")),
        observation=detail,
    )


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if isinstance(value, dict | list):
        raise InvalidInput(name, "must be a text")
    return "" if value is None else str(value)


async def _remember_lines(target: _Target, waiting: list[tuple[int, NewMemory]], result: Imported) -> None:
    if not waiting:
        return
    await _remember(target, [(f"line {number}", memory) for number, memory in waiting], result)


async def _remember(target: _Target, items: list[tuple[str, NewMemory]], result: Imported) -> tuple[UUID | None, ...]:
    remembered = await remember(
        target.database,
        target.counter,
        workspace=target.workspace,
        language=target.language,
        memories=[memory for _, memory in items],
        mask=target.mask,
    )
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
    if not batch:
        return
    items = [(f"observation {item.row_id}", item.memory) for item in batch]
    ids = await _remember(target, items, result)
    for item, memory_id in zip(batch, ids, strict=True):
        if memory_id is not None and (item.ratings or item.quality):
            result.ratings += await _carry_over(target, memory_id, item)


async def _carry_over(target: _Target, memory_id: UUID, item: HarnessObservation) -> int:
    """Append the old log, and what it lacks of the old quality; once, whatever people have said since."""
    prefix = f"import:{memory_id}:{item.row_id}"
    async with target.database.transaction() as connection:
        workspace = await workspaces.find(connection, target.workspace)
        assert workspace is not None, "the memory was stored in it"  # noqa: S101
        await feedback.lock(connection, workspace.workspace_id, memory_id)
        if await feedback.has_key(connection, workspace.workspace_id, prefix):
            return 0
        entries = [(rating.rating, rating.comment, rating.created_at) for rating in item.ratings]
        missing = item.quality - replayed([rating for rating, _, _ in entries])
        entries += [(1 if missing > 0 else -1, CARRIED_OVER, None)] * abs(missing)
        for place, (rating, comment, created_at) in enumerate(entries):
            await feedback.append(
                connection,
                workspace.workspace_id,
                memory_id,
                rating=rating,
                comment=comment,
                created_at=created_at,
                idempotency_key=f"{prefix}:{place}",
            )
        await feedback.set_quality(connection, workspace.workspace_id, memory_id)
    return len(item.ratings)
