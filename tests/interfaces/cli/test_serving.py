"""Tests of the welcome that a start prints."""

import pytest

from app.errors import EmbeddingUnavailable
from app.interfaces.cli import serving


@pytest.mark.parametrize("error", [EmbeddingUnavailable("no model"), KeyError("no model")])
async def test_a_welcome_that_fails_says_why(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    async def welcome() -> None:
        raise error

    await serving._print_welcome(welcome())
    assert "no model" in capsys.readouterr().err
