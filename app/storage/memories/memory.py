"""The values of a memory (given, ready to be written, stored) and of its source."""

import hashlib
import os
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, get_args
from uuid import UUID

from msgspec import Meta, Struct, structs

from app.foundation.text.words import shingles
from app.foundation.values import frozen
from app.storage.tenants.workspace import User

Kind: TypeAlias = Literal["observation", "chunk", "message", "cue", "note"]
SourceKind: TypeAlias = Literal["report", "session", "run", "other"]
KINDS: Sequence[Kind] = get_args(Kind)
SOURCE_KINDS: Sequence[SourceKind] = get_args(SourceKind)
GONE, DELETED, SUPERSEDED, QUARANTINED = "gone", "deleted", "superseded", "quarantined"
"""Reasons to retire a memory: its text is no longer in its source, a person deleted it, a better memory says the
same, or the injection scan has a finding in it."""

BODY_LIMIT = 200_000
"""Most characters of a body. Postgres refuses a tsvector over 1 MB; even a text of only different words stays below
it."""
TITLE_LIMIT = 1_000
URI_LIMIT = 2_000
"""Most bytes of a URI; an index row holds at most 2,700."""
TAG_LIMIT = 100
TAGS_LIMIT = 64
NAME_LIMIT = 200
TASK_LIMIT = 20_000
LARGEST_ORDINAL = 2**31 - 1
_LARGEST_FLOAT = 3.4e38
"""The largest 32-bit float. A larger number becomes this one, which hardly changes the vector's direction."""
Name: TypeAlias = Annotated[str, Meta(max_length=NAME_LIMIT)]
_Tag: TypeAlias = Annotated[str, Meta(min_length=1, max_length=TAG_LIMIT)]
Tags: TypeAlias = Annotated[tuple[_Tag, ...], Meta(max_length=TAGS_LIMIT)]
Quality: TypeAlias = Annotated[
    int, Meta(ge=-3, le=3, description="the ratings, applied in order and clamped each time")
]
Score: TypeAlias = Annotated[float, Meta(ge=0, le=10, description="the evaluator's score")]
_Title: TypeAlias = Annotated[str, Meta(max_length=TITLE_LIMIT)]
_Text: TypeAlias = Annotated[str, Meta(max_length=BODY_LIMIT)]

_COPIED = ("kind", "ordinal", "title", "body", "tags", "run_id", "final_score")
"""Fields that a memory and its row have in common."""

Identity: TypeAlias = tuple[bytes, str, UUID | None, int | None]
"""Content hash, kind, source and ordinal."""


