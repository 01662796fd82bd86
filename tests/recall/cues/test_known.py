"""The index of cues: made at once, made in steps, and bounded."""

import math
from collections import OrderedDict
from datetime import UTC, datetime
from uuid import UUID

import numpy as np
import pytest

from app.foundation.models.protocols import Matrix
from app.recall.cues import known, match
from app.recall.cues.actions import ActionType, ActionTypes
from app.recall.cues.cue import ACTIVE, ADAPTED, TOGETHER, TRIGGER, VECTORS_OF_CUE
from app.recall.cues.index import _Cached, _forget_beyond, _Indexes
from app.recall.cues.known import CueIndex, IndexedCue, index_cues, renew
from app.recall.cues.match import PlannedAct, find_matches
from app.recall.cues.rarity import rarity, words_of
from app.recall.cues.ways import LessonWords, read_lesson

DIMENSION = 16
NOW = datetime(2026, 1, 1, tzinfo=UTC)
CHANCE = np.random.default_rng(5)


def unit(*shape: int) -> Matrix:
    rows = CHANCE.normal(size=(*shape, DIMENSION)).astype(np.float32)
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True), dtype=np.float32)


EXAMPLES = unit(4)
TYPES = ActionTypes(
    types=tuple(ActionType(name=name, examples=("one", "two")) for name in ("deploy", "test")), matrix=EXAMPLES
)


def cue(number: int, lesson: str = "") -> IndexedCue:
    return IndexedCue(
        cue_id=UUID(int=number),
        trigger=f"trigger {'abcdefgh'[number % 8]}word",
        lesson=lesson or f"lesson {'ijklmnop'[number % 7]}word",
        state=ACTIVE,
        held=True,
        action_types=("deploy",),
        files=(f"src/file{number}.py",),
        begins=0.0,
        ends=math.inf,
    )


def index_of(*items: IndexedCue, embedded: bool = True) -> CueIndex:
    """Returns the index of cues with vectors by chance, or without any."""
    vectors = [unit(VECTORS_OF_CUE).astype("<f2").tobytes() if embedded else None for _ in items]
    return index_cues(items, vectors, DIMENSION, TYPES)


def joined(*indexes: CueIndex) -> CueIndex:
    """Returns indexes as one that is made at once, each cue as the last of them has it."""
    last = {
        item.cue_id: (item, own.tobytes() if embedded else None)
        for index in indexes
        for item, own, embedded in zip(index.known, index.vectors, index.embedded, strict=True)
    }
    items, vectors = zip(*last.values(), strict=True)
    return index_cues(items, vectors, DIMENSION, TYPES)


def without_adapted(index: CueIndex, *places: int) -> CueIndex:
    """Returns an index in which some cues have no adapted vector."""
    vectors = index.vectors.copy()
    vectors[list(places), ADAPTED] = 0
    return index_cues(index.known, [own.tobytes() for own in vectors], DIMENSION, TYPES)


def answers(index: CueIndex, plan: PlannedAct) -> dict[UUID, float]:
    return {item.cue_id: round(item.odds, 3) for item in find_matches(index, plan, most=1_000)}


PLAN = PlannedAct("bword and jword", NOW, ("file3.py",), unit(1)[0], unit(1)[0])


def test_an_index_made_in_steps_answers_as_one_made_at_once() -> None:
    before, second = index_of(*map(cue, range(40))), index_of(*map(cue, range(40, 44)))
    changed = index_of(*(cue(number, "another lesson jword") for number in range(3)))
    earlier = answers(before, PLAN)
    steps = renew(renew(before, second), changed)
    assert answers(before, PLAN) == earlier
    assert answers(steps, PLAN) == pytest.approx(answers(joined(before, second, changed), PLAN), abs=2e-3)
    assert [steps.known[steps.places[UUID(int=number)]].lesson for number in range(3)] == ["another lesson jword"] * 3


def test_of_a_large_store_the_likeliest_and_those_about_a_file_are_compared_by_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = index_of(*map(cue, range(400)))
    exact = answers(index, PLAN)
    monkeypatch.setattr(match, "SHORTLIST", 40)
    found = answers(index, PLAN)
    assert len(found) == 41
    assert UUID(int=3) in found
    assert len(set(list(found)[:20]) & set(list(exact)[:20])) >= 16


def test_a_cue_without_vectors_is_matched_by_words_files_and_acts() -> None:
    index = renew(index_of(*map(cue, range(8, 12))), index_of(cue(1), cue(2), cue(3), embedded=False))
    assert index.lacking == 3
    parts = {item.cue_id.int: item.parts for item in find_matches(index, PLAN, most=100)}
    assert parts[1]["words"] > 0
    assert parts[3]["file"] == pytest.approx(2.0)
    assert "adapted" in parts[8]
    acts = find_matches(index, PlannedAct("anything", NOW, vector=EXAMPLES[0]), most=9)
    assert {item.parts["acts"] for item in acts if item.cue_id.int < 8} == {known.fitted_weights().alone.acts}


