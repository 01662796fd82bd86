"""Starts the service when its user logs in: a systemd user unit, or a launchd agent on macOS."""

import plistlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import which

from app.errors import ConfigurationError
from app.interfaces.cli.starting import LOG, NotStarted, service_environment

_LABEL = "dev.priors.service"
_UNIT = """\
# Written by `priors connect --at-login`; `priors connect --at-login --remove` takes it away.
[Unit]
Description=Priors, the memory of coding agents

[Service]
ExecStart={command}
WorkingDirectory={folder}
{environment}
Restart=on-failure
RestartSec=10
StandardOutput=append:{log}
StandardError=append:{log}

[Install]
WantedBy=default.target
"""
_SYSTEM = ("PATH", "HOME", "LANG", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")
"""Variables of the system that a service needs, beside its settings."""


def file_at_login(home: Path, platform: str = sys.platform) -> Path:
    """Returns the path of the unit or agent of this user."""
    if platform == "darwin":
        return home / "Library" / "LaunchAgents" / f"{_LABEL}.plist"
    return home / ".config" / "systemd" / "user" / "priors.service"


def write_at_login(data_dir: Path, url: str, *, platform: str = sys.platform) -> str:
    """Writes what starts the service of a data directory at login, and returns what was done and what is left to do.

    Raises:
        ConfigurationError: the service has a secret among its settings, which is written into no file.
    """
    folder = data_dir.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        given = service_environment(folder, url)
    except NotStarted as error:
        raise ConfigurationError(str(error)) from error
    settings = {name: value for name, value in given.items() if name.startswith("PRIORS_")}
    if secret := [name for name in settings if name.endswith(("KEY", "DATABASE_URL"))]:
        names = " and ".join(secret)
        raise ConfigurationError(f"{names} would be written into a file: start this service by your own means at login")
    environ = {name: given[name] for name in _SYSTEM if name in given} | settings
    path = file_at_login(Path.home(), platform)
    path.parent.mkdir(parents=True, exist_ok=True)
    if platform == "darwin":
        path.write_bytes(_agent(folder, environ))
        return _load(path, ["launchctl", "load", "-w", str(path)])
    path.write_text(_unit(folder, environ), encoding="utf-8")
    return _load(path, ["systemctl", "--user", "enable", path.name], first=["systemctl", "--user", "daemon-reload"])


def remove_at_login(*, platform: str = sys.platform) -> str:
    """Removes what starts the service at login, and returns what was done. A service that runs goes on."""
    path = file_at_login(Path.home(), platform)
    if not path.exists():
        return "nothing starts the service at login"
    command = ["launchctl", "unload", "-w", str(path)]
    if platform != "darwin":
        command = ["systemctl", "--user", "disable", path.name]
    told = _load(path, command)
    path.unlink()
    return told.replace("wrote", "removed")


def _load(path: Path, command: Sequence[str], first: Sequence[str] = ()) -> str:
    """Runs the commands that make a file known, where the system has them; else says which they are."""
    commands = [words for words in (first, command) if words]
    if which(command[0]) is not None and all(_succeeds(words) for words in commands):
        return f"wrote {path}"
    lines = " && ".join(" ".join(words) for words in commands)
    return f"wrote {path}; this system did not take it in, so do it when it can: {lines}"


def _succeeds(words: Sequence[str]) -> bool:
    return subprocess.run(words, capture_output=True, check=False).returncode == 0  # noqa: S603 - the system's own


def _command() -> list[str]:
    return [str(Path(sys.executable).with_name("priors")), "run"]


def _unit(folder: Path, environ: Mapping[str, str]) -> str:
    lines = [f"Environment={_quote(f'{name}={value}')}" for name, value in environ.items()]
    return _UNIT.format(
        command=" ".join(map(_quote, _command())).replace("$", "$$"),
        folder=_escape(str(folder)),
        environment="\n".join(lines),
        log=_escape(str(folder / LOG)),
    )


def _quote(text: str) -> str:
    """Returns a word in the form of systemd's lines."""
    return '"' + _escape(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _escape(text: str) -> str:
    """Returns a text without what systemd would replace in it."""
    return text.replace("%", "%%")


def _agent(folder: Path, environ: Mapping[str, str]) -> bytes:
    return plistlib.dumps(
        {
            "Label": _LABEL,
            "ProgramArguments": _command(),
            "WorkingDirectory": str(folder),
            "EnvironmentVariables": dict(environ),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "StandardOutPath": str(folder / LOG),
            "StandardErrorPath": str(folder / LOG),
        }
    )
