"""Session logs of the tests' own writing, in the form in which each program writes its own."""

import json

CLAUDE_CODE = "\n".join(
    json.dumps(record)
    for record in [
        {"type": "summary", "summary": "Drop a column", "leafUuid": "u9"},
        {"type": "file-history-snapshot", "messageId": "m0", "snapshot": {}, "isSnapshotUpdate": False},
        {
            "type": "user", "uuid": "u1", "parentUuid": None, "isSidechain": False, "sessionId": "cc-47",
            "cwd": "/home/ada/shop", "timestamp": "2026-03-02T09:00:00.000Z",
            "message": {"role": "user", "content": "drop the column legacy_flag<system-reminder>x</system-reminder>"},
        },
        {
            "type": "assistant", "uuid": "u2", "parentUuid": "u1", "isSidechain": False, "sessionId": "cc-47",
            "cwd": "/home/ada/shop", "timestamp": "2026-03-02T09:00:05.000Z",
            "message": {"id": "msg_1", "role": "assistant", "content": [
                {"type": "thinking", "thinking": "A plain ALTER TABLE will do.", "signature": "s"},
            ]},
        },
        {
            "type": "assistant", "uuid": "u3", "parentUuid": "u2", "isSidechain": False, "sessionId": "cc-47",
            "timestamp": "2026-03-02T09:00:06.000Z",
            "message": {"id": "msg_1", "role": "assistant", "content": [
                {"type": "text", "text": "I write a migration that drops it."},
            ]},
        },
        {
            "type": "assistant", "uuid": "u4", "parentUuid": "u3", "isSidechain": False, "sessionId": "cc-47",
            "timestamp": "2026-03-02T09:00:07.000Z",
            "message": {"id": "msg_1", "role": "assistant", "content": [
                {"type": "tool_use", "id": "toolu_1", "name": "Write", "input": {
                    "file_path": "/home/ada/shop/migrations/0047_drop.py", "content": "def upgrade():\n    drop()\n"}},
            ]},
        },
        {
            "type": "user", "uuid": "u5", "parentUuid": "u4", "isSidechain": False, "sessionId": "cc-47",
            "timestamp": "2026-03-02T09:00:08.000Z", "toolUseResult": {"type": "create"},
            "message": {"role": "user", "content": [{"tool_use_id": "toolu_1", "type": "tool_result",
                "content": "File created successfully at: /home/ada/shop/migrations/0047_drop.py"}]},
        },
        {
            "type": "user", "uuid": "u6", "isSidechain": True, "sessionId": "cc-47",
            "timestamp": "2026-03-02T09:00:09.000Z", "message": {"role": "user", "content": "search for uses"},
        },
        {
            "type": "user", "uuid": "u7", "parentUuid": "u5", "isMeta": True, "sessionId": "cc-47",
            "timestamp": "2026-03-02T09:00:10.000Z", "message": {"role": "user", "content": "Caveat: local commands"},
        },
        {
            "type": "user", "uuid": "u8", "parentUuid": "u7", "isSidechain": False, "sessionId": "cc-47",
            "timestamp": "2026-03-02T09:01:00.000Z",
            "message": {"role": "user", "content": [{"type": "text", "text": "no: never drop a column in one step"}]},
        },
        {
            "type": "assistant", "uuid": "u9", "parentUuid": "u8", "isSidechain": False, "sessionId": "cc-47",
            "timestamp": "2026-03-02T09:01:05.000Z",
            "message": {"id": "msg_2", "role": "assistant", "content": [
                {"type": "tool_use", "id": "toolu_2", "name": "Edit", "input": {
                    "file_path": "/home/ada/shop/app/models.py",
                    "old_string": "    def legacy(self):\n        return 1\n", "new_string": ""}},
                {"type": "tool_use", "id": "toolu_3", "name": "Bash", "input": {"command": "pytest -q"}},
            ]},
        },
    ]
) + "\n"  # fmt: skip