class SourceReference(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A source, identified by its kind and URI. It is stored when the first memory names it."""

    kind: SourceKind
    uri: Annotated[str, Meta(min_length=1, max_length=URI_LIMIT)]
    title: _Title = ""


class ObservationDetail(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields that an observation has beyond a memory's text, already compressed."""

    task: Annotated[str, Meta(max_length=TASK_LIMIT)] = ""
    task_type: Name = ""
    narrative: _Text = ""
    facts: Annotated[tuple[_Text, ...], Meta(max_length=1_000)] = ()
    queries: Annotated[tuple[_Text, ...], Meta(max_length=1_000)] = ()
    """The searches of the run; the observation is found by them, too."""
    output_path: Annotated[str, Meta(max_length=TASK_LIMIT)] | None = None
    verdict: Name = ""

    def body(self, given: str = "") -> str:
        """Returns the text that is stored and indexed: the given body above the facts that it lacks.

        Without a given body, the narrative is above all facts.
        """
        facts = [fact for fact in self.facts if fact not in given]
        return "\n".join(part for part in (given or self.narrative, *(f"- {fact}" for fact in facts)) if part)


class CompressedDetail(ObservationDetail, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of an observation that this service compressed."""

    compressor: str
    """`llm` or `extractive`."""
    model: str | None = None
    prompt: str | None = None
    """The prompt of the language model, kept for training data."""


class GivenVector(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A vector of the memory's title and body, a line break between them, where the caller has one."""

    model: Annotated[Name, Meta(description="as `GET /api/status` names the one that is served")]
    vector: Annotated[
        bytes | Annotated[Sequence[float], Meta(max_length=16_000)],
        Meta(description="numbers, or 32-bit floats, little-endian, in base64"),
    ]

    @property
    def numbers(self) -> bytes:
        """The vector as little-endian 32-bit floats."""
        if isinstance(self.vector, bytes):
            return self.vector
        given = [min(max(number, -_LARGEST_FLOAT), _LARGEST_FLOAT) for number in self.vector]
        return struct.pack(f"<{len(given)}f", *given)


class NewMemory(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A memory as its writer gives it. Its text is kept word for word."""

    kind: Kind
    body: Annotated[_Text, Meta(description="stands above an observation's facts; empty: its narrative")] = ""
    title: _Title = ""
    source: SourceReference | None = None
    ordinal: Annotated[int, Meta(ge=0, le=LARGEST_ORDINAL, description="position in the source, from 0")] | None = None
    occurred_at: datetime | None = None
    tags: Tags = ()
    metadata: Mapping[str, Any] = {}
    language: Annotated[Name, Meta(description="by name or ISO code; without it, the workspace's")] | None = None
    run_id: Name | None = None
    final_score: Score | None = None
    observation: ObservationDetail | None = None
    embedding: GivenVector | None = None
    user: User = ""

    def with_facts(self) -> "NewMemory":
        """Returns the memory with the text that an observation's fields make of its body."""
        return structs.replace(self, body=self.observation.body(self.body)) if self.observation else self


_HASH_BYTES = 16


def content_hash(memory: NewMemory, language: str) -> bytes:
    """Returns 16 bytes that identify language, title and body."""
    digest = hashlib.blake2b(digest_size=_HASH_BYTES)
    for part in (language, memory.title, memory.body):
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.digest()


def as_bytea(value: bytes) -> str:
    """Returns bytes as Postgres reads them in JSON."""
    return f"\\x{value.hex()}"


def new_id() -> UUID:
    """Returns a UUID of version 7 (RFC 9562): later ids sort after earlier ones, so that indexes grow at one end."""
    milliseconds = time.time_ns() // 1_000_000
    value = milliseconds << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    return UUID(int=value & ~(0x3 << 62) | 0x2 << 62)


def first_id(moment: datetime) -> UUID:
    """Returns the lower end of the ids that `new_id` makes from this moment on."""
    return UUID(int=max(0, int(moment.timestamp() * 1000)) << 80)


@dataclass(frozen=True, kw_only=True)
class MemoryRow:
    """A memory that is ready to be written, with all computed fields."""

    memory_id: UUID = field(default_factory=new_id)
    memory: NewMemory
    source_id: UUID | None
    language: str
    """Text search configuration."""
    tokens: int
    findings: tuple[Mapping[str, Any], ...] = ()
    """The findings of the injection scan."""
    quarantined: bool = False

    @cached_property
    def content_hash(self) -> bytes:
        """The hash of its language and text."""
        return content_hash(self.memory, self.language)

    @property
    def identity(self) -> Identity:
        """The identity, which no two live memories of a workspace share."""
        return self.content_hash, self.memory.kind, self.source_id, self.memory.ordinal

    @property
    def json(self) -> dict[str, Any]:
        """The row in the form that `jsonb_populate_recordset` reads."""
        given = self.memory
        return {
            **{name: getattr(given, name) for name in _COPIED},
            "memory_id": self.memory_id,
            "source_id": self.source_id,
            "language": self.language,
            "metadata": dict(given.metadata),
            "tokens": self.tokens,
            "occurred_at": None if given.occurred_at is None else in_utc(given.occurred_at),
            "content_hash": as_bytea(self.content_hash),
            "findings": self.findings or None,
            "retired_as": QUARANTINED if self.quarantined else None,
        }


class Objection(NamedTuple):
    """The reason not to store a memory."""

    message: str
    """The field, the fault and the remedy."""
    code: str
    """The name under which statistics count the reason."""
    details: tuple[dict[str, Any], ...] = ()


@frozen
class Screened:
    """A memory after the gate, without its secrets."""

    memory: NewMemory
    objection: Objection | None = None
    """The reason not to store it; None if it may be stored."""
    findings: tuple[dict[str, Any], ...] = ()
    """The findings of the injection scan, by field, including harmless ones."""
    tokens: int = 0
    """Length of its embedded text; 0 until it is counted."""

    def row(self, *, source_id: UUID | None, language: str) -> MemoryRow:
        """Returns the row of the memory; one with an objection goes into quarantine."""
        return MemoryRow(
            memory=self.memory,
            source_id=source_id,
            language=language,
            tokens=self.tokens,
            findings=self.findings,
            quarantined=self.objection is not None,
        )


@dataclass(frozen=True, kw_only=True)
class Given:
    """A memory that a run was given, with its shingles."""

    memory_id: UUID
    text: str

    @cached_property
    def shingles(self) -> frozenset[str]:
        """The shingles of its text."""
        return shingles(self.text)


class Source(Struct, frozen=True, kw_only=True, rename={"source_id": "id"}):
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


@frozen
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
    kind: Kind
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
    """Number of runs that were given the memory and whose output repeats it."""
    created_at: datetime
    valid_until: datetime | None
    retired_as: str | None
    """GONE, DELETED, SUPERSEDED or QUARANTINED; None for a live memory."""
    findings: Sequence[Mapping[str, Any]] | None
    """The findings of the injection scan."""
    user: str = ""
    """The user whom it belongs to; "" for nobody."""
    suspect: bool = False
    """True if a finding keeps it out of histories, until a person releases it."""
    accessed_at: datetime | None = None
    """The moment of the last recall that gave it; None if none did. A worker notes it within five minutes."""
    access_count: int = 0
    """Number of recalls that gave it; trials in the panel and imported ones do not count."""
    observation: StoredObservation | None = None
    """The fields of an observation; None for other kinds, and in a recall, which reads only the text."""

    @property
    def source_name(self) -> str:
        """The name by which a person knows the memory's source; empty without one."""
        return self.source_title or self.source_uri or ""


@frozen
class Rejection:
    """A given memory that was not stored, and the reason."""

    index: int
    """Position in the batch, from 0."""
    reason: str
    code: str = "invalid"
    """The name under which statistics count the reason: `invalid`, `empty`, `punctuation`, `number`, `boilerplate`,
    `stack_trace`, `echo` or `injection`."""
    details: tuple[Mapping[str, Any], ...] = ()


@frozen
class Remembered:
    """The outcome of a batch; each given memory is in exactly one of the four counts."""

    ids: tuple[UUID | None, ...]
    """One id for each given memory, in their order; None for a rejected one."""
    stored: int
    updated: int
    """Number of known memories that got a new date, tag, metadata, score or run."""
    unchanged: int
    rejected: tuple[Rejection, ...]


def in_utc(moment: datetime) -> datetime:
    """Returns the moment in UTC; a moment without a zone is taken as UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
