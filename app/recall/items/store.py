"""The SQL of items."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from app.foundation.db.session import Row, Session
from app.recall.items.item import (
    MOST_LABELS,
    Item,
    ItemGet,
    ItemPut,
    ItemSearch,
    Labels,
    NamespaceSearch,
    labels_of,
    path_of,
)
from app.recall.items.matching import PARSED, Conditions, add_filter, beginning_with, first_labels, patterns
from app.storage.memories.store import as_json

_OWN = "i.workspace_id = %(workspace_id)s AND i.user_id = current_setting('priors.user')"
LIVE = f"{_OWN} AND (i.expires_at IS NULL OR i.expires_at > now())"
COLUMNS = "i.namespace, i.key, i.value, i.created_at, i.updated_at, i.expires_at, i.memory_id"
GIVEN_KEYS = "unnest(%(namespaces)s::text[], %(keys)s::text[]) AS given(namespace, key)"
GET = f"SELECT {COLUMNS} FROM {GIVEN_KEYS} JOIN items i USING (namespace, key) WHERE {LIVE}"  # noqa: S608 - constants
_SEARCH = f"""
SELECT {COLUMNS} FROM {{items}} WHERE {LIVE} AND {{conditions}}
ORDER BY {{ranked}}i.namespace{{way}}, i.created_at{{way}}, i.key{{way}} LIMIT %(limit)s OFFSET %(offset)s
"""  # noqa: S608 - constants
_RANKED = "array_position(%(ranked)s::uuid[], i.memory_id) NULLS LAST, "
SEARCHABLE = f"SELECT i.memory_id FROM {{items}} WHERE {LIVE} AND i.memory_id IS NOT NULL AND {{conditions}}"  # noqa: S608 - constants

# It goes from each namespace to the next, so that a namespace of many items costs no more than one of few.
_NEXT = f"SELECT i.namespace FROM items i WHERE {LIVE}{{after}} ORDER BY i.namespace LIMIT 1"  # noqa: S608 - constants
_NAMESPACES = f"""
WITH RECURSIVE known AS (
    ({_NEXT.format(after="")})
    UNION ALL
    SELECT ({_NEXT.format(after=" AND i.namespace > known.namespace")}) FROM known WHERE known.namespace IS NOT NULL
)
SELECT DISTINCT {{shown}} AS namespace FROM known WHERE namespace IS NOT NULL AND {{conditions}}
ORDER BY 1 LIMIT %(limit)s OFFSET %(offset)s
"""  # noqa: S608 - constants

_PUT_OFF = f"""
WITH read AS MATERIALIZED (
    SELECT i.namespace, i.key, now() + i.ttl_minutes * interval '1 minute' AS expires_at
    FROM {GIVEN_KEYS} JOIN items i USING (namespace, key) WHERE {LIVE} AND i.ttl_minutes IS NOT NULL FOR UPDATE OF i
)
UPDATE items i SET expires_at = read.expires_at FROM read
WHERE {_OWN} AND i.namespace = read.namespace AND i.key = read.key
"""  # noqa: S608 - constants

# One that has expired and is not swept yet is made anew. In one call, items are made in the given order.
_PUT = """
INSERT INTO items AS i (workspace_id, namespace, key, value, ttl_minutes, created_at, updated_at, expires_at)
SELECT %(workspace_id)s, namespace, key, value, ttl_minutes, now() + place * interval '1 microsecond',
    now() + place * interval '1 microsecond', now() + ttl_minutes * interval '1 minute'
FROM json_to_recordset(%(rows)s::json)
    AS given(place integer, namespace text, key text, value json, ttl_minutes double precision)
ORDER BY namespace COLLATE "C", key COLLATE "C"
ON CONFLICT (workspace_id, user_id, namespace, key) DO UPDATE SET
    value = EXCLUDED.value, ttl_minutes = EXCLUDED.ttl_minutes,
    created_at = CASE WHEN i.expires_at <= EXCLUDED.updated_at THEN EXCLUDED.created_at ELSE i.created_at END,
    updated_at = EXCLUDED.updated_at, expires_at = EXCLUDED.expires_at
RETURNING i.namespace, i.key, i.memory_id
"""
_SET_MEMORIES = f"""
UPDATE items i SET memory_id = given.memory_id
FROM jsonb_to_recordset(%(rows)s::jsonb) AS given(namespace text, key text, memory_id uuid)
WHERE {_OWN} AND i.namespace = given.namespace AND i.key = given.key
"""  # noqa: S608 - constants
_REMOVE = f"""
DELETE FROM items i USING {GIVEN_KEYS}
WHERE {LIVE} AND i.namespace = given.namespace AND i.key = given.key RETURNING i.namespace, i.key, i.memory_id
"""  # noqa: S608 - constants
_WITH_EXPIRED = "SELECT DISTINCT workspace_id FROM items WHERE expires_at <= now()"
_SWEEP = """
DELETE FROM items i USING (
    SELECT user_id, namespace, key FROM items WHERE workspace_id = %(workspace_id)s AND expires_at <= now()
    ORDER BY expires_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
) AS expired
WHERE i.workspace_id = %(workspace_id)s AND (i.user_id, i.namespace, i.key) =
    (expired.user_id, expired.namespace, expired.key)
