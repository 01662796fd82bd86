"""Which cues take back what others decided."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from msgspec import structs

from app.recall.cues.conflicts import conflicts_of, reverses
from app.recall.cues.cue import ACTIVE, DECISION, IMPORTED, PREFERENCE, Cue, Evidence

BEGUN = datetime(2026, 5, 1, tzinfo=UTC)


def cue(lesson: str, day: int, path: str = "") -> Cue:
    moment = BEGUN + timedelta(days=day)
    empty: dict[str, Any] = dict.fromkeys(Cue.__struct_fields__)
    given = {
        "cue_id": uuid4(), "kind": DECISION, "state": ACTIVE, "lesson": lesson, "trust": IMPORTED, "suspect": False,
        "valid_from": moment, "created_at": moment, "details": {"choice": lesson}, "evidence": (Evidence(path=path),),
    }  # fmt: skip
    return Cue(**{**empty, **given})


def test_a_record_takes_back_only_what_it_names() -> None:
    older, said = cue("Quarto", 0), "Quarto is dead, we go back to Word."
    for path, found in (("", 1), ("docs/adr/9.md", 0)):
        newer = cue(said, 1, path)
        assert reverses(older, newer)
        assert (
            len(conflicts_of([(newer.cue_id, older.cue_id)], {older.cue_id: older, newer.cue_id: newer}, reverses))
            == found
        )


@pytest.mark.parametrize(
    ("older", "newer", "is_taken_back"),
    [
        ("Always use approach A.", "Approach A failed, use B.", True),
        ("Use three retries.", "Three retries are out: backoff instead.", True),
        ("Use pnpm.", "The pnpm install failed, use the lockfile.", False),
        ("Always check the inputs.", "Check it out, then run the suite.", False),
    ],
)
def test_a_wish_holds_until_its_own_words_are_taken_back(older: str, newer: str, *, is_taken_back: bool) -> None:
    wish, later = (
        structs.replace(cue(text, day), kind=PREFERENCE, details={}) for day, text in enumerate([older, newer])
    )
    assert reverses(wish, later) == is_taken_back
