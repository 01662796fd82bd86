"""Makes the client's models and methods from the service's OpenAPI document: `make panel-types` calls it.

A route gets a method whose name comes from its path, unless NAMES (`routes.py`) has another. Nothing else is written by
hand for a new route, except its line in REPEATABLE if repeating it does no harm.
"""

import json
import keyword
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from routes import BY_HAND, POSITIONAL, Operation, name_of, operations_of, pages_of

FOLDER = Path(__file__).parent / "priors_client"
TRANSLATED = ("async_client.py", "async_backend.py", "async_run.py")
"""The files by hand whose blocking form is made of them."""
SYNC = (
    ("`backend.py` is made from this file by `client/generate.py`", "Made from `async_backend.py`"),
    ("asyncio.sleep", "time.sleep"),
    ("import asyncio", "import time"),
    ("asynchronous client. `client.py` is made from this file by `client/generate.py`", "client, in its blocking form"),
    ("asynchronous client code. `run.py` is made from this file by `client/generate.py`", "blocking client code"),
    ("async_run", "run"),
    ("AsyncRun", "Run"),
    ("async_operations", "operations"),
    ("async_client", "client"),
    ("AsyncMemoryBackend", "MemoryBackend"),
    ("AsyncNotes", "Notes"),
    ("AsyncRemote", "Remote"),
    ("AsyncBaseTransport", "BaseTransport"),
    ("AsyncIterator", "Iterator"),
    ("AsyncClient", "Client"),
    ("AsyncOperations", "Operations"),
    ("AsyncRequests", "Requests"),
    ("AsyncAdmin", "Admin"),
    ("shared by tasks", "shared by threads"),
    ("__aenter__", "__enter__"),
    ("__aexit__", "__exit__"),
    ("aclose", "close"),
    ("aread", "read"),
    ("aiter_bytes", "iter_bytes"),
    ("async def", "def"),
    ("async with", "with"),
    ("async for", "for"),
    ("await ", ""),
)
"""The changes that make the blocking form of an asynchronous file."""
HEADER = '"""{about} Made by `make panel-types` from the OpenAPI document: changes are lost."""\n\n'
OPERATIONS = '''class AsyncRequests:
    """What sends the requests of the methods."""

    async def _send(self, request: Request[T]) -> T:
        raise NotImplementedError

    def _each(self, request: Request[Any], paging: Paging) -> AsyncIterator[Any]:
        raise NotImplementedError

    def _lines(self, request: Request[Any]) -> AsyncIterator[Any]:
        raise NotImplementedError


class AsyncOperations(AsyncRequests):
    """The routes that people call, as methods of a client; those of all others are `admin`'s."""

    @cached_property
    def admin(self) -> "AsyncAdmin":
        """The methods of all other routes: lists, changes and deletions, keys, the service's state."""
        return AsyncAdmin(self)

'''
ADMIN = '''class AsyncAdmin:
    """The other routes, as methods of a client's `admin`."""

    def __init__(self, client: AsyncRequests) -> None:
        self._client = client

'''
SCALARS = {"integer": "int", "number": "float", "boolean": "bool", "null": "None", "string": "str"}
FORMATS = {"uuid": "UUID", "date-time": "datetime", "date": "date"}


def files(document: Mapping[str, Any]) -> dict[str, str]:
    """Returns the text of each made file."""
    schemas = document["components"]["schemas"]
    described = [one for one in operations_of(document) if one.route not in BY_HAND]
    first = "\n".join(text for one in described if one.first for text in _method(one, schemas))
    others = "\n".join(text for one in described if not one.first for text in _method(one, schemas))
    classes = f"{OPERATIONS}{first}\n\n{ADMIN}{others}\n"
    made = {"async_operations.py": _operations_header(schemas, classes) + classes}
    made["operations.py"] = _blocking(made["async_operations.py"])
    made |= {name.removeprefix("async_"): _blocking((FOLDER / name).read_text()) for name in TRANSLATED}
    inputs = _inputs(document)
    structs = "\n\n".join(_struct(name, schema, strict=name in inputs) for name, schema in schemas.items())
    made["models.py"] = _models_header(structs) + structs + "\n"
    return made


def _blocking(text: str) -> str:
    for old, new in SYNC:
        text = text.replace(old, new)
    return text


# Models.


