"""Tests of names in texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.foundation.text.words import LONGEST_NAME, MOST_NAMES, SHORTEST_NAME, names, says


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("In March the Kestrel gateway met Ada Lovelace.", ["March", "Kestrel", "Ada Lovelace"]),
        ("Retries doubled. Nobody looked.", []),
        ("Ada Lovelace looked.", ["Ada Lovelace"]),
        ("We asked the Bank of England, and the Banco de la Plata.", ["Bank of England", "Banco de la Plata"]),
        ("We saw Ada and Alan at the Bank of the West.", ["Ada", "Alan", "Bank of the West"]),
        ("It was Kestrel's fault, said O’Neal.", ["Kestrel", "O’Neal"]),
        ("The ÄRA began in Köln, at İzmir.", ["ÄRA", "Köln", "İzmir"]),
        ("Мы спросили Иванова в Москве.", ["Иванова", "Москве"]),
        ("ночь, улица, фонарь", []),
        ("事故が起きた", []),
        ("", []),
    ],
)
def test_names_have_capitals_where_none_are_due(text: str, found: list[str]) -> None:
    assert list(names(text, "english")) == found


def test_where_every_noun_has_a_capital_a_name_has_two_words() -> None:
    assert list(names("Wir sahen den Fehler bei Carl Benz.", "german")) == ["Carl Benz"]


def test_a_name_is_looked_for_as_it_is_written() -> None:
    assert says("the Kestrel gateway", "Kestrel")
    assert not says("the kestrel and the Kestrels", "Kestrel")
    assert says("by Banco de la Plata (old)", "Banco de la Plata")


@given(st.text(alphabet=st.sampled_from("AbÄя .,'’-\n(of)"), max_size=300))
def test_what_is_found_is_said(text: str) -> None:
    found = names(text, "english")
    assert len(found) <= MOST_NAMES
    for name in found:
        assert SHORTEST_NAME <= len(name) <= LONGEST_NAME
        assert name in text
