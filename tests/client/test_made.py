"""The client's made files are those of the present routes."""

import inspect
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from generate import files, type_of
from priors_client import AsyncClient, Client, Problem
from priors_client import models as made
from priors_client.async_operations import AsyncAdmin
from priors_client.operations import Admin
from routes import BY_HAND, FIRST, NAMES, REPEATABLE, name_of, operations_of

from app.interfaces.http import schemas
from app.interfaces.http.serving.application import document


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    """The OpenAPI document."""
    found: dict[str, Any] = json.loads(document())
    return found


def test_the_made_files_are_current(described: dict[str, Any], repository: Path) -> None:
    folder = repository / "client" / "priors_client"
    for name, text in files(described).items():
        # One line of a difference says enough; the files are long.
        assert (folder / name).read_text() == text, f"{name} is not of these routes: run `make panel-types`"


def test_every_route_has_a_method_of_its_own(described: dict[str, Any]) -> None:
    operations = list(operations_of(described))
    names = [name_of(one) for one in operations]
    assert len(set(names)) == len(names) > 70
    for operation, name in zip(operations, names, strict=True):
        pair = (Client, AsyncClient) if operation.first else (Admin, AsyncAdmin)
        for kind in pair:
            assert callable(getattr(kind, name, None)), f"{operation.route} has no method {kind.__name__}.{name}"
        blocking, awaited = (inspect.signature(getattr(kind, name)).parameters.keys() for kind in pair)
        assert blocking == awaited


def test_a_client_has_the_methods_that_people_call_and_no_others() -> None:
    methods = {name for name, _ in inspect.getmembers(Client, inspect.isfunction) if not name.startswith("_")}
    assert len(FIRST) == 15
    assert methods == {NAMES.get(route, "") for route in FIRST if route in NAMES} | {
        "why",
        "memory",
        "run",
        "store_many",
        "close",
        "call",
    }
    assert isinstance(Client().admin, Admin)
    assert isinstance(AsyncClient().admin, AsyncAdmin)


def test_the_tables_name_routes_that_exist(described: dict[str, Any]) -> None:
    routes = {one.route for one in operations_of(described)}
    assert {*NAMES, *BY_HAND, *REPEATABLE} <= routes


def test_the_models_are_the_documents(described: dict[str, Any]) -> None:
    structs = {
        kind.__name__ for kind in vars(made).values() if inspect.isclass(kind) and kind.__module__ == made.__name__
    }
    assert len(structs) == len(described["components"]["schemas"])
    for name, schema in described["components"]["schemas"].items():
        kind = getattr(made, type_of({"$ref": name}, strict=False))
        fields = {field.encode_name: field.required for field in msgspec.structs.fields(kind)}
        assert fields == {key: key in schema.get("required", ()) for key in schema.get("properties", {})}


def test_a_problem_has_the_services_fields() -> None:
    assert set(Problem.__struct_fields__) == set(schemas.Problem.__struct_fields__)
