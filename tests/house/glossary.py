"""The words that must not be names (section 2 of the design), and where one of them is meant otherwise."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from tests.house.source import FUNCTIONS, House, Module

INSTEAD: Mapping[str, str] = MappingProxyType(
    {
        "giver": "seed",
        "givers": "seeds",
        "tie": "edge",
        "ties": "edges",
        "lift": "boost",
        "lifts": "boosts",
        "lifted": "boosted",
        "worded": "lexical hits",
        "hint": "feature",
        "hints": "features",
        "trail": "heading path",
        "trails": "heading paths",
        "rests": "residual",
        "waiting": "queue, pending",
        "redundancy": "MMR lambda",
        "aside": "in a thread",
        "look alike": "false date, homoglyph",
        "look alikes": "false dates, homoglyphs",
        "lookalike": "false date, homoglyph",
        "lookalikes": "false dates, homoglyphs",
        "findable": "indexed",
        "under way": "in progress",
        "underway": "in progress",
    }
)
"""Each word with the field's own."""

ALLOWED: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("http", "waiting"): "a field of the HTTP document (`/ready`, `/api/status`), which must not change",
        ("operations", "waiting"): "the same field, where the HTTP document shows the value itself",
    }
)
"""(room, name): the reason why this name may stay there."""

EMPTY_NAMES = frozenset({"utils", "util", "helpers", "helper", "common", "misc", "base", "manager", "managers"})
"""File and folder names that say nothing."""
WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


REGULAR = re.compile(r"[a-z]+ed")
IRREGULAR = frozenset(
    [
        "begun",
        "bound",
        "brought",
        "built",
        "caught",
        "chosen",
        "done",
        "drawn",
        "found",
        "given",
        "gone",
        "grown",
        "heard",
        "held",
        "hidden",
        "kept",
        "known",
        "laid",
        "left",
        "lost",
        "made",
        "meant",
        "met",
        "paid",
        "said",
        "seen",
        "sent",
        "shown",
        "sought",
        "spent",
        "stood",
        "taken",
        "taught",
        "told",
        "thought",
        "thrown",
        "understood",
        "won",
        "written",
    ]
)
"""Participles that are no verb in another form; `put`, `read`, `set` and the like are."""
VERBS = frozenset(["embed", "exceed", "feed", "need", "proceed", "reembed", "seed", "speed", "succeed"])
"""Verbs that end as a participle does."""


class Name(NamedTuple):
    """A name that the code defines."""

    name: str
    place: str
    """Path and line."""


def names(module: Module) -> Iterator[Name]:
    """Yields the names that a module defines: itself, functions, classes, parameters, variables, fields, aliases."""
    yield Name(module.name.rpartition(".")[2], f"{module.path}:1")
    for node in module.nodes:
        for name in _defined(node):
            yield Name(name, f"{module.path}:{getattr(node, 'lineno', 0)}")


def words(name: str) -> list[str]:
    """Splits a name at underscores and capitals, in lower case."""
    return [word.lower() for word in WORDS.findall(name)]


def forbidden(name: str) -> list[str]:
    """Returns the words of a name that the glossary replaces."""
    parts = words(name)
    pairs = [f"{one} {other}" for one, other in pairwise(parts)]
    return [word for word in [*parts, *pairs] if word in INSTEAD]


def offences(house: House, room: str) -> list[str]:
    """Returns each forbidden name of a room with the word to use instead."""
    return [
        f"{item.place}: {item.name} ({word}: say {INSTEAD[word]})"
        for module in house.modules.values()
        if module.room == room
        for item in names(module)
        if (room, item.name) not in ALLOWED
        for word in forbidden(item.name)
    ]


def bare_participles(house: House) -> Sequence[str]:
    """Returns the functions whose name is one participle, such as `made`; a property is named like a field."""
    return [
        f"{module.path}:{node.lineno} {node.name}"
        for module in house.modules.values()
        for node in module.nodes
        if isinstance(node, FUNCTIONS) and _is_participle(node.name.strip("_")) and not _is_property(node)
    ]


def ambiguous_classes(house: House) -> Mapping[str, Sequence[str]]:
    """Returns the names that several classes have, each with the modules of these classes."""
    found: dict[str, list[str]] = {}
    for module in house.modules.values():
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name.strip("_"), []).append(module.path)
    return {name: places for name, places in sorted(found.items()) if len(places) > 1}


def empty_names(house: House) -> Sequence[str]:
    """Returns the paths of files and folders whose name says nothing."""
    return [module.path for module in house.modules.values() if not EMPTY_NAMES.isdisjoint(module.name.split("."))]


def _is_participle(word: str) -> bool:
    return word in IRREGULAR or (REGULAR.fullmatch(word) is not None and word not in VERBS)


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    decorators = [ast.unparse(item) for item in node.decorator_list]
    return any(name.rpartition(".")[2] in {"property", "cached_property"} for name in decorators)


def _defined(node: ast.AST) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.arg(arg=name) | ast.alias(asname=str(name)):
            return [name]
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            return [name]
    return []
