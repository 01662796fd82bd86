"""Shows how far a command is."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

_LINE_SECONDS = 60.0
"""Time between two lines on the progress where no terminal shows a bar."""


@contextmanager
def progress(what: str, *, quiet: bool = False) -> Iterator[Callable[[int, int, str], None]]:
    """Yields what shows that so many of all are done, and what was done last.

    It is a bar in a terminal, and else a line a minute, because most commands take less.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[path]}", markup=False),
    )
    has_bar = console.is_terminal
    bar = Progress(*columns, console=console, disable=quiet or not has_bar, transient=True)
    task = bar.add_task(what, total=None, path="")
    started = said = time.monotonic()

    def show(done: int, total: int, path: str) -> None:
        nonlocal said
        bar.update(task, completed=done, total=total, path=path)
        now = time.monotonic()
        if not has_bar and not quiet and now - said >= _LINE_SECONDS:
            said = now
            typer.echo(f"{what}: {done:,} of {total:,} after {(now - started) / 60:.0f} min; {path}", err=True)

    with bar:
        yield show
