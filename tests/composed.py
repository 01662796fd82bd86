"""Compose files put over each other, by the rules of the Compose specification that these files use."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

REPLACED = {"command", "entrypoint", "test"}
"""Lists that replace an earlier one; others are added to it."""


class _Reset:
    """Stands for a value with the tag `!reset`, which takes an earlier one away."""


class _Loader(yaml.SafeLoader):
    """Knows the tags of Compose."""


_Loader.add_constructor("!reset", lambda _loader, _node: _Reset())


def composed(*files: Path) -> dict[str, Any]:
    """Returns the document that the files make together, each service with what it extends."""
    document: dict[str, Any] = {}
    for file in files:
        document = _over(document, _loaded(file))
    return document


def _loaded(file: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.load(file.read_text(), Loader=_Loader)  # noqa: S506 - a safe loader
    for name, service in document["services"].items():
        if extended := service.pop("extends", None):
            base = _loaded(file.with_name(extended["file"]))["services"][extended["service"]]
            document["services"][name] = _over(base, service)
    return document


def _over(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**lower, **{name: _value_over(name, lower.get(name), value) for name, value in upper.items()}}
    return {name: value for name, value in merged.items() if not isinstance(value, _Reset)}


def _value_over(name: str, lower: Any, upper: Any) -> Any:
    if isinstance(lower, dict) and isinstance(upper, dict):
        return _over(lower, upper)
    if isinstance(lower, list) and isinstance(upper, list) and name not in REPLACED:
        return _volumes_over(lower, upper) if name == "volumes" else [*lower, *upper]
    return upper


def _volumes_over(lower: list[str], upper: list[str]) -> list[str]:
    """A later volume takes the place of an earlier one of the same folder."""
    return list({volume.split(":")[1]: volume for volume in (*lower, *upper)}.values())
