"""The index of cues: made at once, made in steps, and bounded."""

import math
from collections import OrderedDict
from datetime import UTC, datetime
from uuid import UUID

import numpy as np
import pytest

from app.foundation.models.protocols import Matrix
from app.recall.cues import known
from app.recall.cues.actions import ActionType, ActionTypes
from app.recall.cues.cue import ACTIVE, ADAPTED, TOGETHER, TRIGGER, VECTORS_OF_CUE
from app.recall.cues.index import _Cached, _forget_beyond, _Indexes
from app.recall.cues.known import CueBatch, CueIndex, IndexedCue, batch_of, index_cues, renew
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


def batch(*items: IndexedCue, embedded: bool = True) -> CueBatch:
    vectors = [unit(VECTORS_OF_CUE).astype("<f2").tobytes() if embedded else None for _ in items]
    return batch_of(items, vectors, DIMENSION)


def joined(*batches: CueBatch) -> CueBatch:
    """Returns batches as one, each cue as the last of them has it."""
    last = {item.cue_id: (item, own, rows) for given in batches for item, own, rows in zip(*given, strict=True)}
    items, embedded, vectors = zip(*last.values(), strict=True)
    return CueBatch(items, np.array(embedded), np.array(vectors))


def answers(index: CueIndex, plan: PlannedAct) -> dict[UUID, float]:
    return {item.cue_id: round(item.odds, 3) for item in find_matches(index, plan, most=1_000)}


PLAN = PlannedAct("bword and jword", NOW, ("file3.py",), unit(1)[0], unit(1)[0])


@pytest.mark.parametrize("screened_from", [42, 10_000])
def test_an_index_made_in_steps_answers_as_one_made_at_once(
    monkeypatch: pytest.MonkeyPatch, screened_from: int
) -> None:
    monkeypatch.setattr(known, "SCREENED_FROM", screened_from)
    first, second, changed = (
        batch(*map(cue, range(40))),
        batch(*map(cue, range(40, 44))),
        batch(*(cue(number, "another lesson jword") for number in range(3))),
    )
    before = index_cues(first, TYPES)
    earlier = answers(before, PLAN)
    steps = renew(renew(before, second, TYPES), changed, TYPES)
    assert answers(before, PLAN) == earlier
    at_once = index_cues(joined(first, second, changed), TYPES)
    expected, found = answers(at_once, PLAN), answers(steps, PLAN)
    assert found.keys() == expected.keys()
    assert max(abs(found[cue_id] - expected[cue_id]) for cue_id in found) < 2e-3
    assert [steps.known[steps.places[UUID(int=number)]].lesson for number in range(3)] == ["another lesson jword"] * 3


def test_a_large_store_is_screened_and_finds_what_an_exact_sum_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = batch(*map(cue, range(400)))
    exact = answers(index_cues(rows, TYPES), PLAN)
    monkeypatch.setattr(known, "SCREENED_FROM", 100)
    monkeypatch.setattr(known, "SCREENED", 12)
    found = answers(index_cues(rows, TYPES), PLAN)
    assert len(set(list(found)[:20]) & set(list(exact)[:20])) >= 16


def test_a_cue_without_vectors_is_matched_by_words_files_and_acts() -> None:
    bare = batch(cue(1), cue(2), cue(3), embedded=False)
    index = renew(index_cues(batch(*map(cue, range(8, 12))), TYPES), bare, TYPES)
    assert index.lacking == 3
    parts = {item.cue_id.int: item.parts for item in find_matches(index, PLAN, most=100)}
    assert parts[1]["words"] > 0
    assert parts[3]["file"] == pytest.approx(2.0)
    assert "adapted" in parts[8]
    acts = find_matches(index, PlannedAct("anything", NOW, vector=EXAMPLES[0]), most=9)
    assert {item.parts["acts"] for item in acts if item.cue_id.int < 8} == {known.fitted_weights().alone.acts}


def test_what_a_lesson_says_is_read_once_and_before_a_plan_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[str]()

    def noted(lesson: str) -> LessonWords:
        read.append(lesson)
        return read_lesson(lesson)

    monkeypatch.setattr(known, "read_lesson", noted)
    items = batch(*(cue(number, f"Use pnpm, not npm, in part {number}.") for number in range(20)), embedded=False)
    assert len(read) == 20
    index = index_cues(items, TYPES)
    for plan in ("npm install left-pad", "Install the part with npm."):
        assert all(item.parts["named"] > 0 for item in find_matches(index, PlannedAct(plan, NOW), most=20))
    assert len(read) == 20


