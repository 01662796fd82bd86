"""Locks with hashes, and an audit of dependencies that tells flaws from what it could not ask."""

import runpy
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def audit(repository: Path) -> dict[str, Any]:
    """The names of the audit's script."""
    return runpy.run_path(str(repository / "requirements" / "audit.py"))


FLAWED = {"name": "left", "version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"]}]}
SOUND, SKIPPED = {"name": "right", "version": "1.0", "vulns": []}, {"name": "own", "skip_reason": "not found"}


def test_flaws_are_told_from_what_could_not_be_asked(audit: dict[str, Any]) -> None:
    of_python, of_npm = audit["flaws_of_python"], audit["flaws_of_npm"]
    assert list(of_python({"dependencies": [FLAWED, SOUND, SKIPPED]})) == ["left 1.0: PYSEC-1, fixed in 1.1"]
    with pytest.raises(LookupError, match="not found"):
        list(of_python({"dependencies": [SKIPPED, SKIPPED]}))
    report = {"vulnerabilities": {"left-pad": {"range": "<1.1", "severity": "high"}}}
    assert list(of_npm(report)) == ["left-pad <1.1: high"]
    with pytest.raises(LookupError, match="405"):
        list(of_npm({"message": "405 Method Not Allowed"}))


def test_a_tool_that_is_not_there_or_says_nothing_fails_nothing(audit: dict[str, Any], tmp_path: Path) -> None:
    for words in (["/nowhere/npm"], ["false"]):
        with pytest.raises(LookupError):
            list(audit["_later"](audit["flaws_of_npm"], words, tmp_path))


@pytest.mark.parametrize("name", ["run.lock", "dev.lock", "node.lock", "uv.lock", "audit.txt", "peers.txt"])
def test_every_locked_package_has_hashes(name: str, repository: Path) -> None:
    text = (repository / "requirements" / name).read_text().replace("\\\n", " ")
    packages = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    assert packages
    assert all("--hash=sha256:" in line for line in packages)
