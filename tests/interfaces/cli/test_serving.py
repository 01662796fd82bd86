"""Tests of a start: its welcome, and what is noted where it fails."""

import socket
from pathlib import Path

import pytest

from app.errors import EmbeddingUnavailable, PriorsError
from app.interfaces.cli import failures, serving, starting


@pytest.mark.parametrize("error", [EmbeddingUnavailable("no model"), KeyError("no model")])
async def test_a_welcome_that_fails_says_why(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    async def welcome() -> None:
        raise error

    await serving._print_welcome(welcome())
    assert "no model" in capsys.readouterr().err


def test_a_start_that_fails_is_noted_unless_a_service_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIORS_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with socket.create_server(("127.0.0.1", 0)) as other:
        monkeypatch.setenv("PRIORS_PORT", str(other.getsockname()[1]))
        with pytest.raises(PriorsError):
            serving.serve(stop_with_parent=False)
        assert [item.what for item in failures.failures(str(tmp_path))] == ["service"]
        failures.clear("service", str(tmp_path), data_dir=str(tmp_path))
        running = starting.keep_locked(tmp_path)
        assert running is not None
        with running, pytest.raises(PriorsError):
            serving.serve(stop_with_parent=False)
        assert failures.failures(str(tmp_path)) == []
