"""From a pool to a ranking, and what reading the texts changes of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.recall.retrieval.rank.presets import CLASSIC, CLOSEST, DEFAULT, PRESETS, Preset
from app.recall.retrieval.rank.rank import LONG_ENOUGH, Asking, Candidate, HitText, Ranked, rank_pool, reread
from app.recall.retrieval.recall import Query, checked_preset

NOW = datetime(2024, 1, 10, tzinfo=UTC)
PLACES = 4
ALIKE = [
    Candidate(
        memory_id=UUID(int=number), title="", source_id=None, ordinal=None, final_score=8.0, quality=0, happened_at=NOW,
        similarity=0.8, bm25=4.0,
    )
    for number in range(1, 20)
]  # fmt: skip


def candidate(place: int, *, happened_at: datetime = NOW, similarity: float = 0.5) -> Candidate:
    return Candidate(
        memory_id=UUID(int=place),
        title="",
        source_id=UUID(int=99),
        ordinal=place * 10,
        final_score=None,
        quality=0,
        happened_at=happened_at,
        similarity=similarity,
        bm25=1.0,
    )


def best(query: str, preset: Preset = DEFAULT, *pool: Candidate) -> list[Ranked]:
    chosen = pool or [candidate(place) for place in range(PLACES)]
    return list(rank_pool(chosen, preset, Asking(query, NOW), full_match=2.0))


def places(ranking: list[Ranked]) -> list[int]:
    return [item.candidate.memory_id.int for item in ranking]


def test_what_is_from_the_time_that_the_query_names_comes_first() -> None:
    pool = [
        candidate(0, happened_at=datetime(2023, 12, 1, tzinfo=UTC), similarity=0.55),
        candidate(1, happened_at=datetime(2023, 5, 20, tzinfo=UTC)),
    ]
    assert places(best("What failed?", DEFAULT, *pool)) == [0, 1]
    first, second = best("What failed in May 2023?", DEFAULT, *pool)
    assert first.candidate.memory_id.int == 1
    assert (first.explain["dated"] or 0) > 0
    assert second.explain["dated"] == 0


def test_the_text_decides_between_equals_and_says_by_what() -> None:
    query = "When did the deploy script fail?"
    bodies = ["Did it fail?", "It failed.", "The deploy script failed.", "It failed on Monday."]
    ranking = best(query)
    texts = [HitText("", bodies[place], "s", place * 10) for place in places(ranking)]
    again = reread(ranking, texts, DEFAULT, Asking(query, NOW))
    assert places(again) == [2, 3, 1, 0]
    gains = [(item.relevance.phrases > 0, item.relevance.time > 0, item.relevance.turn < 0) for item in again]
    assert gains == [(True, False, False), (False, True, False), (False, False, False), (False, False, True)]
    for item in again:
        parts = item.relevance
        added = parts.phrases + parts.time + parts.own + parts.turn + parts.short
        whole = parts.fused + parts.neighbours + parts.source + parts.named + parts.dated + added
        assert parts.evidence == pytest.approx(whole)
        assert 0 <= parts.value <= 1


def test_who_tells_of_themselves_goes_before_who_speaks_of_others() -> None:
    ranking = best("What did Ann adopt?", DEFAULT, *(candidate(place)._replace(title="Ann") for place in range(2)))
    texts = [HitText("Ann", "He has a puppy.", "s", 0), HitText("Ann", "I have a puppy.", "s", 10)]
    again = reread(ranking, texts, DEFAULT, Asking("What did Ann adopt?", NOW))
    assert places(again) == [1, 0]
    assert [item.relevance.own > 0 for item in again] == [True, False]


def test_a_short_turn_counts_less_and_a_short_text_of_another_kind_does_not() -> None:
    long = "It starts on Monday at nine, and everybody who wants to see the new house in the country comes by train."
    for turns, order in ((True, [1, 2, 0]), (False, [0, 1, 2])):
        bodies = ["See you!", long, long[: LONG_ENOUGH // 2]]
        ranking = best("house")
        texts = [HitText("", bodies[place], "s", place * 10 if turns else None) for place in range(3)]
        again = reread(ranking[:3], texts, DEFAULT, Asking("house", NOW))
        assert places(again) == order
        assert sorted(item.relevance.short < 0 for item in again) == [False, turns, turns]


def test_a_chinese_turn_is_not_short_by_its_script() -> None:
    ranking = best("house")
    english = "The import stopped after four thousand invoices, because the bank's file has two lines of headings."
    bodies = [english, "导入在处理四千张发票后停止，因为银行的文件有两行表头。跳过第二行后问题解决。", "好的，谢谢！"]
    texts = [HitText("", bodies[place], "s", place * 10) for place in range(3)]
    again = reread(ranking[:3], texts, DEFAULT, Asking("house", NOW))
    assert [item.relevance.short < -0.1 * item.relevance.fused for item in again] == [False, False, True]


@pytest.mark.parametrize("preset", [CLASSIC, CLOSEST])
def test_recipes_of_their_own_are_not_changed_by_texts(preset: Preset) -> None:
    ranking = best("deploy script", preset)
    texts = [HitText("", "deploy script" if place == PLACES - 1 else "", "s", place) for place in places(ranking)]
    assert reread(ranking, texts, preset, Asking("deploy script", NOW)) == ranking


def test_nothing_to_read_is_no_ranking() -> None:
    assert reread([], [], DEFAULT, Asking("anything", NOW)) == []


def test_a_hit_needs_its_share_of_the_best_once_the_texts_are_read() -> None:
    query = "deploy script"
    strong = candidate(1, similarity=1.0)._replace(bm25=2.0, source_id=None)
    weak = candidate(2, similarity=0.0)._replace(bm25=0.9, source_id=None)
    ranking = best(query, DEFAULT, strong, weak)
    assert places(ranking) == [1, 2]
    texts = [HitText("", "The deploy script failed.", None, None), HitText("", "A script.", None, None)]
    assert places(reread(ranking, texts, DEFAULT, Asking(query, NOW))) == [1]
    assert places(reread(ranking, texts[1:] * 2, DEFAULT, Asking(query, NOW))) == [1, 2]
    unlimited = replace(DEFAULT, threshold=None)
    assert places(reread(ranking, texts, unlimited, Asking(query, NOW))) == [1, 2]


@pytest.mark.parametrize("name", PRESETS)
@given(pool=st.permutations(ALIKE))
def test_what_ranks_alike_is_in_the_order_of_its_id(name: str, pool: list[Candidate]) -> None:
    preset = PRESETS[name]
    found = rank_pool(pool, preset, Asking("pumps", NOW), full_match=6.0)
    ids = [item.candidate.memory_id for item in found]
    assert ids == [item.memory_id for item in ALIKE][: len(ids)]
    assert len(ids) == (preset.nearest or len(ALIKE))


def test_where_no_word_is_found_each_hit_stands_by_its_own_similarity() -> None:
    near, beside, linked_source = (
        candidate(place, similarity=similarity)._replace(bm25=0.0, ordinal=place)
        for place, similarity in ((1, 0.5), (2, 0.35), (9, 0.4))
    )
    pool = [near, beside, linked_source]
    assert places(best("zzzz qqqq", DEFAULT, *pool)) == [1]
    assert places(best("zzzz qqqq", DEFAULT, beside, linked_source)) == []
    wordless = rank_pool(pool, DEFAULT, Asking("the of", NOW), full_match=0.0)
    assert len(places(list(wordless))) == 3
    assert len(best("qqqq", DEFAULT, near._replace(bm25=1.0), beside, linked_source)) == 3


@pytest.mark.parametrize(
    ("similarity", "bm25", "answered"),
    [(0.48, 0.01, True), (0.4, 0.3, False), (0.4, 0.5, True), (0.3, 0.8, False), (0.1, 1.6, True), (None, 0.5, True)],
)
def test_meaning_and_words_together_make_a_query_answerable(
    similarity: float | None, bm25: float, *, answered: bool
) -> None:
    only = candidate(1)._replace(similarity=similarity, bm25=bm25)
    assert bool(best("quick connectors", DEFAULT, only)) is answered


@pytest.mark.parametrize("preset", PRESETS)
def test_a_probability_that_is_asked_for_replaces_the_thresholds(preset: str) -> None:
    for text, measured in (("pumps", True), ("pumps", False), ("насосы", True)):
        query = Query(text=text, k=5, preset=preset, min_probability=0.1)
        assert checked_preset(query, measured=measured).threshold is None


@pytest.mark.parametrize(("similarity", "bm25"), [(0.3, 0.01), (0.1, 0.8)])
def test_a_model_that_was_not_measured_has_the_lower_thresholds(similarity: float, bm25: float) -> None:
    only = candidate(1)._replace(similarity=similarity, bm25=bm25)
    other = checked_preset(Query(text="pumps", k=5), measured=False)
    assert places(best("pumps", DEFAULT, only)) == []
    assert places(best("pumps", other, only)) == [1]


def test_each_hit_has_a_floor_of_its_own() -> None:
    far = candidate(9, similarity=0.13)._replace(bm25=0.1, source_id=None, ordinal=None)
    near, worded, lone = (
        far._replace(memory_id=UUID(int=5), similarity=0.3),
        far._replace(memory_id=UUID(int=6), bm25=0.5),
        far._replace(memory_id=UUID(int=7), similarity=None, bm25=0.3),
    )
    best_one = candidate(1, similarity=0.5)._replace(bm25=0.2)
    assert sorted(places(best("quick connectors", DEFAULT, best_one, far, near, worded, lone))) == [1, 5, 6, 7]
    beside = far._replace(source_id=best_one.source_id, ordinal=11)
    assert sorted(places(best("quick connectors", DEFAULT, candidate(1, similarity=1.0), beside))) == [1, 9]
    assert 9 in places(best("quick connectors in January 2024", DEFAULT, best_one, far))


@pytest.mark.parametrize("preset", ["default", "classic", "closest"])
def test_a_query_sets_its_own_half_life(preset: str) -> None:
    query = Query(text="pumps", k=5, preset=preset, half_life_days=10)
    (old,) = best("pumps", checked_preset(query), candidate(1, happened_at=NOW - timedelta(days=10)))
    assert old.rank.recency == pytest.approx(0.9)


def test_full_matches_are_told_apart_where_there_are_no_vectors() -> None:
    pool = [candidate(place)._replace(similarity=None, source_id=None, bm25=1.8 + place) for place in range(3)]
    ranking = best("pumps", DEFAULT, *pool)
    assert places(ranking) == [2, 1, 0]
    scores = [item.relevance.lexical for item in ranking]
    assert scores == sorted(set(scores), reverse=True)
    assert scores[0] < 1


def test_a_memory_of_no_known_time_is_neither_new_nor_old() -> None:
    (unknown,) = best("pumps in May 2023", DEFAULT, candidate(1)._replace(happened_at=None))
    assert unknown.rank.recency == pytest.approx(0.9)
    assert unknown.relevance.dated == 0
