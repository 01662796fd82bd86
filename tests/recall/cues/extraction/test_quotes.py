"""Which words of a decision record stand for its decision."""

from app.recall.cues.extraction.sections import record_in

RECORD = "# ADR 29: Sources\n\n## Status\n\nAccepted\n\n## Context\n\nText.\n\n## Decision\n\n{decision}\n"


def lesson(decision: str) -> str:
    record = record_in(RECORD.format(decision=decision), "docs/adr/029-sources.md")
    assert record is not None
    return record.cue.lesson


def test_a_decision_comes_with_the_list_that_it_announces() -> None:
    text = "We create two interfaces:\n\n- a source, which reads events\n- a sink, which writes them"
    assert lesson(text) == "We create two interfaces: - a source, which reads events - a sink, which writes them"


def test_a_word_that_only_leads_on_is_no_decision() -> None:
    assert lesson("Therefore:\n\nEvents are stored in the order of their time.") == (
        "Events are stored in the order of their time."
    )
