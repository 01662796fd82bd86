"""Makes the TypeScript client's table of routes from the OpenAPI document: `make typescript` calls it.

The names of the methods and what may be sent again are those of the Python client (`routes.py`); the types are made by
openapi-typescript.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from routes import BY_HAND, TEXTS, Operation, name_of, operations_of, pages_of

TABLE = Path(__file__).parent / "typescript" / "src" / "routes.ts"
HEADER = "/** The routes of the service. Made by `make typescript` from the OpenAPI document: changes are lost. */\n\n"
ANSWERS = {"": "none", "application/json": "json", "application/x-ndjson": "lines", "text/plain": "text"}
"""The forms of answers by their media types."""


def table(document: Mapping[str, Any]) -> str:
    """Returns the text of the table."""
    schemas = document["components"]["schemas"]
    entries = "".join(line for one in operations_of(document) for line in _entry(one, schemas))
    return f"{HEADER}export const ROUTES = {{\n{entries}}} as const;\n"


def method_of(operation: Operation) -> str:
    """Returns the name of a route's method."""
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name_of(operation))


def _entry(operation: Operation, schemas: Mapping[str, Any]) -> Iterator[str]:
    pages = pages_of(operation, schemas)
    facts: dict[str, Any] = {
        "method": operation.method,
        "path": operation.path,
        "query": [one["name"] for one in operation.of("query")],
        "body": _body(operation),
        "answer": ANSWERS[operation.media],
        "repeatable": operation.repeatable,
        "keyed": operation.keyed,
        "first": operation.first,
    }
    if operation.route in TEXTS:
        facts["text"] = TEXTS[operation.route]
    if pages:
        facts["pages"] = {"by": pages.by, "key": pages.key, "parameter": pages.parameter}
    about = " ".join(operation.about.replace("*/", "* /").split())
    yield f"  /** {about} */\n  {method_of(operation)}: {json.dumps(facts)},\n"


def _body(operation: Operation) -> str:
    """Returns whether the body is the fields of an object, another value, a stream of lines, or none."""
    if operation.route in BY_HAND:
        return "lines"
    return "" if operation.body is None else "fields" if "$ref" in operation.body else "data"


def main() -> None:
    """Writes the table from the document on standard input."""
    TABLE.write_text(table(json.loads(sys.stdin.buffer.read())))


if __name__ == "__main__":
    main()
