"""Nothing that a client can send gives a 500: schemathesis over the whole OpenAPI document."""

import gc
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from litestar.testing import TestClient
from schemathesis.generation import GenerationMode

from app.interfaces.http.serving.application import create_app
from app.settings import Settings

EXAMPLES = 20
"""For each operation and mode; a defect of the kind that this finds shows within a few."""
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
    # A service over the same store asks for a key as long as there is one.
    with psycopg.connect(settings.database_url) as connection:
        connection.execute("DELETE FROM api_keys")


@pytest.fixture(autouse=True)
def no_garbage_collection() -> Iterator[None]:
    """Hypothesis and the application parse Python in two threads; CPython before 3.11.8 cannot (gh-106905).

    A garbage collection within `ast.parse` lets the other thread run, and both count their depth in one variable.
    """
    gc.disable()
    yield
    gc.enable()


def test_each_schema_has_the_name_of_its_class_alone() -> None:
    """Two classes of one name would have their modules before it, in the types of every client."""
    assert [name for name in DOCUMENT["components"]["schemas"] if "_" in name] == []


def test_an_answer_has_all_its_fields_and_a_request_may_leave_out_those_with_a_default() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    for answer in ("Provenance", "PlanEvidence"):
        assert schemas[answer]["required"] == sorted(schemas[answer]["properties"])
    assert schemas["GivenSection"]["required"] == ["content", "id"]
    assert "embedded" not in schemas["StoredView"]["required"]


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


def number_places() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yields method, path and place of each number that a request may have."""
    for operation in OPERATIONS:
        raw, target = DOCUMENT["paths"][operation.path][operation.method], (operation.method, operation.path)
        for parameter in raw.get("parameters", ()):
            if parameter["in"] == "query":
                yield from ((*target, place) for place in number_fields(parameter["schema"], (parameter["name"],)))
        for content in raw.get("requestBody", {}).get("content", {}).values():
            yield from ((*target, place) for place in number_fields(content["schema"], ()))


NUMBERS = [
    pytest.param(
        *found,
        id=f"{found[0]} {found[1]}-{'.'.join(found[2])}",
        marks=[pytest.mark.smoke] if found[1] == "/api/memories" else [],
    )
    for found in number_places()
]
TEXT = "The scout verified twelve producers. Three lost their licence in 2025."
NEEDED: dict[str, dict[str, Any]] = {
    "/api/memories": {"kind": "note", "body": TEXT},
    "/api/observations": {"output": TEXT},
    "/api/runs": {"run_id": "r"},
    "/api/runs/{run_id}": {},
    "/api/history": {"query": "producers"},
    "/api/cues": {"kind": "correction", "trigger": "naming producers", "lesson": TEXT},
    "/api/cues/{cue_id}": {},
    "/api/activate": {"plan": "name the producers"},
    "/api/contexts": {"observation": "producers"},
    "/api/contexts:compile": {},
    "/api/contexts:compare": {"first": {}, "second": {}},
    "/api/search": {"query": "producers"},
    "/api/keys": {"name": "a scout", "scopes": ["read"]},
    "/api/keys/{key_id}/rotate": {},
    "/api/keys/{key_id}/limits": {"requests_per_minute": None},
}
"""The fields that a request needs besides its number."""


def with_number(given: dict[str, Any], place: tuple[str, ...], number: float) -> dict[str, Any]:
    """Returns the fields with the number at its place, in the objects that lead to it."""
    name, *inner = place
    return {**given, name: with_number(given.get(name, {}), tuple(inner), number) if inner else number}


@pytest.mark.parametrize(("operation", "mode"), CASES)
@pytest.mark.test_all("routes")
def test_no_request_breaks_the_service(operation: Any, mode: GenerationMode, client: TestClient[Any]) -> None:
    ask(operation, mode, client, EXAMPLES)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_no_first_request_breaks_the_service(operation: Any, client: TestClient[Any]) -> None:
    ask(operation, GenerationMode.POSITIVE, client, 1)


def ask(operation: Any, mode: GenerationMode, client: TestClient[Any], examples: int) -> None:
    """Sends invented requests, and fails where one breaks the service."""

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: schemathesis.Case[Any]) -> None:
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

    check()


@pytest.mark.parametrize(("method", "path", "place"), NUMBERS)
@pytest.mark.test_all("routes")
def test_no_extreme_number_breaks_the_service(
    method: str, path: str, place: tuple[str, ...], client: TestClient[Any], workspace_name: str
) -> None:
    """Each is taken, or refused by its name."""
    headers = {"x-workspace": workspace_name, "sec-fetch-site": "same-origin"}

    def made(route: str) -> dict[str, Any]:
        return dict(client.post(route, json=NEEDED[route], headers=headers).raise_for_status().json())

    for needed in ("/api/memories", "/api/runs"):
        made(needed)
    ids = {"run_id": NEEDED["/api/runs"]["run_id"], "cue_id": made("/api/cues")["id"]}
    for number in EXTREMES:
        if method == "get":
            answer = client.get(path, params={place[0]: number}, headers=headers)
        else:
            fields = with_number(NEEDED[path], place, number)
            key = {"key_id": made("/api/keys")["key"]["id"]} if "{key_id}" in path else {}
            answer = client.request(method, path.format(**ids, **key), json=fields, headers=headers)
        assert answer.status_code < 500, answer.text
        assert answer.is_success or place[-1] in answer.json()["errors"][0]["field"], answer.text
