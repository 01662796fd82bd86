"""Arrays that travel in the form in which Postgres sends them: ids from one statement into the next, and new vectors.

A thousand ids, read into Python's objects and written again, take longer than the search for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt
from psycopg import adapters
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format

UUID_ARRAY, UUID_TYPE = adapters.types["uuid"].array_oid, adapters.types["uuid"].oid
HALFVEC_TYPE = "SELECT 'halfvec'::regtype::oid::bigint"
"""Asks for the number that this database gave to pgvector's type, which an array of vectors begins with."""

Matrix: TypeAlias = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class Ids:
    """A `uuid[]`, as it came or goes."""

    array: bytes


@dataclass(frozen=True, slots=True)
class Vectors:
    """A `halfvec[]`; the statement says so (`%(vectors)s::halfvec[]`), because its type has no fixed number."""

    array: bytes


class _IdsLoader(Loader):
    """What a statement gives in the binary format; others have their ids as UUIDs."""

    format = Format.BINARY

    def load(self, data: Buffer) -> Ids:
        return Ids(bytes(data))


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Ids | Vectors) -> Buffer:
        return obj.array


class _IdsDumper(_ArrayDumper):
    oid = UUID_ARRAY


adapters.register_dumper(Ids, _IdsDumper)
adapters.register_dumper(Vectors, _ArrayDumper)
adapters.register_loader(UUID_ARRAY, _IdsLoader)


def ids_of(ids: Sequence[UUID]) -> Ids:
    """Returns these ids as they are sent."""
    entries = np.zeros(len(ids), np.dtype([("bytes", ">i4"), ("id", "V16")]))
    entries["bytes"] = 16
    entries["id"] = np.frombuffer(b"".join(memory_id.bytes for memory_id in ids), "V16")
    return Ids(_header(len(ids), UUID_TYPE) + entries.tobytes())


def vectors_of(matrix: Matrix, halfvec_type: int) -> Vectors:
    """Returns the rows of a matrix, rounded to half precision, as they are sent. HALFVEC_TYPE asks for the type."""
    count, dimension = matrix.shape
    kinds = [("bytes", ">i4"), ("dimension", ">i2"), ("unused", ">i2"), ("numbers", ">f2", (dimension,))]
    entries = np.zeros(count, np.dtype(kinds))
    entries["bytes"], entries["dimension"] = 4 + 2 * dimension, dimension
    entries["numbers"] = matrix
    return Vectors(_header(count, halfvec_type) + entries.tobytes())


def _header(count: int, element_type: int) -> bytes:
    """One dimension, no NULLs, the element's type, as many elements, counted from 1."""
    return np.array([1, 0, element_type, count, 1], ">i4").tobytes()
