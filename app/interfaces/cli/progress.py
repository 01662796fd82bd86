"""Shows how far a command is."""

import time

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

_LINE_SECONDS = 60.0
"""Time between two lines on the progress where no terminal shows a bar."""


class Shown:
    """Shows how far a command is: a bar in a terminal, and else a line a minute, because most take less."""

    def __init__(self, what: str, *, quiet: bool = False) -> None:
        console = Console(stderr=True)
        columns = (
            TextColumn(what),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[path]}", markup=False),
        )
        self._what, self._quiet, self._has_bar = what, quiet, console.is_terminal
        self._started = self._said = time.monotonic()
        self._progress = Progress(*columns, console=console, disable=quiet or not self._has_bar, transient=True)
        self._task = self._progress.add_task(what, total=None, path="")

    def __enter__(self) -> "Shown":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, done: int, total: int, path: str) -> None:
        """Shows that so many of all are done, and what was done last."""
        self._progress.update(self._task, completed=done, total=total, path=path)
        now = time.monotonic()
        if not self._has_bar and not self._quiet and now - self._said >= _LINE_SECONDS:
            self._said = now
            minutes = (now - self._started) / 60
            typer.echo(f"{self._what}: {done:,} of {total:,} after {minutes:.0f} min; {path}", err=True)
