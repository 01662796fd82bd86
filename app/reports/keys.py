"""Keys of JSON objects and front matter, as people and as this code read them. Pure."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
JOINT = re.compile(r"[\s_]+")
LONGEST = 64
"""Characters; a longer key is data."""


@lru_cache(maxsize=4096)
def in_words(key: str) -> str:
    """`criteria_scores` and `criteriaScores` as `criteria scores`: what a key is called in a trail."""
    return JOINT.sub(" ", CAMEL.sub(" ", key)).strip() or key


@lru_cache(maxsize=4096)
def _normal(key: str) -> str:
    return JOINT.sub("_", CAMEL.sub("_", key.strip()).replace("-", "_")).lower()


def normal_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The same values under keys in one spelling: `Judged at`, `judgedAt` and `judged-at` are `judged_at`."""
    return {_normal(key): value for key, value in facts.items() if isinstance(key, str) and len(key) <= LONGEST}
