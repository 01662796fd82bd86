"""The wheel, by which Priors is installed without make: its contents, and what it brings along."""

import re
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement

from app.foundation.models.bundled import REQUIREMENT, WHEEL_SHA256


@pytest.fixture(scope="module")
def project(repository: Path) -> dict[str, Any]:
    """The project's own description."""
    return tomllib.loads((repository / "pyproject.toml").read_text())


@pytest.fixture
def wheel(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> frozenset[str]:
    """The names of the files in a wheel that is built without building the panel."""
    monkeypatch.setenv("HATCH_BUILD_NO_HOOKS", "true")
    (built,) = WheelBuilder(str(repository)).build(directory=str(tmp_path), versions=["standard"])
    return frozenset(zipfile.ZipFile(built).namelist())


def test_the_wheel_has_what_the_service_reads(repository: Path, wheel: frozenset[str]) -> None:
    folders = ("app", "migrations")
    data = {
        path.relative_to(repository).as_posix()
        for folder in folders
        for path in (repository / folder).rglob("*")
        if path.is_file() and not {"panel", "__pycache__"} & set(path.parts)
    }
    assert data <= wheel
    assert {"priors_client/client.py", "priors_client/py.typed"} <= wheel
    dist = repository / "app" / "panel" / "dist"
    assert {path.relative_to(repository).as_posix() for path in dist.rglob("*.*")} <= wheel
    assert not any("node_modules" in name or name.endswith(".tsx") for name in wheel)


def _closure(names: Iterator[Requirement]) -> frozenset[str]:
    """Returns the names of all packages that these need here, with those that the needed ones need."""
    found: set[tuple[str, str]] = set()
    open_ = [(item.name, extra) for item in names for extra in ("", *item.extras)]
    while open_:
        name, extra = open_.pop()
        if (name, extra) in found:
            continue
        found.add((name, extra))
        try:
            needed = map(Requirement, requires(name) or ())
        except PackageNotFoundError:
            continue
        fitting = [item for item in needed if item.marker is None or item.marker.evaluate({"extra": extra})]
        open_ += [(item.name, more) for item in fitting for more in ("", *item.extras)]
    return frozenset(re.sub(r"[-_.]+", "-", name).lower() for name, _ in found)


def test_the_wheel_does_not_bring_pytorch(project: dict[str, Any]) -> None:
    needed = _closure(map(Requirement, project["project"]["dependencies"]))
    assert {"litestar", "fastembed", "onnxruntime"} <= needed
    assert needed.isdisjoint({"torch", "sentence-transformers", "transformers", Requirement(REQUIREMENT).name})


def test_the_map_is_an_extra(project: dict[str, Any]) -> None:
    heavy = {"umap-learn", "pynndescent", "numba", "llvmlite"}
    assert _closure(map(Requirement, project["project"]["dependencies"])).isdisjoint(heavy)
    assert heavy <= _closure(map(Requirement, project["project"]["optional-dependencies"]["map"]))


def test_the_locked_weights_are_those_that_a_start_fetches(repository: Path, project: dict[str, Any]) -> None:
    assert project["dependency-groups"]["weights"] == [REQUIREMENT]
    locked = (repository / "requirements" / "run.lock").read_text()
    assert WHEEL_SHA256 in locked.partition(f"\n{REQUIREMENT} ")[2].partition("# via")[0]
