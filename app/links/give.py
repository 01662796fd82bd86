"""The verbs by which callers say what is linked."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.db.database import Database, again_after_deadlock
from app.errors import InvalidInput, NotFound
from app.links import store
from app.links.link import GIVEN, LEAST_WEIGHT, RELATIONS, Link
from app.workspaces.workspace import Workspace

MOST_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LinksGiven:
    """The outcome of links that were given: each is in one of the three counts."""

    created: int
    updated: int
    """Known links with another weight."""
    unchanged: int


async def give_links(database: Database, *, workspace: Workspace, links: Sequence[Link]) -> LinksGiven:
    """Link memories, all in one transaction; a link that is there takes the new weight, so a call may be repeated.

    Of a link given twice the last one counts.

    Raises:
        InvalidInput: a relation that is found and not given, a memory linked with itself, a weight out of range.
        NotFound: one of the memories is not in the workspace, or it is deleted or in quarantine; nothing is linked.
    """
    if not 1 <= len(links) <= MOST_AT_ONCE:
        raise InvalidInput("links", f"1 to {MOST_AT_ONCE:,} are taken at once")
    for place, link in enumerate(links):
        _check(place, link)
    wanted = {link[:3]: link for link in links}

    async def attempt() -> LinksGiven:
        async with database.session(workspace) as session:
            ids = {memory_id for link in links for memory_id in link[:2]}
            if missing := ids - await store.known(session, ids):
                raise NotFound(f"there is no memory {min(missing)} in workspace {workspace.name}, so nothing is linked")
            created, updated = await store.add(session, list(wanted.values()))
            return LinksGiven(created=created, updated=updated, unchanged=len(links) - created - updated)

    return await again_after_deadlock(attempt)


async def take_back_link(database: Database, *, workspace: Workspace, link: Link) -> None:
    """Take a link away, whatever weight it has. One that was found comes back when one of its memories is stored anew.

    Raises:
        InvalidInput: a relation that is not stored.
        NotFound: there is no such link.
    """
    if link.relation not in RELATIONS[1:]:
        raise InvalidInput("relation", f"{link.relation!r} is not stored; there are {', '.join(RELATIONS[1:])}")
    async with database.session(workspace) as session:
        if not await store.remove(session, [link]):
            raise NotFound(
                f"{link.from_id} has no link {link.relation!r} to {link.to_id} in workspace {workspace.name}"
            )


def _check(place: int, link: Link) -> None:
    if link.relation not in GIVEN:
        raise InvalidInput(
            f"links[{place}].relation",
            f"{link.relation!r} cannot be given; {' and '.join(GIVEN)} can, others are found",
        )
    if link.from_id == link.to_id:
        raise InvalidInput(f"links[{place}].to_id", "is the memory itself; link two different ones")
    if not LEAST_WEIGHT <= link.weight <= 1:
        raise InvalidInput(f"links[{place}].weight", f"must be from {LEAST_WEIGHT} to 1")
