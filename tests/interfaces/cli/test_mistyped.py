"""A mistyped command is named with the one that was meant."""

import pytest
from typer.testing import CliRunner

from app.interfaces.cli.commands import app


@pytest.mark.parametrize(("typed", "meant"), [("histry", "history"), ("serach", "search"), ("wrokspace", "workspace")])
def test_the_nearest_command_is_named(typed: str, meant: str) -> None:
    result = CliRunner().invoke(app, [typed, "x"])
    assert result.exit_code == 2
    assert f"No such command {typed!r}. Did you mean {meant!r}?" in result.output


def test_no_command_is_named_where_none_is_near() -> None:
    result = CliRunner().invoke(app, ["xyzzy"])
    assert result.exit_code == 2
    assert "No such command 'xyzzy'." in result.output
    assert "Did you mean" not in result.output