def _models_header(structs: str) -> str:
    typing = sorted(name for name in ("Any", "Literal") if name in structs)
    return (
        HEADER.format(about="The values that the service takes and gives.")
        + "from __future__ import annotations\n\n"
        + "from collections.abc import Mapping, Sequence\nfrom datetime import date, datetime\n"
        + f"from typing import {', '.join(typing)}\nfrom uuid import UUID\n\n"
        + "from msgspec import UNSET, Struct, UnsetType, field\n\n\n"
    )


def _inputs(document: Mapping[str, Any]) -> set[str]:
    """Returns the names of the schemas that requests are made of."""
    bodies = [json.dumps(one.body) for one in operations_of(document)]
    found: set[str] = set()
    while bodies:
        for name in re.findall(r'"#/components/schemas/(\w+)"', bodies.pop()):
            if name not in found:
                found.add(name)
                bodies.append(json.dumps(document["components"]["schemas"][name]))
    return found


def type_of(schema: Mapping[str, Any], *, strict: bool) -> str:
    """Returns the Python type of a schema. An answer (not `strict`) may have values that this client does not know."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if strict and "enum" in schema:
        return f"Literal[{', '.join(map(repr, schema['enum']))}]"
    kinds = schema.get("type")
    several = [{**schema, "type": kind} for kind in kinds] if isinstance(kinds, list) else schema.get("oneOf")
    if several:
        return " | ".join(dict.fromkeys(type_of(one, strict=strict) for one in several))
    return _plain_type(schema, strict=strict)


def _plain_type(schema: Mapping[str, Any], *, strict: bool) -> str:
    kind = schema.get("type", "")
    if kind == "array":
        return f"{'Sequence' if strict else 'list'}[{type_of(schema.get('items', {}), strict=strict)}]"
    if kind == "object":
        values = type_of(schema.get("additionalProperties") or {}, strict=strict)
        return f"{'Mapping' if strict else 'dict'}[str, {values}]"
    return FORMATS.get(schema.get("format", ""), SCALARS.get(kind, "Any"))


def _struct(name: str, schema: Mapping[str, Any], *, strict: bool) -> str:
    """Returns the class of a schema. A field that may be left out is UNSET, so that the service's own default holds."""
    required = set(schema.get("required", ()))
    parts = [f"class {name}(Struct, frozen=True, kw_only=True):"]
    if about := _about(schema):
        parts += [f'    """{about}"""', ""]
    for key, value in schema.get("properties", {}).items():
        kind, python = type_of(value, strict=strict), _identifier(key)
        unset = key not in required and (strict or not isinstance(value.get("default"), str | int | float))
        default = "" if key in required else f" = {'UNSET' if unset else repr(value['default'])}"
        if python != key:
            default = f" = field({f'default{default.replace(chr(32), str())}, ' if default else ''}name={key!r})"
        parts.append(f"    {python}: {kind}{' | UnsetType' if unset else ''}{default}")
        if told := _about(value):
            parts.append(f'    """{told}"""')
    return "\n".join(parts if len(parts) > 1 else [*parts, "    pass"]) + "\n"


def _about(schema: Mapping[str, Any]) -> str:
    text = " ".join(str(schema.get("description", "")).replace('"""', "'''").replace("\\", "\\\\").split())
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}" if text else ""


def _identifier(name: str) -> str:
    python = re.sub(r"\W", "_", name)
    return f"{python}_" if keyword.iskeyword(python) else python


# Methods.


def _operations_header(schemas: Mapping[str, Any], text: str) -> str:
    models = sorted(name for name in schemas if re.search(rf"\b{name}\b", text))
    paging = sorted(name for name in ("by_cursor", "by_last", "by_offset", "segment") if f"{name}" in text)
    return (
        HEADER.format(about="A method for each route of the service.")
        + "from collections.abc import AsyncIterator, Mapping, Sequence\nfrom datetime import datetime\n"
        + "from functools import cached_property\nfrom typing import Any, Literal, TypeVar\n"
        + "from uuid import UUID, uuid4\n\n"
        + "from msgspec import UNSET, UnsetType\n\n"
        + f"from priors_client.models import {', '.join(models)}\n"
        + f"from priors_client.requests import Paging, Request, {', '.join(paging)}\n\n"
        + 'T = TypeVar("T")\n\n\n'
    )


@dataclass(frozen=True)
class Argument:
    """An argument of a method."""

    name: str
    kind: str
    required: bool
    positional: bool = False

    def __str__(self) -> str:
        """Returns it as the signature has it."""
        return f"{self.name}: {self.kind}" if self.required else f"{self.name}: {self.kind} | UnsetType = UNSET"


