"""The verbs that show the roles of a workspace, and change them."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from app.db.database import Database
from app.errors import NotFound, Refused, check
from app.memories.gate import INJECTION, NAME_LIMIT, instruction_in, unstorable
from app.retrieval.rank.roles import ROLES, Role
from app.safety.secrets import masked_values
from app.workspaces import store
from app.workspaces.resolve import made
from app.workspaces.workspace import Workspace

MOST_ROLES, MOST_PARTS, MOST_WORDS, LARGEST_WEIGHT = 50, 8, 50, 2


def roles_of(workspace: Workspace) -> dict[str, Role]:
    """Returns the roles of a workspace by name: those that every workspace has, or its own in their place."""
    return {**ROLES, **msgspec.convert(workspace.roles, dict[str, Role])}


async def save_role(database: Database, *, workspace: Workspace, role: Role, mask: bool = True) -> Role:
    """Gives a workspace a role, in place of any of this name; secrets in it are masked unless `mask` is off.

    Raises:
        InvalidInput: a field cannot be taken, or the workspace has too many roles.
        Refused: the title of a part, which stands outside the fences of a section, looks like an instruction.
    """
    check(_reasons(role, workspace))
    for found in filter(None, (instruction_in(part.title) for part in role.parts)):
        message = f"looks like an instruction to the reader (rule {found.rule})"
        raise Refused("parts.title", message, reason=INJECTION)
    stored = masked_values(role) if mask else role
    target = await made(database, workspace)
    async with database.session(target) as session:
        await store.set_role(session, stored.name, msgspec.to_builtins(stored))
    return stored


async def remove_role(database: Database, *, workspace: Workspace, name: str) -> None:
    """Take a workspace's own role away; one that every workspace has is as it was.

    Raises:
        NotFound: the workspace has no role of its own of this name.
    """
    if name not in workspace.roles:
        raise NotFound(f"workspace {workspace.name} has no role of its own called {name!r}")
    async with database.session(workspace) as session:
        await store.set_role(session, name, None)


def _reasons(role: Role, workspace: Workspace) -> Iterator[str]:
    if not role.name or role.name != role.name.strip().lower() or len(role.name) > NAME_LIMIT:
        yield f"name: is in lower case and has 1 to {NAME_LIMIT} characters"
    if len({*workspace.roles, role.name}) > MOST_ROLES:
        yield f"name: a workspace has at most {MOST_ROLES} roles of its own"
    if len(role.parts) > MOST_PARTS:
        yield f"parts: at most {MOST_PARTS} are taken"
    for part in role.parts:
        if not part.title.strip() or len(part.title) > NAME_LIMIT:
            yield f"parts.title: has 1 to {NAME_LIMIT} characters"
        if not 0 <= part.weight <= LARGEST_WEIGHT:
            yield f"parts.weight: must be from 0 to {LARGEST_WEIGHT}"
        if max(map(len, (*part.words, *part.facets)), default=0) > NAME_LIMIT or len(part.words) > MOST_WORDS:
            yield f"parts.words: at most {MOST_WORDS}, of at most {NAME_LIMIT} characters"
    yield from unstorable({"name": role.name, "parts": _texts(role)})


def _texts(role: Role) -> Sequence[Any]:
    return [text for part in role.parts for text in (part.title, *part.facets, *part.words)]
