"""Lessons are extracted from sessions of many kinds of people; what teaches nothing is left."""

import time
from dataclasses import replace

import pytest

from app.intake.sessions.transcript import ASSISTANT, CALLER, Turn
from app.intake.sessions.transcript import USER as SAID
from app.recall.cues.cue import (
    AGENT,
    CORRECTION,
    DECISION,
    DISCOVERY,
    NEGATIVE_RESULT,
    PERSON,
    PRECEDENT,
    PREFERENCE,
    PROCEDURE,
    SEVERE,
    USER,
    NewCue,
)
from app.recall.cues.extraction.extract import extract, ordinal_of
from app.recall.cues.signs import ALONE, fitted_model, may_teach, of_person, spoken_turns


def session(*texts: str) -> list[Turn]:
    """Returns turns of a person and an agent by turns; the person begins."""
    roles = (SAID, ASSISTANT)
    return [Turn(ordinal=place, role=roles[place % 2], text=text) for place, text in enumerate(texts)]


def sure(*texts: str) -> list[NewCue]:
    """Returns the cues of a session that may be told."""
    return [cue for cue in extract(spoken_turns(session(*texts))) if not cue.is_candidate]


DROPPED = (
    "can you clean up the invoices table, old_state is not used any more",
    "I've written 0042_remove_old_state.py, which calls op.drop_column. Shall I run it against staging?",
    (
        "no, never drop a column straight away in production! old pods still read it. add the new column "
        "first, migrate the data, deploy, and drop the old one in a later release"
    ),
    "Understood, I split the work into two migrations.",
    "thanks",
)
DEPLOYED = (
    "deploy the fix",
    "Unit tests pass, I deployed it.",
    (
        "that cost us three hours of restoring. never deploy on unit tests alone: run the integration suite "
        "first, every time, before anything goes to production"
    ),
    "You're right, I'm sorry. From now on the integration suite runs first.",
)
CUT_OFF = (
    "why are the long addresses cut off in the export",
    (
        "I found the cause: the ORM silently cuts strings at the column's length, without any warning, "
        "because strict mode is off. I added a validation before saving, so now a too long string fails with "
        "a clear error."
    ),
    "great find, thanks",
)
COMPREHENSIONS = (
    "collect the names of the active users",
    "I used map and filter with two lambdas.",
    "we use list comprehensions in this project, not map and filter, in all modules please. everyone can read them",
    "Understood, I rewrote it.",
)
VERSIONED = (
    "how do we version the public api?",
    "Options:\n- path: /v1/orders, visible everywhere\n- header: X-Api-Version, keeps the URLs clean",
    "path then, because the proxies of two customers strip unknown headers. we go with /v1",
    "Done, the routers are mounted under /v1.",
)
STRIPPED = (
    "try header versioning in staging",
    (
        "I tried it and it does not work: the partner's proxy removes the header X-Api-Version, so every "
        "request fails silently and gets version 1. The path works through every proxy, so I went back to the"
        " path."
    ),
    "ok good, makes sense",
)
MERGED = (
    "merge the feature branch",
    "How do you merge here?",
    (
        "always in this order: 1. check out the branch, 2. run the tests, 3. read the diff,"
        " 4. update the changelog, 5. merge"
    ),
    "Noted, I'll follow it.",
)
IN_UTC = (
    "stamp the events",
    "I used datetime.now() for the timestamp.",
    (
        "don't use local times for anything we store. use datetime.now(timezone.utc) everywhere, otherwise "
        "postgres guesses the zone"
    ),
    "Understood, replaced in three files.",
)


@pytest.mark.parametrize(
    ("texts", "kind", "held"),
    [
        (DROPPED, CORRECTION, ["drop a column", "add the new column first", "later release"]),
        (DEPLOYED, CORRECTION, ["integration suite first", "every time"]),
        (CUT_OFF, DISCOVERY, ["cuts strings", "validation before saving"]),
        (COMPREHENSIONS, PREFERENCE, ["list comprehensions", "not map and filter"]),
        (VERSIONED, DECISION, ["go with /v1", "strip unknown headers"]),
        (STRIPPED, NEGATIVE_RESULT, ["removes the header", "path"]),
        (MERGED, PROCEDURE, ["run the tests", "changelog"]),
        (IN_UTC, CORRECTION, ["datetime.now(timezone.utc)", "guesses the zone"]),
    ],
)
def test_plain_sessions_give_the_whole_lesson_once(texts: tuple[str, ...], kind: str, held: list[str]) -> None:
    [cue] = sure(*texts)
    assert (cue.kind, cue.trust) == (kind, PERSON)
    assert [part for part in held if part not in cue.lesson] == []
    assert cue.quote in texts[ordinal_of(cue)]


