"""The action types of a workspace: what somebody is about to do.

A text is of a type by the nearest examples of the type, and by a verb and an object of it.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.errors import EmbeddingUnavailable, NotFound, check
from app.foundation.db.database import Database
from app.foundation.models.protocols import EmbeddingProvider, Matrix, Vector
from app.foundation.text.data import read_toml
from app.foundation.text.words import STEM, WORD, content_words
from app.recall.cues import store, vectors
from app.storage.memories.gate import unstorable
from app.storage.tenants.service import get_or_create
from app.storage.tenants.workspace import Workspace

_NAME = re.compile(r"[a-z][a-z0-9-]{0,40}(?::[a-z][a-z0-9-]{0,40})?")
"""The name of a type: `area`, or `area:act`."""
MOST_EXAMPLES, EXAMPLE_LIMIT = 50, 500
_MOST_NAMED = 3
LEAST, WITHIN = 0.35, 0.08
"""Least likeness of a text and its types, and the greatest distance of a type from the likest one."""
_SHARPNESS = 25.0
"""Factor by which a likeness to one act outweighs that to others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionType:
    """An action type of the taxonomy or of a workspace."""

    name: str
    examples: tuple[str, ...]
    verbs: frozenset[str] = frozenset()
    """Stems."""
    objects: frozenset[str] = frozenset()


@cache
def _built_in() -> Mapping[str, ActionType]:
    """Returns the action types that every workspace has, by name."""
    stored = read_toml("app.recall.cues", "actions.toml", dict[str, dict[str, list[str]]])
    return {
        name: ActionType(
            name=name,
            examples=tuple(item["examples"]),
            verbs=frozenset(word[:STEM] for word in item["verbs"]),
            objects=frozenset(word[:STEM] for word in item["objects"]),
        )
        for name, item in stored.items()
    }


@cache
def known_acts() -> frozenset[str]:
    """Returns the stems of the verbs and objects of the built-in action types."""
    return frozenset().union(*(item.verbs | item.objects for item in _built_in().values()))


@dataclass(frozen=True, kw_only=True, eq=False)
class ActionTypes:
    """The action types of a workspace, with the vectors of their examples."""

    types: tuple[ActionType, ...]
    matrix: Matrix | None
    """One row for each example, in the order of the types; None without a model."""

    def are_same(self, other: "ActionTypes") -> bool:
        """Tells if a text is like each of these types as it is like the others."""
        return self.types == other.types and (self.matrix is None) == (other.matrix is None)

    def likeness(self, text: str, vector: Vector | None) -> Vector:
        """Returns how alike a text and each type are: by meaning, or without vectors by a verb and an object of it."""
        if vector is not None and self.matrix is not None and self.types:
            nearest: Vector = self._nearest(vector[None])[0]
            return nearest
        stems = _stems_of(text)
        spoken = [bool(item.verbs & stems and item.objects & stems) for item in self.types]
        found: Vector = np.array(spoken, dtype=np.float32) * np.float32(LEAST)
        return found

    def _nearest(self, rows: NDArray[Any]) -> Matrix:
        assert self.matrix is not None, "without a model there are no rows"  # noqa: S101
        starts = np.cumsum([0, *(len(item.examples) for item in self.types[:-1])])
        found: Matrix = np.maximum.reduceat(rows.astype(np.float32) @ self.matrix.T, starts, axis=1)
        return found

    def profile(self, rows: NDArray[Any]) -> Matrix:
        """Returns the likeness of each row and each type, sharpened, of unit length."""
        found = self._nearest(rows)
        sharpened = np.exp(_SHARPNESS * (found - found.mean(axis=1, keepdims=True)))
        profiles: Matrix = sharpened / np.linalg.norm(sharpened, axis=1, keepdims=True)
        return profiles

    @cached_property
    def mean(self) -> Vector | None:
        """The common part of all texts: the mean of the examples, and nothing of the store.

        So a pair of plan and cue has the same likeness in every store.
        """
        return None if self.matrix is None or not self.types else self.matrix.mean(axis=0)

    def centre(self, rows: NDArray[Any]) -> Matrix:
        """Returns rows without what all texts have in common, of unit length."""
        assert self.mean is not None, "without a model there are no rows"  # noqa: S101
        moved = rows.astype(np.float32) - self.mean
        found: Matrix = moved / np.maximum(1e-6, np.linalg.norm(moved, axis=-1, keepdims=True)).astype(np.float32)
        return found

    def names(self, text: str, vector: Vector | None) -> tuple[str, ...]:
        """Returns the types of a text, the likest first; none if it is like none."""
        found = self.likeness(text, vector)
        if not len(found):
            return ()
        best = float(found.max())
        order = np.argsort(-found, kind="stable")[:_MOST_NAMED]
        return tuple(self.types[at].name for at in order if found[at] >= max(LEAST, best - WITHIN))


