"""What a lesson turns down and asks for, and which of the two a plan or a command does."""

from typing import Any
from uuid import UUID

import pytest
from msgspec import structs

from app.recall.cues.commands import commands_in, has_command, spoken_form, words_of_commands
from app.recall.cues.cue import CORRECTION, DECISION, DISCOVERY, Cue
from app.recall.cues.ways import (
    EXACT,
    NAMED,
    does_right,
    names_of,
    naming,
    read_lesson,
    read_plan,
    rejected_in,
    rejected_ways,
)
from tests.growth import assert_linear

STAMPS = "Don't use datetime.now() or utcnow() for what we store, both are naive. Use datetime.now(timezone.utc)."
PATH = {"choice": "the version in the path", "alternatives": ["a header or a query parameter"]}
FIRST = "Don't apply anything without showing me the terraform plan first."


def cue(lesson: str, kind: str = CORRECTION, **details: Any) -> Cue:
    known: dict[str, Any] = dict.fromkeys(Cue.__struct_fields__)
    known |= {"cue_id": UUID(int=1), "kind": kind, "trigger": "", "lesson": lesson, "standing": lesson}
    return Cue(**known | {"details": details})


def test_assignments_before_a_command_cost_what_their_text_costs() -> None:
    assert_linear(lambda text: list(words_of_commands(text)), "A=1 ")


@pytest.mark.parametrize(
    ("line", "program", "words"),
    [
        ("cd frontend && npm install left-pad", "npm", ("install", "left-pad")),
        ("NODE_ENV=test sudo npm install --save-dev x", "npm", ("install", "x")),
        ("git push -f origin main", "git", ("push", "origin", "main")),
        ("I'll run `alembic upgrade head` now.", "alembic", ("upgrade", "head")),
    ],
)
def test_a_command_is_read_by_its_program_and_its_words(line: str, program: str, words: tuple[str, ...]) -> None:
    (found,) = commands_in(line)
    assert (found.program, found.words) == (program, words)


def test_options_of_one_letter_are_spoken() -> None:
    assert "force" in spoken_form("git push -f").split()
    assert "volumes" in spoken_form("docker compose down -v").split()
    assert len(commands_in("rm -rf build; make all | tee log")) == 3
    assert spoken_form("npm install 'unbalanced") == spoken_form("npm install 'unbalanced"), (
        "a broken quote is no error"
    )


@pytest.mark.parametrize(
    "plan",
    [
        "find old users and delete", "kill feature flags", "node upgrade next sprint", "set env defaults",
        "touch nothing else.", "make login faster", "source maps next",
    ],
)  # fmt: skip
def test_a_word_that_is_a_program_too_begins_a_sentence(plan: str) -> None:
    assert not has_command(plan)
    assert commands_in(plan) == ()


@pytest.mark.parametrize(
    "line",
    [
        "find . -name '*.pyc'", "kill -9 4242", "kill 4242", "node dist/server.js", "set -e", "export A=1",
        "cat a.txt | wc",
        "make deploy", "make -C docs html", "touch src/", "python -m build", "rake db:migrate", "time make",
    ],
)  # fmt: skip
def test_a_command_whose_program_is_a_word_is_known_by_its_arguments(line: str) -> None:
    assert has_command(line)


def test_code_in_a_sentence_is_a_command_without_arguments_too() -> None:
    (found,) = commands_in("I'll run `kill server` now.")
    assert found.program == "kill"


@pytest.mark.parametrize("plan", ["make the overlay darker", "find the callers of it", "Let us go on with the form."])
def test_a_sentence_is_no_command(plan: str) -> None:
    assert commands_in(plan) == ()


@pytest.mark.parametrize(
    ("lesson", "plan", "expected"),
    [
        ("We use pnpm here, not npm", "cd frontend && npm install x", EXACT),
        ("We use pnpm here, not npm", "npm install x", EXACT),
        ("We use pnpm here, not npm", "pnpm build", -NAMED),
        ("We use pnpm here, not npm", "alembic upgrade head", 0),
        ("kill launchdarkly, we have our own table of flags", "uv add launchdarkly-server-sdk", EXACT),
        (STAMPS, "I'll stamp the rows with datetime.now() in the job.", EXACT),
        (STAMPS, "I'll stamp the rows with datetime.utcnow() in the job.", EXACT),
        (STAMPS, "I'll stamp the rows with datetime.now(timezone.utc) in the job.", -NAMED),
        ("Never force-push, it takes away the work of others.", "git push -f", EXACT),
        ("Never force-push, it takes away the work of others.", "git push origin fix/footer", -NAMED),
        ("Never push on a Friday.", "git push origin fix/footer", 0),
        ("Do not bun link them; run with bun run.", "bun link", EXACT),
        ("Do not bun link them; run with bun run.", "After the merge, run `bun link` in the main workspace.", 0),
        ("Back to Word, quarto is dead.", "Set the report up as a Quarto project.", NAMED),
        ("Never delete a branch that is not merged.", "I'll delete the old file.", 0),
    ],
)
def test_a_name_that_a_lesson_turns_down_is_a_reason_of_its_own(lesson: str, plan: str, expected: float) -> None:
    assert naming(read_lesson(lesson), read_plan(plan)) == expected


