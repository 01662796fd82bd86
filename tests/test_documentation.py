"""What the documents name exists, and what exists is named."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
import typer

from app.api.serving.application import create_app
from app.cli import app
from app.settings import Settings

ROUTE = re.compile(r"`(GET|POST|PUT|PATCH|DELETE) (/[^`?]*)`")
HEADING = re.compile(r"[^\w\- ]")


@pytest.fixture(scope="module")
def readme(repository: Path) -> str:
    """The README."""
    return (repository / "README.md").read_text()


def documents(repository: Path) -> list[Path]:
    return [*repository.glob("*.md"), *(repository / "docs").rglob("*.md"), *(repository / "benchmarks").glob("*.md")]


def test_the_readme_lists_the_settings_with_their_defaults(readme: str) -> None:
    rows = dict(re.findall(r"(?m)^\| `(PRIORS_[A-Z_]+)` \| `?([^|`]*)`? +\|", readme))
    for item in fields(Settings):
        default = str(item.default).lower() if isinstance(item.default, bool) else str(item.default)
        assert rows.pop(f"PRIORS_{item.name.upper()}").strip() == default
    assert rows == {}


def test_no_document_names_a_setting_that_does_not_exist(repository: Path) -> None:
    known = {f"PRIORS_{item.name.upper()}" for item in fields(Settings)}
    known |= {"PRIORS_TEST_DATABASE_URL", "PRIORS_PUBLISH"}
    for path in documents(repository):
        assert set(re.findall(r"PRIORS_[A-Z_]+[A-Z]", path.read_text())) <= known, path


def test_the_readme_lists_the_commands(readme: str) -> None:
    listed = set(re.findall(r"(?m)^\| `priors ([a-z-]+)", readme))
    assert listed == set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]  # the application is a group


def test_no_document_names_a_command_that_does_not_exist(repository: Path) -> None:
    known = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]  # the application is a group
    for path in documents(repository):
        assert set(re.findall(r"`priors ([a-z][a-z-]+)", path.read_text())) <= known, path


def test_the_readme_lists_the_routes(readme: str) -> None:
    paths = create_app(Settings()).openapi_schema.to_schema()["paths"]
    routes = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert set(ROUTE.findall(readme)) == routes


def test_every_link_leads_somewhere(repository: Path) -> None:
    for path in documents(repository):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_make_targets_that_are_named_exist(repository: Path, readme: str) -> None:
    makefile = (repository / "Makefile").read_text()
    for target in set(re.findall(r"`make ([a-z-]+)`", readme)):
        assert re.search(rf"(?m)^{target}:", makefile), target


def test_every_decision_is_listed(repository: Path) -> None:
    folder = repository / "docs" / "adr"
    index = (folder / "README.md").read_text()
    assert all(f"({path.name})" in index for path in folder.glob("0*.md"))
