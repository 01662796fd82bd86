"""Imports flow one way: doors → verbs → stores and pure functions → db, embeddings → settings, errors."""

import ast
from pathlib import Path

import pytest

FLOORS = [
    {"settings", "errors", "version", "panel", "aside"},
    {"db", "embeddings", "injection", "masking", "llm"},
    {"workspaces", "memories", "links"},
    {"retrieval", "reports", "runs", "observations", "feedback", "novelty", "graph"},
    {"wiring"},
    {"operations"},
    {"jobs"},
    {"api"},
    {"cli", "logs"},
]
"""From the ground up: a room may import from its own floor and from those below."""

FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
# The backfill verb lives with the vectors that it makes, and asks the memories' room for the text that is embedded.
ALLOWED = {("app/index/backfill.py", "memories"), ("app/index/reembed.py", "memories")}


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
        wrong += [
            f"{shown} imports {other}"
            for other in _imported_rooms(path)
            if FLOOR[other] > FLOOR[room] and (shown, other) not in ALLOWED
        ]
    assert wrong == []


def test_doors_see_no_connection(repository: Path) -> None:
    wrong = [
        path.relative_to(repository).as_posix()
        for path in _modules(repository)
        if _room(path.relative_to(repository).parts) in {"api", "cli"}
        and any(name in path.read_text() for name in ("import sqlalchemy", "from sqlalchemy", "import psycopg"))
    ]
    assert wrong == []


def test_sql_lives_in_stores(repository: Path) -> None:
    """`text(` from SQLAlchemy is imported only where a room keeps its SQL, and in the cellar."""
    keepers = {
        "store.py", "sources.py", "lexical_index.py", "upkeep.py", "arms.py", "browse.py",
        "details.py", "echoes.py", "refusals.py", "known.py", "shown.py",
    }  # fmt: skip
    wrong = [
        path.relative_to(repository).as_posix()
        for path in _modules(repository)
        if "from sqlalchemy import" in path.read_text()
        and path.name not in keepers
        and _room(path.relative_to(repository).parts) not in {"db", "operations"}
        and "text" in path.read_text().split("from sqlalchemy import")[1].splitlines()[0]
    ]
    assert wrong == []


@pytest.mark.parametrize("name", ["utils", "helpers", "common", "misc"])
def test_no_room_has_a_name_that_says_nothing(repository: Path, name: str) -> None:
    assert not list((repository / "app").rglob(f"{name}.py"))
