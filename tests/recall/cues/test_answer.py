"""The order and the form of an answer to a question why."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from app.foundation.models.tokens import BundledTokenCounter
from app.foundation.text.words import content_words
from app.recall.cues.why.answer import Reason, choose, markdown_of


def reason(text: str, score: float = 0.9, **given: Any) -> Reason:
    source = uuid4()
    empty = {"memory_id": source, "source_id": source, "source": "a.md", "is_session": False, "at": None}
    return Reason(**{**empty, **given}, text=text, score=score)


def test_the_record_whose_title_has_the_question_stands_before_a_newer_one() -> None:
    asked = content_words("Why do we use CloudEvents?")
    event = reason("All events use the specification.", 0.85, subject="32. CloudEvents as envelope")
    region = reason("Streams are mirrored.", 0.9, subject="123. Regions", at=datetime(2026, 2, 21, tzinfo=UTC))
    assert choose([region, event], 400, BundledTokenCounter(), asked) == [event, region]
    assert choose([region, event], 400, BundledTokenCounter()) == [region, event]


def test_a_newer_turn_of_a_session_stands_before_an_older_record() -> None:
    old, new = datetime(2026, 2, 21, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC)
    record = reason("All events use the specification.", subject="32. CloudEvents as envelope", at=old)
    turn = reason("Drop the envelope, it costs too much.", 0.85, is_session=True, source="s-1", at=new)
    found = choose([record, turn], 400, BundledTokenCounter(), content_words("Why CloudEvents?"))
    assert found == [turn, record]


def test_place_and_introduction_of_the_items_of_one_section_stand_once() -> None:
    section: dict[str, Any] = {
        "memory_id": uuid4(),
        "source_id": uuid4(),
        "section": "Decision",
        "kinds": ("decision",),
    }
    lead = "Code of others is contained by:"
    one, other = (reason(f"{lead}\n- {item}", head=lead, **section) for item in ("Least rights.", "Own networks."))
    later = reason("A login takes longer.", **{**section, "memory_id": uuid4(), "section": "Consequences"})
    block = f"# a.md\nDecision: {lead}\n- Least rights.\n- Own networks.\nConsequences, decision: A login takes longer."
    assert block in markdown_of("Why?", [one, other, later], ())
