"""Tells which files, functions and sections a turn created or changed, by its tool calls and diffs. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from app.intake.sessions.transcript import ASSISTANT, ToolUse, Turn

CREATED, CHANGED, DELETED = ACTIONS = ("created", "changed", "deleted")
MOST_OF_A_TURN = 200
"""Most artifacts of one turn; a diff of a whole repository says nothing about any file."""
PATH_BYTES, SYMBOL_CHARACTERS = 1_000, 200

WRITES = frozenset({
    "write", "edit", "multiedit", "notebookedit", "create", "create_file", "write_file", "edit_file", "write_to_file",
    "search_replace", "str_replace", "str_replace_editor", "str_replace_based_edit_tool", "replace", "replace_in_file",
    "apply_diff", "insert", "code_edit", "delete_file", "delete",
})  # fmt: skip
"""Names of the tools that change the file that they name, in lower case."""
NEW = frozenset({"create", "create_file", "write_file", "write_to_file"})
"""Names of the tools that make a file."""
GONE = frozenset({"delete_file", "delete"})
PATH_KEYS = ("file_path", "path", "target_file", "notebook_path", "filePath", "filename", "file")
CHANGED_TEXTS = ("old_string", "new_string", "old_str", "new_str", "oldString", "newString", "code_edit")
MADE = re.compile(r"created successfully|successfully created|\bfile created\b", re.IGNORECASE)

PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$|^\*\*\* Move to: (.+?)\s*$|^@@ (.*)$", re.MULTILINE)
"""The headers of a patch of Codex: a file, and the function in which a hunk is."""
PATCH_ACTIONS = {"Add": CREATED, "Update": CHANGED, "Delete": DELETED}
OLD_FILE, NEW_FILE = re.compile(r"^--- (\S.*?)(?:\t.*)?$"), re.compile(r"^\+\+\+ (\S.*?)(?:\t.*)?$")
HUNK = re.compile(r"^@@+ [-+\d, ]+@@+ ?(.*)$|^@@ (?![-+\d.])(.*?)(?: @@)?$", re.MULTILINE)
"""A hunk's header; what follows its numbers names the function or the section."""
NOTHING = "/dev/null"
SYMBOL = re.compile(
    r"""^[ \t]*
    (?:export\s+|default\s+|public\s+|private\s+|protected\s+|static\s+|abstract\s+|async\s+|pub(?:\([a-z]+\))?\s+)*
    (?:def|class|function\*?|func(?:\s*\([^)]*\))?|fn|interface|struct|enum|trait|impl|type|module|namespace)
    \s+(?P<named>[A-Za-z_$][\w$]*)
    |^[ \t]*(?:export\s+)?(?:const|let|var)\s+(?P<bound>[A-Za-z_$][\w$]*)\s*=\s*(?:async\s*)?(?:\([^)]*\)|\w+)\s*=>
    |^\#{1,6}\ +(?P<section>\S.{0,120}?)\s*$""",
    re.MULTILINE | re.VERBOSE,
)
"""A definition, or a heading of Markdown."""
MARKDOWN = frozenset({".md", ".mdx", ".mdc", ".markdown", ".rst", ".txt"})


class Touch(NamedTuple):
    """A turn's creation, change or deletion of an artifact."""

    path: str
    symbol: str
    """The function or section; "" for the file as a whole."""
    action: str
    """One of ACTIONS."""


def touches_of(turn: Turn, folder: str = "") -> list[Touch]:
    """Returns what a turn did to files, each once; paths below `folder` become relative to it."""
    found = [touch for tool in turn.tools for touch in _by_tool(tool)]
    if turn.role == ASSISTANT and "@@" in turn.text:
        found += _by_diff(turn.text)
    named = (touch._replace(path=relative(touch.path, folder)) for touch in found)
    kept = dict.fromkeys(touch for touch in named if _storable(touch))
    return list(kept)[:MOST_OF_A_TURN]


def relative(path: str, folder: str) -> str:
    """Returns a path relative to a folder, if it is below it, with slashes and without `./`."""
    path, folder = path.strip().strip("`'\"").replace("\\", "/"), folder.replace("\\", "/").rstrip("/")
    if folder and path.startswith(f"{folder}/"):
        path = path[len(folder) + 1 :]
    return path.removeprefix("./")


