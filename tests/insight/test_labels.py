"""Tests of the words that label clusters."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from app.foundation.db.database import Database
from app.insight.map.labels import CANDIDATES, TERMS, Counted, count_words, distinctive, label, words_of
from app.insight.map.store import lexemes
from app.storage.tenants.workspace import Workspace

words = st.lists(st.sampled_from(["actor", "harbour", "violin", "the", "Moon", "moon", "x"]), max_size=8)


def english(*texts: str) -> list[Counted]:
    return count_words(("english", text) for text in texts)


def test_words_of_one_cluster_come_before_words_of_all() -> None:
    texts = english("report harbour grain", "report harbour ship", "report violin cello", "report violin sonata")
    found = distinctive(texts, [0, 0, 1, 1])
    assert found[0][0] == ("harbour", "english")
    assert found[1][0] == ("violin", "english")


def test_words_of_one_text_alone_come_last() -> None:
    texts = english("xylophone " * 9 + "harbour grain", "harbour grain", "violin cello")
    ranked = [word for word, _ in distinctive(texts, [0, 0, 1])[0]]
    assert ranked == ["grain", "harbour", "xylophone"]


def test_a_word_is_shown_as_most_texts_write_it() -> None:
    found = distinctive(count_words([("german", "Hafen Hafen hafen"), ("english", "HAFEN")]), [0, 0])
    assert found == [[("Hafen", "german")]]


def test_numbers_addresses_and_code_are_no_words() -> None:
    text = "See https://example.org/path?q=1, `rm -rf` and 42 % of v6: the co-founder's café, БАД."
    assert words_of(text) == ["See", "and", "of", "the", "co-founder's", "café", "БАД"]


def test_a_cluster_without_words_has_no_label() -> None:
    assert distinctive(english("12 34", ""), [0, 0]) == [[]]
    assert distinctive([], []) == []


def test_as_many_words_are_kept_as_a_label_may_need() -> None:
    def letters(number: int) -> str:
        return "".join(chr(97 + number // 26**place % 26) for place in range(3))

    text = " ".join(f"w{letters(number)}" for number in range(CANDIDATES + 50))
    assert len(distinctive(english(text), [0])[0]) == CANDIDATES


def test_a_label_has_no_stop_words_and_no_word_twice() -> None:
    pairs = [("the", ""), ("actors", "actor"), ("Actor", "actor"), ("of", ""), ("harbour", "harbour")]
    assert label(pairs) == ["actors", "harbour"]
    assert len(label((str(number), str(number)) for number in range(20))) == TERMS


@given(st.lists(st.tuples(words, st.integers(min_value=0, max_value=3)), max_size=20), st.randoms())
def test_labels_are_words_of_their_members_in_whatever_order(
    pairs: list[tuple[list[str], int]], random: Random
) -> None:
    texts = [(" ".join(text), number) for text, number in pairs]
    found = distinctive(english(*(text for text, _ in texts)), [number for _, number in texts])
    for number, ranked in enumerate(found):
        held = {word.casefold() for text, other in texts if other == number for word in words_of(text)}
        assert {word.casefold() for word, _ in ranked} == held
    random.shuffle(texts)
    again = distinctive(english(*(text for text, _ in texts)), [number for _, number in texts])
    assert again == found


async def test_two_forms_of_a_word_in_another_script_have_one_lexeme(database: Database, workspace: Workspace) -> None:
    async with database.session(workspace) as session:
        found = await lexemes(session, [(word, "english") for word in ("отчёты", "отчётов", "reports", "они")])
    assert found == ["отчет", "отчет", "report", ""]
