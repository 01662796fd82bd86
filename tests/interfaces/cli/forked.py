"""Runs commands in processes that are forked from one that has imported everything: importing takes seconds."""

import multiprocessing
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

from app.interfaces.cli import main

PATIENCE_SECONDS = 240.0
IMPORTED = (
    "app.interfaces.http.serving.server",
    "app.foundation.models.local",
    "app.operations.doctor",
    "fastembed",
    "pytest",
    "rich.table",
)
STREAMS = ("stdout", "stderr")
ALONE = ("run", "serve", "worker")
"""Commands that set up a log which the loggers of their process keep."""
NONE: Mapping[str, float] = MappingProxyType({})
_shared: list["Shell"] = []
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([__name__, *IMPORTED])


class Shell:
    """A process that runs one command after another."""

    def __init__(self, process: ForkServerProcess, commands: Connection, folder: Path) -> None:
        self._process, self._commands, self._folder = process, commands, folder

    def run(
        self, words: Sequence[str], environment: Mapping[str, str], *, within: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs `priors` with these words and this environment, and returns what `subprocess.run` would.

        `within` is the current folder of the command, if it matters.
        """
        self._commands.send((words, environment, within or Path.cwd()))
        if not self._commands.poll(PATIENCE_SECONDS):
            self._process.kill()
            raise TimeoutError(f"priors {' '.join(words)} has not ended after {PATIENCE_SECONDS:.0f} s")
        code = self._commands.recv()
        output, errors = ((self._folder / name).read_text() for name in STREAMS)
        return subprocess.CompletedProcess([*words], code, output, errors)


@contextmanager
def shell(constants: Mapping[str, float] = NONE) -> Iterator[Shell]:
    """Yields a process for commands, which must end by itself at the end of the block.

    `constants` are those of a module of the command line that it has in place of its own, by `module.NAME`.
    """
    with TemporaryDirectory() as folder:
        commands, given = _context.Pipe()
        process = _context.Process(target=_obey, args=(given, Path(folder), dict(constants)))
        process.start()
        given.close()
        try:
            yield Shell(process, commands, Path(folder))
        finally:
            commands.close()
            process.join(PATIENCE_SECONDS)
            if process.exitcode is None:
                process.kill()
                raise TimeoutError(f"a process of commands has not ended after {PATIENCE_SECONDS:.0f} s")


def run(
    words: Sequence[str], environment: Mapping[str, str], *, within: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs `priors` in a process of its own, or in that of `shared`."""
    if _shared and words[0] not in ALONE:
        return _shared[-1].run(words, environment, within=within)
    with shell() as own:
        return own.run(words, environment, within=within)


@contextmanager
def shared(constants: Mapping[str, float] = NONE) -> Iterator[None]:
    """Lets one process run the commands of the block: a second one takes a quarter of the first one's time."""
    with shell(constants) as one:
        _shared.append(one)
        try:
            yield
        finally:
            _shared.remove(one)


def _obey(commands: Connection, folder: Path, constants: Mapping[str, float]) -> None:
    for place, value in constants.items():
        module, _, name = place.partition(".")
        found = import_module(f"app.interfaces.cli.{module}")
        assert hasattr(found, name), place
        setattr(found, name, value)
    while True:
        try:
            words, environment, within = commands.recv()
        except EOFError:
            return
        for number, name in enumerate(STREAMS, start=1):
            with (folder / name).open("wb") as stream:
                os.dup2(stream.fileno(), number)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(within)
        commands.send(_code(words))


def _code(words: Sequence[str]) -> int:
    """Runs a command, and returns the code that its process would end with."""
    sys.argv = ["priors", *words]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    except Exception:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0
