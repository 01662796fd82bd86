"""Tells which files, functions and sections a turn created or changed, by its tool calls and diffs. Pure."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import PurePosixPath
from posixpath import join, normpath
from typing import NamedTuple

from app.intake.sessions.transcript import ASSISTANT, NAMES, ToolUse, Turn

CREATED, CHANGED, DELETED, RENAMED_TO = _ACTIONS = ("created", "changed", "deleted", "renamed")
_MOST_OF_A_TURN = 200
"""Most artifacts of one turn; a diff of a whole repository says nothing about any file."""
_PATH_BYTES = 1_000

_TOOLS = NAMES["tools"]
_PATH_KEYS = ("file_path", "path", "target_file", "notebook_path", "filePath", "filename", "file")
_TEXT_KEYS = (("old_string", "old_str", "oldString"), ("new_string", "new_str", "newString", "code_edit"))
"""The inputs that hold a text before and after an edit."""
_MADE = re.compile(r"created successfully|successfully created|\bfile created\b", re.IGNORECASE)

_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$|^\*\*\* Move to: (.+?)\s*$|^@@ (.*)$", re.MULTILINE)
"""The headers of a patch of Codex: a file, and the function in which a hunk is."""
_PATCH_ACTIONS = {"Add": CREATED, "Update": CHANGED, "Delete": DELETED}
OLD_FILE, NEW_FILE = re.compile(r"^--- (\S.*?)(?:\t.*)?$"), re.compile(r"^\+\+\+ (\S.*?)(?:\t.*)?$")
_HUNK = re.compile(r"^@@+ [-+\d, ]+@@+ ?(.*)$|^@@ (?![-+\d.])(.*?)(?: @@)?$", re.MULTILINE)
"""A hunk's header; what follows its numbers names the function or the section."""
_NOTHING = "/dev/null"
_BLOCK = re.compile(
    r"^(?P<path>[^\s`*#<>|]+)[ \t]*\n(?:`{3,}[^\n]*\n)?<{5,9} ?SEARCH[^\n]*\n"
    r"(?P<before>.*?)^={5,9}[ \t]*\n(?P<after>.*?)^>{5,9} ?REPLACE",
    re.MULTILINE | re.DOTALL,
)
"""A block of aider: the path, what is searched, and what replaces it."""
_RENAMED = re.compile(r"^rename from (?P<old>.+)\nrename to (?P<new>.+)$", re.MULTILINE)
_MOVES = re.compile(r"(?:^|&&|;|\n)\s*(?:git\s+)?mv\s+(?P<given>[^&;|\n]+)")


class Touch(NamedTuple):
    """A turn's creation, change or deletion of an artifact."""

    path: str
    symbol: str
    """The function or section; "" for the file as a whole."""
    action: str
    """One of _ACTIONS."""
    renamed_to: str = ""
    """The path that a renamed file has now."""


def touches_of(turn: Turn, folder: str = "") -> list[Touch]:
    """Returns what a turn did to files, each once; paths below `folder` become relative to it.

    A tool that failed did nothing.
    """
    found = [touch for tool in turn.tools if not tool.failed for touch in _by_tool(tool)]
    if turn.role == ASSISTANT:
        found += list(_by_diff(turn.text)) if "@@" in turn.text else []
        found += _by_blocks(turn, {touch.path for touch in found})
    named = [
        touch._replace(path=relative(touch.path, folder), renamed_to=relative(touch.renamed_to, folder))
        for touch in found
    ]
    kept = dict.fromkeys(touch for touch in named if _storable(touch))
    return list(kept)[:_MOST_OF_A_TURN]


def relative(path: str, folder: str) -> str:
    """Returns a path relative to a folder, if it is below it, with slashes and without `.` and `..`."""
    path, folder = path.strip().strip("`'\"").replace("\\", "/"), folder.replace("\\", "/").rstrip("/")
    path = normpath(path) if path else ""
    return path[len(folder) + 1 :] if folder and path.startswith(f"{folder}/") else path


def folder_of(turns: Sequence[Turn]) -> str:
    """Returns the folder that a session worked in, where its log does not say: one that makes an absolute path one of
    its relative paths; "" if there is none."""
    paths = dict.fromkeys(touch.path for turn in turns for touch in touches_of(turn))
    inside = {path for path in paths if not path.startswith("/") and "/" in path}
    for path in paths:
        for other in inside if path.startswith("/") else ():
            if path.endswith(f"/{other}"):
                return path.removesuffix(f"/{other}")
    return ""


_FEWEST_PARTS = 2
"""Parts of a relative path that tell a file from others in a project."""


def endings(path: str) -> Iterator[str]:
    """Yields the relative paths that a path ends with, the longest first."""
    parts = path.strip("/").split("/")
    yield from ("/".join(parts[start:]) for start in range(1, len(parts) - _FEWEST_PARTS + 1))


