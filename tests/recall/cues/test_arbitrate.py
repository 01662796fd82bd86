"""Arbitration: which of the matched cues are told."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from app.recall.cues.arbitrate import Fired, Nearly, choose, fit_to_inform, rank, threshold
from app.recall.cues.cue import AGENT, CONSEQUENCES, CORRECTION, PERSON, Cue
from app.recall.cues.match import CueMatch

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Words:
    """Counts words as tokens."""

    def count(self, text: str) -> int:
        return len(text.split())

    def count_many(self, texts: Sequence[str]) -> list[int]:
        return [self.count(text) for text in texts]


def cue(number: int, **given: Any) -> Cue:
    known: dict[str, Any] = {"kind": CORRECTION, "trust": PERSON, "consequence": 0.5, "valid_from": NOW, "tags": ()}
    known |= {"cue_id": UUID(int=number), "heeded": 0, "ignored": 0, "quality": 0, "seen_on": (), "details": {}}
    known |= {
        "confidence": 1.0,
        "trigger": f"act {number}",
        "lesson": f"lesson {number}",
        "standing": f"lesson {number}",
        "quote": "",
        "evidence": (),
        "disputed_by": (),
    }
    values: dict[str, Any] = {name: (known | given).get(name) for name in Cue.__struct_fields__}
    return Cue(**values)


def fired(cue: Cue, score: float) -> Fired:
    return Fired(cue=cue, score=score, explain={}, meaning=None)


def told(*items: Fired, **given: Any) -> tuple[list[int], dict[int, str]]:
    kept, withheld = choose(items, plan="a plan", budget=200, counter=Words(), **given)
    return [item.fired.cue.cue_id.int for item in kept], {item.cue_id.int: item.reason for item in withheld}


def test_a_score_is_the_probability_of_the_sum_of_all_parts() -> None:
    match = CueMatch(cue_id=UUID(int=1), parts={"bias": -2.0, "lesson": 2.0}, meaning=None)
    (found,) = rank([match], {UUID(int=1): cue(1)}, plan="a plan", now=NOW)
    assert found.score == 0.5
    (rated,) = rank([match], {UUID(int=1): cue(1, quality=2, heeded=4)}, plan="a plan", now=NOW)
    assert rated.score > 0.6
    (unsure,) = rank([match], {UUID(int=1): cue(1, confidence=0.6)}, plan="a plan", now=NOW)
    odds = sum([*match.parts.values(), unsure.explain["confidence"]])
    assert (unsure.score, round(1 / (1 + math.exp(-odds)), 3)) == (0.3, 0.3)
    (never,) = rank([match], {UUID(int=1): cue(1, confidence=0.0)}, plan="a plan", now=NOW)
    assert never.score == 0


def test_a_threshold_falls_with_the_consequence_and_rises_with_each_cue_told() -> None:
    shares = [threshold(value) for value in sorted(CONSEQUENCES.values())]
    assert shares == sorted(shares, reverse=True)
    assert 0.2 < shares[-1] < shares[0] < 0.6
    assert threshold(0.5, 1) > threshold(0.5) + 0.2


def test_one_cue_is_told_in_most_cases_and_three_at_most() -> None:
    assert told(fired(cue(1), 0.6), fired(cue(2), 0.5), fired(cue(3), 0.1)) == ([1], {2: "enough", 3: "unlikely"})
    sure = [fired(cue(number), 0.98) for number in range(1, 6)]
    assert told(*sure) == ([1, 2, 3], {4: "enough", 5: "enough"})
    assert told(fired(cue(1), 0.2), fired(cue(2), 0.1), min_score=0.15) == ([1], {2: "unlikely"})


def test_a_history_has_no_wishes_but_for_a_question_and_nothing_that_others_keep_back() -> None:
    same: dict[str, Any] = {"lesson": "a lesson", "score": 0.2}
    nearly = [
        Nearly(cue_id=UUID(int=number), kind=kind, reason=reason, **same)
        for number, (kind, reason) in enumerate(
            [("decision", "unlikely"), ("preference", "unlikely"), ("decision", "enough"), ("discovery", "alike")]
        )
    ]
    assert fit_to_inform("Build the page.", nearly) == {UUID(int=0)}
    assert fit_to_inform("Which tools do we build it with?", nearly) == {UUID(int=0), UUID(int=1)}


def test_cues_that_dispute_each_other_are_told_together() -> None:
    one, other = cue(1, disputed_by=(UUID(int=2),)), cue(2, disputed_by=(UUID(int=1),))
    assert told(fired(one, 0.5), fired(other, 0.45)) == ([1, 2], {})


def test_a_severe_cue_needs_less_and_an_agents_comes_last() -> None:
    assert told(fired(cue(1, consequence=1.0), 0.3)) == ([1], {})
    assert told(fired(cue(1, consequence=0.2), 0.3)) == ([], {1: "unlikely"})
    assert told(fired(cue(1, trust=AGENT), 0.9), fired(cue(2), 0.8)) == ([2, 1], {})
