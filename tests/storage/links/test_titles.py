"""Which runs of words name a title. Pure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.storage.links.relations import (
    LONGEST_TITLE,
    MOST_MENTIONS,
    WORD,
    mentioned_titles,
    possible_mentions,
    title_key,
)

WORDS = st.lists(st.sampled_from(["Pump", "pump", "seven", "Seven", "7", "the", "of", "Kestrel", "—", "(", ")", "."]))


def named(text: str, *titles: str, own: str | None = None) -> list[str]:
    known = {key: [title] for title in titles if (key := title_key(title, "note")) is not None}
    return mentioned_titles(list(possible_mentions(text)), known, own=own)


@pytest.mark.parametrize(
    ("title", "key"),
    [
        ("Big Stone Gap (film)", "big stone gap"),
        ("Deltha O'Neal", "deltha o neal"),
        ("Насос 7", "насос 7"),
        ("銅鑼湾の事故", "銅鑼湾の事故"),
        ("Metallica", "metallica"),
        ("", None),
        ("The Who", None),
        ("2021", None),
        ("AI", None),
        ("(film)", None),
        ("Survey", None),
        ("The final reports", "the final reports"),
        ("Review notes 2", None),
        ("Отчёт", None),
        ("Batching survey", "batching survey"),
        (" ".join(["word"] * (LONGEST_TITLE + 1)), None),
        ("x" * 201, None),
    ],
)
def test_a_title_is_kept_where_it_can_name_one_memory(title: str, key: str | None) -> None:
    assert title_key(title, "note") == key


def test_the_speaker_of_a_message_is_no_title() -> None:
    assert title_key("Caroline", "message") is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It was seen at Pump Seven, and repaired.", ["Pump seven"]),
        ("Pump seven failed.", ["Pump seven"]),
        ("it was pump seven.", []),
        ("Pump seventeen failed.", []),
        ("The Metallica concert.", ["Metallica"]),
        ("Metallica plays. Metallica sings.", []),
        ("- Metallica\n- others", []),
        ("事故 Metallica 事故", ["Metallica"]),
    ],
)
def test_a_name_is_written_with_a_capital_and_alone_not_first(text: str, found: list[str]) -> None:
    assert named(text, "Pump seven", "Metallica") == found


def test_the_longer_title_wins_its_place() -> None:
    assert named("Seen with Scaredy Squirrel Show today.", "Scaredy Squirrel", "Scaredy Squirrel Show") == [
        "Scaredy Squirrel Show"
    ]


def test_a_memory_does_not_name_itself() -> None:
    assert named("The Kestrel gateway is old.", "Kestrel gateway", own="kestrel gateway") == []


def test_a_list_of_contents_is_about_none_of_its_entries() -> None:
    titles = [f"Pump {number}" for number in range(40)]
    assert named(", ".join(titles), *titles) == titles[:MOST_MENTIONS]


@given(WORDS, WORDS)
def test_whatever_is_named_stands_in_the_text(text: list[str], title: list[str]) -> None:
    found = named(" ".join(text), " ".join(title))
    key = title_key(" ".join(title), "note")
    spoken = " ".join(WORD.findall(" ".join(text).casefold()))
    assert not found or (key is not None and f" {key} " in f" {spoken} ")
