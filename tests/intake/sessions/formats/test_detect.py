"""What is mostly talk, in a form that nobody knows, is named; a report that quotes talk is a report."""

import json

import pytest

from app.errors import InvalidInput
from app.intake.sessions.formats.detect import read_log

TALK = [
    {"speaker": "Human", "body": "never deploy on a Friday", "n": 1},
    {"speaker": "AI", "body": "Understood: I wait until Monday.", "n": 2},
    {"speaker": "Human", "body": "and run the tests first", "n": 3},
    {"speaker": "AI", "body": "Yes.", "n": 4},
]


@pytest.mark.parametrize(
    ("content", "suffix"),
    [
        (
            json.dumps(
                {"messages": [{"role": "user", "content": [{"text": "a"}]}, {"role": "model", "content": []}] * 2}
            ),
            ".json",
        ),
        (json.dumps([{"id": 1, "turns": TALK}]).replace("Human", "user"), ".json"),
        ("\n".join(map(json.dumps, TALK)), ".jsonl"),
    ],
)
def test_a_transcript_of_an_unknown_form_is_named(content: str, suffix: str) -> None:
    with pytest.raises(InvalidInput, match=r"looks like a transcript of an unknown form \(4 messages with the fields"):
        read_log(content.encode(), suffix=suffix, session_id="a")


@pytest.mark.parametrize(
    ("content", "suffix"),
    [
        (json.dumps({"score": 7, "reasoning": "It waits. " * 100, "quoted": TALK}).replace("Human", "user"), ".json"),
        (json.dumps({"users": [{"type": "user", "name": "ada"}] * 5}), ".json"),
        ('{"run_id": "r1", "type": "user"}\n' * 5, ".jsonl"),
    ],
)
def test_a_report_is_no_transcript(content: str, suffix: str) -> None:
    assert read_log(content.encode(), suffix=suffix, session_id="a") is None


def test_what_describes_a_subagent_beside_its_log_is_no_report() -> None:
    content = b'{"agentType": "Explore", "description": "Find slow endpoints"}'
    found = read_log(content, suffix=".json", session_id="/projects/p/s/subagents/agent-a7.meta.json")
    assert found is not None
    assert (found.transcripts, found.notes) == ((), ("nobody says or does anything in it; no session is stored",))
    assert read_log(content, suffix=".json", session_id="/projects/p/agent-a7.meta.json") is None
