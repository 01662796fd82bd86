"""The evaluator's score, on the scale from 0 to 10. Pure."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.reports.keys import normal_facts

SCORE_KEYS = ("final_score", "overall_score", "total_score", "judge_score", "evaluation_score", "score", "rating")
GREATEST_KEYS = ("max_score", "score_max", "max_points", "out_of", "scale", "max")
JUDGED_BY = frozenset(
    {"reasoning", "rationale", "verdict", "passed", "grade", "judge", "evaluator", "feedback", "critique", "justification"}
)
"""What stands beside an evaluator's score, and not beside a search hit's or a statistic's."""
WRITTEN = re.compile(r"\s*(\d{1,9}(?:[.,]\d{1,20})?)\s*(?:(?:/|out of|of)\s*(\d{1,9}(?:\.\d{1,9})?)|(%))?\s*")
TEN = 10.0
PERCENT = 100.0


@dataclass(frozen=True, slots=True)
class Scales:
    """The greatest number that a document has under each score key: what its scale is told by.

    A document whose scores are all at most 1 scores from 0 to 1 (0.96 is 9.6), one with 85 from 0 to 100.
    """

    greatest: Mapping[str, float] = field(default_factory=dict)

    def found_score(self, facts: Mapping[str, Any]) -> float | None:
        """The score that an object or a front matter states (`7.5`, `0.75`, `7.5/10`, `75%`), 0 to 10, else None."""
        given = normal_facts(facts)
        found = (self._score(key, given) for key in SCORE_KEYS if key in given)
        return next((score for score in found if score is not None), None)

    def judged_score(self, facts: Mapping[str, Any]) -> float | None:
        """The same, only where it is plainly an evaluator's: by its key, or by what stands beside it."""
        given = normal_facts(facts)
        plain = "score" not in given or not JUDGED_BY.isdisjoint(given)
        return self.found_score(facts) if plain and "rating" not in given else None

    def _score(self, key: str, given: Mapping[str, Any]) -> float | None:
        value = given[key]
        if isinstance(value, str):
            return _written(value)
        number = _number(value)
        if number is None:
            return None
        return _on_ten(number, _stated(given, number) or self._top(key, number, given))

    def _top(self, key: str, number: float, given: Mapping[str, Any]) -> float:
        greatest = max(number, self.greatest.get(key, number))
        if greatest > TEN:
            return PERCENT
        # A whole 1 is one of ten, unless it passed: some writers drop the point of 1.0.
        whole = number == greatest and isinstance(given[key], int) and given.get("passed") is not True
        return 1.0 if greatest <= 1 and not whole else TEN


def scales_of(document: Any) -> Scales:  # noqa: ANN401 - any JSON value
    """The scales of a JSON document."""
    greatest: dict[str, float] = {}
    for facts in _objects(document):
        for key in SCORE_KEYS:
            number = _number(facts[key]) if key in facts else None
            if number is not None:
                greatest[key] = max(number, greatest.get(key, 0.0))
    return Scales(greatest)


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401 - any JSON value
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield item
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item


def _number(value: Any) -> float | None:  # noqa: ANN401 - any JSON value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= PERCENT:
        return None
    return float(value) if math.isfinite(value) else None


def _stated(given: Mapping[str, Any], number: float) -> float | None:
    tops = (_number(given.get(key)) for key in GREATEST_KEYS)
    return next((top for top in tops if top and top >= number), None)


def _on_ten(number: float, top: float) -> float | None:
    return round(number / top * TEN, 6) if number <= top else None


def _written(text: str) -> float | None:
    match = WRITTEN.fullmatch(text)
    if match is None:
        return None
    top = PERCENT if match[3] else float(match[2] or TEN)
    return _on_ten(float(match[1].replace(",", ".")), top) if top else None
