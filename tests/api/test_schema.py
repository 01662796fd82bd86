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

schemathesis.serializer.alias("application/x-ndjson", "text/plain")
SCHEMA = schemathesis.openapi.from_dict(create_app(Settings()).openapi_schema.to_schema())
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


@pytest.mark.parametrize(("operation", "mode"), CASES)
def test_no_request_breaks_the_service(operation: Any, mode: GenerationMode, client: TestClient[Any]) -> None:
    @settings(
        max_examples=EXAMPLES,
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
