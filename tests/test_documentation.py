"""What the documents name exists, and what exists is named."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from app.interfaces.cli.commands import COMMANDS
from app.interfaces.http.serving.application import create_app
from app.settings import Settings

ROUTE = re.compile(r"`(GET|POST|PUT|PATCH|DELETE) (/[^`?]*)`")
HEADING = re.compile(r"[^\w\- ]")


@pytest.fixture(scope="module")
def commands(repository: Path) -> str:
    """The page of commands and settings."""
    return (repository / "docs" / "reference" / "commands.md").read_text()


def documents(repository: Path) -> list[Path]:
    return [*repository.glob("*.md"), *(repository / "docs").rglob("*.md"), *(repository / "benchmarks").glob("*.md")]


def test_the_settings_are_listed_with_their_defaults(commands: str) -> None:
    rows = dict(re.findall(r"(?m)^\| `(PRIORS_[A-Z_]+)` \| `?([^|`]*)`? +\|", commands))
    for item in fields(Settings):
        default = str(item.default).lower() if isinstance(item.default, bool) else str(item.default)
        assert rows.pop(f"PRIORS_{item.name.upper()}").strip() == default
    assert rows == {}


def test_no_document_names_a_setting_that_does_not_exist(repository: Path) -> None:
    known = {f"PRIORS_{item.name.upper()}" for item in fields(Settings)}
    known |= {"PRIORS_TEST_DATABASE_URL"}
    for path in documents(repository):
        assert set(re.findall(r"PRIORS_[A-Z_]+[A-Z]", path.read_text())) <= known, path


def test_the_commands_are_listed(commands: str) -> None:
    listed = set(re.findall(r"(?m)^\| `priors ([a-z-]+)", commands))
    assert listed == {*COMMANDS}


def test_no_document_names_a_command_that_does_not_exist(repository: Path) -> None:
    known = {*COMMANDS}
    for path in documents(repository):
        assert set(re.findall(r"`priors ([a-z][a-z-]+)", path.read_text())) <= known, path


def test_the_routes_are_listed(repository: Path) -> None:
    paths = create_app(Settings()).openapi_schema.to_schema()["paths"]
    routes = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    page = (repository / "docs" / "reference" / "http.md").read_text()
    assert set(ROUTE.findall(page)) == routes


def test_every_link_leads_somewhere(repository: Path) -> None:
    for path in documents(repository):
        for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", path.read_text()):
            found = path.parent / target if target else path
            assert found.exists(), f"{path.name}: {target}"
            assert not anchor or anchor in anchors(found), f"{path.name}: {target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """Returns the anchors of a page's headings, as code hosts make them."""
    headings = re.findall(r"(?m)^#+ (.*)", page.read_text())
    return {HEADING.sub("", heading.strip().lower()).replace(" ", "-") for heading in headings}


def test_the_make_targets_that_are_named_exist(repository: Path) -> None:
    makefile = (repository / "Makefile").read_text()
    for path in documents(repository):
        for target in set(re.findall(r"`make ([a-z][a-z-]+)", path.read_text())):
            assert re.search(rf"(?m)^{target}:", makefile), f"{path.name}: {target}"


def test_the_readme_is_short(repository: Path) -> None:
    lines = (repository / "README.md").read_text().splitlines()
    assert len(lines) <= 150
    assert lines.index("## What it does") <= 45


def test_there_are_as_many_pages_as_the_readme_links_to(repository: Path) -> None:
    readme = (repository / "README.md").read_text()
    pages = {path for path in (repository / "docs").glob("*/*.md") if path.parent.name != "adr"}
    assert {path.parent.name for path in pages} == {"tutorial", "how-to", "reference", "explanation"}
    assert len(pages) <= 17
    assert all(f"({path.relative_to(repository)})" in readme for path in pages)


def test_every_decision_is_listed(repository: Path) -> None:
    folder = repository / "docs" / "adr"
    index = (folder / "README.md").read_text()
    assert all(f"({path.name})" in index for path in folder.glob("0*.md"))


def test_the_messages_of_troubleshooting_are_those_of_the_code(repository: Path) -> None:
    page = (repository / "docs" / "how-to" / "troubleshooting.md").read_text()
    written = "\n".join(_texts(repository))
    stated = re.findall(r"(?m)^\| (`.+?`)(?:, and the like)? \|", page)
    assert len(stated) > 20
    for message in stated:
        for part in message[1:-1].split("…"):
            assert part.strip(" :;,(.") in written, f"{message}: {part!r}"


def _texts(repository: Path) -> Iterator[str]:
    """Yields the texts in the code, each as one line; what is filled in ends one."""
    for path in [*(repository / "app").rglob("*.py"), *(repository / "client").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
    yield (repository / "Makefile").read_text()
