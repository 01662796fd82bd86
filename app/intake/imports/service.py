"""The verb that imports the store of an earlier harness. Another import adds only new entries."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from app.errors import InvalidInput
from app.foundation.db.database import Database
from app.foundation.safety.secrets import masked_values
from app.foundation.values import frozen
from app.intake.imports.exported import (
    REFUSED_BY_THE_DATABASE,
    Entry,
    ImportedObservation,
    filled_fields,
    given_memories,
    memories_named,
    only_new,
    refusal,
    taken_out,
)
from app.intake.imports.harness import key_part, read_harness
from app.intake.runs import store as runs
from app.intake.runs.feedback import store as feedback
from app.intake.runs.run import NewRun, check_run
from app.intake.runs.service import Runs
from app.storage.memories import store as memories
from app.storage.memories.gate import reason_to_reject
from app.storage.memories.memory import NewMemory, content_hash
from app.storage.memories.remember import WriteGate
from app.storage.recalls.store import insert_imported
from app.storage.tenants.service import Workspaces
from app.storage.tenants.workspace import Workspace

_BATCH = 200
"""Observations that are stored together, and runs whose given memories are looked up together."""
_CARRIED_OVER = "carried over from an earlier store"
_Named = tuple[str, ImportedObservation]
"""The name of a line or row, and its observation."""


@dataclass(slots=True)
class Imported:
    """The result of a file's import."""

    path: str
    runs: int = 0
    stored: int = 0
    """Number of new observations."""
    known: int = 0
    ratings: int = 0
    failed: list[str] = field(default_factory=list)
    """Lines and rows that were left out, each with its reason."""


@frozen
class Imports:
    """Takes the stores of earlier harnesses into a database."""

    database: Database
    write_gate: WriteGate
    runs: Runs
    mask_secrets: bool = True

    async def import_file(self, workspace: Workspace, path: Path) -> Imported:
        """Imports a harness's SQLite store, or its JSON lines of runs or observations; the content tells which it is.

        A bad line or row is named and left out, and the import continues. Judgements, ratings and deletions since an
        earlier import stay; new entries of the harness are added.

        Raises:
            InvalidInput: the file cannot be read at all.
        """
        result = Imported(path=str(path))
        try:
            # SQLite and the parsing of lines take the processor: other requests go on meanwhile.
            entries = await asyncio.to_thread(lambda: list(read_harness(path)))
            target = _Import(
                service=self, workspace=await Workspaces(database=self.database).get_or_create(workspace), result=result
            )
            await target.take_in(entries)
        except OSError as error:
            raise InvalidInput("", f"{path} cannot be read: {error.strerror or error}") from error
        return result


