"""Many ids on their way from one statement into the next, in the form in which Postgres sends them.

A thousand ids, read into Python's objects and written again, take longer than the search for them.
"""

from dataclasses import dataclass

from psycopg import AsyncCursor, adapters
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format

UUID_ARRAY = adapters.types["uuid"].array_oid


@dataclass(frozen=True, slots=True)
class Ids:
    """A `uuid[]`, as it came."""

    array: bytes


class _IdsLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> Ids:
        return Ids(bytes(data))


class _IdsDumper(Dumper):
    format = Format.BINARY
    oid = UUID_ARRAY

    def dump(self, obj: Ids) -> Buffer:
        return obj.array


adapters.register_dumper(Ids, _IdsDumper)


def keep_ids(cursor: AsyncCursor[object]) -> None:
    """Let this cursor, which must be a binary one, give each `uuid[]` as Ids."""
    cursor.adapters.register_loader(UUID_ARRAY, _IdsLoader)
