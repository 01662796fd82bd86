"""SECURITY.md names tests that exist."""

import re
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

NAMED = re.findall(r"(?m)^- `(tests/[\w/]+\.py)::(\w+)`", (REPOSITORY / "SECURITY.md").read_text())


def test_each_wall_names_what_tries_it() -> None:
    text = (REPOSITORY / "SECURITY.md").read_text()
    (walls,) = re.findall(r"(?ms)^## What each wall holds\n(.*?)^## ", text)
    for wall in re.split(r"(?m)^\*\*", walls)[1:]:
        assert re.search(r"(?m)^- `tests/", wall), wall.partition("*")[0]


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_named_test_exists(file: str, name: str) -> None:
    assert re.search(rf"(?m)^(?:async )?def {name}\(", Path(REPOSITORY / file).read_text())
