"""From a file's bytes to rows that can be written: everything about a file that needs no database."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from app.errors import InvalidInput
from app.index.vectors import embedded_text
from app.intake.reports.chunk import Chunk
from app.intake.reports.chunking import chunk_report
from app.memories.admission import TAG_LIMIT, TAGS_LIMIT
from app.memories.gate import INJECTION, INVALID, Screened, screened
from app.memories.memory import MemoryRow, NewMemory
from app.models.protocols import TokenCounter

CHUNKER_VERSION = 3
"""Part of every file's hash: raising it chunks everything anew at the next ingestion."""
HASH_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A file ready to be written."""

    uri: str
    title: str
    """Its path as people know it."""
    content_hash: bytes
    rows: tuple[MemoryRow, ...]
    """One a chunk, without a source yet."""
    left_out: int = 0
    """Chunks of machine noise that are not stored."""


def file_hash(content: bytes, language: str) -> bytes:
    """What must be equal for a file to count as unchanged."""
    prefix = f"{CHUNKER_VERSION}:{language}:".encode()
    return hashlib.blake2b(prefix + content, digest_size=HASH_BYTES).digest()


def prepare(
    content: bytes, *, uri: str, shown: PurePosixPath, language: str, counter: TokenCounter, mask: bool = True
) -> Prepared:
    """Chunk a file and make its rows. A chunk in which the injection scan finds something is to be quarantined.

    Raises:
        InvalidInput: the content is no report; the message says why.
    """
    chunks = chunk_report(shown, content, counter)
    tags = path_tags(shown)
    passed = [_passed(_memory(chunk, ordinal, tags), mask=mask) for ordinal, chunk in enumerate(chunks)]
    tokens = counter.count_many([embedded_text(item.memory.title, item.memory.body) for item in passed])
    return Prepared(
        uri=uri,
        title=str(shown),
        content_hash=file_hash(content, language),
        rows=tuple(
            MemoryRow(
                memory=item.memory,
                source_id=None,
                language=language,
                tokens=count,
                findings=item.findings,
                quarantined=item.objection is not None,
            )
            for item, count in zip(passed, tokens, strict=True)
        ),
        left_out=sum(chunk.left_out for chunk in chunks),
    )


def _memory(chunk: Chunk, ordinal: int, tags: Sequence[str]) -> NewMemory:
    metadata: dict[str, Any] = {"trail": list(chunk.trail)}
    if chunk.pointer:
        metadata["pointer"] = chunk.pointer
    return NewMemory(
        kind="chunk",
        title=chunk.title,
        body=chunk.text,
        ordinal=ordinal,
        occurred_at=chunk.occurred_at,
        final_score=chunk.final_score,
        tags=tuple(tags),
        metadata=metadata,
    )


def _passed(memory: NewMemory, *, mask: bool) -> Screened:
    """The gate through which every chunk passes; only what an instruction blocks goes on, to be quarantined."""
    # The source is named at the write; until then the ordinal stands for itself.
    result = screened(replace(memory, ordinal=None), mask=mask)
    if result.objection is not None and result.objection.code == INVALID:
        raise InvalidInput("", f"chunk {memory.ordinal}: {result.objection.message}")
    kept = result.objection if result.objection is not None and result.objection.code == INJECTION else None
    return replace(result, memory=replace(result.memory, ordinal=memory.ordinal), objection=kept)


def path_tags(path: PurePosixPath) -> tuple[str, ...]:
    """The names of the folders that a report stands in, lower-cased, each once: `bads-russia`, `v6`."""
    names = (part.strip().lower()[:TAG_LIMIT] for part in path.parts[:-1])
    return tuple(dict.fromkeys(name for name in names if name.strip("./")))[:TAGS_LIMIT]
