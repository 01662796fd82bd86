"""The verb that walks over links from a memory: level by level, nearest and strongest first, within fixed costs."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias
from uuid import UUID

from app.errors import InvalidInput, NotFound
from app.foundation.db.database import Database
from app.storage.links import lookup
from app.storage.links.lookup import IN, OUT, Step
from app.storage.links.relations import impossible_relation
from app.storage.tenants.workspace import Workspace

DEEPEST = 3
"""Most steps from the start: at four, a store's found links reach nearly everything."""
MOST_STEPPED = 200
"""Most memories of one walk, and so of one level."""
FAN_OUT = 32
"""Links of one memory that are followed, the strongest: 200 memories of a level give at most 6,400."""

Direction: TypeAlias = Literal["out", "in", "both"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A memory that a walk reached."""

    memory_id: UUID
    kind: str
    title: str
    depth: int
    """Number of steps from the start; the fewest by which it is reached."""
    weight: float
    """The product of the weights on its path: of the strongest of the shortest paths that were followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """The last link of a node's path, in the direction in which it is stored."""

    from_id: UUID
    to_id: UUID
    relation: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """The memories that a walk reached, without the start, and the link by which it reached each of them."""

    nodes: Sequence[Node]
    """Nearest first; at one depth the strongest first."""
    edges: Sequence[Edge]
    """One for each node, in the same order. With the start they are a tree."""
    more: bool
    """True if `limit` left memories out that the followed links lead to."""


class _Reached(NamedTuple):
    node: Node
    edge: Edge


async def walk_links(
    database: Database,
    *,
    workspace: Workspace,
    start: UUID,
    relations: Sequence[str] = (),
    direction: Direction = "both",
    depth: int = 2,
    limit: int = 50,
) -> Walk:
    """Follows the links of a memory, then those of the memories they lead to, up to `depth` steps.

    Only live memories that the workspace's user sees are reached; the start may be superseded. Each level is one
    statement, and reads at most `FAN_OUT` links of each of its memories. Equal stores give equal walks.

    Raises:
        InvalidInput: no link of a relation is stored, or the depth or limit is out of range.
        NotFound: the workspace has no such memory, or it is deleted or in quarantine.
    """
    _check(relations, depth, limit)
    directions = (OUT, IN) if direction == "both" else (direction,)
    reached: dict[UUID, _Reached] = {}
    level, more = {start: 1.0}, False
    async with database.session(workspace, reading=True) as session:
        if not await lookup.is_start(session, start):
            raise NotFound(f"there is no memory {start} to start from in workspace {workspace.name}")
        for steps in range(1, depth + 1):
            found = await lookup.steps(
                session, list(level), relations=relations, directions=directions, fan_out=FAN_OUT
            )  # fmt: skip
            new = _first(found, level, seen={start, *reached}, depth=steps)
            taken = new[: limit - len(reached)]
            more = len(taken) < len(new)
            reached |= {item.node.memory_id: item for item in taken}
            level = {item.node.memory_id: item.node.weight for item in taken}
            if more or not level:
                break
    nodes, edges = [item.node for item in reached.values()], [item.edge for item in reached.values()]
    return Walk(nodes=nodes, edges=edges, more=more)


def _check(relations: Iterable[str], depth: int, limit: int) -> None:
    for relation in relations:
        if reason := impossible_relation(relation):
            raise InvalidInput("relations", reason)
    if not 1 <= depth <= DEEPEST:
        raise InvalidInput("depth", f"must be from 1 to {DEEPEST}")
    if not 1 <= limit <= MOST_STEPPED:
        raise InvalidInput("limit", f"must be from 1 to {MOST_STEPPED}")


def _first(found: Iterable[Step], level: Mapping[UUID, float], *, seen: Collection[UUID], depth: int) -> list[_Reached]:
    """Returns the memories of the next level, the strongest first, each by its strongest path."""
    weighed = [(level[step.origin] * step.weight, step) for step in found if step.other not in seen]
    weighed.sort(key=lambda item: (-item[0], item[1].other, item[1].relation, item[1].direction, item[1].origin))
    best: dict[UUID, _Reached] = {}
    for weight, step in weighed:
        if step.other not in best:
            node = Node(memory_id=step.other, kind=step.kind, title=step.title, depth=depth, weight=weight)
            best[step.other] = _Reached(node, _edge_of(step))
    return list(best.values())


def _edge_of(step: Step) -> Edge:
    from_id, to_id = (step.origin, step.other) if step.direction == OUT else (step.other, step.origin)
    return Edge(from_id=from_id, to_id=to_id, relation=step.relation, weight=step.weight)
