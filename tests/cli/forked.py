"""Runs commands in processes that are forked from one that has imported everything: importing takes seconds."""

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from app.cli import main

PATIENCE_SECONDS = 240.0
IMPORTED = ("app.api.serving.server", "app.models.local", "app.operations.doctor", "fastembed", "pytest", "rich.table")
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([__name__, *IMPORTED])


def run(words: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs `priors` with these words and this environment, and returns what `subprocess.run` would."""
    with TemporaryDirectory() as folder:
        streams = [Path(folder) / name for name in ("stdout", "stderr")]
        process = _context.Process(target=_command, args=(words, environment, streams))
        process.start()
        process.join(PATIENCE_SECONDS)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"priors {' '.join(words)} has not ended after {PATIENCE_SECONDS:.0f} s")
        output, errors = (path.read_text() for path in streams)
    return subprocess.CompletedProcess([*words], process.exitcode, output, errors)


def _command(words: Sequence[str], environment: Mapping[str, str], streams: Sequence[Path]) -> None:
    for number, path in enumerate(streams, start=1):
        with path.open("wb") as stream:
            os.dup2(stream.fileno(), number)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["priors", *words]
    main()