def _storable(touch: Touch) -> bool:
    size = len(touch.path.encode(errors="replace"))
    return 0 < size <= PATH_BYTES and "\n" not in touch.path and "\0" not in touch.path + touch.symbol


def _by_tool(tool: ToolUse) -> Iterator[Touch]:
    name, given = tool.name.lower().rpartition("__")[2], tool.input
    path = next((value for key in PATH_KEYS if isinstance(value := given.get(key), str) and value.strip()), "")
    diff = given.get("diff")
    if path and name in WRITES and given.get("command") not in {"view", "undo_edit"}:
        yield Touch(path, "", _action(name, tool))
        yield from _symbols(path, given, diff)
    elif isinstance(diff, str):
        yield from _by_diff(diff)
    for text in _texts(given):
        if "*** Begin Patch" in text:
            yield from _by_patch(text)


def _action(name: str, tool: ToolUse) -> str:
    if name in GONE:
        return DELETED
    return CREATED if name in NEW or tool.input.get("command") == "create" or MADE.search(tool.result) else CHANGED


def _symbols(path: str, given: Mapping[str, Any], diff: object) -> Iterator[Touch]:
    """Yields the functions and sections of an edit: those of its hunks' headers, and those that its texts define."""
    edits = given.get("edits")
    parts = [given, *(edit for edit in edits if isinstance(edit, dict))] if isinstance(edits, list) else [given]
    for part in parts:
        for key in CHANGED_TEXTS:
            if isinstance(text := part.get(key), str):
                yield from (Touch(path, symbol, CHANGED) for symbol in symbols_in(text, path))
    if isinstance(diff, str):
        yield from (Touch(path, symbol, CHANGED) for symbol in _in_hunks(diff, path))


def symbols_in(text: str, path: str) -> list[str]:
    """Returns the functions, classes and sections that a text defines, each once."""
    sections = PurePosixPath(path).suffix.lower() in MARKDOWN
    found = (match["section"] if sections else match["named"] or match["bound"] for match in SYMBOL.finditer(text))
    return list(dict.fromkeys(name[:SYMBOL_CHARACTERS] for name in found if name))


def _in_hunks(diff: str, path: str) -> list[str]:
    """Returns the functions that hunks' headers name, and those that changed lines define."""
    lines = [header for match in HUNK.finditer(diff) if (header := match[1] or match[2])]
    changed = [line[1:] for line in diff.splitlines() if line[:1] in {"+", "-"} and line[:3] not in {"+++", "---"}]
    return symbols_in("\n".join([*lines, *changed]), path)


def _by_patch(text: str) -> Iterator[Touch]:
    path = ""
    for match in PATCHED.finditer(text):
        if match[1]:
            path = match[2]
            yield Touch(path, "", PATCH_ACTIONS[match[1]])
        elif match[3]:
            yield Touch(path, "", DELETED)
            path = match[3]
            yield Touch(path, "", CREATED)
        elif path:
            yield from (Touch(path, symbol, CHANGED) for symbol in symbols_in(match[4], path))


def _by_diff(text: str) -> Iterator[Touch]:
    """Yields the files of a unified diff, and the functions of their hunks."""
    lines = text.splitlines()
    heads = list(_heads(lines))
    ends = [*(place for place, _, _ in heads[1:]), len(lines)]
    for (place, old, new), end in zip(heads, ends, strict=False):
        path = _unprefixed(old if new == NOTHING else new)
        yield Touch(path, "", DELETED if new == NOTHING else CREATED if old == NOTHING else CHANGED)
        yield from (Touch(path, symbol, CHANGED) for symbol in _in_hunks("\n".join(lines[place + 2 : end]), path))


def _heads(lines: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Yields the place of each file of a diff, with its old and its new path."""
    for place, (one, other) in enumerate(pairwise(lines)):
        old, new = OLD_FILE.match(one), NEW_FILE.match(other)
        if old and new:
            yield place, old[1], new[1]


def _unprefixed(path: str) -> str:
    return path[2:] if path[:2] in {"a/", "b/"} else path


def _texts(value: object, depth: int = 3) -> Sequence[str]:
    """Returns the texts of a tool's input, however they are nested."""
    match value:
        case str():
            return [value]
        case Mapping() if depth:
            return [text for item in value.values() for text in _texts(item, depth - 1)]
        case list() | tuple() if depth:
            return [text for item in value for text in _texts(item, depth - 1)]
    return []