def test_the_first_rule_of_a_correction_is_its_trigger() -> None:
    assert sure(*DROPPED)[0].trigger == "never drop a column straight away in production!"


def test_the_steps_of_a_procedure_are_listed_in_their_order() -> None:
    steps = ["check out the branch", "run the tests", "read the diff", "update the changelog", "merge"]
    assert sure(*MERGED)[0].details["steps"] == steps


def test_a_decision_names_its_subject_its_alternatives_and_its_reason() -> None:
    details = sure(*VERSIONED)[0].details
    assert details["subject"] == VERSIONED[0]
    assert details["alternatives"] == ["header"]
    assert details["reasoning"].startswith("the proxies of two customers strip")


OFFER = (
    "how do we keep the readings?",
    "Two options:\n1. One CSV a day: simple, slow to read\n2. Parquet on the bucket, partitioned by station: fast",
)


@pytest.mark.parametrize(
    "said",
    [
        "option 2 please, because duckdb reads that in seconds",
        "the second one, because csv is too slow for the maps",
        "let's go with parquet, partitioned by station, because csv is too slow for the maps",
    ],
)
def test_the_picked_option_is_the_choice_and_no_alternative(said: str) -> None:
    [cue] = sure(*OFFER, said, "Done.")
    assert (cue.kind, cue.details["alternatives"]) == (DECISION, ["One CSV a day"])
    assert "parquet" in cue.details["choice"].lower()


@pytest.mark.parametrize(
    "later",
    [
        ("no, that's not it, strict mode is on, I checked",),
        ("ok but I doubt it",),
        ("and what is the port of the admin page?",),
        ("ok, now update the changelog",),
        ("great find", "Thanks.", "well that seems too broad, not every column is validated, strings of the ORM only"),
    ],
)
def test_a_finding_is_kept_only_if_the_person_agrees_and_does_not_take_it_back(later: tuple[str, ...]) -> None:
    assert [cue for cue in extract(spoken_turns(session(*CUT_OFF[:2], *later))) if ordinal_of(cue) == 1] == []


def test_a_precedent_tells_how_it_was_done_the_last_time() -> None:
    texts = (
        "the price list of the wholesaler is late again",
        "Shall I leave the column out, or estimate the prices?",
        (
            "same as in january: we took the previous list, greyed the column and added a footnote, the client "
            "was fine with it. do it like that"
        ),
        "Done.",
    )
    assert [cue.kind for cue in sure(*texts)] == [PRECEDENT]


def test_a_finding_with_which_the_person_agrees_has_his_trust() -> None:
    [confirmed] = sure(*CUT_OFF)
    assert (confirmed.trust, confirmed.details["found_by"]) == (PERSON, AGENT)


def test_a_rebuke_before_the_lesson_is_no_part_of_it() -> None:
    texts = (
        "start the training",
        "The GPU was full, I killed the other process.",
        (
            "WHAT. that was jana's job, 30 hours in. never kill processes on the shared machine, check nvidia-smi"
            " first and ask me if it is full"
        ),
        "I'm very sorry.",
    )
    [cue] = sure(*texts)
    assert cue.lesson.startswith("Never kill processes on the shared machine")


@pytest.mark.parametrize(
    "text",
    [
        "how does the cache decide what to throw out?",
        "restart the server",
        "ok now commit and push",
        "make the admin link in the header open in a new tab",
        "still the same: No module named 'yaml'",
        "Perfecto.",
        "lovely",
        "no thats not what i asked for",
        "you forgot the chart version AGAIN",
        "was zeigt die rote Linie?",
        "übersetze die Anleitung",
        "прочитай папку с документами",
        "¿y dónde se usa?",
        "[Request interrupted by user for tool use]",
        "<system-reminder>Never mention this reminder. Always use the todo tool.</system-reminder>",
        "This session is being continued from a previous conversation that ran out of context. Always run the tests.",
        "is this style guide long?\n\n> - Never use default exports.\n> - Always write BEM names.",
        "is this log ok?\n\n```\nwarn deprecated flag --foo, always use --bar instead\n```",
        "can you rename PantryItm to PantryItem everywhere, that typo is driving me crazy lol",
        "app/db.py:12: note: Never return None here, always raise\nfix this please",
        "   |\n12 |  let x = &mut a;\n   | ---- immutable borrow occurs here, never use it\nhow do I fix it",
        'the handbook says: "Never lift a vessel by its handle and always wear gloves." translate it',
    ],
)
def test_what_teaches_nothing_is_no_cue(text: str) -> None:
    assert sure("make the page", "I've made the page.", text, "Let me look.", "thanks", "Sure.") == []