def _stems_of(text: str) -> frozenset[str]:
    """Returns the stems of a text's words, as those of the taxonomy are cut."""
    return content_words(text) | {word[:STEM] for word in WORD.findall(text.lower())}


def _type_reasons(name: str, examples: Sequence[str]) -> Sequence[str]:
    """Returns the reasons why a workspace cannot have this type, each with its field and the remedy."""
    found = []
    if not _NAME.fullmatch(name):
        found.append("name: is `area` or `area:act`, in small letters, digits and hyphens, as `schema-change:rename`")
    if not 1 <= len(examples) <= MOST_EXAMPLES:
        found.append(f"examples: 1 to {MOST_EXAMPLES} sentences are taken, each saying what somebody is about to do")
    if any(not example.strip() or len(example) > EXAMPLE_LIMIT for example in examples):
        found.append(f"examples: each has 1 to {EXAMPLE_LIMIT} characters")
    return found


_MOST_CACHED = 32
"""Sets of examples whose vectors are kept, of 0.4 MB each; most workspaces have no types of their own."""
_CACHED: OrderedDict[tuple[str, tuple[str, ...]], Matrix] = OrderedDict()


async def list_types(database: Database, *, workspace: Workspace) -> Mapping[str, ActionType]:
    """Returns the action types of a workspace by name; its own ones take the place of built-in ones."""
    async with database.session(workspace, transaction=False) as session:
        own = await vectors.own_types(session)
    return {**_built_in(), **{name: ActionType(name=name, examples=examples) for name, examples in own.items()}}


async def types_of(database: Database, provider: EmbeddingProvider | None, *, workspace: Workspace) -> ActionTypes:
    """Returns the action types of a workspace with the vectors of their examples; without a model there are none."""
    types = tuple((await list_types(database, workspace=workspace)).values())
    if provider is None or not provider.enabled:
        return ActionTypes(types=types, matrix=None)
    examples = tuple(example for item in types for example in item.examples)
    try:
        return ActionTypes(types=types, matrix=await _embed(provider, examples))
    except EmbeddingUnavailable:
        return ActionTypes(types=types, matrix=None)


async def _embed(provider: EmbeddingProvider, examples: tuple[str, ...]) -> Matrix:
    key = provider.model_id, examples
    if key not in _CACHED:
        _CACHED[key] = await provider.embed_documents(examples)
        while len(_CACHED) > _MOST_CACHED:
            _CACHED.popitem(last=False)
    return _CACHED[key]


async def save_type(database: Database, *, workspace: Workspace, name: str, examples: Sequence[str]) -> ActionType:
    """Stores an action type of the workspace, in place of any of this name.

    Raises:
        InvalidInput: the name or an example is not valid.
    """
    check([*_type_reasons(name, examples), *unstorable({"examples": list(examples)})])
    async with database.session(await get_or_create(database, workspace)) as session:
        await vectors.save_type(session, name, examples)
        await store.next_revision(session)
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
        await store.next_revision(session)
