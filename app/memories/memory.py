"""A memory before it is stored, as it is stored, and where it comes from."""

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

KINDS = ("observation", "chunk", "message", "cue", "note")
SOURCE_KINDS = ("report", "session", "run", "other")
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReference:
    """Names a source; the first memory that names it makes it."""

    kind: str
    uri: str
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationDetail:
    """What an observation has beyond a memory's text."""

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
    """What the language model was asked; training data is made of it."""

    @property
    def body(self) -> str:
        """The text that is stored and found: the narrative above the facts."""
        return "\n".join(part for part in (self.narrative, *(f"- {fact}" for fact in self.facts)) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenVector:
    """A memory's vector that its writer has made."""

    model: str
    """Whose it is; only vectors of the model that is served are taken."""
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
    """Its place in the source, from 0; neighbours in a source lift each other."""
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
class Source:
    """A stored source."""

    source_id: UUID
    kind: str
    uri: str
    title: str
    memories: int
    """How many live memories it has."""
    created_at: datetime
    updated_at: datetime
    retired_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObservation:
    """What a stored observation has beyond a memory's text."""

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
    """How often what it says came back in the output of a run that it was given to."""
    created_at: datetime
    valid_until: datetime | None
    retired_as: str | None
    """Why it is retired: `gone` from its source, `deleted`, `superseded`, or `quarantined`; None while it is live."""
    findings: Sequence[Mapping[str, Any]] | None
    """What the injection scan found in it."""
    observation: StoredObservation | None = None
    """None for other kinds, and in a recall, which needs no more than the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What became of a batch: each given memory is in exactly one of the four."""

    ids: tuple[UUID | None, ...]
    """One a given memory, in its order; None where it was rejected."""
    stored: int
    updated: int
    """Known text whose date, tags, metadata, score or run were given anew."""
    unchanged: int
    rejected: tuple["Rejection", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """Why one given memory was not stored."""

    index: int
    """Its place in the batch, from 0."""
    reason: str
    code: str = "invalid"
    """What statistics count it by: `invalid`, `empty`, `punctuation`, `boilerplate`, `stack_trace`, `echo`,
    `injection`."""
    details: tuple[Mapping[str, Any], ...] = ()


HASH_BYTES = 16


def content_hash(memory: NewMemory, language: str) -> bytes:
    """16 bytes over language, title and body; equal text in two places of two sources stays two memories."""
    digest = hashlib.blake2b(digest_size=HASH_BYTES)
    for part in (language, memory.title, memory.body):
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.digest()


def new_id() -> UUID:
    """A UUID of version 7 (RFC 9562): later ids sort after earlier ones, so that indexes grow at one end."""
    milliseconds = time.time_ns() // 1_000_000
    value = milliseconds << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    return UUID(int=value & ~(0x3 << 62) | 0x2 << 62)


def in_utc(moment: datetime) -> datetime:
    """`moment` in UTC, which is assumed where it names no zone."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