def test_a_cue_without_an_adapted_vector_is_compared_by_meaning() -> None:
    whole = batch(*map(cue, range(8)))
    plain = whole._replace(vectors=whole.vectors.copy())
    plain.vectors[:, ADAPTED] = 0
    index = index_cues(plain, TYPES)
    found = {item.cue_id.int: item.parts for item in find_matches(index, PLAN, most=100)}
    assert PLAN.vector is not None
    cosines = TYPES.centre(plain.vectors[:, TOGETHER]) @ TYPES.centre(PLAN.vector)
    weight = known.fitted_weights().meaning.together
    assert [found[number]["together"] for number in range(8)] == pytest.approx((weight * cosines).tolist(), abs=2e-3)


def test_a_plan_without_an_adapted_vector_is_compared_by_meaning() -> None:
    index = index_cues(batch(*map(cue, range(8))), TYPES)
    found = find_matches(index, PLAN._replace(adapted=None), most=100)
    assert {item.parts["bias"] for item in found} == {known.fitted_weights().meaning.bias}
    assert all("together" in item.parts and "adapted" not in item.parts for item in found)


def test_each_cue_of_a_mixed_store_has_its_own_weights() -> None:
    whole = batch(*map(cue, range(8)))
    mixed = whole._replace(vectors=whole.vectors.copy())
    mixed.vectors[0, ADAPTED] = 0
    found = answers(index_cues(mixed, TYPES), PLAN)
    expected = answers(index_cues(whole, TYPES), PLAN)
    assert {key: odds for key, odds in found.items() if key.int} == pytest.approx(
        {key: odds for key, odds in expected.items() if key.int}, abs=2e-3
    )
    parts = {item.cue_id.int: item.parts for item in find_matches(index_cues(mixed, TYPES), PLAN, most=100)}
    assert parts[0]["bias"] == known.fitted_weights().meaning.bias


def test_a_pair_has_the_same_odds_in_a_small_and_in_a_large_store() -> None:
    one, many = batch(cue(3)), batch(*map(cue, range(10, 400)))
    alone, among = (answers(index_cues(joined(*rows), TYPES), PLAN) for rows in ([one], [many, one]))
    assert alone[UUID(int=3)] == pytest.approx(among[UUID(int=3)], abs=2e-3)


def test_shared_words_count_by_their_rarity() -> None:
    index = index_cues(batch(cue(1, "drop the column"), cue(2, "add a table"), embedded=False), TYPES)
    found = find_matches(index, PlannedAct("drop a column", NOW), most=2)
    shared = math.log1p(rarity("drop") + rarity("column")) * known.fitted_weights().alone.words
    assert [item.parts.get("words", 0.0) for item in found] == pytest.approx([shared, 0.0])


def test_the_rarity_of_words_and_the_words_of_identifiers() -> None:
    assert 0 <= rarity("use") < rarity("column") < rarity("header") <= 1 < rarity("kubectl")
    assert rarity("日") >= 1
    assert words_of("drop_column") == words_of("dropColumn") == words_of("drop the column 42")


def test_the_index_that_was_asked_for_longest_ago_is_forgotten_first() -> None:
    index = index_cues(batch(*map(cue, range(10))), TYPES)
    indexes = _Indexes(OrderedDict({(number, "m"): _Cached(1, {}, index) for number in range(4)}))
    _forget_beyond(indexes, 2 * index.bytes)
    assert list(indexes.kept) == [(2, "m"), (3, "m")]
    _forget_beyond(indexes, 1)
    assert list(indexes.kept) == [(3, "m")]


def test_a_new_cue_is_compared_with_the_nearest_others(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = batch(*map(cue, range(100)))
    index = index_cues(whole, TYPES)
    ids = [UUID(int=number) for number in (3, 50)]
    expected = []
    for new in ids:
        likeness = whole.vectors[:, 0].astype(np.float32) @ whole.vectors[new.int, 0].astype(np.float32)
        order = [place for place in np.argsort(-likeness).tolist() if place != new.int and likeness[place] >= 0.1]
        expected += [(new, UUID(int=place)) for place in order[:8]]
    assert len(expected) == 2 * 8
    for at_once in (1_000, 1):
        monkeypatch.setattr(known, "COMPARED_AT_ONCE", at_once)
        assert index.nearest(ids, form=TRIGGER, least=0.1, most=8, moment=NOW) == expected
