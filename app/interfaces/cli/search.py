"""`search`: the hits for a query, as texts, or as a table of their scores."""

import os
import sys
from collections.abc import Sequence
from shutil import get_terminal_size
from textwrap import fill, shorten
from typing import Annotated

import typer
from priors_client.models import HitView, MemoryView
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.interfaces.cli.asking import KOption, QueryArgument, QueryOptions, warn
from app.interfaces.cli.options import JsonOption, expand_options, print_json
from app.interfaces.cli.service import PlaceOptions

commands = typer.Typer()

_SHOWN = {
    "probability": "prob",
    "similarity": "sim",
    "bm25": "bm25",
    "neighbours": "nbr",
    "source": "src",
    "named": "name",
    "dated": "date",
    "phrases": "phr",
    "relevance": "rel",
    "qual_weight": "qual",
    "q_adjust": "rate",
    "recency": "rec",
}
"""The components of a score, with the headings of their columns."""
_NARROW = frozenset({"probability", "similarity", "bm25", "relevance", "qual_weight", "recency"})
"""The components that a narrow terminal shows."""
_PIPED_WIDTH = 140
EXCERPT, TEXT = 120, 300
"""Characters of a passage that are shown in the table, and of a hit's text in the list."""
_NOTHING = "Nothing in the store is relevant to that."
TITLE_WIDTH, PART_WIDTH = 32, 6
"""Least width of a title, and width of a component, in characters."""


@commands.command()
@expand_options
def search(
    query: QueryArgument,
    *,
    k: KOption = 10,
    around: Annotated[
        int, typer.Option("--around", min=0, max=2, help="Show so many turns before and after each hit, too.")
    ] = 0,
    options: QueryOptions,
    explain: Annotated[bool, typer.Option("--explain", help="Print the components of each score, as a table.")] = False,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """Print what a query finds; `--explain` shows the scores.

    Changes: nothing but the log of recalls.
    """
    with place.client() as client:
        answer = client.search(query, k=k, around=around, **options.fields())
    if as_json:
        print_json(answer)
        return
    if explain:
        _table(answer.hits)
    else:
        width = get_terminal_size((_PIPED_WIDTH, 0)).columns
        typer.echo("\n\n".join(_item(place, hit, width) for place, hit in enumerate(answer.hits, start=1)) or _NOTHING)
    warn(answer)


def _item(number: int, hit: HitView, width: int) -> str:
    """Returns a hit as a list shows it: what it is, where it is from, and its text."""
    start, end = _number(hit, "passage_starts"), _number(hit, "passage_ends")
    source = (hit.source and (hit.source.title or hit.source.uri)) or hit.kind
    day = "" if hit.occurred_at is None else f"{hit.occurred_at:%Y-%m-%d}"
    score = "" if hit.final_score is None else f"{hit.final_score:.1f}/10"
    heading = hit.title or shorten(hit.body, width - len(f"{number}. "), placeholder=" …")
    facts = " · ".join(filter(None, (source, str(hit.metadata.get("role", "")), day, score)))
    texts = [shorten(hit.body[start : end or None][: 2 * TEXT], TEXT, placeholder=" …")]
    texts = [text for text in texts if text != heading]
    texts += [f"{'>' if memory.id == hit.id else ' '} {_beginning(memory)}" for memory in _in_order(hit)]
    lines = [fill(text, width, initial_indent="   ", subsequent_indent="   ") for text in texts if text]
    return "\n".join([f"{number}. {heading}", f"   {facts}", *lines])


def _beginning(memory: HitView | MemoryView) -> str:
    said = " ".join((memory.title or memory.body)[:200].split())
    return f"{memory.metadata.get('role', '')} {said}".strip()


def _parts(hits: Sequence[HitView], room: int) -> list[str]:
    """Returns the components of the score that differ from 0 for these hits, as many as fit beside the titles."""
    telling = [part for part in _SHOWN if any(hit.explain.get(part) for hit in hits)]
    return telling if len(telling) <= room else [part for part in telling if part in _NARROW][: max(0, room)]


def _table(hits: Sequence[HitView]) -> None:
    # Output into a pipe or a file is not cut to the width of a terminal.
    console = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else _PIPED_WIDTH)
    parts = _parts(hits, (console.width - TITLE_WIDTH) // PART_WIDTH - 1)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), expand=True)
    for name in ("score", *(_SHOWN[part] for part in parts)):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("memory", ratio=1, no_wrap=True, overflow="ellipsis")
    for hit in hits:
        values = [hit.explain.get(part) for part in parts]
        numbers = ["-" if value is None else f"{value:.2f}" for value in values]
        source = (hit.source and (hit.source.title or hit.source.uri)) or hit.kind
        # Stored text is not markup: its brackets are shown as they are.
        table.add_row(f"{hit.score:.3f}", *numbers, Text(f"{hit.title or hit.body[:80]}\n  {source}"))
        if hit.explain.get("passage"):
            # It is folded, because its beginning alone says too little.
            table.add_row("", *("" for _ in parts), Text(_passage(hit), no_wrap=False, overflow="fold"))
        for memory in _in_order(hit):
            mark = ">" if memory.id == hit.id else " "
            table.add_row("", *("" for _ in parts), Text(f"  {mark} {_beginning(memory)}"))
    console.print(table if hits else _NOTHING)


def _passage(hit: HitView) -> str:
    """Returns the number of the hit's nearest passage with its beginning; a title may be a passage of its own."""
    number, passages, starts, ends = (
        _number(hit, name) for name in ("passage", "passages", "passage_starts", "passage_ends")
    )
    said = shorten((hit.body[starts:ends] or hit.title)[: 2 * EXCERPT], EXCERPT, placeholder=" …")
    return f"passage {number} of {passages}: {said}"


def _number(hit: HitView, name: str) -> int:
    """Returns a whole number that explains a hit; 0 where there is none."""
    value = hit.explain.get(name)
    return int(value) if isinstance(value, int | float) else 0


def _in_order(hit: HitView) -> list[HitView | MemoryView]:
    """Returns a hit among the memories around it; nothing where there are none."""
    return sorted([hit, *hit.around], key=lambda item: item.ordinal or 0) if hit.around else []
