"""Reads what a report says of its own state: superseded, deprecated, withdrawn. Pure."""

import re
from collections.abc import Mapping
from textwrap import shorten
from typing import Any

from app.foundation.text.prose import HEADING, plain

STATE, SUPERSEDES = "state", "supersedes"
"""The keys of a chunk's metadata: the state of its file or section, and the files that its own one replaces."""
_CHARACTERS = 60
"""Most characters of a state in a source line."""
_WORDS = (
    r"(?:superseded|deprecated|obsoleted?|outdated|replaced by|withdrawn|retracted|rejected|declined|reverted|"
    r"abandoned|no longer (?:valid|current|maintained|accurate|in use)|out of date|historical only|do not use)"
)
_OWN = re.compile(rf"\W*(?:now |partly |partially )?(?P<state>{_WORDS}\b.*)", re.IGNORECASE | re.DOTALL)
"""A state at the beginning of a value: after other words it is that of another thing."""
_TAG = re.compile(rf"[\[(]\W*(?P<state>{_WORDS}\b[^\])]*)[\])]|^\W*(?P<first>{_WORDS})\s*[:—–-]", re.IGNORECASE)
"""A state in brackets in a heading, or before a colon or dash at its beginning."""
_FIELD = re.compile(r"[\s>*_-]*(?:current )?status\W*[:|]\W*(?P<value>.+)", re.IGNORECASE)
_DOCUMENT = r"(?:document|report|file|page|note|plan|section|record|adr|decision|guide|analysis|version)"
_SELF = re.compile(
    rf"\bthis {_DOCUMENT}\W+(?:is|was|has been|are) (?:now |since )?(?P<state>{_WORDS}\b[^.;\n]*)",
    re.IGNORECASE,
)
_LINE = re.compile(
    rf"[\s>*_#⚠️❌🚫!-]*(?P<state>(?:superseded|replaced|obsoleted) by\b.*|{_WORDS}\W*$|{_WORDS}\s*[:—–].*)",
    re.IGNORECASE,
)
"""A line that is a state and nothing else."""
_REPLACES = re.compile(
    rf"(?:\bthis {_DOCUMENT} (?:supersedes|replaces|obsoletes)|^\W*(?:supersedes|replaces|obsoletes)\W*:)"
    r"(?P<files>[^\n]{1,300})",
    re.IGNORECASE | re.MULTILINE,
)
_FILE = re.compile(r"[\w./-]*[\w-]\.(?:md|markdown|json|txt|rst|adoc)\b")
_HEAD_LINES = 12
"""Lines before the second heading that speak of the whole file."""


def state_of_file(facts: Mapping[str, Any], body: str) -> str:
    """Returns the state that a file gives itself: in its first lines, its section on it, or its front matter."""
    if found := _state_at_top(body) or state_of_heading(str(facts.get("title", ""))):
        return found
    fields = [value for key, value in facts.items() if str(key).lower() in {"status", "state", "tags"}]
    values = [item for value in fields for item in (value if isinstance(value, list) else [value])]
    return next(filter(None, map(_own, map(str, values))), "")


def replaced_files(body: str) -> list[str]:
    """Returns the files that a file says it replaces."""
    return [name for found in _REPLACES.finditer(body) for name in _FILE.findall(found["files"])]


def state_of_heading(heading: str) -> str:
    """Returns the state that a heading gives its section: `Plan B [SUPERSEDED by plan C]`."""
    found = _TAG.search(heading)
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
