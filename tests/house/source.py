"""Reads the modules of `app/` and their imports."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

APP = "app"
FLOORS_OF_ROOMS = frozenset({"foundation", "storage", "intake", "recall", "interfaces"})
"""Folders of `app/` whose folders are rooms; `operations` and `insight` are floor and room in one."""
DOORS = frozenset({"http", "backend", "cli", "mcp", "worker"})
"""Rooms that the outside world calls."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NOT_CODE = frozenset({"node_modules", "dist", "__pycache__"})


class Import(NamedTuple):
    """One name that a module imports."""

    importer: str
    target: str
    """A module of `app/`, or what the statement names elsewhere."""
    line: int


@dataclass(frozen=True)
class Module:
    """One Python file of `app/`."""

    name: str
    """Dotted, such as `app.storage.memories.store`; a package has the name of its folder."""
    path: str
    """Relative to the repository."""
    text: str
    is_package: bool

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text)

    @cached_property
    def lines(self) -> Sequence[str]:
        """The lines of the file."""
        return self.text.splitlines()

    @cached_property
    def nodes(self) -> Sequence[ast.AST]:
        """All nodes of the syntax tree."""
        return list(ast.walk(self.tree))

    @property
    def room(self) -> str:
        """The folder below its floor, or the file's own name where it stands beside the folders."""
        return room_of(self.name)

    @property
    def package(self) -> str:
        """The folder of the file, dotted; a file directly in `app/` stands for itself."""
        if self.is_package or self.name.count(".") == 1:
            return self.name
        return self.name.rpartition(".")[0]


class House:
    """All modules of one checkout."""

    def __init__(self, repository: Path) -> None:
        self.repository = repository
        self.modules: Mapping[str, Module] = {module.name: module for module in _modules(repository)}

    @cached_property
    def files(self) -> Sequence[Module]:
        """The modules without the `__init__.py` files."""
        return [module for module in self.modules.values() if not module.is_package]

    @cached_property
    def rooms(self) -> Sequence[str]:
        """Names of all rooms, sorted."""
        return sorted({module.room for module in self.modules.values() if module.room})

    @cached_property
    def imports(self) -> Sequence[Import]:
        """Every import of every module."""
        return [found for module in self.modules.values() for found in self._imports_of(module)]

    @cached_property
    def imported(self) -> Mapping[str, set[str]]:
        """What each module imports, be it only for its types."""
        found: dict[str, set[str]] = {name: set() for name in self.modules}
        for item in self.imports:
            found[item.importer].add(item.target)
        return found

    def _imports_of(self, module: Module) -> Iterator[Import]:
        for node in module.nodes:
            for target in self._named_by(node, module):
                yield Import(module.name, target, getattr(node, "lineno", 0))

    def _named_by(self, node: ast.AST, module: Module) -> Iterator[str]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module)
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield full if full in self.modules else base


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yields every function and method, inner ones included."""
    for node in module.nodes:
        if isinstance(node, FUNCTIONS):
            yield node


def strings_alone(module: Module) -> Iterator[ast.Constant]:
    """Yields the strings that are statements of their own."""
    for node in module.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def room_of(name: str) -> str:
    """Returns the room of a dotted module name; empty for what is in none, such as the package of a floor."""
    parts = name.split(".")
    if parts[0] != APP:
        return ""
    return next((part for part in parts[1:] if part not in FLOORS_OF_ROOMS), "")


def floor_of(name: str) -> str:
    """Returns the folder or file below `app/` of a dotted module name; empty for what is not below `app`."""
    parts = name.split(".")
    return parts[1] if parts[0] == APP and len(parts) > 1 else ""


def _modules(repository: Path) -> Iterator[Module]:
    for path in sorted((repository / APP).rglob("*.py")):
        parts = path.relative_to(repository).with_suffix("").parts
        if NOT_CODE.isdisjoint(parts):
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            yield Module(name, path.relative_to(repository).as_posix(), path.read_text(), is_package)


def _absolute(node: ast.ImportFrom, module: Module) -> str:
    if not node.level:
        return node.module or ""
    package = module.name.split(".") if module.is_package else module.name.split(".")[:-1]
    base = package[: len(package) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)