def test_what_a_lesson_says_is_read_once_and_before_a_plan_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[str]()

    def noted(lesson: str, trigger: str) -> LessonWords:
        read.append(lesson)
        return read_lesson(lesson, trigger)

    monkeypatch.setattr(known, "read_lesson", noted)
    lessons = [cue(number, f"Use pnpm, not npm, in part {number}.") for number in range(20)]
    index = index_of(*lessons, embedded=False)
    assert len(read) == 20
    for plan in ("npm install left-pad", "Install the trigger with npm."):
        assert all(item.parts["named"] > 0 for item in find_matches(index, PlannedAct(plan, NOW), most=20))
    assert len(read) == 20


def test_a_cue_without_an_adapted_vector_is_compared_by_meaning() -> None:
    index = without_adapted(index_of(*map(cue, range(8))), *range(8))
    found = {item.cue_id.int: item.parts for item in find_matches(index, PLAN, most=100)}
    assert PLAN.vector is not None
    cosines = TYPES.centre(index.vectors[:, TOGETHER]) @ TYPES.centre(PLAN.vector)
    weight = known.fitted_weights().meaning.together
    assert [found[number]["together"] for number in range(8)] == pytest.approx((weight * cosines).tolist(), abs=2e-3)


def test_a_plan_without_an_adapted_vector_is_compared_by_meaning() -> None:
    found = find_matches(index_of(*map(cue, range(8))), PLAN._replace(adapted=None), most=100)
    assert {item.parts["bias"] for item in found} == {known.fitted_weights().meaning.bias}
    assert all("together" in item.parts and "adapted" not in item.parts for item in found)


def test_each_cue_of_a_mixed_store_has_its_own_weights() -> None:
    whole = index_of(*map(cue, range(8)))
    mixed = without_adapted(whole, 0)
    found, expected = answers(mixed, PLAN), answers(whole, PLAN)
    assert {key: odds for key, odds in found.items() if key.int} == pytest.approx(
        {key: odds for key, odds in expected.items() if key.int}, abs=2e-3
    )
    parts = {item.cue_id.int: item.parts for item in find_matches(mixed, PLAN, most=100)}
    assert parts[0]["bias"] == known.fitted_weights().meaning.bias


def test_a_pair_has_the_same_odds_in_a_small_and_in_a_large_store() -> None:
    one, many = index_of(cue(3)), index_of(*map(cue, range(10, 400)))
    alone, among = (answers(index, PLAN) for index in (one, renew(many, one)))
    assert alone[UUID(int=3)] == pytest.approx(among[UUID(int=3)], abs=2e-3)


def test_shared_words_count_by_their_rarity() -> None:
    index = index_of(cue(1, "drop the column"), cue(2, "add a table"), embedded=False)
    found = find_matches(index, PlannedAct("drop a column", NOW), most=2)
    shared = math.log1p(rarity("drop") + rarity("column")) * known.fitted_weights().alone.words
    assert [item.parts.get("words", 0.0) for item in found] == pytest.approx([shared, 0.0])


def test_the_rarity_of_words_and_the_words_of_identifiers() -> None:
    assert 0 <= rarity("use") < rarity("column") < rarity("header") <= 1 < rarity("kubectl")
    assert rarity("日") >= 1
    assert words_of("drop_column") == words_of("dropColumn") == words_of("drop the column 42")


def test_the_index_that_was_asked_for_longest_ago_is_forgotten_first() -> None:
    index = index_of(*map(cue, range(10)))
    indexes = _Indexes(OrderedDict({(number, "m"): _Cached(1, {}, index) for number in range(4)}))
    _forget_beyond(indexes, 2 * index.bytes)
    assert list(indexes.kept) == [(2, "m"), (3, "m")]
    _forget_beyond(indexes, 1)
    assert list(indexes.kept) == [(3, "m")]


def test_a_new_cue_is_compared_with_the_nearest_others() -> None:
    index = index_of(*map(cue, range(100)))
    ids = [UUID(int=number) for number in (3, 50)]
    expected = []
    for new in ids:
        likeness = index.vectors[:, 0].astype(np.float32) @ index.vectors[new.int, 0].astype(np.float32)
        order = [place for place in np.argsort(-likeness).tolist() if place != new.int and likeness[place] >= 0.1]
        expected += [(new, UUID(int=place)) for place in order[:8]]
    assert len(expected) == 2 * 8
    assert index.nearest(ids, form=TRIGGER, least=0.1, most=8, moment=NOW) == expected
