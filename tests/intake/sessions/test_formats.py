"""Each format of a session log is told by its content, and gives the turns that were spoken, with their tools."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from msgspec import structs

from app.intake.sessions.artifacts import also_named, folder_of, touches_of
from app.intake.sessions.formats.detect import read_log
from app.intake.sessions.transcript import Log, ToolUse, Transcript, Turn, joined_text
from tests.intake.sessions import logs

PATH = "/logs/2026-03-04_12-30-old-session.md"


def _log(content: str, suffix: str) -> Log:
    found = read_log(content.encode(), suffix=suffix, session_id=PATH)
    assert found is not None
    return found


def _only(content: str, suffix: str) -> Transcript:
    (transcript,) = _log(content, suffix).transcripts
    return transcript


def _said(transcript: Transcript) -> list[tuple[str, str]]:
    return [(turn.role, turn.text) for turn in transcript.turns]


def _touches(turn: Turn, folder: str = "") -> list[tuple[str, str, str]]:
    return [(touch.path, touch.symbol, touch.action) for touch in touches_of(turn, folder)]


def _touched(transcript: Transcript) -> list[tuple[str, str, str]]:
    return [touch for turn in transcript.turns for touch in _touches(turn, transcript.folder)]


def test_claude_code() -> None:
    found = _only(logs.CLAUDE_CODE, ".jsonl")
    assert (found.session_id, found.title, found.format) == ("cc-47", "Drop a column", "claude-code")
    assert found.started_at == datetime(2026, 3, 2, 9, tzinfo=UTC)
    assert _said(found) == [
        ("user", "drop the column legacy_flag"),
        ("assistant", "I write a migration that drops it."),
        ("user", "no: never drop a column in one step"),
        ("assistant", ""),
    ]
    assert [turn.ordinal for turn in found.turns] == [0, 1, 2, 3]
    assert [turn.message_id for turn in found.turns] == ["u1", "u3", "u8", "u9"]
    assert [(turn.message_id, turn.text) for turn in found.unspoken] == [("u7", "Caveat: local commands")]
    (write,) = found.turns[1].tools
    assert (write.name, write.result.split(" at")[0]) == ("Write", "File created successfully")
    assert [tool.name for tool in found.turns[3].tools] == ["Edit", "Bash"]
    assert _touched(found) == [
        ("migrations/0047_drop.py", "", "created"),
        ("migrations/0047_drop.py", "upgrade", "created"),
        ("app/models.py", "", "changed"),
        ("app/models.py", "legacy", "changed"),
    ]


def test_a_file_of_a_subagent_is_a_session_of_its_own() -> None:
    line = next(line for line in logs.CLAUDE_CODE.splitlines() if '"isSidechain": true' in line)
    found = _only(line.replace('"uuid": "u6"', '"uuid": "u6", "agentId": "a1"'), ".jsonl")
    assert (found.session_id, _said(found)) == ("cc-47/a1", [("caller", "search for uses")])


def test_codex() -> None:
    found = _only(logs.CODEX, ".jsonl")
    assert (found.session_id, found.format, found.folder) == ("cx-1", "codex", "/home/ada/shop")
    assert found.started_at == datetime(2026, 3, 3, 9, 59, 59, tzinfo=UTC)
    assert _said(found) == [
        ("user", "make the tax a setting"),
        ("assistant", ""),
        ("assistant", "The tax is a setting."),
    ]
    shell, patch = found.turns[1].tools
    assert (shell.name, shell.input, shell.result) == (
        "shell",
        {"command": ["bash", "-lc", "rg tax"]},
        "app/tax.py:1:TAX = 19",
    )
    assert patch.name == "apply_patch"
    assert _touched(found) == [
        ("app/tax.py", "", "changed"),
        ("app/tax.py", "gross", "changed"),
        ("docs/tax.md", "", "created"),
        ("docs/tax.md", "Tax", "created"),
    ]


def test_specstory() -> None:
    found = _only(logs.SPECSTORY, ".md")
    assert found.session_id == "11111111-2222-3333-4444-555555555555"
    assert (found.title, found.started_at) == ("Round the totals", datetime(2026, 3, 4, 12, 30, tzinfo=UTC))
    assert _said(found) == [
        ("user", "round the totals to cents"),
        ("assistant", "The totals are rounded. To check:\n\n```bash\n_**User**_\npytest -q\n```"),
        ("user", "use Decimal, not floats"),
    ]
    assert found.turns[2].at == datetime(2026, 3, 4, 11, 5, tzinfo=UTC)
    (edit,) = found.turns[1].tools
    assert edit.name == "search_replace"
    assert _touched(found) == [
        ("/home/ada/shop/app/total.py", "", "changed"),
        ("/home/ada/shop/app/total.py", "total", "changed"),
    ]


def test_the_summary_of_a_specstory_block_names_a_file_only_where_it_says_what_was_done_to_it() -> None:
    said = "The file /home/ada/shop/app/total.py was searched"
    blocks = [f"<details><summary>{text}</summary>\nfound\n</details>" for text in (said, "Read file: app/total.py")]
    found = _only(logs.SPECSTORY.replace("The totals are rounded.", "\n\n".join(blocks)), ".md")
    tools = [tool for turn in found.turns for tool in turn.tools if tool.result == "found"]
    assert [tool.input for tool in tools] == [{}, {"path": "app/total.py"}]


def test_a_content_that_is_neither_text_nor_a_list_has_no_text() -> None:
    part = {"type": "text", "text": "Round the totals."}
    assert [joined_text(content) for content in ([part, "In cents."], part, None)] == [
        "Round the totals.\n\nIn cents.",
        "",
        "",
    ]


def test_an_early_specstory_file_takes_its_time_from_its_name() -> None:
    found = _only(logs.OLD_SPECSTORY, ".md")
    assert (found.session_id, found.started_at) == (PATH, datetime(2026, 3, 4, 12, 30, tzinfo=UTC))
    assert _said(found) == [("user", "which tasks are open?"), ("assistant", "I look them up.\n\nThere are two.")]
    assert {tool.name for tool in found.turns[1].tools} == {"read", "edit"}
    assert _touched(found) == []


def test_aider_has_several_chats_in_one_file() -> None:
    first, second = _log(logs.AIDER, ".md").transcripts
    assert [item.session_id for item in (first, second)] == [
        f"{PATH}#2026-03-05 08:00:00",
        f"{PATH}#2026-03-05 09:00:00",
    ]
    assert first.started_at == datetime(2026, 3, 5, 8, tzinfo=UTC)
    assert [turn.role for turn in first.turns] == ["user", "assistant"]
    assert first.turns[0].text == "rename total to sum\nand keep the tests green"
    assert "#### What changes" in first.turns[1].text
    assert _touched(first) == [("app/a.py", "", "changed")]
    assert first.turns[1].tools[-1] == ToolUse(
        name="aider", result="Tokens: 1k sent.\nCommit abc1234 Rename total to sum"
    )
    assert _said(second) == [("user", "undo that: `sum` hides the builtin"), ("assistant", "Done.")]


def test_chatgpt_gives_the_current_branch() -> None:
    log = _log(logs.CHATGPT, ".json")
    (found,) = log.transcripts
    assert (found.session_id, found.title) == ("gpt-1", "Sizes of batches")
    assert _said(found) == [
        ("user", "how large should a batch be?"),
        ("assistant", ""),
        ("assistant", "About 2,000 rows."),
    ]
    (tool,) = found.turns[1].tools
    assert (tool.name, tool.result) == ("python", "2000")
    assert len(log.skipped) == 1
    assert log.skipped[0].startswith("conversation 2: ")


def test_plain_messages_keep_their_places_and_name_what_cannot_be_read() -> None:
    log = _log(logs.MESSAGES, ".jsonl")
    (found,) = log.transcripts
    assert found.started_at == datetime(2026, 3, 6, 10, tzinfo=UTC)
    assert [(turn.ordinal, turn.role) for turn in found.turns] == [(0, "user"), (1, "assistant"), (2, "tool")]
    assert [reason.split(":")[0] for reason in log.skipped] == ["line 4", "line 5"]


@pytest.mark.parametrize(
    ("content", "suffix"),
    [
        ("# A report\n\nIt says `_**User**_` somewhere.\n", ".md"),
        ("Before it.\n\n# aider chat started at 2026-03-05 08:00:00\n", ".md"),
        ('{"mapping": 1, "current_node": 2}', ".json"),
        ('{"mapping": {}, "current_node": ', ".json"),
        ('{"run_id": "r", "task": "t"}\n', ".jsonl"),
        ("", ".jsonl"),
        ("\ufeff", ".md"),
    ],
)
def test_other_files_are_no_sessions(content: str, suffix: str) -> None:
    assert read_log(content.encode(), suffix=suffix, session_id=PATH) is None


@pytest.mark.parametrize("content", [logs.CLAUDE_CODE, logs.CODEX])
def test_records_of_another_form_are_named_and_skipped(content: str) -> None:
    lines = content.splitlines()
    broken = [line.replace('"content": [', '"content": 7, "was": [') for line in lines]
    message = {"content": [{"type": "tool_use", "id": 1, "name": "n", "input": ["x"]}]}
    other = [{"type": {}}, {"type": "assistant", "sessionId": 1, "message": message}, {"type": [], "payload": None}]
    broken += [json.dumps(record) for record in other]
    log = _log("\n".join([*lines, *broken, "[1]", '"text"', "{" * 200, ""]), ".jsonl")
    whole = _only(content, ".jsonl")
    assert log.transcripts[0].turns[: len(whole.turns) - 1] == whole.turns[:-1]
    assert len(log.skipped) >= 3


def test_a_diff_in_a_text_names_its_files_and_functions() -> None:
    text = (
        "```diff\n--- a/app/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        "--- /dev/null\n+++ b/docs/new.md\n@@ -0,0 +1 @@\n+## Limits\n"
        "--- a/src/x.ts\n+++ b/src/x.ts\n@@ -3,2 +3,2 @@ export async function load(id: string) {\n-a\n+b\n```"
    )
    assert _touches(Turn(ordinal=0, role="assistant", text=text)) == [
        ("app/old.py", "", "deleted"),
        ("docs/new.md", "", "created"),
        ("docs/new.md", "Limits", "changed"),
        ("src/x.ts", "", "changed"),
        ("src/x.ts", "load", "changed"),
    ]
    assert _touches(Turn(ordinal=0, role="user", text=text)) == []


def _edit(tool: ToolUse) -> list[tuple[str, str, str]]:
    return _touches(Turn(ordinal=0, role="assistant", text="", tools=(tool,)), "/home/ada/shop")


def test_an_edit_touches_the_function_that_encloses_the_changed_lines() -> None:
    tool = ToolUse(
        name="Edit",
        input={
            "file_path": "/home/ada/shop/app/tax.py",
            "old_string": "def round_up(x):\n    return x\n\ndef total(x):\n    return x",
            "new_string": "def round_up(x):\n    return x\n\ndef total(x):\n    return x + 1",
        },
    )
    assert _edit(tool) == [("app/tax.py", "", "changed"), ("app/tax.py", "total", "changed")]
    assert _edit(structs.replace(tool, failed=True)) == []


def test_a_definition_in_a_document_is_no_section_and_no_failure() -> None:
    code = "## Usage\n\n    def total(x):\n        return x\n"
    given = {"file_path": "docs/tax.md", "old_string": code, "new_string": code.replace("(x)", "(x, y)")}
    assert _edit(ToolUse(name="Edit", input=given)) == [
        ("docs/tax.md", "", "changed"),
        ("docs/tax.md", "Usage", "changed"),
    ]


def test_the_record_of_an_edit_names_the_function_that_its_texts_do_not() -> None:
    before = "class Tax:\n    def total(self):\n        x = 1\n        y = 2\n        return x\n"
    patch = [{"oldStart": 4, "oldLines": 2, "lines": ["         y = 2", "-        return x", "+        return x + y"]}]
    edit = {"file_path": "/p/tax.py", "old_string": "return x", "new_string": "return x + y"}
    call = {"type": "tool_use", "id": "t1", "name": "Edit", "input": edit}
    result: dict[str, object] = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
    records = [
        {"type": "assistant", "message": {"content": [call]}},
        {
            "type": "user",
            "message": {"content": [result]},
            "toolUseResult": {"filePath": "/p/tax.py", "originalFile": before, "structuredPatch": patch},
        },
    ]
    lines = [json.dumps({**record, "sessionId": "cc-1", "cwd": "/p"}) for record in records]
    assert _touched(_only("\n".join(lines), ".jsonl")) == [("tax.py", "", "changed"), ("tax.py", "total", "changed")]
    records[1]["message"] = {
        "content": [{"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "no"}]
    }
    lines = [json.dumps({**record, "sessionId": "cc-1", "cwd": "/p"}) for record in records]
    assert _touched(_only("\n".join(lines), ".jsonl")) == []


def test_a_patch_names_the_functions_of_its_lines_and_renames_files() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: app/a.py\n*** Move to: app/b.py\n@@ class Tax:\n def total(x):\n"
        "-    return x\n+    return x + 1\n*** Add File: app/c.py\n+def new():\n+    pass\n*** End Patch"
    )
    tool = ToolUse(name="shell", input={"command": ["apply_patch", patch], "workdir": "/home/ada/shop/sub"})
    assert _edit(tool) == [
        ("sub/app/a.py", "", "changed"),
        ("sub/app/a.py", "", "renamed"),
        ("sub/app/b.py", "", "renamed"),
        ("sub/app/b.py", "Tax", "changed"),
        ("sub/app/b.py", "total", "changed"),
        ("sub/app/c.py", "", "created"),
        ("sub/app/c.py", "new", "created"),
    ]


def test_blocks_of_aider_name_files_and_functions_that_were_applied() -> None:
    block = (
        "app/a.py\n```python\n<<<<<<< SEARCH\ndef total():\n    return 1\n"
        "=======\ndef total():\n    return 2\n>>>>>>> REPLACE\n```\n"
    )
    answer = Turn(ordinal=0, role="assistant", text=f"Here:\n\n{block}")
    touched = [("app/a.py", "", "changed"), ("app/a.py", "total", "changed")]
    assert _touches(answer) == touched
    said = ToolUse(name="aider", result="Tokens: 2.1k sent")
    applied = ToolUse(name="edit", input={"path": "app/a.py"})
    assert _touches(replace(answer, tools=(said,))) == []
    assert _touches(replace(answer, tools=(applied, said))) == touched


@pytest.mark.parametrize(
    ("command", "renamed"),
    [
        ("git mv app/a.py app/b.py && git commit -m x", [("app/a.py", "app/b.py"), ("app/b.py", "")]),
        ("mv -f app/a.py docs/", [("app/a.py", "docs/a.py"), ("docs/a.py", "")]),
        ("mv *.py old", []),
    ],
)
def test_a_move_renames_a_file(command: str, renamed: list[tuple[str, str]]) -> None:
    turn = Turn(ordinal=0, role="assistant", text="", tools=(ToolUse(name="Bash", input={"command": command}),))
    assert [(touch.path, touch.renamed_to) for touch in touches_of(turn)] == renamed


def test_a_folder_is_known_where_paths_are_absolute_and_relative() -> None:
    tools = tuple(ToolUse(name="edit", input={"path": path}) for path in ("/p/shop/app/a.py", "app/a.py"))
    assert folder_of([Turn(ordinal=0, role="assistant", text="", tools=tools)]) == "/p/shop"
    assert folder_of([Turn(ordinal=0, role="assistant", text="", tools=tools[:1])]) == ""


def test_names_follow_renames_both_ways() -> None:
    renames = [("app/a.py", "app/b.py"), ("app/b.py", "app/c.py"), ("app/x.py", "app/y.py")]
    assert set(also_named("b.py", renames)) == {"b.py", "app/a.py", "app/b.py", "app/c.py"}
    assert {"app/a.py", "app/c.py"} <= set(also_named("/p/app/b.py", renames))
