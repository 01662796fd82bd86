"""The SQL of items, and of filters over their JSON values and patterns of their namespaces."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from app.errors import InvalidInput
from app.foundation.db.session import Row, Session
from app.recall.items.item import (
    END,
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
from app.storage.memories.store import as_json

_MOST_CONDITIONS = 100
_PARSED = "items i CROSS JOIN LATERAL (SELECT i.value::jsonb AS value OFFSET 0) AS parsed"
"""Items with their values read once, however many conditions there are."""
_COMPARED = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
"""The SQL of each operator that compares numbers."""
EQUAL, UNEQUAL = "$eq", "$ne"
_OPERATORS = (EQUAL, UNEQUAL, *_COMPARED)
AT = "(parsed.value #> %({path})s::text[])"
# A text that spells a number is compared as this number, and true and false as 1 and 0. Others have none.
_NUMBER = f"""CASE jsonb_typeof({AT})
    WHEN 'number' THEN ({AT} #>> '{{{{}}}}')::numeric
    WHEN 'boolean' THEN ({AT})::boolean::integer
    WHEN 'string' THEN CASE WHEN {AT} #>> '{{{{}}}}' ~ '^\\s*[+-]?(\\d+\\.?\\d*|\\.\\d+)([eE][+-]?\\d{{{{1,3}}}})?\\s*$'
        THEN ({AT} #>> '{{{{}}}}')::numeric END
END"""
_EXACTLY = f"coalesce({AT}, 'null'::jsonb)"
"""The value at a path; where there is none, null."""
_LENGTH = f"CASE WHEN jsonb_typeof({AT}) = 'array' THEN jsonb_array_length({AT}) ELSE -1 END"
"""The length of the array at a path; -1 where there is none."""
_ANY_LABEL = f"[^{END}]+"


class Conditions:
    """Conditions of a statement over PARSED, with the values of its parameters."""

    def __init__(self) -> None:
        self.clauses: list[str] = []
        self.values: dict[str, Any] = {}

    def add_parameter(self, value: object) -> str:
        """Returns the name of a new parameter with this value."""
        name = f"given_{len(self.values)}"
        self.values[name] = value
        return name

    def add(self, clause: str) -> None:
        """Adds a condition.

        Raises:
            InvalidInput: there are too many.
        """
        if len(self.clauses) == _MOST_CONDITIONS:
            raise InvalidInput("filter", f"has more than {_MOST_CONDITIONS} conditions")
        self.clauses.append(clause)


def _beginning_with(prefix: Sequence[str]) -> Conditions:
    """Returns the conditions of the items in namespaces that begin with these labels, as a range of an index."""
    found = Conditions()
    if prefix:
        path = path_of(prefix)
        # The next character after END ends the range: what is between begins with the whole path.
        found.add(f"i.namespace >= %({found.add_parameter(path)})s")
        found.add(f"i.namespace < %({found.add_parameter(path[:-1] + chr(ord(END) + 1))})s")
    return found


def _add_filter(found: Conditions, wanted: Mapping[str, Any]) -> None:
    """Adds the conditions of a filter: each key has this value, or meets these operators.

    Raises:
        InvalidInput: an operator is unknown, compares with something else than a number, or there are too many.
    """
    for key, value in wanted.items():
        _add(found, (key,), value)


def _add(found: Conditions, path: tuple[str, ...], wanted: Any) -> None:  # noqa: ANN401 - any JSON value
    at = {"path": found.add_parameter(list(path))}
    match wanted:
        case Mapping() if any(key.startswith("$") for key in wanted):
            for operator, operand in wanted.items():
                found.add(_operator_condition(found, at, operator, operand, ".".join(path)))
        case Mapping():
            found.add(f"coalesce(jsonb_typeof({AT}) = 'object', false)".format(**at))
            for key, value in wanted.items():
                _add(found, (*path, key), value)
        case list() | tuple():
            found.add(f"{_LENGTH} = {len(wanted)}".format(**at))
            for place, value in enumerate(wanted):
                _add(found, (*path, str(place)), value)
        case _:
            found.add(_operator_condition(found, at, EQUAL, wanted, ".".join(path)))


def _operator_condition(found: Conditions, at: Mapping[str, str], operator: str, operand: object, field: str) -> str:
    """Returns the condition that the value at a path meets an operator."""
    if operator in {EQUAL, UNEQUAL}:
        sign = "=" if operator == EQUAL else "<>"
        return f"{_EXACTLY.format(**at)} {sign} %({found.add_parameter(msgspec.json.encode(operand).decode())})s::jsonb"
    if operator not in _COMPARED:
        raise InvalidInput(f"filter.{field}", f"{operator!r} is no operator; there are {', '.join(_OPERATORS)}")
    number = found.add_parameter(_number(operand, f"filter.{field}.{operator}"))
    return f"coalesce({_NUMBER.format(**at)} {_COMPARED[operator]} %({number})s::numeric, false)"


def _number(operand: object, field: str) -> str:
    """Returns a number as Postgres reads it."""
    if isinstance(operand, int):
        return str(int(operand))
    try:
        number = float(operand)  # type: ignore[arg-type]  # anything else is the error
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInput(field, "compares numbers only; for other values there are $eq and $ne")
    return repr(number)


def patterns(prefixes: Sequence[Sequence[str]], suffixes: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yields a regular expression of Postgres for each pattern of a namespace; `*` stands for any label."""
    yield from (f"^{_pattern(labels)}" for labels in prefixes)
    yield from (f"(?:^|{END}){_pattern(labels)}$" for labels in suffixes)


def _pattern(labels: Sequence[str]) -> str:
    return "".join(f"{_ANY_LABEL if label == '*' else re.escape(label)}{END}" for label in labels)


def _first_labels(depth: int) -> str:
    """Returns the regular expression of the first labels of a stored namespace, at most `depth`."""
    return f"^(?:[^{END}]*{END}){{0,{depth:d}}}"


_OWN = "i.workspace_id = %(workspace_id)s AND i.user_id = current_setting('priors.user')"
LIVE = f"{_OWN} AND (i.expires_at IS NULL OR i.expires_at > now())"
COLUMNS = "i.namespace, i.key, i.value, i.created_at, i.updated_at, i.expires_at, i.memory_id"
_GIVEN_KEYS = "unnest(%(namespaces)s::text[], %(keys)s::text[]) AS given(namespace, key)"
GET = f"SELECT {COLUMNS} FROM {_GIVEN_KEYS} JOIN items i USING (namespace, key) WHERE {LIVE}"  # noqa: S608 - constants
_SEARCH = f"""
SELECT {COLUMNS} FROM {{items}} WHERE {LIVE} AND {{conditions}}
ORDER BY {{ranked}}i.namespace{{way}}, i.created_at{{way}}, i.key{{way}} LIMIT %(limit)s OFFSET %(offset)s
"""  # noqa: S608 - constants
_RANKED = "array_position(%(ranked)s::uuid[], i.memory_id) NULLS LAST, "
_SEARCHABLE = f"SELECT i.memory_id FROM {{items}} WHERE {LIVE} AND i.memory_id IS NOT NULL AND {{conditions}}"  # noqa: S608 - constants

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
    FROM {_GIVEN_KEYS} JOIN items i USING (namespace, key) WHERE {LIVE} AND i.ttl_minutes IS NOT NULL FOR UPDATE OF i
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
DELETE FROM items i USING {_GIVEN_KEYS}
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
    return await session.column(_SEARCHABLE.format(items=_table(asked), conditions=_all(found)), found.values)


async def namespaces(session: Session, asked: NamespaceSearch) -> list[Labels]:
    """Returns a page of the namespaces that have items, in the order of their labels."""
    found, shown = Conditions(), "namespace"
    for pattern in patterns(asked.prefixes, asked.suffixes):
        found.add(f"namespace ~ %({found.add_parameter(pattern)})s")
    if asked.max_depth is not None:
        shown = f"substring(namespace FROM %({found.add_parameter(_first_labels(min(asked.max_depth, MOST_LABELS)))})s)"
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
    found = _beginning_with(asked.prefix)
    _add_filter(found, asked.filter)
    return found


def _table(asked: ItemSearch) -> str:
    return _PARSED if asked.filter else "items i"


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