def also_named(path: str, renames: Sequence[tuple[str, str]]) -> list[str]:
    """Returns the names of a file, given as (old, new) renames: the asked one, those before it and those after it.

    An absolute path has its relative endings among its names.
    """
    found = dict.fromkeys([path, *(endings(path) if path.startswith("/") else ())])
    ahead = list(found)
    while ahead:
        name = ahead.pop()
        for pair in renames:
            for one, other in (pair, pair[::-1]):
                if (one == name or one.endswith(f"/{name}")) and other not in found:
                    found[other] = None
                    ahead.append(other)
    return list(found)


def _storable(touch: Touch) -> bool:
    size = len(touch.path.encode(errors="replace"))
    return 0 < size <= _PATH_BYTES and "\n" not in touch.path and "\0" not in touch.path + touch.symbol


def _by_tool(tool: ToolUse) -> Iterator[Touch]:
    name, given = tool.name.lower().rpartition("__")[2], tool.input
    path = next((value for key in _PATH_KEYS if isinstance(value := given.get(key), str) and value.strip()), "")
    diff = given.get("diff")
    if path and name in _TOOLS["writes"] and given.get("command") not in {"view", "undo_edit"}:
        yield Touch(path, "", action := _action(name, tool))
        yield from _symbols(path, tool, diff, action)
    elif isinstance(diff, str):
        yield from _by_diff(diff)
    below = str(given.get("workdir") or given.get("cwd") or "")
    for text in _texts(given):
        if "*** Begin Patch" in text:
            yield from (_below(below, touch) for touch in _by_patch(text))
        elif "mv " in text:
            yield from (_below(below, touch) for touch in _by_moves(text))
    if name in _TOOLS["moves"] and isinstance(given.get("source"), str) and isinstance(given.get("destination"), str):
        yield from _renames(given["source"], given["destination"])


def _below(folder: str, touch: Touch) -> Touch:
    """Returns a touch whose paths are relative to a command's folder with the paths that they are."""
    return touch._replace(
        path=join(folder, touch.path), renamed_to=join(folder, touch.renamed_to) if touch.renamed_to else ""
    )


def _renames(old: str, new: str) -> Iterator[Touch]:
    yield Touch(old, "", RENAMED_TO, new)
    yield Touch(new, "", RENAMED_TO)


def _by_moves(text: str) -> Iterator[Touch]:
    """Yields the files that `mv` and `git mv` rename; of several files and folders nothing is known."""
    for match in _MOVES.finditer(text):
        paths = [word.strip("\"'") for word in match["given"].split() if not word.startswith("-")]
        if len(paths) == 2 and not any(mark in path for path in paths for mark in "*?$~{"):  # noqa: PLR2004 - a pair
            old, new = paths
            into = new.endswith("/") or (PurePosixPath(old).suffix and not PurePosixPath(new).suffix)
            yield from _renames(old, join(new, PurePosixPath(old).name) if into else new)


def _by_blocks(turn: Turn, applied: Collection[str]) -> Iterator[Touch]:
    """Yields the files of SEARCH/REPLACE blocks; where a program says which it applied, only those."""
    told = any(tool.name == "aider" for tool in turn.tools) or bool(applied)
    for match in _BLOCK.finditer(turn.text) if "<<<<<" in turn.text else ():
        path = match["path"]
        if not told or path in applied:
            yield Touch(path, "", CHANGED if match["before"].strip() else CREATED)
            symbols = changed_symbols(match["before"], match["after"], path)
            yield from (Touch(path, symbol, CHANGED) for symbol in symbols)


def _action(name: str, tool: ToolUse) -> str:
    if name in _TOOLS["deletes"]:
        return DELETED
    return (
        CREATED
        if name in _TOOLS["creates"] or tool.input.get("command") == "create" or _MADE.search(tool.result)
        else CHANGED
    )


def _symbols(path: str, tool: ToolUse, diff: object, action: str) -> Iterator[Touch]:
    """Yields the functions and sections of an edit: those that the log names, or those in which its texts differ."""
    given = tool.input
    edits = given.get("edits")
    parts = [given, *(edit for edit in edits if isinstance(edit, dict))] if isinstance(edits, list) else [given]
    if tool.symbols:
        yield from (Touch(path, symbol, CHANGED) for symbol in tool.symbols)
        return
    for part in parts:
        before, after = (next((str(part[key]) for key in keys if part.get(key)), "") for keys in _TEXT_KEYS)
        yield from (Touch(path, symbol, CHANGED) for symbol in changed_symbols(before, after, path))
    whole = given.get("content") or given.get("file_text")
    if action == CREATED and isinstance(whole, str):
        yield from (Touch(path, symbol, CREATED) for symbol in _symbols_in(whole, path))
    if isinstance(diff, str):
        yield from (Touch(path, symbol, CHANGED) for symbol in _in_hunks(diff, path))


