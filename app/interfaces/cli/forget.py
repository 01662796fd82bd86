"""`forget`: lists everything that names a subject, and removes it."""

from typing import Annotated

import typer

from app.interfaces.cli.client import JsonOption, PlaceOptions, expand_options, print_json, without_none

commands = typer.Typer()


@commands.command()
@expand_options
def forget(
    phrase: Annotated[str, typer.Argument(help="A name or some words, found in any case as whole words.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this, the places are only listed.")] = False,
    confirm: Annotated[int | None, typer.Option("--confirm", help="The number of the list, if it is over 100.")] = None,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """List everything that names a subject, and with `--yes` remove it from the workspace for good.

    Changes: destroys the memories that name it, in the trash too, and takes the phrase out of runs, recalls, contexts
    and all else, of all users. It needs a key with `admin`.
    """
    with place.client(owner=True) as client:
        found = client.admin.forget(phrase=phrase, yes=yes, **without_none(confirm=confirm))
    if as_json:
        print_json(found)
        return
    for count, name in [(count, name) for counts in (found.memories, found.rows) for name, count in counts.items()]:
        typer.echo(f"{count:>10,}  {name}")
    for file in found.files:
        typer.echo(f"            from {file}")
    if not found.total:
        typer.echo("nothing names it")
        return
    typer.echo(f"forgot {found.total:,} places" if yes else f"{found.total:,} places; --yes removes them for good")
    for reason in found.stays:
        typer.echo(f"stays: {reason}")
