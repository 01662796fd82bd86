"""`why`."""

from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.remote import answered, viewed
from app.cli.running import JsonOption, UserOption, WorkspaceOption, print_json

if TYPE_CHECKING:
    from priors_client import Client

    from app.cues.why.why import Why
    from app.wiring import Services
    from app.workspaces.workspace import Workspace

commands = typer.Typer()


@commands.command()
def why(
    subject: Annotated[str, typer.Argument(help="A question, or what was decided on, such as “API versioning”.")] = "",
    *,
    path: Annotated[str, typer.Option("--path", help="A file, or the end of its path.")] = "",
    symbol: Annotated[str, typer.Option("--symbol", help="A function or section.")] = "",
    user: UserOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print why something is as it is: what was decided, the reasons, what failed, and where that is said.

    Changes nothing. Says so where nothing that is stored says why.
    """

    async def work(services: "Services", target: "Workspace") -> "Why":
        from app.cues.why.why import ask_why  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        return await ask_why(
            services.database,
            services.provider,
            services.counter,
            workspace=target.for_reading(user),
            subject=subject,
            path=path,
            symbol=symbol,
        )

    def there(client: "Client") -> "Why":
        from app.api.why import WhyView  # noqa: PLC0415 - see `app.cli`

        return viewed(client.why(subject=subject, path=path, symbol=symbol, user=user or ""), WhyView)

    found = answered(workspace, work, there)
    if as_json:
        from app.api.why import WhyView  # noqa: PLC0415 - see `app.cli`

        print_json(found, WhyView)
    else:
        typer.echo(found.markdown)
