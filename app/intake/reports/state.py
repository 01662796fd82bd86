"""Reads what a report says of itself in its first lines: superseded or withdrawn, and its verdict or result. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from textwrap import shorten
from typing import Any

from app.foundation.text.prose import FENCE, HEADING, plain
from app.storage.memories.memory import Memory

STATE, SUPERSEDES, CONCLUSION = "state", "supersedes", "conclusion"
"""The keys of a chunk's metadata: the state of its file or section, the files that its own one replaces, and the result
of its file, which the chunk states."""
_CHARACTERS = 60
"""Most characters of a state in a source line."""
_WORDS = (
    r"(?:superseded|deprecated|obsoleted?|outdated|replaced by|withdrawn|retracted|rejected|declined|reverted|"
    r"abandoned|no longer (?:valid|current|maintained|accurate|in use)|out of date|historical only|do not use)"
)
_OWN = re.compile(rf"\W*(?:now |partly |partially )?(?P<state>{_WORDS}\b.*)", re.IGNORECASE | re.DOTALL)
"""A state at the beginning of a value: after other words it is that of another thing."""
_MARK = r"(?:\s+[—–-]|\s*:)(?!\s*\d)"
"""The mark between a state and its reason: `use-after-free` is a word, and `Rejected: 12 claims` is a number."""
_TAG = re.compile(
    rf"[\[(]\W{{0,10}}(?P<state>{_WORDS}\b[^\])]*)[\])]|^\W{{0,10}}(?P<first>{_WORDS}){_MARK}", re.IGNORECASE
)
"""A state in brackets in a heading, or before a colon or dash at its beginning."""
_FIELD = re.compile(r"[\s>*_-]*(?:current )?status\W*[:|]\W*(?P<value>.+)", re.IGNORECASE)
_DOCUMENT = r"(?:document|report|file|page|note|plan|section|record|adr|decision|guide|analysis|version)"
_SELF = re.compile(
    rf"\bthis {_DOCUMENT}\W+(?:is|was|has been|are) (?:now |since )?(?P<state>{_WORDS}\b[^.;\n]*)",
    re.IGNORECASE,
)
_LINE = re.compile(
    rf"[\s>*_#⚠️❌🚫!-]*(?P<state>(?:superseded|replaced|obsoleted) by\b.*|{_WORDS}{_MARK}.*)",
    re.IGNORECASE,
)
"""A line that is a state with its reason. A word alone counts only below a heading or in a field named status."""
_REPLACES = re.compile(
    rf"(?:\bthis {_DOCUMENT} (?:supersedes|replaces|obsoletes)"
    r"|^[^\w\n]{0,20}(?:supersedes|replaces|obsoletes)[^\w\n]{0,5}:)"
    r"(?P<files>[^\n]{1,300})",
    re.IGNORECASE | re.MULTILINE,
)
_BETWEEN = r"[^\w./!?;\n]{0,8}"
_FILE = re.compile(
    rf"{_BETWEEN}(?:and\b{_BETWEEN})?(?:\[[^\]\n]{{0,200}}\]\()?"
    r"(?P<file>[\w./-]*[\w-]\.(?:md|markdown|json|txt|rst|adoc)\b)"
)
"""The next file of an enumeration, also as a link."""
_CONCLUDES = re.compile(
    r"[\s>*_|-]*(?P<key>(?:final |overall )?(?:verdict|outcome|conclusion|decision|result|recommendation|status)|"
    r"(?:key |critical )?finding|key (?:insight|result)|root cause|bottom line|answer|"
    r"fazit|entscheidung|ergebnis|вердикт|вывод|решение|итог)[*_\s]*[:|](?P<value>.+)",
    re.IGNORECASE,
)
"""A field in the first lines of a file that says what came out."""
_SUMMARY = re.compile(
    r"\W*(?:\d{1,3}\W{1,3}){0,4}"
    r"(?:(?:executive |overall )?summary|tl;?dr|key (?:finding|result|takeaway|insight)s?|bottom line|"
    r"conclusions?|verdict|results?|findings?|abstract|zusammenfassung|fazit|ergebnis(?:se)?|резюме|итоги?|выводы?)\W*",
    re.IGNORECASE,
)
"""A heading below which a file says at once what came out."""
_SENTENCE = re.compile(r"(?:[>*_~-]|\d+[.)]|\s)*(?P<said>(?![|`!#])(?:[^\s:|]+[ \t]+){4}[^:|]*[^\s:|][*_ \t]*)")
"""A line that sums up a file: five words or more, no field with a value, and no announcement of a list."""
_LAST_HEADING = 4
"""The last heading of a file below which a summary counts as one of its first lines."""
_ENDED = re.compile(
    r"\W*(?:complet\w*|done|final|finished|active|current|ready|live|open|n/?a|tbd|none|to ?do|see (?:below|above))?\W*"
    r"|\{\{.*|<[^<>]*>|\[[^\[\]]*\]",
    re.IGNORECASE,
)
"""Values of a field that say nothing of the result, and the places that a template leaves to be filled."""
_RULE = re.compile(r"[\s|:-]*-[\s|:-]*")
"""The line below the header of a table."""
_FIELDS_OF_FENCE = frozenset({"yaml", "yml", "toml"})
"""Tags of fences that hold fields of the file; others hold code."""
_CONCLUSION_CHARACTERS = 110
"""Most characters of a conclusion: a source line stays one line."""
_HEADING_READ = 300
"""Characters of a heading, or of one of the first lines, in which a state or a result is looked for."""
_HEAD_LINES = 12
"""Lines before the second heading that speak of the whole file."""


def state_of_file(facts: Mapping[str, Any], body: str) -> str:
    """Returns the state that a file gives itself: in its first lines, its section on it, or its front matter."""
    if found := _state_at_top(body) or state_of_heading(str(facts.get("title", ""))):
        return found
    fields = [value for key, value in facts.items() if str(key).lower() in {"status", "state", "tags"}]
    values = [item for value in fields for item in (value if isinstance(value, list) else [value])]
    return next(filter(None, map(_own, map(str, values))), "")


def conclusion_of_file(body: str) -> str:
    """Returns the result that a file states at its beginning, `Verdict: FAIL, too few trades`; empty without one.

    A field says it, or else the first sentence of a summary; a status counts only without both.
    """
    fields: dict[str, str] = {}
    summary = ""
    for line, is_summary in _lines_at_top(body):
        if field := _CONCLUDES.match(line):
            value = plain(field["value"]).strip(" *_|\"'")
            if not _ENDED.fullmatch(value) and (said := _conclusion(field["key"], value)):
                fields.setdefault(field["key"].lower(), said)
        elif is_summary and not summary and (sentence := _SENTENCE.fullmatch(line)):
            summary = _conclusion("summary", plain(sentence["said"]))
    status = fields.pop("status", "")
    return next(iter(fields.values()), summary or status)


def _conclusion(key: str, said: str) -> str:
    """Returns a field and its value in one short line; empty for a first word that is too long for it."""
    text = shorten(f"{key.capitalize()}: {said}", _CONCLUSION_CHARACTERS, placeholder=" …")
    return "" if text.endswith(": …") else text


def _lines_at_top(body: str) -> Iterator[tuple[str, bool]]:
    """Yields the first lines of a file that have a text, and whether each stands below the heading of a summary.

    They end at the second heading, unless it is that of a summary. Code and headers of tables are left out.
    """
    found, headings, is_summary = 0, 0, False
    fence: str | None = None
    lines = [line for line in body.splitlines() if line.strip()]
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if marked := FENCE.match(line):
            fence = marked["tag"].lower() if fence is None else None
            continue
        heading = None if fence is not None else HEADING.match(line[:_HEADING_READ])
        if heading:
            headings += 1
            is_summary = headings > 1 and _SUMMARY.fullmatch(plain(heading["text"])) is not None
        if found >= _HEAD_LINES or (headings > 1 and not (is_summary and headings <= _LAST_HEADING)):
            return
        found += not heading
        is_header = "|" in line and "|" in following and _RULE.fullmatch(following) is not None
        if not heading and not is_header and (fence is None or fence in _FIELDS_OF_FENCE):
            yield line[:_HEADING_READ], is_summary and fence is None


@lru_cache(maxsize=4_096)
def names_conclusion(heading: str) -> bool:
    """Tells if a heading says that a result stands below it, like "Key findings" or "3. Conclusion"."""
    return _SUMMARY.fullmatch(plain(heading)) is not None


def states_conclusion(text: str, conclusion: str) -> bool:
    """Tells if a text has what a file concludes."""
    return conclusion.partition(": ")[2].removesuffix(" …") in plain(text)


def conclusion_of(memory: Memory) -> str:
    """Returns the result that the report of a memory states; empty for a memory of another kind."""
    conclusion = memory.metadata.get(CONCLUSION)
    return conclusion[:_CONCLUSION_CHARACTERS] if memory.kind == "chunk" and isinstance(conclusion, str) else ""


def replaced_files(body: str) -> list[str]:
    """Returns the files that a file says it replaces: those that it enumerates directly after the verb."""
    return list(dict.fromkeys(name for found in _REPLACES.finditer(body) for name in _files_at_start(found["files"])))


def _files_at_start(files: str) -> Iterator[str]:
    at = 0
    while found := _FILE.match(files, at):
        yield found["file"]
        at = found.end()


def state_of(memory: Memory) -> str:
    """Returns the state that a report gives a memory; a value of another origin under the same key is none."""
    state = memory.metadata.get(STATE)
    return state if memory.kind == "chunk" and isinstance(state, str) and _OWN.match(state) else ""


def files_replaced_by(memory: Memory) -> Sequence[str]:
    """Returns the files that the report of a memory says it replaces."""
    files = memory.metadata.get(SUPERSEDES)
    if memory.kind != "chunk" or not isinstance(files, list):
        return ()
    return [name for name in files if isinstance(name, str)]


def state_of_heading(heading: str) -> str:
    """Returns the state that a heading gives its section: `Plan B [SUPERSEDED by plan C]`."""
    found = _TAG.search(heading[:_HEADING_READ])
    return _short(found["state"] or found["first"]) if found else ""


def _own(value: str) -> str:
    found = _OWN.match(value)
    return _short(found["state"]) if found else ""


def _state_at_top(body: str) -> str:
    """Returns the state in a file's first heading, above its second, or at the beginning of its status."""
    above, headings, is_status = 0, 0, False
    for line in body.splitlines():
        if heading := HEADING.match(line):
            headings += 1
            is_status = plain(heading["text"]).strip(" #:").lower() in {"status", "state"}
            if headings == 1 and (found := state_of_heading(heading["text"])):
                return found
            continue
        if not line.strip():
            continue
        above += 1
        said = plain(line)
        if is_status:
            if found := _own(said):
                return found
            is_status = False
        elif headings <= 1 and above <= _HEAD_LINES and (found := _stated_in(said)):
            return found
    return ""


def _stated_in(line: str) -> str:
    field = _FIELD.match(line)
    if field:
        return _own(field["value"])
    found = _LINE.match(line) or _SELF.search(line)
    return _short(found["state"]) if found else ""


def _short(state: str) -> str:
    first, blank, rest = plain(state).strip(" .:—–-|").partition(" ")
    return shorten(f"{first.lower()}{blank}{rest}", _CHARACTERS, placeholder=" …")
