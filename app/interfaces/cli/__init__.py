"""The command line: a client of the service that runs, or of the application in this process where none runs.

A command's module is imported when the command is used, so that `priors --help` answers at once. Beside a running
service a command imports neither SQLAlchemy nor the model. Seconds of a core that an import takes, beside 0.1 for
`priors --help`: the client 0.15, SQLAlchemy 0.75, Litestar 0.3, structlog and numpy 0.2 each.
"""

import os
import sys

from app.interfaces.cli import hooks

__all__ = ["main"]


def main() -> None:
    """Runs a command. An agent waits for a hook, and for its server: both do without what the other commands import."""
    _speak_utf8()
    is_hook = sys.argv[1:2] == ["hook"]
    if is_hook and (place := hooks.place_of(sys.argv[2:])) is not None:
        hooks.answer(place)
        # To take Python's own parts down would take 3 ms.
        sys.stdout.flush()
        os._exit(0)
    if sys.argv[1:2] == ["mcp"]:
        from app.interfaces.cli import relay  # noqa: PLC0415 - a hook does without Python's HTTP client

        if relay.serves(sys.argv[2:]):
            return
    from app.interfaces.cli.commands import run_command  # noqa: PLC0415 - typer takes 0.1 s of a core

    try:
        run_command()
    except SystemExit as ended:
        # A coding program stops what its agent does where a hook ends with 2, as commands do that are called wrongly.
        raise SystemExit(1 if is_hook and ended.code else ended.code) from None


def _speak_utf8() -> None:
    """Starts the command again in Python's UTF-8 mode where the locale has another encoding, as in LC_ALL=C.

    Arguments, names of files and output would else be cut or refused. Processes that it starts inherit the mode.
    """
    if sys.getfilesystemencoding().lower() != "utf-8" and os.environ.get("PYTHONUTF8") != "1":
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, "PYTHONUTF8": "1"})  # noqa: S606 - the same program
