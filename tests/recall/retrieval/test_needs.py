"""The needs of a request, the places where reports keep what it asks for, and the case that it is of."""

import pytest

from app.recall.retrieval.rank.asking import (
    LONGEST,
    OF_A_PLACE,
    Case,
    case_of,
    continues_a_case,
    gain_of_place,
    needs_of,
    places_of,
    words_of_place,
)

TEA, COFFEE = "tea-exports-kenya", "coffee-vn"


def test_sentences_on_persona_form_and_length_are_left_out() -> None:
    request = (
        "You are a careful analyst. Check how the market size was derived. Answer in five sentences. "
        "Were actors of the supply chain missing before? Plain English only. Return JSON."
    )
    assert needs_of(request) == (
        "Check how the market size was derived.",
        "Were actors of the supply chain missing before?",
    )


def test_a_sentence_with_more_to_say_than_its_limit_is_a_need() -> None:
    long = "Collect the registers of importers that earlier runs trusted, with the reason for each of them, in 5 links."
    assert long in needs_of(f"You are a scout. {long} Be brief.")


@pytest.mark.parametrize(
    "request_",
    [
        "You are an analyst. Check the market size.",
        "Answer in five sentences. Be brief. Keep it short.",
        "The runs failed again. They lacked sources. " * (LONGEST // 40),
        "",
    ],
)
def test_a_short_request_a_pasted_text_and_one_without_needs_stay_whole(request_: str) -> None:
    assert needs_of(request_) == (request_,)


@pytest.mark.parametrize(
    ("request_", "continues"),
    [
        ("Plan version 7 of tea exports.", True),
        ("Score the draft v3.", True),
        ("What should the next run do?", True),
        ("Which issues are still open?", True),
        ("Where does the pump leak?", False),
        ("Which sources were penalised?", False),
    ],
)
def test_who_plans_or_judges_a_version_continues_its_case(request_: str, *, continues: bool) -> None:
    assert continues_a_case([request_]) is continues


@pytest.mark.parametrize(
    ("request_", "place", "gain"),
    [
        ("What was tried in vain?", "tea negative results", OF_A_PLACE),
        ("Collect the registers of importers.", "tea sources md", OF_A_PLACE),
        ("Score the draft from 0 to 10.", "calibration judge", OF_A_PLACE),
        ("What was tried in vain?", "tea report v3", 0.0),
        ("How large is the market?", "tea negative results", 0.0),
    ],
)
def test_the_name_of_a_place_counts_for_the_request_that_asks_for_it(request_: str, place: str, gain: float) -> None:
    assert gain_of_place(places_of([request_]), place) == gain


@pytest.mark.parametrize(
    "spelling",
    ["tea-exports-kenya", "Tea Exports Kenya", "TeaExportsKenya", "the tea_exports_kenya case"],
)
def test_a_case_is_named_in_any_spelling(spelling: str) -> None:
    assert case_of(f"Plan version 7 of {spelling}.", [COFFEE, TEA], {COFFEE: 0.9}) == Case(TEA, named=True)


def test_a_part_of_a_name_needs_a_passage_of_the_case() -> None:
    request = "Plan version 7 of the tea exports."
    assert case_of(request, [COFFEE, TEA], {COFFEE: 0.3, TEA: 0.2}) == Case(TEA, named=False)
    assert case_of(request, [COFFEE, TEA], {COFFEE: 0.3}) is None


@pytest.mark.parametrize(
    ("request_", "case"),
    [
        ("Plan the next run: our tests team is new", "steam"),
        ("Prepare the next report on garden furniture", "report"),
        ("Plan the next version of the market study", "plan-b"),
        ("Plan the next version", "unnamed"),
    ],
)
def test_parts_of_words_and_words_of_every_task_name_no_case(request_: str, case: str) -> None:
    assert case_of(request_, [case], {}) is None


def test_of_two_named_cases_the_best_passages_tell() -> None:
    cases = ["tea-china", "tea-india"]
    assert case_of("Plan the next version of tea.", cases, {"tea-china": 0.1, "tea-india": 0.3}) is None
    both = "Plan tea-china and tea-india, version 3."
    assert case_of(both, cases, {"tea-china": 0.1, "tea-india": 0.3}) == Case("tea-india", named=True)


def test_without_a_name_half_of_the_best_passages_tell_the_case() -> None:
    assert case_of("Plan the next version.", [TEA], {TEA: 0.5}) == Case(TEA, named=False)
    assert case_of("Plan the next version.", [TEA], {TEA: 0.4}) is None
    assert case_of("Plan the next version.", [], {}) is None


@pytest.mark.parametrize(
    ("request_", "is_alone"),
    [
        ("Which domains should I avoid?", True),
        ("Which sites were penalised by the judge?", True),
        ("Which sources are reliable?", True),
        ("How far apart are judges and humans?", True),
        ("Do the reviewers differ?", True),
        ("Which restaurants should I avoid?", False),
        ("Avoid the best sources on the market size", False),
        ("Best banking website", False),
        ("How far is marketing?", False),
        ("Which people are close?", False),
        ("Block the weak sites", False),
        ("Publish the page", False),
        ("Which sources?", False),
        ("Which sources are reliable on tea prices?", False),
    ],
)
def test_a_question_for_nothing_but_a_place_is_searched_by_its_words(request_: str, is_alone: bool) -> None:  # noqa: FBT001 - a parameter of the test
    assert bool(words_of_place([request_])) == is_alone
