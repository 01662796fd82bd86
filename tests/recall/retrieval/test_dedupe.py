"""Leaving out what says the same again."""

from dataclasses import dataclass

from app.foundation.text.words import COMPARED_CHARACTERS, wording
from app.recall.retrieval.rank.features import drop_duplicates


@dataclass
class Item:
    title: str
    body: str
    kind: str = "observation"


NOTES = frozenset({"observation"})
LONG = (
    "The scout returned no actors for the query and the director did not escalate, so the report has no sources. "
    "The judge therefore gave the lowest score of the series. The next version asks the scout again with a wider "
    "query, and stops the run with a clear message when there is still nothing to work with."
)


def kept(*items: Item) -> list[str]:
    return [item.body for item in drop_duplicates(items, title_kinds=NOTES)]


def test_of_two_with_one_title_the_better_ranked_stays() -> None:
    assert kept(Item("Run  One", "first text"), Item("run one", "another thing entirely")) == ["first text"]


def test_two_sections_of_a_file_may_share_their_title() -> None:
    assert len(kept(Item("A", "first text", "chunk"), Item("A", "another thing entirely", "chunk"))) == 2


def test_memories_without_a_title_are_not_one() -> None:
    assert len(kept(Item("", "first text"), Item("", "another thing entirely"))) == 2


def test_near_identical_text_is_one() -> None:
    assert kept(Item("a", LONG), Item("b", LONG.replace("report", "paper").upper())) == [LONG]


def test_other_facts_in_the_same_words_are_two() -> None:
    other = " ".join(reversed(LONG.split()))
    assert len(kept(Item("a", LONG), Item("b", other))) == 2


def test_short_texts_are_compared_whole() -> None:
    assert len(kept(Item("a", "yes"), Item("b", "no"), Item("c", "Yes!"))) == 2


def test_texts_without_a_word_are_one_only_where_they_are_equal() -> None:
    assert kept(Item("", "🙂", "message"), Item("", "🚀", "message"), Item("", "🙂 ", "message")) == ["🙂", "🚀"]


def test_by_title_alone_near_identical_texts_stay() -> None:
    items = [Item("a", LONG), Item("b", LONG), Item("A", "another")]
    assert len(list(drop_duplicates(items, title_kinds=NOTES, by_text=False))) == 2


def test_long_texts_are_one_by_their_ends_and_length() -> None:
    words = [f"word{number}" for number in range(COMPARED_CHARACTERS)]
    long = " ".join(words)
    end = len(long) // 2
    assert len(long) > 6 * COMPARED_CHARACTERS
    changed, longer = long.replace("word5 ", "another "), f"{long[:end]} {long} {long[end:]}"
    assert kept(Item("a", long), Item("b", changed), Item("c", longer)) == [long, longer]
    beginning = " ".join([*words[:-1_000], *(f"other{number}" for number in range(1_000))])
    assert kept(Item("a", long), Item("b", beginning)) == [long, beginning]


def test_a_text_that_is_remembered_is_not_read_again() -> None:
    wording.cache_clear()
    items = [Item("a", LONG), Item("b", "another thing entirely")]
    rounds = [[*drop_duplicates(some, title_kinds=NOTES)] for some in (items[:1], items, items[::-1])]
    assert [len(found) for found in rounds] == [1, 2, 2]
    assert wording.cache_info().misses == 2
