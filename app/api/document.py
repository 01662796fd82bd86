"""The OpenAPI document as `python -m app.api.document` prints it: the panel's types are made from it."""

import json
import sys

from app.api.application import create_app
from app.settings import Settings


def document() -> bytes:
    """The same bytes for the same routes and schemas, in whatever order they were found.

    Without the answers of failed requests, which are the schema `Problem` everywhere.
    """
    schema = create_app(Settings()).openapi_schema.to_schema()
    for methods in schema["paths"].values():
        for operation in methods.values():
            answers = operation["responses"]
            operation["responses"] = {status: answer for status, answer in answers.items() if status.startswith("2")}
    return json.dumps(schema, indent=1, sort_keys=True).encode() + b"\n"


if __name__ == "__main__":
    sys.stdout.buffer.write(document())
