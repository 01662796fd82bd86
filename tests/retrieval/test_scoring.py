"""The whole ranking: the same pool gives the same order, whatever order it comes in."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.retrieval.arms import Candidate
from app.retrieval.presets import PRESETS
from app.retrieval.scoring import ranked

NOW = datetime(2026, 5, 1, tzinfo=UTC)
ALIKE = [
    Candidate(
        memory_id=UUID(int=number), title="", source_id=None, ordinal=None, final_score=8.0, quality=0, happened_at=NOW,
        similarity=0.8, bm25=4.0,
    )
    for number in range(1, 20)
]  # fmt: skip


@pytest.mark.parametrize("name", PRESETS)
@given(pool=st.permutations(ALIKE))
def test_what_ranks_alike_is_in_the_order_of_its_id(name: str, pool: list[Candidate]) -> None:
    preset = PRESETS[name]
    found = ranked(pool, preset, query="pumps", full_match=6.0, now=NOW)
    ids = [item.candidate.memory_id for item in found]
    assert ids == [item.memory_id for item in ALIKE][: len(ids)]
    assert len(ids) == (preset.nearest or len(ALIKE))
