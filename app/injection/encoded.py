"""Text in Base64 or hexadecimal digits. Pure."""

import base64
import re
from collections.abc import Iterator

from app.injection.linear import has
from app.injection.pieces import Pieces, pieces

SOME_CODE = r"[A-Za-z0-9+/_-]{20}|(?:(?:0x|\\x|\\u00|%|&#x)?[0-9a-fA-F]{2}[\s:,;]{0,2}){12}"
DIGIT = r"[A-Za-z0-9+/_-]"
BASE64 = re.compile(rf"(?<![A-Za-z0-9+/=_-]){DIGIT}{{20,}}(?:\r?\n{DIGIT}{{20,}})*(?:\r?\n{DIGIT}+)?={{0,2}}")
HEX = re.compile(r"(?<![0-9A-Za-z])(?:(?:0x|\\x|\\u00|%|&#x)?[0-9a-fA-F]{2}[\s:,;]{0,2}){12,}(?![0-9A-Za-z])")
QUARTET = 4
"""Digits of Base64 that spell whole bytes."""
HEX_MARKS = re.compile(r"0x|\\x|\\u00|%|&#x|[\s:,;]")
READABLE = re.compile(r"[^\ufffd\x00-\x08\x0e-\x1f\x7f]{12,}")
"""A stretch that can be text: what else comes out of digits has a strange character in every few."""


def decoded(text: str) -> Pieces | None:
    """What the runs of digits spell; None where none spells text."""
    if not has(SOME_CODE, text):
        return None
    return pieces(
        (stretch, match.span()) for match in _runs(text) for run in _decoded(match) for stretch in READABLE.findall(run)
    )


def _runs(text: str) -> Iterator[re.Match[str]]:
    yield from HEX.finditer(text)
    yield from BASE64.finditer(text)


def _decoded(match: re.Match[str]) -> Iterator[str]:
    """What is no text becomes a character that no text has."""
    if match.re is HEX:
        digits = HEX_MARKS.sub("", match[0])
        yield bytes.fromhex(digits).decode(errors="replace")
        return
    for run in _lines(match[0].replace("-", "+").replace("_", "/")):
        digits = run[: len(run) - (len(run) % QUARTET == 1)]
        yield base64.b64decode(digits + "=" * (-len(digits) % QUARTET)).decode(errors="replace")


def _lines(digits: str) -> Iterator[str]:
    """Lines that were broken where a decoder may go on are one."""
    held = ""
    for line in digits.rstrip("=").split():
        held += line
        if len(line) % QUARTET:
            yield held
            held = ""
    yield held
