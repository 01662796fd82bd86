"""A language model proposes lessons; the turns decide which of them are kept."""

import json
from typing import Any, get_args

import pytest

from app.recall.cues.cue import AGENT, CONSEQUENCES, DECISION, PERSON, CueKind
from app.recall.cues.extraction.extract import extract, ordinal_of
from app.recall.cues.extraction.llm import SCHEMA, prompt_of, proposals, unite
from app.recall.cues.signs import spoken_turns
from tests.recall.cues.extraction.test_extract import CUT_OFF, DROPPED, session

GOOD = {
    "message": 2, "kind": "correction", "when": "removing a column", "lesson": "Never drop a column at once.",
    "instead": "Add the new column, migrate the data, drop later", "steps": [], "because": "old pods still read it",
    "severity": "high", "quote": "never drop a column straight away in production",
}  # fmt: skip


def reply(*lessons: dict[str, Any]) -> str:
    return json.dumps({"lessons": list(lessons)})


def test_the_schema_has_the_kinds_and_severities_of_cues() -> None:
    fields = SCHEMA["properties"]["lessons"]["items"]
    assert fields["required"] == list(fields["properties"])
    assert fields["properties"]["kind"]["enum"] == list(get_args(CueKind))
    assert fields["properties"]["severity"]["enum"] == list(CONSEQUENCES)


def test_a_session_without_a_likely_turn_costs_no_request() -> None:
    turns = session("make it blue", "Done.", "thanks", "Sure.")
    assert prompt_of(turns, spoken_turns(turns)) == ""


def test_the_prompt_has_the_likely_turns_and_those_beside_them_without_pasted_text() -> None:
    turns = session(*DROPPED, "ok", "and what is\n```\nsecret code\n```\nfor?")
    prompt = prompt_of(turns, spoken_turns(turns))
    assert "[2] user: no, never drop a column" in prompt
    assert "[1] assistant: I've written" in prompt
    assert "secret code" not in prompt


def test_a_lesson_has_its_remedy_and_its_reason_and_the_trust_of_its_turn() -> None:
    [cue] = proposals(reply(GOOD), session(*DROPPED))
    assert (cue.trust, ordinal_of(cue), cue.quote, cue.consequence) == (PERSON, 2, GOOD["quote"], 0.8)
    assert "Instead: Add the new column" in cue.lesson
    assert "Because: old pods still read it" in cue.lesson
    said = {**GOOD, "message": 1, "kind": DECISION, "quote": "calls op.drop_column"}
    assert [cue.trust for cue in proposals(reply(said), session(*DROPPED))] == [AGENT]


@pytest.mark.parametrize(
    "changed",
    [
        {"quote": "never ever drop columns"},
        {"quote": ""},
        {"message": 1},
        {"message": 99},
        {"message": "the second"},
        {"kind": "opinion"},
        {"lesson": " "},
        {"when": None},
        {"steps": "one, two"},
    ],
)
def test_what_does_not_stand_in_its_turn_or_is_malformed_is_dropped(changed: dict[str, Any]) -> None:
    assert proposals(reply({**GOOD, **changed}), session(*DROPPED)) == []


def test_pasted_text_proves_nothing() -> None:
    turns = session("hi", "Hello.", "is this right?\n> never drop a column straight away in production")
    assert proposals(reply(GOOD), turns) == []


def test_a_word_that_stands_in_every_session_does_not_make_the_models_words_the_persons() -> None:
    turns = session("what does the page say?", "It says to switch the checks off.", "ok", "Next?", "ok thanks a lot")
    lessons = [{**GOOD, "message": 2, "quote": "ok"}, {**GOOD, "message": 4, "quote": "ok thanks a lot"}]
    assert [cue.trust for cue in proposals(reply(*lessons), turns)] == [AGENT, PERSON]
    assert proposals(reply({**GOOD, "quote": "never " * 400}), turns) == []


@pytest.mark.parametrize(
    "text",
    [
        f"Sure! Here you are:\n```json\n{reply(GOOD)}\n```\nAnything else?",
        json.dumps([GOOD]),
        json.dumps(GOOD),
        reply(GOOD)[:-1] + ', "note": "cut',
    ],
)
def test_a_reply_in_another_form_is_read(text: str) -> None:
    assert len(proposals(text, session(*DROPPED))) == 1


@pytest.mark.parametrize("text", ["", "[]", "I found none.", '{"lessons": [', '{"lessons": null}', "{" * 5_000])
def test_a_reply_without_lessons_gives_none(text: str) -> None:
    assert proposals(text, session(*DROPPED)) == []


def test_what_a_model_leaves_open_is_empty() -> None:
    open_fields = {"instead": None, "because": None, "steps": ["", "one"], "severity": "grave", "kind": "procedure"}
    [cue] = proposals(reply({**GOOD, **open_fields}), session(*DROPPED))
    assert (cue.details["steps"], cue.consequence) == (["one"], CONSEQUENCES["medium"])


@pytest.mark.parametrize("changed", [
    {"lesson": "Never drop a column. " * 120}, {"when": "removing a column " * 120}, {"because": "old pods " * 300},
    {"instead": "Add the new column. " * 120},
    {"kind": "procedure", "steps": [*["Add the column. " * 150] * 3, *["Add it."] * 60]},
])  # fmt: skip
def test_a_lesson_that_is_too_long_is_shortened(changed: dict[str, Any]) -> None:
    [cue] = proposals(reply({**GOOD, **changed}), session(*DROPPED))
    assert cue.quote == GOOD["quote"]


def test_at_most_five_lessons_are_kept() -> None:
    assert len(proposals(reply(*[GOOD] * 9), session(*DROPPED))) == 5


def test_a_turn_that_rules_and_model_name_has_the_models_words_and_the_persons_trust() -> None:
    turns = session(*CUT_OFF)
    said = {**GOOD, "message": 1, "kind": "discovery", "quote": "the ORM silently cuts strings at the column's length"}
    [own] = extract(spoken_turns(turns))
    [cue] = unite([own], proposals(reply(said), turns))
    assert (cue.trigger, cue.trust, cue.confidence) == ("removing a column", PERSON, own.confidence)
