"""Cues are extracted from sessions of many kinds of people, with their quotes, triggers and weights."""

import json
from pathlib import Path

import pytest

from app.cues.cue import AGENT, CORRECTION, CUE_KINDS, DECISION, DISCOVERY, PERSON, PREFERENCE, PROCEDURE, SEVERE, USER
from app.cues.extraction.extract import Extracted, extract
from app.cues.extraction.features import names
from app.cues.extraction.model import weights
from app.cues.extraction.signs import patterns
from app.cues.extraction.situation import condition_in
from app.cues.extraction.speech import speech_of
from app.intake.sessions.transcript import ASSISTANT, Turn
from app.intake.sessions.transcript import USER as SAID

EXAMPLES = Path(__file__).with_name("examples.jsonl")


def session(*texts: str) -> list[Turn]:
    """Returns turns of a person and an agent by turns; the person begins."""
    roles = (SAID, ASSISTANT)
    return [Turn(ordinal=place, role=roles[place % 2], text=text) for place, text in enumerate(texts)]


def cue_of(*texts: str) -> Extracted:
    """Returns the last cue that the person gave."""
    return [cue for cue in extract(session(*texts)) if cue.trust == PERSON][-1]


CORRECTED = (
    "plot the sales by month",
    "I've added the chart. The y axis shows revenue.",
    "No, you forgot the units on the y axis",
    "You're right, I apologize. I added the units.",
    "thanks",
)


def test_a_correction_after_an_agents_act_is_a_cue() -> None:
    cue = cue_of(*CORRECTED)
    assert (cue.kind, cue.ordinal, cue.trust) == (CORRECTION, 2, PERSON)
    assert cue.quote in CORRECTED[2]
    assert cue.lesson == "Do not leave out the units on the y axis."
    assert cue.trigger == "plotting the sales by month"


def test_a_lone_no_is_not_the_lesson() -> None:
    cue = cue_of("format the file", "Done.", "No. Ignore my earlier instruction about tabs, use spaces")
    assert cue.quote == "Ignore my earlier instruction about tabs, use spaces"
    assert cue.lesson == f"{cue.quote}."


def test_requests_thanks_and_pasted_errors_are_no_cues() -> None:
    texts = ("add a button that exports the table", "Done.", "TypeError: x is undefined", "Fixed.", "thanks, continue")
    assert [cue for cue in extract(session(*texts)) if cue.trust == PERSON] == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("From now on always write dates as 2024-05-31 in every report", PREFERENCE),
        ("let's go with option 2 instead of the queue", DECISION),
        ("Before you commit, run the linter, then all tests, one by one", PROCEDURE),
        ("ab jetzt bitte immer auf Deutsch antworten", PREFERENCE),
        ("Nein, du hast schon wieder die falsche Datei geändert", CORRECTION),
        ("нет, ты опять изменил не тот файл", CORRECTION),
        ("it turns out the api only supports 100 rows per call", DISCOVERY),
    ],
)
def test_kinds_are_told_in_each_language_without_vectors(text: str, kind: str) -> None:
    assert cue_of("make the report", "Here is the report.", text).kind == kind


def test_consequence_grows_with_frustration_and_with_turns_until_it_is_mended() -> None:
    calm = cue_of(*CORRECTED)
    texts = (
        "clean up the store",
        "Done.",
        "wtf, you deleted the production database, never do that again!",
        "I'm sorry.",
        "no, still wrong, the tables are missing",
        "Restored.",
        "you forgot the users",
    )
    [angry] = [cue for cue in extract(session(*texts)) if cue.ordinal == 2]
    assert angry.consequence > calm.consequence + 0.3


def test_a_wish_about_the_agents_manner_is_the_persons_everywhere() -> None:
    assert cue_of("hi", "Hello.", "Stop asking for permission, from now on do it in all my projects").scope == USER


def test_a_decision_names_its_alternatives() -> None:
    offer = "Two options:\n1. a queue\n2. a cron job\nWhich one do you prefer?"
    cue = cue_of("how do we schedule it?", offer, "let's use the second option, we don't need a queue")
    assert cue.kind == DECISION
    assert cue.details["alternatives"] == ["a queue", "a cron job"]


def test_steps_of_a_procedure_are_listed() -> None:
    cue = cue_of(
        "release", "Ok.", "Always follow these steps before a release:\n- run the tests\n- tag\n- update the docs"
    )
    assert cue.details.get("steps") == ["run the tests", "tag", "update the docs"]


def test_a_condition_is_the_trigger() -> None:
    assert cue_of("ok", "Yes?", "never use grep when working with json outputs, use jq").trigger == (
        "working with json outputs"
    )


def test_an_agents_conclusion_is_a_discovery_of_less_confidence() -> None:
    texts = ("the export is empty, why?", "Let me look. The problem is that the view skips rows without a region.")
    [cue] = extract(session(*texts))
    assert (cue.kind, cue.ordinal, cue.trust) == (DISCOVERY, 1, AGENT)
    assert cue.confidence < 0.6


