"""`report`."""

from enum import StrEnum
from typing import Annotated

import typer

from app.interfaces.cli.options import Moment, expand_options, in_utc, print_json, without_none
from app.interfaces.cli.service import PlaceOptions

commands = typer.Typer()


class Form(StrEnum):
    """The forms of a report."""

    markdown = "markdown"
    html = "html"
    json = "json"


@commands.command()
@expand_options
def report(
    *,
    place: PlaceOptions,
    since: Moment = None,
    until: Moment = None,
    task_type: Annotated[str, typer.Option(help="Runs of this task type.")] = "",
    versions: Annotated[int, typer.Option(min=2, help="An open P0 or P1 of so many versions is an alert.")] = 3,
    form: Annotated[Form, typer.Option("--format", help="markdown, html or json.")] = Form.markdown,
) -> None:
    """Print what memory did to the runs of a workspace, and what cannot be concluded.

    Changes nothing.
    """
    asked = without_none(since=in_utc(since), until=in_utc(until))
    with place.client() as client:
        if form is Form.json:
            print_json(client.admin.effect(**asked, task_type=task_type, versions=versions))
            return
        found = client.admin.effect_export(
            **asked, task_type=task_type, versions=versions, format="html" if form is Form.html else "markdown"
        )
    typer.echo(found.text, nl=False)
