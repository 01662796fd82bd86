"""Which cues take back what others decided."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from msgspec import structs

from app.recall.cues.conflicts import conflicts_of, contradict, reverses
from app.recall.cues.cue import ACTIVE, DECISION, IMPORTED, PREFERENCE, Cue, Evidence

BEGUN = datetime(2026, 5, 1, tzinfo=UTC)


def cue(lesson: str, day: int, path: str = "", trigger: str = "linting the code") -> Cue:
    moment = BEGUN + timedelta(days=day)
    empty: dict[str, Any] = dict.fromkeys(Cue.__struct_fields__)
    given = {
        "cue_id": uuid4(), "kind": DECISION, "state": ACTIVE, "trigger": trigger, "lesson": lesson, "trust": IMPORTED,
        "suspect": False,
        "valid_from": moment, "created_at": moment, "details": {"choice": lesson}, "evidence": (Evidence(path=path),),
    }  # fmt: skip
    return Cue(**{**empty, **given})


def test_a_record_takes_back_only_what_it_names() -> None:
    older, said = cue("Quarto", 0), "Quarto is dead, we go back to Word."
    for path, found in (("", 1), ("docs/adr/9.md", 0)):
        newer = cue(said, 1, path)
        assert reverses(older, newer)
        assert len(conflicts_of([(newer, older)], reverses)) == found


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


@pytest.mark.parametrize(
    ("older", "newer", "is_replaced"),
    [
        ("use ruff for linting", "from now on run ruff before each commit", False),
        ("We use ruff for linting the code", "Move to line length 100 for linting the code", False),
        ("Use ruff.", "Move to ruff 0.9 for the whole tree.", False),
        ("Use ruff.", "The tests are slow: run them in parallel instead.", False),
        ("Use ruff.", "Ruff is fine. Move to line length 100.", False),
        ("Use ruff.", "Ruff stays, move to line length 100.", False),
        ("Use ruff.", "Move to line length 100.", False),
        ("Use ruff.", "Ruff is too strict, switch to flake8.", True),
        ("Use ruff.", "We drop ruff and use flake8 instead.", True),
        ("Three retries.", "Backoff instead.", True),
        ("Three retries.", "Three retries are too many: backoff instead.", True),
    ],
)
def test_a_later_choice_replaces_what_it_names(older: str, newer: str, *, is_replaced: bool) -> None:
    assert contradict(cue(older, 0), cue(newer, 1)) == is_replaced


def test_a_bare_choice_replaces_one_of_its_own_situation_alone() -> None:
    assert not contradict(cue("Three retries.", 0), cue("Backoff instead.", 1, trigger="calling a payment provider"))
