"""Exports of chats are sessions: each conversation one, along the branch that the user went on with."""

import json
from collections.abc import Mapping
from pathlib import Path

from tests.intake.sessions.formats.reading import log_at, log_of, only, said


def test_an_export_of_claude_ai(shared_data: Path) -> None:
    letter, roof = log_at(shared_data / "field-dev/13-claude-ai-export/conversations.json").transcripts
    assert (letter.format, letter.title, roof.title) == ("claude-ai", "Fundraising letter", "Roof quote")
    assert [turn.role for turn in letter.turns] == ["user", "assistant", "user"]
    assert letter.turns[2].text.startswith("Never give the number of dogs in a letter")
    assert said(roof)[0] == ("user", "Compare the two quotes for the roof.")


def test_the_branch_of_the_last_message_is_read_with_its_tools() -> None:
    def message(name: str, parent: str, sender: str, *content: Mapping[str, object]) -> dict[str, object]:
        return {"uuid": name, "parent_message_uuid": parent, "sender": sender, "text": "", "content": content}

    def text(words: str) -> dict[str, object]:
        return {"type": "text", "text": words}

    search = {"type": "tool_use", "id": "t1", "name": "web_search", "input": {"query": "roofs"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [text("two roofs")], "is_error": False}
    chat = {
        "uuid": "c-1",
        "name": "",
        "chat_messages": [
            message("a", "0", "human", text("compare roofs")),
            message("b", "a", "assistant", {"type": "thinking", "thinking": "hm"}, text("An abandoned answer.")),
            message("c", "a", "assistant", search, result, text("Take the second.")),
            message("d", "c", "human", text("why?")),
        ],
    }
    found = only(log_of(json.dumps([chat]), ".json"))
    assert said(found) == [("user", "compare roofs"), ("assistant", "Take the second."), ("user", "why?")]
    assert [(tool.name, tool.result) for tool in found.turns[1].tools] == [("web_search", "two roofs")]
    assert (found.session_id, found.title) == ("c-1", "compare roofs")
