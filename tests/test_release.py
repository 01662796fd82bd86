"""What a release consists of: one version in every file, and a workflow that the platform accepts."""

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml


@pytest.fixture(scope="module")
def script(repository: Path) -> dict[str, Any]:
    """The names of the script that compares versions."""
    return runpy.run_path(str(repository / "requirements" / "versions.py"))


@pytest.fixture(scope="module")
def jobs(repository: Path) -> dict[str, Any]:
    """The jobs of the workflow."""
    workflow = yaml.safe_load((repository / ".github" / "workflows" / "release.yml").read_text())
    jobs: dict[str, Any] = workflow["jobs"]
    return jobs


def test_every_file_states_the_same_version(script: dict[str, Any]) -> None:
    assert script["differing"](script["versions"]()) == ""


def test_a_version_that_differs_is_named(script: dict[str, Any]) -> None:
    found = {"pyproject.toml": "0.2.0", "compose.yaml": "0.1.0"}
    assert "compose.yaml: 0.1.0" in script["differing"](found)
    assert "the tag: v0.3.0" in script["differing"]({"pyproject.toml": "0.2.0"}, "v0.3.0")
    assert script["differing"]({"pyproject.toml": "0.2.0"}, "v0.2.0") == ""


def test_the_workflow_meets_the_platforms_schema(repository: Path) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    file = repository / ".github" / "workflows" / "release.yml"
    done = subprocess.run([*command, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_is_published_before_tests_and_starts(jobs: dict[str, Any]) -> None:
    for name in ("pypi", "npm"):
        assert set(jobs[name]["needs"]) == {"packages", "image"}
        assert jobs[name]["permissions"] == {"id-token": "write"}, (
            "it publishes by its identity, without a stored token"
        )
        assert jobs[name]["environment"] == name
    assert all(jobs[name]["needs"] == "test" for name in ("packages", "image"))


def test_the_make_targets_of_the_workflow_exist(repository: Path, jobs: dict[str, Any]) -> None:
    makefile = (repository / "Makefile").read_text()
    commands = [step.get("run", "") for job in jobs.values() for step in job["steps"]]
    targets = [command.removeprefix("make ") for command in commands if command.startswith("make ")]
    assert targets
    assert all(f"\n{target}:" in makefile for target in targets)


def test_the_map_is_an_extra_that_run_and_tests_install(repository: Path) -> None:
    for name in ("run.lock", "dev.lock"):
        locked = (repository / "requirements" / name).read_text()
        assert all(f"\n{package}==" in locked for package in ("umap-learn", "numba"))
