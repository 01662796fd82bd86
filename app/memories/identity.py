"""What makes two memories the same one, and their ids."""

import hashlib
import os
import time
from datetime import UTC, datetime
from uuid import UUID

from app.memories.memory import NewMemory

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