CODEX = "\n".join(
    json.dumps(record)
    for record in [
        {"timestamp": "2026-03-03T10:00:00.000Z", "type": "session_meta",
         "payload": {"id": "cx-1", "timestamp": "2026-03-03T09:59:59.000Z", "cwd": "/home/ada/shop", "source": "cli"}},
        {"timestamp": "2026-03-03T10:00:00.100Z", "type": "response_item", "payload": {
            "type": "message", "role": "developer", "content": [{"type": "input_text", "text": "You are Codex."}]}},
        {"timestamp": "2026-03-03T10:00:00.200Z", "type": "response_item", "payload": {
            "type": "message", "role": "user",
            "content": [{"type": "input_text", "text": "<environment_context>\n</environment_context>"}]}},
        {"timestamp": "2026-03-03T10:00:01.000Z", "type": "response_item", "payload": {
            "type": "message", "role": "user", "content": [{"type": "input_text", "text": "make the tax a setting"}]}},
        {"timestamp": "2026-03-03T10:00:01.000Z", "type": "event_msg",
         "payload": {"type": "user_message", "message": "make the tax a setting"}},
        {"timestamp": "2026-03-03T10:00:01.500Z", "type": "turn_context", "payload": {"model": "m"}},
        {"timestamp": "2026-03-03T10:00:02.000Z", "type": "response_item", "payload": {
            "type": "reasoning", "summary": [{"type": "summary_text", "text": "**Look**"}], "encrypted_content": "x"}},
        {"timestamp": "2026-03-03T10:00:03.000Z", "type": "response_item", "payload": {
            "type": "function_call", "name": "shell", "call_id": "call_1",
            "arguments": json.dumps({"command": ["bash", "-lc", "rg tax"]})}},
        {"timestamp": "2026-03-03T10:00:04.000Z", "type": "response_item", "payload": {
            "type": "function_call_output", "call_id": "call_1",
            "output": json.dumps({"output": "app/tax.py:1:TAX = 19\n", "metadata": {"exit_code": 0}})}},
        {"timestamp": "2026-03-03T10:00:05.000Z", "type": "response_item", "payload": {
            "type": "custom_tool_call", "status": "completed", "call_id": "call_2", "name": "apply_patch",
            "input": "*** Begin Patch\n*** Update File: app/tax.py\n@@ def gross(net):\n-    return net * 1.19\n"
                     "+    return net * TAX\n*** Add File: docs/tax.md\n+# Tax\n*** End Patch"}},
        {"timestamp": "2026-03-03T10:00:07.000Z", "type": "response_item", "payload": {
            "type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": "The tax is a setting."}]}},
    ]
) + "\n"  # fmt: skip

SPECSTORY = """<!-- Generated by SpecStory, Markdown v2.1.0 -->

<!-- cursor Session 11111111-2222-3333-4444-555555555555 (2026-03-04 11:00Z) -->

# Round the totals (2026-03-04 11:00Z)

_**User (2026-03-04 11:00Z)**_

round the totals to cents

---

_**Agent (model some-model, mode Agent)**_

<think><details><summary>Thought Process</summary>
Use round().
</details></think>

---

<tool-use data-tool-type="write" data-tool-name="search_replace">

<details><summary>Tool use: **code_edit** • Edit file: /home/ada/shop/app/total.py</summary>

```diff
@@ -12,5 +12,5 @@ def total(lines):
-    return value
+    return round(value, 2)
```

</details>

</tool-use>

---

The totals are rounded. To check:

```bash
_**User**_
pytest -q
```

---

_**User (2026-03-04 11:05Z)**_

use Decimal, not floats

---
"""

OLD_SPECSTORY = """<!-- Generated by SpecStory -->

# Old Session (2026-03-04 13:00:10)

_**User**_

which tasks are open?

---

_**Assistant**_

I look them up.

---

Read file: docs/tasks.md

---

```diff
- a
+ b
```

---

There are two.

---
"""

AIDER = (
    "\n# aider chat started at 2026-03-05 08:00:00\n\n"
    "> /usr/bin/aider app/a.py  \n> Added app/a.py to the chat.  \n"
    "\n#### rename total to sum  \n#### and keep the tests green  \n"
    "\nI rename it:\n\n#### What changes\n\n"
    "app/a.py\n```\n<<<<<<< SEARCH\ntotal\n=======\nsum\n>>>>>>> REPLACE\n```\n\n"
    "> Tokens: 1k sent.  \n> Applied edit to app/a.py  \n> Commit abc1234 Rename total to sum  \n"
    "\n# aider chat started at 2026-03-05 09:00:00\n\n"
    "\n#### undo that: `sum` hides the builtin  \n\nDone.\n"
)


def _node(
    name: str, parent: str | None, children: list[str], role: str, text: str, **more: object
) -> dict[str, object]:
    message = {
        "id": name, "author": {"role": role}, "create_time": 1772700000.5,
        "content": {"content_type": "text", "parts": [text]}, "recipient": "all", "metadata": {}, **more,
    }  # fmt: skip
    return {"id": name, "parent": parent, "children": children, "message": message}


CHATGPT = json.dumps(
    [
        {
            "title": "Sizes of batches", "create_time": 1772700000.0, "update_time": 1772700100.0,
            "conversation_id": "gpt-1", "current_node": "d",
            "mapping": {
                "root": {"id": "root", "parent": None, "children": ["a"], "message": None},
                "a": _node("a", "root", ["b", "c"], "user", "how large should a batch be?"),
                "b": _node("b", "a", [], "assistant", "An abandoned answer."),
                "c": _node("c", "a", ["t"], "assistant", "print(2000)", recipient="python"),
                "t": _node("t", "c", ["d"], "tool", "2000"),
                "d": _node("d", "t", [], "assistant", "About 2,000 rows."),
            },
        },
        {"title": "broken", "mapping": {"x": {"message": {"author": None}}}, "current_node": "x"},
    ]
)  # fmt: skip

MESSAGES = (
    '{"role": "user", "text": "use tabs", "at": "2026-03-06T10:00:00Z"}\n'
    "\n"
    '{"role": "assistant", "text": "I use tabs now."}\n'
    "not JSON at all\n"
    '{"role": "somebody", "text": "?"}\n'
    '{"role": "tool", "text": "12 files changed"}\n'
    '{"role": "user", "te'
)
