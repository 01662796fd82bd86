"""What the texts of the best hits have for a query."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.recall.retrieval.rank.rank import HitText, TextReading, readings


def one(query: str, body: str, title: str = "") -> TextReading:
    return readings(query, [HitText(title, body, None, None)])[0]


@pytest.mark.parametrize(
    ("query", "body", "share"),
    [
        ("support group", "She went to a support group.", 1.0),
        ("support group", "Support\n(groups) helped.", 1.0),
        ("support group", "A group gave support.", 0.0),
        ("LGBTQ support group meeting", "the lgbtq support of a group meeting", 2 / 3),
        ("what is it", "what is it", 0.0),
        ("support", "support", 0.0),
        ("art exhibit", "cart exhibit", 0.0),
        ("рынок добавок", "Рынок добавок вырос", 1.0),
        ("the run-time error", "**Run**\n\n - time: an error", 1 / 3),
    ],
)
def test_phrases_are_the_share_of_the_query_s_pairs_of_words(query: str, body: str, share: float) -> None:
    assert one(query, body).phrases == pytest.approx(share)


def test_the_title_is_read_too() -> None:
    assert one("market size", "221 billion", title="Market size").phrases == 1.0


@pytest.mark.parametrize(
    ("query", "body", "tells"),
    [
        ("When did she paint it?", "I painted it last year.", True),
        ("When did she paint it?", "I painted it with oil.", False),
        ("In which month did it rain?", "It rained in March? No, in April.", True),
        ("What did she paint last year?", "I painted it last year.", False),
        ("Who said when it was?", "It was on Monday.", False),
    ],
)
def test_a_time_is_looked_for_where_the_query_asks_when(query: str, body: str, *, tells: bool) -> None:
    assert one(query, body).time is tells


@pytest.mark.parametrize(
    ("query", "text", "own"),
    [
        ("What did Ann adopt?", HitText("Ann", "I have a puppy.", "s", 1), True),
        ("What did Ann adopt?", HitText("Ann", "It is a puppy.", "s", 1), False),
        ("What did Ann adopt?", HitText("Bob", "I have a cat.", "s", 1), False),
        ("What did Ann adopt?", HitText("Ann", "I have a puppy.", None, None), False),
        ("Что купила Анна?", HitText("Анна", "Я купила щенка.", "s", 1), True),
        ("What did we adopt?", HitText("", "We have a puppy.", "s", 1), False),
    ],
)
def test_who_is_named_tells_of_themselves(query: str, text: HitText, *, own: bool) -> None:
    assert readings(query, [text])[0].own is own


def test_the_turn_after_a_question_answers_it() -> None:
    turns = [
        HitText("Ann", "What did you adopt? I am curious.", "s", 1),
        HitText("Bob", "A puppy.", "s", 2),
        HitText("Ann", "What is its name?", "s", 3),
        HitText("Bob", "Toby!", "other", 4),
        HitText("", "Is a note that asks a turn?", None, None),
    ]
    found = readings("puppy", turns)
    assert [(item.asks, item.answers) for item in found] == [
        (False, False),
        (False, True),
        (True, False),
        (False, False),
        (False, False),
    ]


@given(st.text(), st.lists(st.text(), max_size=4))
def test_any_texts_are_read(query: str, bodies: list[str]) -> None:
    query, *bodies = (part.encode("utf-8", "ignore").decode() for part in (query, *bodies))
    found = readings(query, [HitText("", body, None, None) for body in bodies])
    assert len(found) == len(bodies)
    assert all(0.0 <= item.phrases <= 1.0 for item in found)