def _in_hunks(diff: str, path: str, header: str = "") -> list[str]:
    """Returns the functions that hunks' headers name, and those in which lines were changed."""
    headers = [header, *(told for match in _HUNK.finditer(diff) if (told := match[1] or match[2]))]
    lines = [line for line in diff.splitlines() if line[:3] not in {"+++", "---"}]
    before, after = ("\n".join(line[1:] for line in lines if line[:1] in {mark, " "}) for mark in "-+")
    return list(dict.fromkeys([*_symbols_in("\n".join(headers), path), *changed_symbols(before, after, path)]))


def _by_patch(text: str) -> Iterator[Touch]:
    heads = list(_PATCHED.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    path = ""
    for head, end in zip(heads, ends, strict=True):
        if head[1]:
            path = head[2]
            yield Touch(path, "", _PATCH_ACTIONS[head[1]])
        elif head[3]:
            yield from _renames(path, head[3])
            path = head[3]
        if path and (head[1] != "Delete"):
            action = CREATED if head[1] == "Add" else CHANGED
            hunk = text[head.end() : end]
            yield from (Touch(path, symbol, action) for symbol in _in_hunks(hunk, path, head[4] or ""))


def _by_diff(text: str) -> Iterator[Touch]:
    """Yields the files of a unified diff, those that it renames, and the functions of their hunks."""
    lines = text.splitlines()
    for match in _RENAMED.finditer(text):
        yield from _renames(match["old"].strip(), match["new"].strip())
    heads = list(_heads(lines))
    ends = [*(place for place, _, _ in heads[1:]), len(lines)]
    for (place, old, new), end in zip(heads, ends, strict=False):
        path, was = _without_prefix(old if new == _NOTHING else new), _without_prefix(old)
        if _NOTHING not in {old, new} and was != path:
            yield from _renames(was, path)
        yield Touch(path, "", DELETED if new == _NOTHING else CREATED if old == _NOTHING else CHANGED)
        yield from (Touch(path, symbol, CHANGED) for symbol in _in_hunks("\n".join(lines[place + 2 : end]), path))


def _heads(lines: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Yields the place of each file of a diff, with its old and its new path."""
    for place, (one, other) in enumerate(pairwise(lines)):
        old, new = OLD_FILE.match(one), NEW_FILE.match(other)
        if old and new:
            yield place, old[1], new[1]


def _without_prefix(path: str) -> str:
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


_SYMBOL_CHARACTERS = 200
_MOST_LINES = 5_000
"""Most lines of a text that is compared; a longer one takes seconds."""
_SYMBOL = re.compile(
    r"""^[ \t]*
    (?:export\s+|default\s+|public\s+|private\s+|protected\s+|static\s+|abstract\s+|async\s+|pub(?:\([a-z]+\))?\s+)*
    (?:def|class|function\*?|func(?:\s*\([^)]*\))?|fn|interface|struct|enum|trait|impl|type|module|namespace)
    \s+(?P<named>[A-Za-z_$][\w$]*)
    |^[ \t]*(?:export\s+)?(?:const|let|var)\s+(?P<bound>[A-Za-z_$][\w$]*)\s*=\s*(?:async\s*)?(?:\([^)]*\)|\w+)\s*=>
    |^\#{1,6}\ +(?P<section>\S.{0,120}?)\s*$""",
    re.MULTILINE | re.VERBOSE,
)
"""A definition, or a heading of Markdown."""
_MARKDOWN = frozenset({".md", ".mdx", ".mdc", ".markdown", ".rst", ".txt"})


def _symbols_in(text: str, path: str) -> list[str]:
    """Returns the functions, classes and sections that a text defines, each once."""
    found = (_name(match, path) for match in _SYMBOL.finditer(text))
    return list(dict.fromkeys(name for name in found if name))


def _name(match: re.Match[str], path: str) -> str:
    sections = PurePosixPath(path).suffix.lower() in _MARKDOWN
    return ((match["section"] if sections else match["named"] or match["bound"]) or "")[:_SYMBOL_CHARACTERS]


def changed_symbols(before: str, after: str, path: str) -> list[str]:
    """Returns the functions, classes and sections in which these texts differ, each once.

    A changed line belongs to the nearest definition above it that is indented less, or to the section that it is in.
    """
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > _MOST_LINES:
        return []
    found = dict[str, None]()
    for kind, i, j, k, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            found |= dict.fromkeys([*_around(old, i, j, path), *_around(new, k, end, path)])
    return list(found)


def _around(lines: Sequence[str], start: int, end: int, path: str) -> Iterator[str]:
    """Yields what these lines define, and what encloses the first of them that says something."""
    changed = lines[start:end]
    said = next((line for line in changed if line.strip()), None)
    if said is None:
        return
    opens = _symbols_in(said, path) and _indent(said) == 0
    if not opens and (name := _enclosing(lines[:start], _indent(said), path)):
        yield name
    yield from _symbols_in("\n".join(changed), path)


def _enclosing(above: Sequence[str], indent: int, path: str) -> str:
    sections = PurePosixPath(path).suffix.lower() in _MARKDOWN
    for line in reversed(above):
        match = _SYMBOL.match(line)
        if match and (name := _name(match, path)) and (sections or _indent(line) < indent):
            return name
    return ""


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
