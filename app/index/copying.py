"""Many vectors at once, in the binary format that Postgres copies from."""

from collections.abc import Sequence
from uuid import UUID

import numpy as np
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import copy
from app.index.vectors import StoredModel
from app.models.protocols import Matrix

HEADER, END = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
"""Of COPY's binary format: its signature without flags, and a tuple of -1 fields."""


async def copy_new(
    connection: AsyncConnection, model: StoredModel, workspace_id: int, ids: Sequence[UUID], rows: Matrix
) -> None:
    """Store the vectors of memories that this transaction has made, row i for memory i.

    Nobody else knows these memories yet, so none can have been retired or have got a vector: `store.insert` would ask,
    and takes three times as long.
    """
    await copy(
        connection,
        f"COPY {model.partition} (workspace_id, memory_id, model_id, embedding) FROM STDIN (FORMAT BINARY)",
        as_copied(model, workspace_id, ids, rows),
    )


def as_copied(model: StoredModel, workspace_id: int, ids: Sequence[UUID], rows: Matrix) -> bytes:
    """Each field behind its length in bytes, and a halfvec's numbers behind their count."""
    fields: dict[str, tuple[str, int]] = {
        "fields": (">i2", 4),
        "workspace_bytes": (">i4", 8),
        "workspace": (">i8", workspace_id),
        "memory_bytes": (">i4", 16),
        "memory": ("V16", 0),
        "model_bytes": (">i4", 2),
        "model": (">i2", model.model_id),
        "vector_bytes": (">i4", 4 + 2 * model.dimension),
        "dimension": (">i2", model.dimension),
        "unused": (">i2", 0),
    }
    kinds = [(name, kind) for name, (kind, _) in fields.items()]
    tuples = np.zeros(len(ids), np.dtype([*kinds, ("numbers", ">f2", (model.dimension,))]))
    for name, (_, value) in fields.items():
        if name != "memory":
            tuples[name] = value
    tuples["memory"] = np.frombuffer(b"".join(memory_id.bytes for memory_id in ids), "V16")
    tuples["numbers"] = rows
    return HEADER + tuples.tobytes() + END