def _given(operation: Operation) -> Iterator[Argument]:
    """Yields the arguments for the path and the query."""
    for one in operation.of("path"):
        kind = type_of(one["schema"], strict=True)
        yield Argument(_identifier(one["name"]), kind, required=True, positional=True)
    for one in operation.of("query"):
        kind = re.sub(r"(None \| | \| None|, None(?=]))", "", type_of(one["schema"], strict=True))
        yield Argument(_identifier(one["name"]), kind, required=bool(one.get("required")))


def _body(schemas: Mapping[str, Any], operation: Operation) -> list[Argument]:
    """Returns the arguments for the body; one that stands alone in being required needs no keyword."""
    if operation.body is None:
        return []
    if "$ref" not in operation.body:
        return [Argument("data", type_of(operation.body, strict=True), required=True, positional=True)]
    schema = schemas[operation.body["$ref"].rpartition("/")[2]]
    required = schema.get("required", ())
    return [
        Argument(
            _identifier(key),
            type_of(value, strict=True),
            required=key in required,
            positional=len(required) == 1 and key in required,
        )
        for key, value in schema["properties"].items()
    ]


def _signature(arguments: list[Argument]) -> str:
    positional = [str(one) for one in arguments if one.positional]
    named = [str(one) for one in arguments if not one.positional]
    return ", ".join(["self", *positional, *(["*", *named] if named else [])])


def _method(operation: Operation, schemas: Mapping[str, Any]) -> Iterator[str]:
    """Yields the method of a route, and where it has pages, the one that iterates over all of them."""
    sender = "self" if operation.first else "self._client"
    name = name_of(operation)
    body = _body(schemas, operation)
    first = POSITIONAL.get(operation.route)
    arguments = [replace(one, positional=one.positional or one.name == first) for one in (*_given(operation), *body)]
    about = _about({"description": operation.about})
    streamed = operation.media == "application/x-ndjson"
    answer = "Any" if streamed else "None" if operation.answer is None else type_of(operation.answer, strict=False)
    request = _request(operation, answer, [one.name for one in body])
    if streamed:
        yield _text(name, _signature(arguments), "AsyncIterator[Any]", about, f"return {sender}._lines({request})")
        return
    sending = f"{'' if answer == 'None' else 'return '}await {sender}._send({request})"
    yield "    async " + _text(name, _signature(arguments), answer, about, sending).lstrip()
    if pages := pages_of(operation, schemas):
        reader = f"by_{pages.by}({pages.key!r})" if pages.key else f"by_{pages.by}"
        item = type_of(pages.item, strict=False)
        paged = f"{about} It asks for page after page."
        kept = [one for one in arguments if one.name != pages.parameter]
        reading = f"return {sender}._each({_request(operation, answer, [], without=pages.parameter)}, {reader})"
        yield _text(f"iter_{name}", _signature(kept), f"AsyncIterator[{item}]", paged, reading)


def _text(name: str, signature: str, answer: str, about: str, statement: str) -> str:
    return f'    def {name}({signature}) -> {answer}:\n        """{about}"""\n        {statement}\n'


def _request(operation: Operation, answer: str, body: list[str], *, without: str = "") -> str:
    path = re.sub(r"{(\w+)(?::\w+)?}", lambda found: f"{{segment({_identifier(found[1])})}}", operation.path)
    parts = [repr(operation.method.upper()), f'f"{path}"' if "{" in path else repr(path), answer]
    query = [one["name"] for one in operation.of("query") if one["name"] != without]
    if query:
        parts.append("{" + ", ".join(f'"{one}": {_identifier(one)}' for one in query) + "}")
    if body == ["data"] and "$ref" not in (operation.body or {}):
        parts.append("body=data")
    elif operation.body is not None:
        kind = type_of(operation.body, strict=True)
        parts.append(f"body={kind}({', '.join(f'{one}={one}' for one in body)})")
    if operation.keyed:
        parts.append('headers={"Idempotency-Key": uuid4().hex}')
    if operation.repeatable:
        parts.append("repeatable=True")
    return f"Request({', '.join(parts)})"


def main() -> None:
    """Writes the made files from the document on standard input."""
    document = json.loads(sys.stdin.buffer.read())
    for name, text in files(document).items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
