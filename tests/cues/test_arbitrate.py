"""Arbitration: which of the matched cues fire."""

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from app.cues.arbitrate import LEAST, ranked
from app.cues.cue import CORRECTION, PERSON, Cue
from app.cues.match import Match

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ID = UUID(int=1)


def cue(consequence: float) -> Cue:
    given: dict[str, Any] = {"kind": CORRECTION, "trust": PERSON, "consequence": consequence, "valid_from": NOW}
    given |= {"cue_id": ID, "heeded": 0, "ignored": 0, "quality": 0, "seen_on": ()}
    values: dict[str, Any] = {field.name: given.get(field.name) for field in fields(Cue)}
    return Cue(**values)


def match(relevance: float, rarity: float) -> Match:
    return Match(cue_id=ID, relevance=relevance, parts={}, rarity=rarity, same_words=0, vectors=None)


@pytest.mark.parametrize(
    ("below", "consequence", "rarity", "fires"),
    [
        (0.3, 0.9, 0.95, True),
        (0.3, 0.9, 0.2, False),
        (0.3, 0.1, 0.95, False),
        (0.01, 0.1, 0.2, True),
        (0.6, 1.0, 1.0, False),
    ],
)
def test_a_severe_cue_of_a_rare_act_fires_more_broadly(
    below: float, consequence: float, rarity: float, *, fires: bool
) -> None:
    found = ranked([match(LEAST - below, rarity)], {ID: cue(consequence)}, now=NOW)
    assert bool(found) == fires