def test_a_command_contradicts_a_lesson_by_what_its_options_mean() -> None:
    lesson = cue("Never force-push to a branch that others use.")
    assert rejected_in(cue("Never force-push."), "git push -f origin feature") == "force-push"
    assert rejected_in(lesson, "git push origin feature") == ""


def test_alternatives_are_split_at_or() -> None:
    decision = cue("The API is versioned in the path.", DECISION, **PATH)
    assert rejected_ways(decision) == ["a header", "a query parameter"]
    assert rejected_in(decision, "Read the version from X-API-Version.", applies=True) == "a header"
    assert rejected_in(decision, "Read the version from X-API-Version.") == "", "it may be about something else"
    assert rejected_in(decision, "Put the version into the path, and log the header.", applies=True) == ""
    assert rejected_in(cue(STAMPS), "Stamp the row with datetime.now().") == "use datetime.now()"


def test_a_way_that_failed_is_rejected_by_its_label() -> None:
    assert names_of("Approach A failed, use B").rejected == {"approach a"}
    assert rejected_in(cue("Approach A failed, use B"), "Always use approach A")
    assert not rejected_in(cue("Approach A failed, use B"), "Use approach C")


@pytest.mark.parametrize(
    ("plan", "right"),
    [
        ("I'll run `terraform plan -out` first, then apply that file.", True),
        ("I'll run terraform plan for the bucket, show the output and wait.", True),
        ("I'll apply the change of the DNS right away.", False),
        ("I'll apply it without the terraform plan.", False),
        ("I'll apply it now; the terraform plan comes later.", False),
    ],
)
def test_what_is_to_be_done_first_is_done_right(plan: str, right: bool) -> None:  # noqa: FBT001 - a parameter
    assert does_right(cue(FIRST), plan, FIRST) is right


@pytest.mark.parametrize(
    ("plan", "right"),
    [
        ("Report each slash command by name and leave its arguments out of the event.", True),
        ("Report each slash command by name, without arguments.", True),
        ("Report each slash command by name and leave the name of the model out of the event.", False),
        ("Report each slash command with its arguments.", False),
    ],
)
def test_a_plan_that_rules_out_what_is_forbidden_does_it_right(plan: str, right: bool) -> None:  # noqa: FBT001 - as above
    lesson = "Record the command's name and never its arguments."
    assert does_right(cue(lesson), plan, lesson) is right


@pytest.mark.parametrize(
    ("trigger", "lesson", "plan", "right"),
    [
        (
            "a new table has to reach fresh databases",
            "Leave FullSchema.ts as it is; add an incremental migration.",
            "Write an incremental migration, with down(), that adds a note column.",
            True,
        ),
        (
            "a new table has to reach fresh databases",
            "Leave FullSchema.ts as it is; add an incremental migration.",
            "Add the table share_links to FullSchema.ts, so that the full schema is up to date.",
            False,
        ),
        (
            "fixing a bug",
            "Write a failing test first.",
            "First a test that fails, then the change of the parser.",
            True,
        ),
        ("fixing a bug", "Write a failing test first.", "I'll mend the parser and run the tests.", False),
        (
            "running backfills",
            "Backfills never on ANALYTICS_WH during office hours, take BACKFILL_WH, that is what it is for.",
            "I'll start the backfill of shipping_costs this morning.",
            False,
        ),
    ],
)
def test_a_plan_with_the_words_of_the_established_way_does_it_right(
    trigger: str,
    lesson: str,
    plan: str,
    right: bool,  # noqa: FBT001 - a parameter
) -> None:
    assert does_right(structs.replace(cue(lesson), trigger=trigger), plan, lesson) is right


def test_words_of_a_finding_do_not_make_a_plan_right() -> None:
    finding = cue("Redis evicts keys under memory pressure.", DISCOVERY)
    assert not does_right(finding, "Keep the session keys in Redis with a limit of memory.", finding.lesson)


def test_a_place_a_plural_and_another_situation_are_no_reason() -> None:
    def added(lesson: str, plan: str, trigger: str = "") -> float:
        return naming(read_lesson(lesson, trigger), read_plan(plan))

    assert added("No emojis in mails to customers.", "I'll sum up the last three mails.") == 0
    assert added("No emojis in mails to customers.", "I'll put emojis into the text.") == NAMED
    assert added("Use the runner, not migrations by hand.", "Write migrations for the table.") == 0
    assert added("Use jq, not grep.", "Find the callers of parse with grep.", "filtering JSON output") == 0
    assert added("Use jq, not grep.", "Pick the task out of the JSON with grep.", "filtering JSON output") == NAMED
