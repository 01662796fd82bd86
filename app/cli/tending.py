"""`cues starter`, `cues tend`, `cues proposals`, `cues decide`, `cues undo`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from app.cli.remote import answered, viewed
from app.cli.running import JsonOption, WorkspaceOption, in_workspace, print_json

if TYPE_CHECKING:
    from priors_client import Client

    from app.cues.keep import Kept
    from app.cues.tending.store import StoredProposal
    from app.cues.tending.tend import Tended
    from app.memories.remember import Door
    from app.wiring import Services
    from app.workspaces.workspace import Workspace

cues_commands = typer.Typer(
    help="Keep the cues sound: a first library, merges, proposals. Changes: cues, as each command says.",
    no_args_is_help=True,
)

ProposalArgument = Annotated[UUID, typer.Argument(metavar="ID", help="The proposal, as `cues proposals` names it.")]


@cues_commands.command()
def starter(*, workspace: WorkspaceOption = None) -> None:
    """Add the first library: general cues of engineering and research, for a store that has none of its own.

    Changes: adds cues with the tag `starter`, once. Own cues on the same act take their places (`cues tend`).
    """

    async def work(services: "Services", target: "Workspace") -> "Kept":
        # SQLAlchemy: see `app.cli`.
        from app.cues.keep import add_cues  # noqa: PLC0415
        from app.cues.tending.starter import starter_cues  # noqa: PLC0415

        return await add_cues(_door(services, target), starter_cues())

    kept = in_workspace(workspace, work)
    typer.echo(f"{kept.stored} cues added, {kept.known} known")


@cues_commands.command()
def tend(*, workspace: WorkspaceOption = None) -> None:
    """Look through the cues of no user: merge near-duplicates, and propose what else should change.

    Changes: near-duplicate cues become one; `cues undo` takes it back. Everything else waits for `cues decide`.
    """

    async def work(services: "Services", target: "Workspace") -> "Tended":
        from app.cues.mining.precedents import judge_precedents  # noqa: PLC0415 - SQLAlchemy: see `app.cli`
        from app.cues.tending.tend import tend as look  # noqa: PLC0415 - as above
        from app.workspaces.workspace import NOBODY  # noqa: PLC0415 - as above

        door = _door(services, target.of(NOBODY))
        await judge_precedents(door)
        return await look(door, services.chat)

    def there(client: "Client") -> "Tended":
        from app.api.tending import TendedView  # noqa: PLC0415 - see `app.cli`

        return viewed(client.tend_cues(), TendedView)

    found = answered(workspace, work, there)
    typer.echo(f"{found.cues} cues looked at")
    _print(found.proposals)


@cues_commands.command()
def proposals(
    *,
    state: Annotated[str, typer.Option("--state", help="open, accepted, declined or undone; empty for all.")] = "open",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the changes that were proposed, the newest first.

    Changes nothing.
    """

    async def work(services: "Services", target: "Workspace") -> "Sequence[StoredProposal]":
        from app.cues.tending.tend import list_proposals  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        return await list_proposals(services.database, workspace=target, state=state)

    def there(client: "Client") -> "Sequence[StoredProposal]":
        from app.api.tending import ProposalView  # noqa: PLC0415 - see `app.cli`

        asked: Any = state
        return viewed(client.proposals(state=asked), list[ProposalView])

    found = answered(workspace, work, there)
    if as_json:
        from app.api.tending import ProposalView  # noqa: PLC0415 - see `app.cli`

        print_json(found, list[ProposalView])
    else:
        _print(found)


@cues_commands.command()
def decide(
    proposal_id: ProposalArgument,
    *,
    accept: Annotated[bool, typer.Option("--accept/--decline", help="Change the cues, or leave them.")],
    artifact: Annotated[str, typer.Option(help="The file that holds the convention that a cue becomes.")] = "",
    workspace: WorkspaceOption = None,
) -> None:
    """Accept or decline a proposal.

    Changes: the cues that it names, with --accept; `cues undo` takes it back.
    """

    async def work(services: "Services", target: "Workspace") -> "StoredProposal":
        from app.cues.tending import tend as verbs  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        return await verbs.decide(
            services.database, workspace=target, proposal_id=proposal_id, accept=accept, artifact=artifact
        )

    def there(client: "Client") -> "StoredProposal":
        from app.api.tending import ProposalView  # noqa: PLC0415 - see `app.cli`

        return viewed(client.decide_proposal(proposal_id, accept=accept, artifact=artifact), ProposalView)

    _print([answered(workspace, work, there)])


@cues_commands.command()
def undo(proposal_id: ProposalArgument, *, workspace: WorkspaceOption = None) -> None:
    """Take back a decision: an accepted proposal's changes are undone, a declined one is open again.

    Changes: the cues that it names become what they were.
    """

    async def work(services: "Services", target: "Workspace") -> "StoredProposal":
        from app.cues.tending import tend as verbs  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

        return await verbs.undo(services.database, workspace=target, proposal_id=proposal_id)

    def there(client: "Client") -> "StoredProposal":
        from app.api.tending import ProposalView  # noqa: PLC0415 - see `app.cli`

        return viewed(client.undo_proposal(proposal_id), ProposalView)

    _print([answered(workspace, work, there)])


def _print(found: "Sequence[StoredProposal]") -> None:
    if not found:
        typer.echo("no proposals")
    for item in found:
        typer.echo(f"{item.proposal_id} {item.change} ({item.state}): {item.reason}")


def _door(services: "Services", workspace: "Workspace") -> "Door":
    from app.memories.remember import Door  # noqa: PLC0415 - SQLAlchemy: see `app.cli`

    return Door(
        services.database, services.counter, workspace, services.settings.mask_secrets, services.provider
    )  # fmt: skip
