"""Nothing that a client can send gives a 500: schemathesis over the whole OpenAPI document."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from litestar.testing import TestClient
from schemathesis.generation import GenerationMode

from app.api.application import create_app
from app.settings import Settings

EXAMPLES = 20
"""For each operation and mode; a defect of the kind that this finds shows within a few."""
SETTINGS = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
EXTREMES = [1e-100, 5e-324, 1e-46, 1e-40, 1.5e-7, 3.5e38, 1e300, -1e-100, -0.0]
"""Numbers that no random number comes near: a column of 32 bits holds none of the smallest and largest."""

schemathesis.serializer.alias("application/x-ndjson", "text/plain")
DOCUMENT = create_app(Settings()).openapi_schema.to_schema()
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
OPERATIONS: list[Any] = [found.ok() for found in SCHEMA.get_all_operations()]  # type: ignore[union-attr]  # an error raises here
NOTHING_TO_GET_WRONG = {"GET /health", "GET /ready", "GET /metrics"}
CASES = [
    pytest.param(operation, mode, id=f"{operation.label}-{mode.value}")
    for operation in OPERATIONS
    for mode in GenerationMode
    if mode.is_positive or operation.label not in NOTHING_TO_GET_WRONG
]


@pytest.fixture(scope="module")
def client(settings: Settings) -> Iterator[TestClient[Any]]:
    """An application with services of its own, because it runs in a loop of its own."""
    with TestClient(create_app(settings)) as client:
        yield client


def number_fields(schema: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yields the path of each number that a value of this schema may have, itself included; lists are left out."""
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if schema.get("type") == "number":
        yield path
    for choice in (*schema.get("oneOf", ()), *schema.get("anyOf", ())):
        yield from number_fields(choice, path)
    for name, value in schema.get("properties", {}).items():
        yield from number_fields(value, (*path, name))


def number_places() -> Iterator[tuple[Any, str, tuple[str, ...]]]:
    """Yields each operation that takes a number, with the number's place in the request and its path there."""
    for operation in OPERATIONS:
        raw = DOCUMENT["paths"][operation.path][operation.method]
        for parameter in raw.get("parameters", ()):
            if parameter["in"] == "query":
                yield from (
                    (operation, "query", path) for path in number_fields(parameter["schema"], (parameter["name"],))
                )
        for content in raw.get("requestBody", {}).get("content", {}).values():
            yield from ((operation, "body", path) for path in number_fields(content["schema"], ()))


NUMBERS = [
    pytest.param(operation, place, path, id=f"{operation.label}-{'.'.join(path)}")
    for operation, place, path in number_places()
]


def placed(inner: Any, path: tuple[str, ...], number: float) -> None:
    """Put the number there, and make the objects that lead to it."""
    for name in path[:-1]:
        if not isinstance(inner.get(name), dict):
            inner[name] = {}
        inner = inner[name]
    inner[path[-1]] = number


def check_answer(case: schemathesis.Case[Any], client: TestClient[Any]) -> None:
    """Send the request; the service does not fail, and a refusal is a problem document."""
    given_arguments = case.as_transport_kwargs(base_url="http://testserver.local")
    names = {"method", "url", "params", "headers", "json", "data"}
    arguments = {name: value for name, value in given_arguments.items() if name in names and value is not None}
    if "data" in arguments:
        arguments["content"] = arguments.pop("data")
    answer = client.request(**arguments)
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert answer.headers["content-type"].startswith("application/problem+json")
        assert answer.json()["status"] == answer.status_code


@pytest.mark.parametrize(("operation", "mode"), CASES)
def test_no_request_breaks_the_service(operation: Any, mode: GenerationMode, client: TestClient[Any]) -> None:
    @SETTINGS
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: schemathesis.Case[Any]) -> None:
        check_answer(case, client)

    check()


@pytest.mark.parametrize(("operation", "place", "path"), NUMBERS)
def test_no_extreme_number_breaks_the_service(
    operation: Any, place: str, path: tuple[str, ...], client: TestClient[Any]
) -> None:
    """Each is put into one valid request, all else of which stays as it is."""

    @settings(SETTINGS, max_examples=1)
    @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    def check(case: schemathesis.Case[Any]) -> None:
        inner = case.query if place == "query" else case.body
        for number in EXTREMES:
            placed(inner, path, number)
            check_answer(case, client)

    check()