@frozen
class _Import:
    service: Imports
    workspace: Workspace
    result: Imported
    filled: dict[str, frozenset[str]] = field(default_factory=dict)
    """Fields of each run that were stored before this import. A run's later lines replace its earlier lines, but not
    these."""
    given: dict[str, list[tuple[str | None, str | None]]] = field(default_factory=dict)
    """Id and title of each memory that the earlier store gave to a run, by run."""

    async def take_in(self, entries: Sequence[Entry]) -> None:
        batch: list[_Named] = []
        for name, item in entries:
            if isinstance(item, str):
                self.result.failed.append(f"{name}: {item}")
            elif isinstance(item, NewRun):
                await self._take_run(name, item)
            else:
                batch.append((name, item))
        for start in range(0, len(batch), _BATCH):
            await self._take_observations(batch[start : start + _BATCH])
        names = list(self.given)
        for start in range(0, len(names), _BATCH):
            await self._note_given(names[start : start + _BATCH])

    async def _note_given(self, names: Sequence[str]) -> None:
        """Logs which memories these runs were given."""
        async with self.service.database.session(self.workspace) as session:
            given = await memories_named(session, {run_id: self.given[run_id] for run_id in names})
            for run_id, ids in given.items():
                run = await runs.find(session, run_id) if ids else None
                if run is not None:
                    await insert_imported(session, run_id, task=run.task, agent=run.agent, ids=ids)

    async def _take_run(self, name: str, run: NewRun) -> None:
        """Stores the new fields of a run. A stored judgement stays."""
        try:
            check_run(run)
            run = masked_values(run) if self.service.mask_secrets else run
            if run.run_id not in self.filled:
                async with self.service.database.session(self.workspace, transaction=False) as session:
                    self.filled[run.run_id] = await filled_fields(session, run.run_id)
            new = only_new(run, self.filled[run.run_id])
            if new is not None:
                await self.service.runs.record(self.workspace, new, known_first=True)
            if named := given_memories(run):
                self.given[run.run_id] = named
            self.result.runs += 1
        except InvalidInput as error:
            self.result.failed.append(f"{name}: {error}")
        except REFUSED_BY_THE_DATABASE as error:
            self.result.failed.append(f"{name}: {refusal(error)}")

    async def _take_observations(self, batch: Sequence[_Named]) -> None:
        """Stores observations, then their ratings; one by one where the database refuses the batch."""
        kept, result = await self._not_taken_out(batch), self.result
        try:
            remembered = await self.service.write_gate.remember(
                self.workspace, [item.memory for _, item in kept], known_first=True
            )
        except REFUSED_BY_THE_DATABASE as error:
            if len(kept) == 1:
                result.failed.append(f"{kept[0][0]}: {refusal(error)}")
            else:
                for named in kept:
                    await self._take_observations([named])
            return
        result.stored += remembered.stored
        result.known += remembered.unchanged + remembered.updated
        result.failed += [f"{kept[refused.index][0]}: {refused.reason}" for refused in remembered.rejected]
        for (name, item), memory_id in zip(kept, remembered.ids, strict=True):
            if memory_id is None or not (item.ratings or item.quality):
                continue
            try:
                result.ratings += await self._carry_over(memory_id, item)
            except REFUSED_BY_THE_DATABASE as error:
                result.failed.append(f"{name}: its ratings: {refusal(error)}")

    async def _not_taken_out(self, batch: Sequence[_Named]) -> list[_Named]:
        """Returns the observations without those that were deleted or retired since an earlier import."""
        hashes = await asyncio.to_thread(lambda: [self._hash(item.memory) for _, item in batch])
        async with self.service.database.session(self.workspace, transaction=False) as session:
            retired = await taken_out(session, {item for item in hashes if item is not None})
        kept = [named for named, digest in zip(batch, hashes, strict=True) if digest not in retired]
        self.result.known += len(batch) - len(kept)
        return kept

    def _hash(self, memory: NewMemory) -> bytes | None:
        """Returns the content hash under which a memory is stored; None if the memory will be refused."""
        if reason_to_reject(memory) is not None:
            return None
        return content_hash(masked_values(memory) if self.service.mask_secrets else memory, self.workspace.language)

    def _masked_rating(self, rating: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**rating, "comment": masked_values(rating["comment"])} if self.service.mask_secrets else rating

    async def _carry_over(self, memory_id: UUID, item: ImportedObservation) -> int:
        """Appends the new ratings of the earlier log, then ratings that make up the difference to the earlier quality.

        Returns the number of new ratings of the log.
        """
        prefix = f"import:{memory_id}:{key_part(item.row_id)}:"
        async with self.service.database.session(self.workspace) as session:
            if not await memories.lock(session, [memory_id]):
                return 0
            before = await feedback.ratings_by_key(session, memory_id, prefix)
            keyed = {f"{prefix}log:{key_part(log_id)}": rating for log_id, rating in item.ratings.items()}
            entries = {key: self._masked_rating(rating) for key, rating in keyed.items() if key not in before}
            count = len(entries)
            if item.quality is not None:
                known = [*before.values(), *(rating["rating"] for rating in entries.values())]
                missing = item.quality - feedback.replay_quality(known)
                carried = {"rating": 1 if missing > 0 else -1, "comment": _CARRIED_OVER}
                entries |= {f"{prefix}carried:{len(known) + place}": carried for place in range(abs(missing))}
            for key, rating in entries.items():
                await feedback.append(
                    session, feedback.FeedbackEntry(memory_id=memory_id, idempotency_key=key, **rating)
                )
            if entries:
                await feedback.set_quality(session, memory_id)
        return count
