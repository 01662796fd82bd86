"""Finds how rooms reach the database: the kinds of connection that they open, and where."""

import ast
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from tests.house.source import House, Module

SESSION, ACROSS = "session", "across"
"""The two methods of `Database`: a session bound to a workspace, and one for work across workspaces."""
CELLAR = frozenset({"db", "postgres"})
ACROSS_ROOMS = frozenset({"operations", "worker"})
"""Rooms that may open a session across workspaces."""


class Opening(NamedTuple):
    """A call that opens a connection."""

    kind: str
    """The method of `Database`."""
    room: str
    module: str
    place: str
    """Path and line."""
    arguments: int


@cache
def kinds(house: House) -> set[str]:
    """Returns the names of the public context managers of the class `Database`."""
    return {
        method.name
        for module in house.modules.values()
        if module.room == "db"
        for node in module.nodes
        if isinstance(node, ast.ClassDef) and node.name == "Database"
        for method in node.body
        if isinstance(method, ast.AsyncFunctionDef) and _opens(method)
    }


@cache
def openings(house: House) -> list[Opening]:
    """Returns every call outside the cellar that opens a connection, of today's kinds or of those to be."""
    every = kinds(house) | {SESSION, ACROSS}
    return [
        found for module in house.files if module.room not in CELLAR for found in _openings(module, frozenset(every))
    ]


def _opens(method: ast.AsyncFunctionDef) -> bool:
    decorators = {ast.unparse(item).rpartition(".")[2] for item in method.decorator_list}
    return "asynccontextmanager" in decorators and not method.name.startswith("_")


def _openings(module: Module, every: frozenset[str]) -> Iterator[Opening]:
    for node in module.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in every:
            given = len(node.args) + len(node.keywords)
            yield Opening(node.func.attr, module.room, module.name, f"{module.path}:{node.lineno}", given)
