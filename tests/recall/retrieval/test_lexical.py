"""Which terms are looked up, and what each is worth."""

import math

import pytest

from app.recall.retrieval.arms import TERM_LIMIT, Term, inverse_document_frequency, lexical_query
from app.recall.retrieval.rank.presets import CLASSIC


def term(lexeme: str, document_count: int, dimension: int = 1) -> Term:
    return Term(lexeme=lexeme, dimension=dimension, document_count=document_count, languages=frozenset({"english"}))


def test_idf_is_never_negative_and_falls_with_frequency() -> None:
    values = [inverse_document_frequency(count, 1000) for count in (0, 1, 10, 500, 1000, 5000)]
    assert values == sorted(values, reverse=True)
    assert values[-1] > 0
    assert inverse_document_frequency(10, 1000) == pytest.approx(math.log(1 + 990.5 / 10.5))


def test_no_terms_no_query() -> None:
    assert lexical_query([], total=10) is None


def test_the_rarest_terms_are_looked_up_within_the_budget_and_all_are_scored() -> None:
    terms = [term("common", 9000, 1), term("rare", 10, 2), term("middling", 3000, 3)]
    query = lexical_query(terms, total=10_000)
    assert query is not None
    assert query.match == "'rare' | 'middling'"
    assert [entry.split(":")[0] for entry in query.weights.strip("{}").split("}")[0].split(",")] == ["1", "2", "3"]


def test_one_term_is_looked_up_however_common() -> None:
    query = lexical_query([term("the", 10**6)], total=10**6)
    assert query is not None
    assert query.match == "'the'"


def test_quotes_and_backslashes_in_a_lexeme_cannot_break_the_query() -> None:
    query = lexical_query([term("o'neil\\x", 1)], total=10)
    assert query is not None
    assert query.match == "'o''neil\\\\x'"


def test_a_task_text_of_thousands_of_words_is_known_by_its_rarest() -> None:
    terms = [term(f"word{number}", number, number + 1) for number in range(3000)]
    query = lexical_query(terms, total=10**6)
    assert query is not None
    assert query.weights.count(":") == TERM_LIMIT


def test_a_full_match_is_one_in_the_language_of_the_query() -> None:
    english = Term(lexeme="пустые", dimension=1, document_count=0, languages=frozenset({"english"}))
    russian = Term(lexeme="пуст", dimension=2, document_count=3, languages=frozenset({"russian"}))
    name = Term(lexeme="ok.ru", dimension=3, document_count=1, languages=frozenset({"english", "russian"}))
    query = lexical_query([english, russian, name], total=10)
    assert query is not None
    expected = inverse_document_frequency(3, 10) + inverse_document_frequency(1, 10)
    assert query.full_match == pytest.approx(expected)


def test_a_large_workspace_looks_through_a_share_of_it() -> None:
    terms = [term("xyzzy", 3_000, 1), term("actor", 3_000, 2), term("market", 3_000, 3)]
    matches = [lexical_query(terms, total=total) for total in (500_000, 1_000_000)]
    assert [query.match.count("|") + 1 for query in matches if query is not None] == [1, 2]


def test_words_that_nobody_has_do_not_crowd_out_those_that_somebody_has() -> None:
    terms = [term("xyzzy", 0, 1), term("actor", 6000, 2), term("market", 9000, 3)]
    query = lexical_query(terms, total=10_000)
    assert query is not None
    assert query.match == "'actor' | 'xyzzy'"
    many = [*(term(f"w{number}", 0, number) for number in range(70)), term("scout", 3, 99)]
    query = lexical_query(many, total=10_000)
    assert query is not None
    assert "'scout'" in query.match
    assert "99:" in query.weights


def test_a_recipe_looks_up_only_so_many_terms() -> None:
    terms = [term(f"word{number}", number + 1, number + 1) for number in range(20)]
    query = lexical_query([*terms, term("new", 0, 99)], total=100, most=CLASSIC.most_terms)
    assert query is not None
    assert query.match == " | ".join(f"'word{number}'" for number in range(8))
    assert query.weights.count(":") == 8
