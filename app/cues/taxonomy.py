"""The verbs of action types: those of a workspace, its own among them, with the vectors of their examples."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from app.cues import store, vectors
from app.cues.actions import ActionType, ActionTypes, built_in, type_reasons
from app.db.database import Database
from app.errors import EmbeddingUnavailable, NotFound, check
from app.memories.gate import unstorable
from app.models.protocols import EmbeddingProvider, Matrix
from app.workspaces.resolve import made
from app.workspaces.workspace import Workspace

MOST_CACHED = 32
"""Sets of examples whose vectors are kept, of 0.4 MB each; most workspaces have no types of their own."""
CACHED: OrderedDict[tuple[str, tuple[str, ...]], Matrix] = OrderedDict()


async def list_types(database: Database, *, workspace: Workspace) -> Mapping[str, ActionType]:
    """Returns the action types of a workspace by name; its own ones take the place of built-in ones."""
    async with database.session(workspace, transaction=False) as session:
        own = await vectors.own_types(session)
    return {**built_in(), **{name: ActionType(name=name, examples=examples) for name, examples in own.items()}}


async def types_of(database: Database, provider: EmbeddingProvider | None, *, workspace: Workspace) -> ActionTypes:
    """Returns the action types of a workspace with the vectors of their examples; without a model there are none."""
    types = tuple((await list_types(database, workspace=workspace)).values())
    if provider is None or not provider.enabled:
        return ActionTypes(types=types, matrix=None)
    examples = tuple(example for item in types for example in item.examples)
    try:
        return ActionTypes(types=types, matrix=await _embedded(provider, examples))
    except EmbeddingUnavailable:
        return ActionTypes(types=types, matrix=None)


async def _embedded(provider: EmbeddingProvider, examples: tuple[str, ...]) -> Matrix:
    key = provider.model_id, examples
    if key not in CACHED:
        CACHED[key] = await provider.embed_documents(examples)
        while len(CACHED) > MOST_CACHED:
            CACHED.popitem(last=False)
    return CACHED[key]


async def save_type(database: Database, *, workspace: Workspace, name: str, examples: Sequence[str]) -> ActionType:
    """Stores an action type of the workspace, in place of any of this name.

    Raises:
        InvalidInput: the name or an example is not valid.
    """
    check([*type_reasons(name, examples), *unstorable({"examples": list(examples)})])
    async with database.session(await made(database, workspace)) as session:
        await vectors.save_type(session, name, examples)
        await store.revised(session)
    return ActionType(name=name, examples=tuple(examples))


async def remove_type(database: Database, *, workspace: Workspace, name: str) -> None:
    """Removes an action type of the workspace; a built-in one of this name is as it was.

    Raises:
        NotFound: the workspace has no own type of this name.
    """
    check(unstorable({"name": name}))
    async with database.session(workspace) as session:
        if not await vectors.remove_type(session, name):
            raise NotFound(f"workspace {workspace.name} has no action type {name!r} of its own")
        await store.revised(session)
