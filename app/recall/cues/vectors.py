"""The SQL of what plans are compared with: the texts and vectors of cues."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from app.foundation.db.session import Row, Session
from app.recall.cues.cue import VECTORS_OF_CUE, VECTORS_VERSION
from app.recall.cues.store import JOINED
from app.storage.memories.store import as_json

_NEWER = f"""
SELECT c.memory_id AS cue_id, m.title AS trigger, m.body AS lesson, m.user_id AS "user", c.state, c.action_types,
    c.files, c.model, c.vectors, c.revision,
    extract(epoch FROM c.valid_from)::float8 AS begins,
    coalesce(extract(epoch FROM least(c.valid_until, CASE WHEN c.state <> 'active' THEN m.valid_until END))::float8,
        'infinity') AS ends, c.state IN ('active', 'superseded')
        OR c.state = 'retired' AND c.origin <> 'proposed' AND m.retired_as = 'deleted' AS held
FROM {JOINED}
WHERE c.workspace_id = %(workspace_id)s AND (c.revision, c.memory_id) > (%(revision)s, %(after)s::uuid)
ORDER BY c.revision, c.memory_id LIMIT %(limit)s
"""  # noqa: S608 - constants
_AT_ONCE = 2_000
"""Cues of a page that an index is made of: 5 MB, so that other requests are answered between two pages."""
_LAST_ID = UUID(int=2**128 - 1)
_EMBEDDED_AMONG = f"""
SELECT m.content_hash FROM {JOINED}
WHERE m.workspace_id = %(workspace_id)s AND m.content_hash = ANY(%(hashes)s::bytea[]) AND m.kind = 'cue'
    AND m.valid_until IS NULL AND c.model = %(model)s AND octet_length(c.vectors) = %(bytes)s
"""  # noqa: S608 - constants
_LACKING_OF_ALL = """
SELECT c.workspace_id, c.memory_id, c.model, c.revision FROM cues c
LEFT JOIN embedding_models m ON m.active
WHERE c.model IS DISTINCT FROM m.name || %(version)s OR octet_length(c.vectors) <> %(texts)s * 2 * m.dimension
ORDER BY c.workspace_id, c.memory_id DESC LIMIT %(limit)s
"""
_SET_VECTORS = """
UPDATE cues c SET model = %(model)s, vectors = given.vectors, revision = %(revision)s
FROM jsonb_populate_recordset(NULL::cues, %(rows)s::jsonb) AS given
WHERE c.workspace_id = %(workspace_id)s AND c.memory_id = given.memory_id AND c.revision = given.revision
"""


async def embedded_among(session: Session, hashes: Sequence[bytes], model: str, dimension: int) -> frozenset[bytes]:
    """Returns the hashes of live cues among these that have vectors of this model."""
    values = {"hashes": list(hashes), "model": model + VECTORS_VERSION, "bytes": 2 * VECTORS_OF_CUE * dimension}
    found = await session.column(_EMBEDDED_AMONG, values)
    return frozenset(map(bytes, found))


async def lacking_of_all(session: Session, *, limit: int) -> list[Row]:
    """Returns cues of all workspaces that have no vectors of the served model, with the model of those that they have.

    The session sees all workspaces.
    """
    values = {"limit": limit, "texts": VECTORS_OF_CUE, "version": VECTORS_VERSION}
    return await session.rows(_LACKING_OF_ALL, values)


async def set_vectors(session: Session, rows: Sequence[Mapping[str, Any]], model: str, revision: int) -> None:
    """Gives cues their vectors (`memory_id`, `revision`, `vectors`), unless they were written since that revision."""
    values = {"rows": as_json(rows), "model": model + VECTORS_VERSION, "revision": revision}
    await session.execute(_SET_VECTORS, values)


async def newer(session: Session, revision: int) -> AsyncIterator[list[Row]]:
    """Yields what activation matches of the cues that were written after this revision, page by page."""
    place: dict[str, Any] = {"revision": revision, "after": _LAST_ID}
    while rows := await session.rows(_NEWER, {**place, "limit": _AT_ONCE}, binary=True):
        yield rows
        if len(rows) < _AT_ONCE:
            return
        place = {"revision": rows[-1].revision, "after": rows[-1].cue_id}
