"""Globs over source paths, and conditions that can never be met."""

import re
from datetime import UTC, datetime

import pytest

from app.errors import InvalidInput
from app.memories.filters import Filters, check, conditions, glob_pattern

PATH = "/data/reports/bads-russia/v6/judgement.json"


@pytest.mark.parametrize(
    "glob",
    [
        "judgement.json",
        "v6/*.json",
        "bads-russia/**",
        "**/v6/*",
        "v?/judgement.json",
        "reports/**/judgement.json",
        "*",
        PATH,
    ],
)
def test_a_glob_matches_from_any_folder_on(glob: str) -> None:
    assert re.search(glob_pattern(glob), PATH)


@pytest.mark.parametrize(
    "glob", ["v6", "v6/*.md", "6/judgement.json", "bads-russia/*", "judgementXjson", "reports", "**/ement.json"]
)
def test_a_glob_does_not_match_parts_of_names(glob: str) -> None:
    assert not re.search(glob_pattern(glob), PATH)


def test_nothing_filtered_has_no_conditions() -> None:
    assert conditions(Filters()) == ([], {})
    assert not Filters()


def test_each_filter_is_one_condition() -> None:
    filters = Filters(
        kinds=("chunk",),
        source="a/*",
        tags=("v6",),
        since=datetime(2026, 1, 1, tzinfo=UTC),
        until=datetime(2026, 2, 1),  # noqa: DTZ001 - a caller may leave the zone out
    )
    clauses, values = conditions(filters)
    assert len(clauses) == 5
    assert values["until"] == datetime(2026, 2, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("filters", "field"),
    [
        (Filters(kinds=("poem",)), "filters.kinds"),
        (Filters(source="a\0b"), "filters.source"),
        (Filters(tags=("a\ud800",)), "filters.tags"),
        (Filters(tags=("t",) * 65), "filters.tags"),
        (Filters(source="x" * 501), "filters.source"),
        (
            Filters(since=datetime(2026, 2, 1, tzinfo=UTC), until=datetime(2026, 1, 1, tzinfo=UTC)),
            "filters.until",
        ),
    ],
)
def test_what_cannot_be_asked_names_its_field(filters: Filters, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check(filters)
    assert caught.value.field == field


@pytest.mark.parametrize(("given", "stored"), [(1e-100, 0.0), (5e-324, 0.0), (6.25, 6.25), (6.3, 6.300000190734863)])
def test_a_score_is_compared_as_its_column_holds_it(given: float, stored: float) -> None:
    assert conditions(Filters(min_score=given))[1] == {"min_score": stored}