def test_an_unsure_turn_is_a_candidate() -> None:
    texts = (
        "merge it",
        "Merged.",
        "the generated folder is written by the build of our docs, and none of the files in it are our own",
        "Ok.",
    )
    found = [cue for cue in extract(spoken_turns(session(*texts))) if ordinal_of(cue) == 2]
    assert [cue.is_candidate for cue in found] == [True]
    assert fitted_model(ALONE).candidate <= found[0].confidence < fitted_model(ALONE).shown


def test_possible_damage_weighs_more_than_a_trifle() -> None:
    assert sure(*DROPPED)[0].consequence > sure(*COMPREHENSIONS)[0].consequence + 0.2


def test_a_wish_for_all_projects_is_the_persons_everywhere() -> None:
    texts = (
        "hi",
        "Shall I ask before each step?",
        "no, never ask for permission again, in all my projects: do it and tell me what you did afterwards",
        "Ok.",
    )
    assert sure(*texts)[0].scope == USER


def test_the_weights_know_every_feature() -> None:
    [person] = spoken_turns(session("hello there, who are you?"))
    assert set(of_person(person)[0]) == set(fitted_model(ALONE).weights)


@pytest.mark.parametrize(
    "text",
    [
        "a" + 50_000 * " " + "never",
        "a" + 50_000 * "\n" + "never",
        "never" + 50_000 * " " + "ok",
        "a," + 50_000 * " " + "then",
        "Error" + 50_000 * "\t" + "x",
        50_000 * "1",
        25_000 * "1.",
        "a" + 50_000 * ".",
        "… “" + 50_000 * "," + "”",
        "to release: " + 300 * "\t" + "build it, then test it, then tag it, then push it",
    ],
    ids=range(10),
)
def test_no_text_holds_the_extraction_up(text: str) -> None:
    always = fitted_model(ALONE)._replace(shown=0.0, candidate=0.0)
    started = time.process_time()
    extract(spoken_turns(session(text, text, text, text, text)), always)
    assert time.process_time() - started < 10


def called(*texts: str) -> list[Turn]:
    """Returns the turns of a session in which another agent asks."""
    return [replace(turn, role=CALLER) if turn.role == SAID else turn for turn in session(*texts)]


def test_what_a_caller_says_is_no_lesson_and_approves_of_none() -> None:
    assert extract(spoken_turns(called(*CUT_OFF))) == []
    assert [cue for cue in extract(spoken_turns(called(*DROPPED))) if ordinal_of(cue) % 2 == 0] == []


@pytest.mark.parametrize("rule", ["Times are stored in UTC.", "Every helper goes into the module that uses it."])
def test_a_rule_after_no_that_is_wrong_is_a_correction(rule: str) -> None:
    [cue] = sure("write it", "I've written it into utils, in local time.", f"No, that's wrong. {rule}", "Ok.")
    assert (cue.kind, cue.lesson) == (CORRECTION, rule)


def test_what_was_tried_and_failed_is_a_negative_result_that_led_to_something_else() -> None:
    said = (
        "I tried header-based API versioning, but it failed: proxy servers strip custom headers, so I switched to the"
        " path."
    )
    [cue] = sure("how do we version the api?", "Shall I use a header?", said, "Ok.")
    assert cue.kind == NEGATIVE_RESULT
    assert cue.details == {
        "attempted": "header-based API versioning",
        "failure_reason": "proxy servers strip custom headers",
        "led_to": "I switched to the path",
    }


@pytest.mark.parametrize(
    "said",
    [
        "Use a list comprehension instead of map/filter.",
        "I prefer list comprehensions over map/filter. Please rewrite.",
    ],
)
def test_a_wish_for_one_way_instead_of_another_is_a_preference(said: str) -> None:
    [cue] = sure("collect the names of the active users", "I used map and filter.", said, "Done.")
    assert (cue.kind, cue.details["preferred_over"]) == (PREFERENCE, "map/filter")


@pytest.mark.parametrize(
    "said",
    [
        "don't modify `send_with_retries`",
        "no, don't mock completion. mock the httpx library which completion uses to make the request",
        "use `@clack/prompts` instead of bun-promptx",
    ],
)
def test_a_short_order_for_one_way_in_place_of_another_is_a_lesson(said: str) -> None:
    [cue] = sure("add a test of the headers", "I've added it.", said, "Ok.")
    assert cue.kind in {CORRECTION, PREFERENCE}
    assert cue.quote in said


@pytest.mark.parametrize(
    "said", ["@dont-ignore-errors.mdc", "`__init__` should take a logfile arg", "i dont see any updates to the rule"]
)
def test_a_mention_a_specification_and_a_report_are_no_lesson(said: str) -> None:
    assert sure("log the events", "I've added it.", said, "Ok.") == []


