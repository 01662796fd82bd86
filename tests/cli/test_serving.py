"""Tests of the welcome that a start prints."""

import pytest

from app.cli import serving
from app.errors import EmbeddingUnavailable


@pytest.mark.parametrize("error", [EmbeddingUnavailable("no model"), KeyError("no model")])
async def test_a_welcome_that_fails_says_why(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    async def welcome() -> None:
        raise error

    await serving._told(welcome())
    assert "no model" in capsys.readouterr().err
