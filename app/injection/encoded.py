"""Text in Base64 or hexadecimal digits. Pure."""

import base64
import binascii
import re
from collections.abc import Iterator

BASE64 = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/_-]{20,20000}={0,2}(?![A-Za-z0-9+/=_-])")
HEX = re.compile(r"(?<![0-9A-Za-z])(?:0x)?(?:[0-9a-fA-F]{2}[ :]?){12,20000}(?![0-9A-Za-z])")
MOST = 50
"""Runs that are decoded in one text."""
READABLE = 0.9
"""Share of letters, blanks and common marks from which on bytes are text."""
LETTERS = re.compile(r"[\w\s.,:;!?'\"()\[\]{}<>/@#*|-]")


def decoded(text: str) -> Iterator[tuple[str, int, int]]:
    """Each run that spells readable text, that text, and where the run starts and ends."""
    for count, match in enumerate(_runs(text)):
        if count == MOST:
            return
        found = _decoded(match)
        if found and len(LETTERS.findall(found)) >= READABLE * len(found):
            yield found, match.start(), match.end()


def _runs(text: str) -> Iterator[re.Match[str]]:
    yield from HEX.finditer(text)
    yield from BASE64.finditer(text)


def _decoded(match: re.Match[str]) -> str:
    try:
        if match.re is HEX:
            return bytes.fromhex(match[0].removeprefix("0x").replace(":", "")).decode()
        run = match[0].rstrip("=").replace("-", "+").replace("_", "/")
        return base64.b64decode(run + "=" * (-len(run) % 4)).decode()
    except (ValueError, binascii.Error):
        return ""