RETURNING i.memory_id
"""
_FORGET_USER = "DELETE FROM items WHERE workspace_id = %(workspace_id)s AND user_id = %(user)s"


class ItemKey(NamedTuple):
    """The stored namespace and the key of an item."""

    namespace: str
    key: str


async def get(session: Session, asked: Sequence[ItemGet]) -> list[Item | None]:
    """Returns the item of each look-up."""
    if not asked:
        return []
    keys = [ItemKey(path_of(one.namespace), one.key) for one in asked]
    found = {(row.namespace, row.key): _item(row) for row in await session.rows(GET, _given_words(dict.fromkeys(keys)))}
    return [found.get(key) for key in keys]


async def search(session: Session, asked: ItemSearch, scores: Mapping[UUID, float]) -> list[Item]:
    """Returns a page of items; those of `scores`, by memory, come first, in its order."""
    found = _conditions_for(asked)
    values: dict[str, Any] = {**found.values, "limit": asked.limit, "offset": asked.offset}
    if scores:
        values["ranked"] = list(scores)
    ranked, way = _RANKED if scores else "", " DESC" if asked.reverse else ""
    statement = _SEARCH.format(items=_table(asked), conditions=_all(found), ranked=ranked, way=way)
    return [_item(row, scores.get(row.memory_id)) for row in await session.rows(statement, values)]


async def searchable(session: Session, asked: ItemSearch) -> list[UUID]:
    """Returns the memories of all items that a search may rank."""
    found = _conditions_for(asked)
    return await session.column(SEARCHABLE.format(items=_table(asked), conditions=_all(found)), found.values)


async def namespaces(session: Session, asked: NamespaceSearch) -> list[Labels]:
    """Returns a page of the namespaces that have items, in the order of their labels."""
    found, shown = Conditions(), "namespace"
    for pattern in patterns(asked.prefixes, asked.suffixes):
        found.add(f"namespace ~ %({found.add_parameter(pattern)})s")
    if asked.max_depth is not None:
        shown = f"substring(namespace FROM %({found.add_parameter(first_labels(min(asked.max_depth, MOST_LABELS)))})s)"
    values = {**found.values, "limit": asked.limit, "offset": asked.offset}
    paths = await session.column(_NAMESPACES.format(conditions=_all(found), shown=shown), values)
    return [labels_of(path) for path in paths]


async def put_off(session: Session, items: Sequence[ItemKey]) -> None:
    """Puts off the end of those of these items that have one."""
    if items:
        await session.execute(_PUT_OFF, _given_words(items))


async def put(session: Session, puts: Sequence[ItemPut]) -> dict[ItemKey, UUID | None]:
    """Stores values; returns the memories that the items have had so far."""
    rows = [
        {
            "place": place,
            "namespace": path_of(one.namespace),
            "key": one.key,
            "value": one.value,
            "ttl_minutes": one.ttl_minutes,
        }
        for place, one in enumerate(puts)
    ]
    found = await session.rows(_PUT, {"rows": as_json(rows)}) if rows else []
    return {ItemKey(row.namespace, row.key): row.memory_id for row in found}


async def set_memories(session: Session, memories: Mapping[ItemKey, UUID | None]) -> None:
    """Gives items their memories."""
    rows = [{**item._asdict(), "memory_id": memory_id} for item, memory_id in memories.items()]
    if rows:
        await session.execute(_SET_MEMORIES, {"rows": as_json(rows)})


async def remove(session: Session, items: Sequence[ItemKey]) -> dict[ItemKey, UUID | None]:
    """Removes items; returns those that were there, with the memories of their texts."""
    found = await session.rows(_REMOVE, _given_words(items)) if items else []
    return {ItemKey(row.namespace, row.key): row.memory_id for row in found}


async def forget_user(session: Session, user: str) -> int:
    """Removes all items of a user; returns their number."""
    return await session.execute(_FORGET_USER, {"user": user})


async def workspaces_with_expired(session: Session) -> list[int]:
    """Returns the workspaces that have expired items."""
    return await session.column(_WITH_EXPIRED)


async def sweep(session: Session, *, limit: int) -> list[UUID | None]:
    """Removes expired items, at most `limit`; returns the memory of each."""
    return await session.column(_SWEEP, {"limit": limit})


def _conditions_for(asked: ItemSearch) -> Conditions:
    found = beginning_with(asked.prefix)
    add_filter(found, asked.filter)
    return found


def _table(asked: ItemSearch) -> str:
    return PARSED if asked.filter else "items i"


def _all(found: Conditions) -> str:
    return " AND ".join(found.clauses) or "true"


def _given_words(items: "Sequence[ItemKey] | dict[ItemKey, None]") -> dict[str, list[str]]:
    return {"namespaces": [item.namespace for item in items], "keys": [item.key for item in items]}


def _item(row: Row, score: float | None = None) -> Item:
    return Item(
        namespace=labels_of(row.namespace),
        key=row.key,
        value=row.value,
        created_at=row.created_at,
        updated_at=row.updated_at,
        expires_at=row.expires_at,
        score=score,
    )
