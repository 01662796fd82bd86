"""Stand-in until the scan is merged."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule found."""

    rule: str
    family: str
    severity: str
    start: int
    end: int
    excerpt: str


def scan(text: str) -> tuple[Finding, ...]:
    """What was found."""
    del text
    return ()


def blocking(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Those that block."""
    return tuple(finding for finding in findings if finding.severity == "block")
