"""Writes the SQL conditions of filters over JSON values, and of patterns of namespaces. Pure."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from app.errors import InvalidInput
from app.recall.items.item import END, path_of

_MOST_CONDITIONS = 100
PARSED = "items i CROSS JOIN LATERAL (SELECT i.value::jsonb AS value OFFSET 0) AS parsed"
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


def beginning_with(prefix: Sequence[str]) -> Conditions:
    """Returns the conditions of the items in namespaces that begin with these labels, as a range of an index."""
    found = Conditions()
    if prefix:
        path = path_of(prefix)
        # The next character after END ends the range: what is between begins with the whole path.
        found.add(f"i.namespace >= %({found.add_parameter(path)})s")
        found.add(f"i.namespace < %({found.add_parameter(path[:-1] + chr(ord(END) + 1))})s")
    return found


def add_filter(found: Conditions, wanted: Mapping[str, Any]) -> None:
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


def first_labels(depth: int) -> str:
    """Returns the regular expression of the first labels of a stored namespace, at most `depth`."""
    return f"^(?:[^{END}]*{END}){{0,{depth:d}}}"