def test_quotes_stand_in_their_turns() -> None:
    rows = [json.loads(line) for line in EXAMPLES.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        for cue in extract(session(row["text"])):
            assert cue.quote
            assert cue.quote in row["text"]


def test_pasted_lines_are_no_speech() -> None:
    said = speech_of("this is wrong\n> you said so\n```\nnever do that\n```\nTraceback (most recent call last):")
    assert (said.text, said.quotes) == ("this is wrong", True)
    assert said.pasted > 0.5


def test_every_language_names_signs_that_the_weights_know() -> None:
    weighed = {name for name, weight in zip(names(), weights().cue, strict=True) if weight}
    assert set(patterns("signs")) <= weighed
    assert weights().kinds.shape[0] == len(CUE_KINDS)


def test_a_name_keeps_its_underscores() -> None:
    cue = cue_of(
        "Drop **legacy_plan** from `accounts_old`, please.", "I dropped it.", "No, never drop columns directly!"
    )
    assert "legacy_plan" in cue.trigger
    assert "accounts_old" in cue.trigger


def test_a_correction_of_possible_damage_is_severe() -> None:
    cue = cue_of("Remove the column.", "Done: I dropped it.", "No! Never drop columns directly in production.")
    assert cue.consequence >= SEVERE


@pytest.mark.parametrize(
    ("text", "situation"),
    [
        ("when you add a column to the export, say so in the notes", "adding a column to the export"),
        ("when working with json outputs, never use grep", "working with json outputs"),
        ("before you commit the changes, run the linter", "committing the changes"),
        ("if the repo is a local path, do not clone it", "the repo is a local path"),
        ("check the status when prompted to continue a task", "being prompted to continue a task"),
        ("wenn der Bericht keine Quelle nennt, frag nach", "der Bericht keine Quelle nennt"),
        ("when can you remove the flag?", ""),
        ("delete the branch once it is gone from the server", ""),
        ("that is too slow when it takes minutes", ""),
    ],
)
def test_a_condition_is_worded_as_an_act_or_a_clause(text: str, situation: str) -> None:
    assert condition_in(text) == situation


@pytest.mark.parametrize(
    ("before", "trigger"),
    [
        ("can you move the tests to the other folder", "moving the tests to the other folder"),
        ("lets commit and push the changes", "committing and pushing the changes"),
        ("ok thanks", "copying the parser into tools.py"),
    ],
)
def test_without_a_condition_the_trigger_is_the_act_before_the_turn(before: str, trigger: str) -> None:
    said = "Great! I've copied the parser into tools.py."
    assert cue_of("hi", "Hello.", before, said, "no, that's wrong, there is one parser only").trigger == trigger


def test_further_lasting_statements_of_a_turn_are_cues_of_their_own() -> None:
    text = "Always name the source under a chart, never in the title. In general we write dates as 2024-05-31. Thanks"
    cues = [cue for cue in extract(session("make the chart", "Here it is.", text)) if cue.trust == PERSON]
    assert [cue.quote in text for cue in cues] == [True, True]
    assert {word for cue in cues for word in ("source", "dates") if word in cue.lesson} == {"source", "dates"}


@pytest.mark.parametrize(
    "text",
    [
        "how does the cache decide what to throw out?",
        "where do I find the port of the admin page?",
        "restart the server",
        "ok now commit and push",
        "still the same: No module named 'yaml'",
        "was zeigt die rote Linie?",
        "übersetze die Anleitung",
        "прочитай папку с документами",
    ],
)
def test_plain_questions_next_steps_and_bare_symptoms_are_no_cues(text: str) -> None:
    told = extract(session("make the page", "I've made the page.", text, "Let me look.", "thanks", "Sure."))
    assert [cue for cue in told if cue.trust == PERSON] == []


def test_a_rebuke_weighs_more_than_a_choice() -> None:
    choice = cue_of("how do we cache?", "1. memory 2. disk. Which one do you prefer?", "let's use the second option")
    rebuke = cue_of("fix the path", "Done.", "no, you're editing in the wrong folder again, why aren't you in src?")
    assert rebuke.consequence > choice.consequence + 0.1


DROPPED = (
    "Can you remove accounts.legacy_plan, now that the plans table has replaced it?",
    "I take out the field, and drop the column in the same pull request.",
    "No, never drop columns directly in production migrations. We did that and checkout was down for 22 minutes.",
    "Nothing reads the column any more. Shall I wrap it in a transaction?",
    "It takes milliseconds, but old pods run on. Their ORM selects every column, and they crash once it is gone.",
    "I see: the column has to outlive the last release that knows of it.",
    "Exactly. A column is always removed in two releases: the code, then the column. Write that into docs/rules.md.",
)


def test_a_prohibition_holds_beyond_the_one_thing_of_which_it_was_said() -> None:
    cue = next(cue for cue in extract(session(*DROPPED)) if cue.ordinal == 2)
    assert cue.trigger == "dropping columns"
    assert cue.lesson == "Never drop columns directly in production migrations."
    assert cue.quote == DROPPED[2]


def test_what_leans_on_an_earlier_sentence_is_no_trigger_and_no_lesson_by_itself() -> None:
    told = {cue.ordinal: cue for cue in extract(session(*DROPPED))}
    assert told[4].lesson.startswith("It takes milliseconds, but old pods run on. Their ORM selects")
    assert (told[4].trigger, told[6].trigger) == ("removing accounts.legacy_plan",) * 2


def test_an_agents_conclusion_is_of_the_last_request_that_says_something() -> None:
    request = "Can you speed up the export: it takes an hour?"
    texts = (request, "I look at it.", "continue", "It turns out that the view skips every row without a region.")
    [cue] = [cue for cue in extract(session(*texts)) if cue.kind == DISCOVERY]
    assert cue.trigger == "Can you speed up the export"
