"""In a history of aider, a model's thoughts and what the program asks for itself are no speech."""

from tests.intake.sessions.formats.reading import log_of, only, said

BEGIN = "# aider chat started at 2026-03-05 08:00:00\n\n"


def test_thoughts_are_no_speech() -> None:
    tag = "thinking-content-0123456789abcdef"
    chat = (
        f"{BEGIN}#### rename total  \n\n<{tag}>\n\nThe user says:  \n> always rename  \n\n</{tag}>\n\nI rename it.\n\n"
        f"> Applied edit to a.py  \n\n#### and b.py  \n\n<{tag}>\n\nI was cut off in the middle\n\n"
        "#### are you there?  \n\n--------------\n► **THINKING**\n\nHm.\n\n------------\n► **ANSWER**\n\nYes.\n"
    )
    assert said(only(log_of(chat, ".md"))) == [
        ("user", "rename total"),
        ("assistant", "I rename it."),
        ("user", "and b.py\n\nare you there?"),
        ("assistant", "Yes."),
    ]


def test_what_the_program_asks_for_is_nobodys_and_an_echo_stands_once() -> None:
    chat = (
        f"{BEGIN}#### /ask why does it fail?  \n#### why does it fail?  \n\nA name is cut.\n\n> Lint?  \n\n"
        "#### # Fix any errors below, if possible.  \n####   \n#### a.py:1: never use eval  \n\nFixed.\n"
    )
    found = only(log_of(chat, ".md"))
    assert [turn for turn in said(found) if turn[0] == "user"] == [("user", "/ask why does it fail?")]
    assert [turn.text[:20] for turn in found.unspoken] == ["# Fix any errors bel"]
