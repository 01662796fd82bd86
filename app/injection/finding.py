"""What the scan finds."""

from dataclasses import dataclass

BLOCK, FLAG = "block", "flag"
EXCERPT_CHARACTERS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An instruction to the reader, or what hides one."""

    rule: str
    family: str
    """`override`, `role`, `jailbreak`, `exfiltration`, `tool`, `persistence` or `hidden`."""
    severity: str
    """BLOCK keeps the text out; FLAG marks what is quoted or discussed."""
    start: int
    end: int
    """Its place in the text as it was given, in characters."""
    excerpt: str
