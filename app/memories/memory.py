"""A memory as its writer gives it, as it is written, and as it is stored; and where it comes from."""

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, TypeAlias
from uuid import UUID

KINDS = ("observation", "chunk", "message", "cue", "note")
SOURCE_KINDS = ("report", "session", "run", "other")
NOTHING: Mapping[str, Any] = MappingProxyType({})
GONE, DELETED, SUPERSEDED, QUARANTINED = "gone", "deleted", "superseded", "quarantined"
"""Reasons for which a memory is retired: its text left its source, a person deleted it, a better one says the same, or
the injection scan found something in it."""

Identity: TypeAlias = tuple[bytes, str, UUID | None, int | None]
"""Content hash, kind, source and ordinal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReference:
    """Names a source; the first memory that names it makes it."""

    kind: str
    uri: str
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationDetail:
    """The fields that an observation has beyond a memory's text."""

    task: str = ""
    task_type: str = ""
    narrative: str = ""
    facts: tuple[str, ...] = ()
    output_path: str | None = None
    verdict: str = ""
    compressor: str = "given"
    """`llm`, `extractive`, or `given` where the writer compressed."""
    model: str | None = None
    prompt: str | None = None
    """The prompt of the language model; training data is made of it."""

    @property
    def body(self) -> str:
        """The text that is stored and indexed: the narrative above the facts."""
        return "\n".join(part for part in (self.narrative, *(f"- {fact}" for fact in self.facts)) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenVector:
    """A memory's vector that its writer has made."""

    model: str
    """The name of the model that made it; only vectors of the served model are taken."""
    numbers: bytes
    """32-bit floats, little-endian."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A memory as its writer gives it. The text is kept word for word."""

    kind: str
    body: str
    title: str = ""
    source: SourceReference | None = None
    ordinal: int | None = None
    """Its place in the source, from 0; neighbours in a source boost each other."""
    occurred_at: datetime | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    language: str | None = None
    """Text search language by name or ISO code; None: the workspace's."""
    run_id: str | None = None
    final_score: float | None = None
    """The evaluator's score, 0 to 10."""
    observation: ObservationDetail | None = None
    embedding: GivenVector | None = None
    """Of title and body as they are embedded; None: a worker makes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRow:
    """A memory ready to be written: everything is computed, nothing is looked up any more."""

    memory_id: UUID
    memory: NewMemory
    source_id: UUID | None
    language: str
    """Text search configuration."""
    tokens: int
    content_hash: bytes
    findings: tuple[Mapping[str, Any], ...] = ()
    """The findings of the injection scan."""
    quarantined: bool = False

    @property
    def identity(self) -> Identity:
        """Two live memories of a workspace never share it."""
        return self.content_hash, self.memory.kind, self.source_id, self.memory.ordinal

    @property
    def json(self) -> dict[str, Any]:
        """The row as `jsonb_to_recordset` reads it."""
        given = self.memory
        return {
            "memory_id": self.memory_id,
            "kind": given.kind,
            "source_id": self.source_id,
            "ordinal": given.ordinal,
            "title": given.title,
            "body": given.body,
            "language": self.language,
            "tags": given.tags,
            "metadata": dict(given.metadata),
            "run_id": given.run_id,
            "final_score": given.final_score,
            "tokens": self.tokens,
            "occurred_at": None if given.occurred_at is None else in_utc(given.occurred_at),
            "content_hash": self.content_hash.hex(),
            "findings": self.findings or None,
            "retired_as": QUARANTINED if self.quarantined else None,
        }


def row_of(
    memory: NewMemory,
    *,
    source_id: UUID | None,
    language: str,
    tokens: int,
    findings: tuple[Mapping[str, Any], ...] = (),
    quarantined: bool = False,
) -> MemoryRow:
    """Returns a new memory's row, under an id of its own."""
    return MemoryRow(
        memory_id=new_id(),
        memory=memory,
        source_id=source_id,
        language=language,
        tokens=tokens,
        content_hash=content_hash(memory, language),
        findings=findings,
        quarantined=quarantined,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A stored source."""

    source_id: UUID
    kind: str
    uri: str
    title: str
    memories: int
    """The number of its live memories."""
    created_at: datetime
    updated_at: datetime
    retired_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObservation:
    """The fields that a stored observation has beyond a memory's text."""

    task: str
    task_type: str
    narrative: str
    facts: tuple[str, ...]
    output_path: str | None
    verdict: str
    compressor: str
    model: str | None
    superseded_by: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A stored memory."""

    memory_id: UUID
    kind: str
    title: str
    body: str
    language: str
    source_id: UUID | None
    source_kind: str | None
    source_uri: str | None
    source_title: str | None
    ordinal: int | None
    occurred_at: datetime | None
    tags: tuple[str, ...]
    metadata: Mapping[str, Any]
    run_id: str | None
    final_score: float | None
    quality: int
    tokens: int
    uses: int
    """The number of times that it came back in the output of a run which it was given to."""
    created_at: datetime
    valid_until: datetime | None
    retired_as: str | None
    """The reason why it is retired: GONE, DELETED, SUPERSEDED or QUARANTINED; None while it is live."""
    findings: Sequence[Mapping[str, Any]] | None
    """The findings of the injection scan."""
    observation: StoredObservation | None = None
    """None for other kinds, and in a recall, which needs no more than the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """The outcome of a batch: each given memory is in exactly one of the four."""

    ids: tuple[UUID | None, ...]
    """One a given memory, in its order; None where it was rejected."""
    stored: int
    updated: int
    """Known text whose date, tags, metadata, score or run were given anew."""
    unchanged: int
    rejected: tuple["Rejection", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """The reason why one given memory was not stored."""

    index: int
    """Its place in the batch, from 0."""
    reason: str
    code: str = "invalid"
    """The name that statistics count it by: `invalid`, `empty`, `punctuation`, `boilerplate`, `stack_trace`, `echo` or
    `injection`."""
    details: tuple[Mapping[str, Any], ...] = ()


HASH_BYTES = 16


def content_hash(memory: NewMemory, language: str) -> bytes:
    """Returns 16 bytes over language, title and body; equal text in two places or sources stays two memories."""
    digest = hashlib.blake2b(digest_size=HASH_BYTES)
    for part in (language, memory.title, memory.body):
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.digest()


def new_id() -> UUID:
    """Returns a UUID of version 7 (RFC 9562): later ids sort after earlier ones, so that indexes grow at one end."""
    milliseconds = time.time_ns() // 1_000_000
    value = milliseconds << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    return UUID(int=value & ~(0x3 << 62) | 0x2 << 62)


def in_utc(moment: datetime) -> datetime:
    """Returns the moment in UTC, which is assumed where it names no zone."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
