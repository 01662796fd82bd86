"""The settings of a workspace: its roles, its action types, and whether effects count in its ranking."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from app.errors import Refused, check
from app.foundation.db.database import Database
from app.foundation.safety.secrets import masked_values
from app.recall.cues.actions import types_of_workspace
from app.recall.retrieval.rank.asking import Role, RoleParts, roles_of
from app.storage.memories.gate import INJECTION, instruction_in, unstorable
from app.storage.tenants import store
from app.storage.tenants.service import Workspaces
from app.storage.tenants.workspace import Workspace

MOST_OWN = 50
"""Roles, and action types, of a workspace's own: each request of the workspace reads them."""
_RoleName: TypeAlias = Annotated[
    str, Meta(pattern=r"^[^\sA-Z]([^A-Z]{0,198}[^\sA-Z])?$", description="the name of an agent, in lower case")
]
_ActName: TypeAlias = Annotated[
    str, Meta(pattern="^[a-z][a-z0-9-]{0,40}(:[a-z][a-z0-9-]{0,40})?$", description="`area`, or `area:act`")
]
_Example: TypeAlias = Annotated[
    str, Meta(pattern=r"\S", max_length=500, description="says what somebody is about to do")
]
_Examples: TypeAlias = Annotated[tuple[_Example, ...], Meta(min_length=1, max_length=50)]


class Tuning(Struct, frozen=True, kw_only=True):
    """The settings of a workspace; its own roles and action types take the place of built-in ones of the same name."""

    roles: Mapping[str, RoleParts]
    """The parts of the history of an agent of this name, the most important first; `default` is every other agent's."""
    action_types: Mapping[str, tuple[str, ...]]
    """Examples of the acts by which plans and cues are compared."""
    uses_effects: bool
    """True if the estimated effects of memories count in the ranking."""

    @classmethod
    def of(cls, workspace: Workspace) -> "Tuning":
        """Returns the settings of a workspace."""
        return cls(
            roles={name: role.parts for name, role in roles_of(workspace).items()},
            action_types={name: item.examples for name, item in types_of_workspace(workspace).items()},
            uses_effects=workspace.uses_effects,
        )


class TuningChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """New settings of a workspace; what is left out stays, and null takes its own away."""

    roles: Mapping[_RoleName, RoleParts | None] = {}
    action_types: Mapping[_ActName, _Examples | None] = {}
    uses_effects: bool | UnsetType = UNSET

    @property
    def own_roles(self) -> Mapping[str, Role | None]:
        """The roles with their names."""
        return {name: None if parts is None else Role(name=name, parts=parts) for name, parts in self.roles.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tunings:
    """Changes the settings of workspaces."""

    database: Database
    mask_secrets: bool = True

    async def change(self, workspace: Workspace, given: TuningChange) -> Tuning:
        """Changes the settings that are given; secrets in them are masked.

        Raises:
            InvalidInput: a text cannot be stored, or there are too many roles or action types.
            Refused: the title of a part, which stands outside the fences of a section, looks like an instruction.
        """
        check([*unstorable(msgspec.to_builtins(given)), *_excess(workspace, given)])
        for parts in filter(None, given.roles.values()):
            for found in filter(None, (instruction_in(part.title) for part in parts)):
                message = f"looks like an instruction to the reader (rule {found.rule})"
                raise Refused("roles.title", message, reason=INJECTION)
        stored = masked_values(given) if self.mask_secrets else given
        target = await Workspaces(database=self.database).get_or_create(workspace)
        async with self.database.session(target) as session:
            return Tuning.of(
                await store.tune(
                    session,
                    roles=stored.own_roles,
                    action_types=stored.action_types,
                    uses_effects=None if stored.uses_effects is UNSET else stored.uses_effects,
                )
            )


def _excess(workspace: Workspace, given: TuningChange) -> Iterator[str]:
    """Yields the fields by which a workspace would have too much of its own."""
    for field, own, new in (
        ("roles", workspace.roles, given.roles),
        ("action_types", workspace.action_types, given.action_types),
    ):
        kept = {name for name in own if name not in new}
        if len(kept) + sum(value is not None for value in new.values()) > MOST_OWN:
            yield f"{field}: a workspace has at most {MOST_OWN} of its own; take one away with null"
