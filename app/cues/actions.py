"""Classifies texts by action types: what somebody is about to do. Pure.

A text is of a type by the nearest examples of the type, and by a verb and an object of it.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from app.models.protocols import Matrix, Vector
from app.text.words import STEM, WORD, content_words

NAME = re.compile(r"[a-z][a-z0-9-]{0,40}(?::[a-z][a-z0-9-]{0,40})?")
"""The name of a type: `area`, or `area:act`."""
MOST_EXAMPLES, EXAMPLE_LIMIT = 50, 500
"""Most examples of a type, and most characters of one."""
MOST_NAMED = 3
"""Most types of a text."""
LEAST, WITHIN = 0.35, 0.08
"""Least likeness of a text and its types, and the greatest distance of a type from the likest one."""
SPOKEN = 0.12
"""Likeness that a verb and an object of a type add."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionType:
    """An action type of the taxonomy or of a workspace."""

    name: str
    examples: tuple[str, ...]
    verbs: frozenset[str] = frozenset()
    """Stems."""
    objects: frozenset[str] = frozenset()


@cache
def built_in() -> Mapping[str, ActionType]:
    """Returns the action types that every workspace has, by name."""
    stored = tomllib.loads(files("app.cues").joinpath("actions.toml").read_text(encoding="utf-8"))
    return {
        name: ActionType(
            name=name,
            examples=tuple(item["examples"]),
            verbs=frozenset(word[:STEM] for word in item["verbs"]),
            objects=frozenset(word[:STEM] for word in item["objects"]),
        )
        for name, item in stored.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionTypes:
    """The action types of a workspace, with the vectors of their examples."""

    types: tuple[ActionType, ...]
    matrix: Matrix | None
    """One row for each example, in the order of the types; None without a model."""

    def likeness(self, text: str, vector: Vector | None) -> Vector:
        """Returns how alike a text and each type are."""
        found = np.zeros(len(self.types), dtype=np.float32)
        if vector is not None and self.matrix is not None and len(self.types):
            starts = np.cumsum([0, *(len(item.examples) for item in self.types[:-1])])
            found += np.maximum.reduceat(self.matrix @ vector, starts)
        stems = stems_of(text)
        spoken = [bool(item.verbs & stems and item.objects & stems) for item in self.types]
        return found + SPOKEN * np.array(spoken, dtype=np.float32) * (1 if vector is not None else LEAST / SPOKEN)

    def names(self, text: str, vector: Vector | None) -> tuple[str, ...]:
        """Returns the types of a text, the likest first; none if it is like none."""
        found = self.likeness(text, vector)
        if not len(found):
            return ()
        best = float(found.max())
        order = np.argsort(-found, kind="stable")[:MOST_NAMED]
        return tuple(self.types[at].name for at in order if found[at] >= max(LEAST, best - WITHIN))


def stems_of(text: str) -> frozenset[str]:
    """Returns the stems of a text's words, as those of the taxonomy are cut."""
    return content_words(text) | {word[:STEM] for word in WORD.findall(text.lower())}


def type_reasons(name: str, examples: Sequence[str]) -> Sequence[str]:
    """Returns the reasons why a workspace cannot have this type, each with its field and the remedy."""
    found = []
    if not NAME.fullmatch(name):
        found.append("name: is `area` or `area:act`, in small letters, digits and hyphens, as `schema-change:rename`")
    if not 1 <= len(examples) <= MOST_EXAMPLES:
        found.append(f"examples: 1 to {MOST_EXAMPLES} sentences are taken, each saying what somebody is about to do")
    if any(not example.strip() or len(example) > EXAMPLE_LIMIT for example in examples):
        found.append(f"examples: each has 1 to {EXAMPLE_LIMIT} characters")
    return found
