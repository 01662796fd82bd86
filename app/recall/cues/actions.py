"""The action types of a workspace: what somebody is about to do.

A text is of a type by the nearest examples of the type, and by a verb and an object of it.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.errors import EmbeddingUnavailable
from app.foundation.models.protocols import EmbeddingProvider, Matrix, Vector
from app.foundation.text.data import read_toml
from app.foundation.text.words import STEM, WORD, content_words
from app.storage.tenants.workspace import Workspace

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


_MOST_CACHED = 32
"""Sets of examples whose vectors are kept, of 0.4 MB each; most workspaces have no types of their own."""
_CACHED: OrderedDict[tuple[str, tuple[str, ...]], Matrix] = OrderedDict()


def types_of_workspace(workspace: Workspace) -> Mapping[str, ActionType]:
    """Returns the action types of a workspace by name; its own ones take the place of built-in ones."""
    own = {name: ActionType(name=name, examples=examples) for name, examples in workspace.action_types.items()}
    return {**_built_in(), **own}


async def embed_types(provider: EmbeddingProvider, workspace: Workspace) -> ActionTypes:
    """Returns the action types of a workspace with the vectors of their examples; without a model there are none."""
    types = tuple(types_of_workspace(workspace).values())
    if not provider.enabled:
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
