"""The heat of a memory and the tier that follows from it, as pure functions."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.memories.heat import EVICTED, LONG_TERM, SHORT_TERM, TIERS, WORKING, WORKING_TIME, Placed, heat, moved

NOW = datetime(2026, 11, 22, tzinfo=UTC)
DAY = 86_400.0
FADING = 7 * DAY
NEW = Placed(tier=SHORT_TERM, pinned=False, visits=0, tokens=60, since=NOW, entered=NOW, ended=True)


def test_heat_is_memoryos_formula() -> None:
    visited = replace(NEW, visits=3, tokens=100, since=NOW - timedelta(days=7))
    assert heat(visited, now=NOW, fading=FADING) == pytest.approx((3 + 1) * 0.36788 + 0.25 * 0.5, abs=1e-4)
    assert heat(NEW, now=NOW, fading=FADING) == pytest.approx(1.0 + 0.25 * 0.3)


def test_a_new_memory_leaves_when_nobody_comes_back_and_later_if_somebody_did() -> None:
    assert moved(NEW, now=NOW, fading=FADING)[0] == SHORT_TERM
    assert moved(NEW, now=NOW + timedelta(days=8), fading=FADING) == (LONG_TERM, None)
    visited = replace(NEW, visits=3)
    assert moved(visited, now=NOW + timedelta(days=8), fading=FADING)[0] == SHORT_TERM
    assert moved(visited, now=NOW + timedelta(days=20), fading=FADING) == (LONG_TERM, None)


@pytest.mark.parametrize(("visits", "tier"), [(1, LONG_TERM), (1.61, SHORT_TERM), (3, SHORT_TERM)])
def test_one_visit_promotes_nothing_and_two_within_days_do(visits: float, tier: str) -> None:
    assert moved(replace(NEW, tier=LONG_TERM, visits=visits), now=NOW, fading=FADING)[0] == tier


def test_what_a_run_wrote_is_working_until_the_run_is_over_or_silent() -> None:
    written = replace(NEW, tier=WORKING, ended=False)
    assert moved(written, now=NOW, fading=FADING) == (WORKING, NOW + WORKING_TIME)
    assert moved(written, now=NOW + WORKING_TIME, fading=FADING)[0] == SHORT_TERM
    assert moved(replace(written, ended=True), now=NOW, fading=FADING)[0] == SHORT_TERM


def test_what_is_pinned_stays() -> None:
    for tier in (SHORT_TERM, LONG_TERM):
        pinned = replace(NEW, tier=tier, pinned=True, since=NOW - timedelta(days=400))
        assert moved(pinned, now=NOW, fading=FADING) == (tier, None)


@given(
    tier=st.sampled_from(TIERS),
    visits=st.floats(0, 1e6),
    tokens=st.integers(0, 10**6),
    age=st.floats(0, 5_000),
    fading=st.floats(0.01, 36_500),
)
def test_a_second_look_changes_nothing_until_the_moment_that_the_first_named(
    tier: str, visits: float, tokens: int, age: float, fading: float
) -> None:
    placed = replace(NEW, tier=tier, visits=visits, tokens=tokens, since=NOW - timedelta(days=age))
    found, due = moved(placed, now=NOW, fading=fading * DAY)
    assert moved(replace(placed, tier=found), now=NOW, fading=fading * DAY) == (found, due)
    if due is not None:
        assert due > NOW
        before = replace(placed, tier=found)
        early = NOW + (due - NOW) * 0.99
        assert heat(before, now=early, fading=fading * DAY) >= EVICTED or due - NOW <= timedelta(minutes=1)
