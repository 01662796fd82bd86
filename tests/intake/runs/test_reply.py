"""Tests that replies are parsed in every form that models use, and lose none of their text."""

import pytest

from app.intake.runs.observations.observation import Reply, facts_of, parsed_reply


def reply(facts: str) -> tuple[str, ...]:
    return parsed_reply(f"Title: T\nNarrative: It grew.\nFacts: {facts}").facts


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (
            "\n- Market grew to 221 billion rubles in 2025 [1]\n- Pharmacies sell 58 %",
            ("Market grew to 221 billion rubles in 2025 [1]", "Pharmacies sell 58 %"),
        ),
        ("\n1. Grew 3 % [5]\n2. Fell 4 % [6]", ("Grew 3 % [5]", "Fell 4 % [6]")),
        ("\n[1] Grew 3 %\n[2] Fell 4 %", ("[1] Grew 3 %", "[2] Fell 4 %")),
        ("Grew 3 % [5]", ("Grew 3 % [5]",)),
        ('["a 1", "b 2"]\n\nNote: see sources [1] and [2].', ("a 1", "b 2")),
        ('\n```json\n["a 1", "b 2"]\n```', ("a 1", "b 2")),
        ('Here they are:\n["a 1", "b 2"]', ("a 1", "b 2")),
    ],
)
def test_a_citation_is_no_array(facts: str, expected: tuple[str, ...]) -> None:
    assert reply(facts) == expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (
            '["The "best" producer is Evalar", "58 % pharmacies", "17 % share"]',
            ('The "best" producer is Evalar', "58 % pharmacies", "17 % share"),
        ),
        ("[“a 1”, “b 2”, “c 3”]", ("a 1", "b 2", "c 3")),
        ("['it's 5 % of O'Neil's', 'b 2']", ("it's 5 % of O'Neil's", "b 2")),
        ('[\n "a 1", // sure\n "b 2",\n "c 3",\n]', ("a 1", "b 2", "c 3")),
        ('["a 1"\n "b 2"\n]', ("a 1", "b 2")),
        ('["a 1", "b \\u0441 2",]', ("a 1", "b с 2")),
        ('["a 1", "b 2", "c 3 and th', ("a 1", "b 2")),
        ('"a 1", "b 2"', ("a 1", "b 2")),
        ('"Best" producers grew 3 %\nOthers fell', ('Best" producers grew 3 %', "Others fell")),
        ('[{"fact": "a 1", "source": 2}]', ("fact: a 1; source: 2",)),
        ("[]", ()),
    ],
)
def test_a_broken_array_is_split_where_its_strings_end(facts: str, expected: tuple[str, ...]) -> None:
    assert reply(facts) == expected


def test_a_bullet_keeps_its_second_line() -> None:
    facts = "Sure:\n- Market grew to\n  221 billion rubles\n- Pharmacies\nlead\n\nNote: all checked."
    assert reply(facts) == ("Market grew to 221 billion rubles", "Pharmacies lead")


@pytest.mark.parametrize(
    "text",
    [
        "1. **Title:** T\n2. **Narrative:** The market grew.\n3. **Facts:**\n   - a 1\n   - b 2",
        "- Title: T\n- Narrative: The market grew.\n- Facts:\n  - a 1\n  - b 2",
        "## Title\nT\n\n## Narrative\nThe market grew.\n\n## Facts\n- a 1\n- b 2",
        "**Title**\nT\n\n**Narrative**\nThe market grew.\n\n**Facts**\n- a 1\n- b 2",
        "### **Title**\n\nT\n### **Narrative**:\nThe market grew.\n### Key facts\n- a 1\n- b 2",
        "## Title\r\nT\r\n## Narrative\r\nThe market grew.\r\n## Facts\r\n- a 1\r\n- b 2",
        "Summary: here it is\nTitle: T\nNarrative: The market grew.\nFacts: ['a 1', 'b 2']",
        '{"title": "T", "narrative": ["The market grew."], "facts": ["a 1", "b 2"]}',
    ],
)
def test_fields_are_found_however_they_are_marked(text: str) -> None:
    assert parsed_reply(text) == Reply(title="T", narrative="The market grew.", facts=("a 1", "b 2"))


def test_a_field_in_a_fact_is_a_fact() -> None:
    assert reply("\n- Title: x is 5\n- Summary: y is 6") == ("Title: x is 5", "Summary: y is 6")


@pytest.mark.parametrize(
    "narrative", ["The model emits </think> late. It grew.", "It puts <think> before, and </think>\nafter. It grew."]
)
def test_a_narrative_may_speak_of_reasoning(narrative: str) -> None:
    found = parsed_reply(f'Title: T\nNarrative: {narrative}\nFacts: ["a", "b", "c"]')
    assert (found.title, found.narrative) == ("T", narrative.replace("\n", " "))
    assert found.facts == ("a", "b", "c")


@pytest.mark.parametrize("end", ["</think>\n\n", "</think>", "</think> "])
def test_thoughts_whose_beginning_is_gone_are_left_out(end: str) -> None:
    assert parsed_reply(f"Title: wrong\nNarrative: wrong {end}Title: T\nNarrative: It grew.").title == "T"
    assert parsed_reply(f'So, {{"title": 1}} {end}{{"title": "T", "narrative": "It grew."}}').title == "T"


def test_what_no_database_can_hold_is_taken_out() -> None:
    assert reply('["Growth of 5 % \\ud83d", "b\\u0000 is 2", "\\ud83d\\ude00 c"]') == (
        "Growth of 5 %",
        "b is 2",
        "😀 c",
    )
    found = parsed_reply('{"title": "T\\u0000", "narrative": "It\\ud83d grew.", "facts": null}')
    assert found == Reply(title="T", narrative="It grew.", facts=())
    assert parsed_reply('{"title": null, "narrative": "It grew."}').title == ""


def test_facts_of_an_import_are_read_alike() -> None:
    assert list(facts_of("['broken', 'list',]")) == ["broken", "list"]
    assert list(facts_of(["a", 2, {"b": 3}])) == ["a", "2", "b: 3"]
    assert list(facts_of("")) == []


@pytest.mark.parametrize("text", ['["' + '", ' * 100_000, "[" * 200_000, '"\n ' * 100_000, "- \n" * 100_000])
def test_a_hostile_list_costs_little(text: str) -> None:
    assert len(list(facts_of(text))) >= 0
