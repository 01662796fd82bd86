"""The shape of the imports: packages and their cycles, imports inside functions."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from tests.house.source import FUNCTIONS, House, Module

SILENCED = re.compile(r"#|noqa(?::\s*[A-Z]+\d+(?:\s*,\s*[A-Z]+\d+)*)?|type: ignore(?:\[[\w, -]*\])?")


class InnerImport(NamedTuple):
    """An import inside a function."""

    room: str
    place: str
    """Path and line."""
    statement: str
    reason: str
    """The comment beside or above it, without its codes; empty where there is none."""


def package_graph(house: House) -> Mapping[str, set[str]]:
    """Returns the other packages that each package imports, those of its own floor included."""
    graph: dict[str, set[str]] = {module.package: set() for module in house.modules.values()}
    for item in house.imports:
        if item.target in house.modules:
            graph[house.modules[item.importer].package].add(house.modules[item.target].package)
    return {package: targets - {package, "app"} for package, targets in graph.items() if package != "app"}


def cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Returns the groups of packages that reach each other."""
    reached = {node: _reachable(graph, node) for node in graph}
    groups = {frozenset(other for other in reached[node] if node in reached[other]) for node in graph}
    return sorted(sorted(group) for group in groups if len(group) > 1)


def edges_within(house: House, packages: Sequence[str]) -> list[str]:
    """Returns the imports between these packages, as `importer → target`."""
    found = {
        f"{item.importer} → {item.target}"
        for item in house.imports
        if item.target in house.modules
        and _package(house, item.importer) in packages
        and _package(house, item.target) in packages
        and _package(house, item.importer) != _package(house, item.target)
    }
    return sorted(found)


@cache
def inner_imports(house: House) -> list[InnerImport]:
    """Returns every import inside a function."""
    return [found for module in house.modules.values() for found in _inner_imports(module)]


def imports_of(house: House, module: Module, library: str) -> bool:
    """Returns True where a module imports `library` or a part of it."""
    return any(_is_below(target, library) for target in house.imported[module.name])


def _inner_imports(module: Module) -> Iterator[InnerImport]:
    comments = _comments(module)
    inner = {
        node
        for function in module.nodes
        if isinstance(function, FUNCTIONS)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    covered: dict[int, str] = {}
    for node in sorted(inner, key=lambda item: item.lineno):
        last = node.end_lineno or node.lineno
        above = covered.get(node.lineno - 1) or _comment_above(module, comments, node.lineno)
        beside = " ".join(comments.get(line, "") for line in range(node.lineno, last + 1)).strip()
        covered[last] = above
        yield InnerImport(module.room, f"{module.path}:{node.lineno}", ast.unparse(node), beside or above)


def _comment_above(module: Module, comments: Mapping[int, str], line: int) -> str:
    """Returns the comment that has the line above for itself; it covers the imports that follow one another."""
    return comments.get(line - 1, "") if module.lines[line - 2].lstrip().startswith("#") else ""


def _comments(module: Module) -> dict[int, str]:
    """Returns the comments by line, without codes for the linters."""
    tokens = tokenize.generate_tokens(io.StringIO(module.text).readline)
    return {
        token.start[0]: SILENCED.sub("", token.string).strip(" -–:")
        for token in tokens
        if token.type == tokenize.COMMENT
    }


def _reachable(graph: Mapping[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    pending = [start]
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            pending += graph.get(node, set())
    return seen


def _package(house: House, name: str) -> str:
    return house.modules[name].package


def _is_below(target: str, name: str) -> bool:
    return target == name or target.startswith(f"{name}.")
