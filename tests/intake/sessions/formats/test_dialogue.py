"""Markdown in which speakers take turns is a session; a document with headings is none."""

import pytest

from app.errors import InvalidInput
from app.intake.sessions.formats.detect import read_log
from tests.intake.sessions.formats.reading import log_of, only, said

TURNS = [
    ("user", "Rename the field."),
    ("assistant", "I rename it.\n\n## Summary of changes\n\nOne file."),
    ("user", "No, never rename a public field."),
    ("assistant", "Understood."),
]


def _written(user: str, agent: str, above: str = "# A chat\n\n") -> str:
    marks = {"user": user, "assistant": agent}
    return above + "\n\n---\n\n".join(f"{marks[role]}\n\n{text}" for role, text in TURNS) + "\n"


@pytest.mark.parametrize(
    ("user", "agent"),
    [
        ("## 👤 User", "## 🤖 Claude"),
        ("### Human (turn 3)", "### Assistant (some-model)"),
        ("**User**", "**Cursor**"),
        ("**You:**", "**ChatGPT:**"),
        ("[USER]", "[ASSISTANT]"),
    ],
)
def test_a_user_and_an_agent_who_take_turns_are_a_session(user: str, agent: str) -> None:
    found = only(log_of(_written(user, agent), ".md", "/notes/chat.md"))
    assert (said(found), found.title, found.format) == (TURNS, "A chat", "markdown")


def test_a_speakers_name_in_a_code_block_is_no_turn_and_thoughts_are_no_speech() -> None:
    text = _written("## User", "## Claude (2026-06-01 10:05)").replace("One file.", "```md\n## User\nx\n```")
    found = only(log_of(text.replace("Understood.", "<thinking>Hm.</thinking>\nUnderstood."), ".md"))
    assert [turn.role for turn in found.turns] == ["user", "assistant", "user", "assistant"]
    assert found.turns[3].text == "Understood."
    assert found.turns[1].at is not None
    assert found.turns[1].at.isoformat() == "2026-06-01T10:05:00+00:00"


def test_of_two_who_take_turns_a_dozen_times_one_must_be_known() -> None:
    known = "\n\n".join(f"## Dana\n\nquestion {n}\n\n## Claude\n\nanswer {n}" for n in range(7))
    log = log_of(known, ".md")
    assert said(only(log))[:2] == [("caller", "question 0"), ("assistant", "answer 0")]
    assert log.notes == ("'dana' is taken for a caller; if it is a person, name it User",)
    with pytest.raises(InvalidInput, match=r"looks like a transcript of an unknown form: 'dana' and 'ravi' take turns"):
        read_log(known.replace("Claude", "Ravi").encode(), suffix=".md", session_id="a")


@pytest.mark.parametrize(
    "text",
    [
        "\n\n".join(f"## Question\n\nquestion {n}\n\n## Answer\n\nanswer {n}" for n in range(9)),
        "\n\n".join(f"**Rating**: {n}\n\n**Recommendation**: do {n}" for n in range(20)),
        "# Roles\n\n## User\n\nThe user asks.\n\n## Agent\n\nThe agent answers.\n",
        "# How the agent talks\n\n"
        + "It is polite and brief, and never guesses. " * 40
        + _written("**User:**", "**Agent:**", ""),
    ],
)
def test_a_document_is_no_session(text: str) -> None:
    assert read_log(text.encode(), suffix=".md", session_id="a") is None
