"""What starts the service at login, as systemd itself reads it, and as launchd's form has it."""

import os
import plistlib
import subprocess
from pathlib import Path
from shutil import which

import pytest

from app.errors import ConfigurationError
from app.interfaces.cli import at_login, starting


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a user without settings, on a system whose own programs are not asked."""
    for name in [name for name in os.environ if name.startswith("PRIORS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(at_login, "which", lambda _: None)
    return tmp_path


def test_a_unit_is_one_that_systemd_takes(home: Path) -> None:
    data_dir = home / 'my "data" 100%'
    data_dir.mkdir()
    starting.write_settings(data_dir, {"PRIORS_LANGUAGE": 'ge"r$man\\ 5%', "PRIORS_PORT": "7"})
    told = at_login.write_at_login(data_dir, "http://127.0.0.1:8123", platform="linux")
    unit = at_login.file_at_login(home, "linux")
    assert told == (
        f"wrote {unit}; this system did not take it in, so do it when it can:"
        " systemctl --user daemon-reload && systemctl --user enable priors.service"
    )
    text = unit.read_text()
    assert 'Environment="PRIORS_PORT=8123"' in text
    assert r'Environment="PRIORS_LANGUAGE=ge\"r$man\\ 5%%"' in text
    if (verify := which("systemd-analyze")) is not None:
        environ = {**os.environ, "XDG_RUNTIME_DIR": str(home)}
        words = [verify, "--user", "verify", str(unit)]
        done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
    assert at_login.remove_at_login(platform="linux").startswith(f"removed {unit}")
    assert not unit.exists()
    assert at_login.remove_at_login(platform="linux") == "nothing starts the service at login"


def test_an_agent_of_launchd_has_the_command_and_the_settings(home: Path) -> None:
    at_login.write_at_login(home / "data", "http://127.0.0.1:8123", platform="darwin")
    agent = plistlib.loads(at_login.file_at_login(home, "darwin").read_bytes())
    assert agent["ProgramArguments"][1] == "run"
    assert agent["EnvironmentVariables"]["PRIORS_DATA_DIR"] == str(home / "data")
    assert agent["KeepAlive"] == {"SuccessfulExit": False}, "one that was ended stays ended"


def test_no_secret_is_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIORS_API_KEY", "secret")
    with pytest.raises(ConfigurationError, match="PRIORS_API_KEY would be written into a file"):
        at_login.write_at_login(home / "data", "http://127.0.0.1:8123", platform="linux")
    assert not at_login.file_at_login(home, "linux").exists()
