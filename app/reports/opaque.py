"""Encoded data inside text: what nobody asks by and no model reads. Pure."""

import re

KIND = r"[A-Za-z0-9+/=_%:.~\\-]"
RUN = re.compile(rf"(?<!{KIND})(?:{KIND}{{160,}}|(?:[A-Za-z0-9+/=]{{60,159}}\s+){{3,}}[A-Za-z0-9+/=]*)")
"""One run of the characters that base64, hexadecimal, escapes and search paths are made of, with no blank; or at least
three lines of base64. The longest run in 253 real report files, one search path aside, has 120 characters."""
SHOWN = 40
"""Characters kept of such a run: enough to recognise it by."""


def without_opaque_runs(text: str) -> str:
    """`text` with each run of encoded data cut to its beginning and its length: `iVBORw0KGgo… (48,213 characters)`."""
    return RUN.sub(_shortened, text)


def _shortened(match: re.Match[str]) -> str:
    run = match[0]
    end = run[len(run.rstrip()) :]
    return f"{run[:SHOWN].split()[0]}… ({len(run.rstrip()):,} characters){end}"
