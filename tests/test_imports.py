"""Imports flow one way: doors → verbs → stores and pure functions → db, models, text, safety → settings, errors."""

import ast
from pathlib import Path

import pytest

FLOORS = [
    {"settings", "errors", "panel"},
    {"text", "safety", "db", "postgres", "models"},
    {"workspaces"},
    {"memories", "index", "links"},
    {"retrieval", "context", "runs", "intake", "insight"},
    {"wiring"},
    {"operations"},
    {"worker"},
    {"api"},
    {"cli"},
]
"""The rooms from the ground up: each may import from its own floor and from those below."""

FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
DOORS = {"api", "cli"}


def _modules(repository: Path) -> list[Path]:
    return sorted(path for path in (repository / "app").rglob("*.py") if "node_modules" not in path.parts)


def _room(parts: tuple[str, ...]) -> str:
    return parts[1].removesuffix(".py") if len(parts) > 1 else ""


def _imported_rooms(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "app":
            parts = tuple(node.module.split("."))
            found |= {_room(parts)} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {_room(tuple(alias.name.split("."))) for alias in node.names if alias.name.startswith("app.")}
    return found - {""}


def test_no_room_imports_from_a_floor_above(repository: Path) -> None:
    wrong = []
    for path in _modules(repository):
        shown = path.relative_to(repository).as_posix()
        room = _room(path.relative_to(repository).parts)
        if room == "__init__":
            continue
        assert room in FLOOR, f"{shown}: give the room {room!r} a floor in FLOORS"
        wrong += [f"{shown} imports {other}" for other in _imported_rooms(path) if FLOOR[other] > FLOOR[room]]
    assert wrong == []


def _found(repository: Path, words: tuple[str, ...], *, but: set[str]) -> list[str]:
    """Returns the modules that have any of these words, outside of some rooms."""
    return [
        path.relative_to(repository).as_posix()
        for path in _modules(repository)
        if _room(path.relative_to(repository).parts) not in but and any(word in path.read_text() for word in words)
    ]


def test_sqlalchemy_stays_in_the_cellar(repository: Path) -> None:
    assert _found(repository, ("import sqlalchemy", "from sqlalchemy"), but={"db", "postgres"}) == []


def test_doors_see_no_driver(repository: Path) -> None:
    assert _found(repository, ("import psycopg", "from psycopg"), but=set(FLOOR) - DOORS) == []


def test_only_operations_and_the_worker_see_all_workspaces(repository: Path) -> None:
    assert _found(repository, (".across(", ".across,", ".across)"), but={"db", "operations", "worker"}) == []


@pytest.mark.parametrize("name", ["utils", "helpers", "common", "misc"])
def test_no_room_has_a_name_that_says_nothing(repository: Path, name: str) -> None:
    assert not list((repository / "app").rglob(f"{name}.py"))