def test_hours_of_restoring_make_a_correction_severe() -> None:
    said = (
        "It took three hours to restore the service. Never deploy on unit tests alone, run the integration suite first."
    )
    [cue] = sure("deploy the fix", "Unit tests pass, I deployed it.", said, "Ok.")
    assert (cue.kind, cue.consequence >= SEVERE) == (CORRECTION, True)


@pytest.mark.parametrize(
    "said",
    [
        "always so: 1. check out the branch, 2. run the tests, 3. read the diff, 4. update the changelog, 5. merge",
        "To merge a feature branch: check out the branch, run the tests, read the diff, update the changelog, merge.",
    ],
)
def test_merging_a_feature_branch_is_five_steps_once_each(said: str) -> None:
    [cue] = sure("merge the feature branch", "How do you merge here?", said, "Ok.")
    steps = ["check out the branch", "run the tests", "read the diff", "update the changelog", "merge"]
    assert (cue.kind, cue.details["steps"]) == (PROCEDURE, steps)


@pytest.mark.parametrize(
    "text",
    [
        "can you do these for me: 1. update the readme, 2. run the tests, 3. push the branch",
        "1. the former\n\n2. just task id\n\n3. error\n\n4. the former",
        "I'm getting errors when trying to git push. DO NOT WRITE ANY CODE OR RUN ANY COMMANDS. Any idea?",
        "make the `git pr` command optionally take a repo path instead of a session name",
        "/add tests/basic/test_repomap.py",
        "● Agent › should always answer\n✓ should never fail (8 ms)",
        "ok, looks like the token was not needed",
    ],
)
def test_requests_of_once_and_reports_are_no_lesson(text: str) -> None:
    assert sure("start", "Shall I go on?", text, "Done.") == []


def test_of_a_long_turn_the_rule_is_the_lesson_and_not_the_request() -> None:
    said = (
        "some very valid points were raised on the pull request, I went through all of them this morning and most are"
        " about the new pages. can you look at the table in the second part, and check that the numbers of the last"
        " release are the ones that we published, and tell me which ones differ? I also saw a typo in the title of the"
        " third page. the full schema should never be updated, it is a snapshot of one moment. then push it"
    )
    [cue] = sure("look at the review", "There are twelve notes.", said, "Ok.")
    assert "never be updated" in cue.lesson
    assert "typo" not in cue.lesson


@pytest.mark.parametrize(
    "said",
    [
        "maybe we could keep our invoices in one table per customer",
        "no, that's not how you set the status of the invoices",
        "i didn't ask you to put the invoices into the archive at all",
        "make sure it mentions our invoices and the archive in the description",
        "the importer for our invoices somehow remains stuck in the archive",
    ],
)
def test_ideas_blame_specifications_and_states_are_no_lessons(said: str) -> None:
    assert not sure("list the invoices", "There are 41.", said, "Ok.")


def test_blame_that_says_the_way_is_a_lesson() -> None:
    [cue] = sure("close task 12", "Done.", "that's not right, use the `ledger` command for every status", "Ok.")
    assert "use the `ledger` command" in cue.lesson


@pytest.mark.parametrize(
    "reply",
    ["It's working now, thanks!", "No man...", "That's it, it is working, thank you!", "Still seeing the error."],
)
def test_a_first_reply_to_what_the_agent_did_is_no_part_of_the_lesson(reply: str) -> None:
    rule = "never join the path of the log outside of path_utils."
    [cue] = sure("look at the log", "I joined its path here.", f"{reply} {rule}", "Ok.")
    assert cue.lesson.lower() == rule


def test_that_something_is_so_is_a_sign_of_a_lesson() -> None:
    [fact] = spoken_turns(session("the generated folder is written by the build of the docs"))
    assert may_teach(fact.sentences[0])


@pytest.mark.parametrize(
    "said",
    [
        "Never force-push to main, that is a terrible idea.",
        "Do not log tokens, they could be used by anyone.",
        "Never edit files in src/generated, this could be overwritten by the next build.",
        "In this repo we never mock the database, not even in theory.",
        "never deploy on a friday, what if it breaks and nobody is here",
    ],
)
def test_a_rule_with_an_aside_is_a_lesson(said: str) -> None:
    assert sure("close task 12", "Done.", said)


@pytest.mark.parametrize("said", ["maybe we could keep the log for a week", "what if we never delete anything"])
def test_an_idea_is_none(said: str) -> None:
    assert extract(spoken_turns(session("close task 12", "Done.", said))) == []
