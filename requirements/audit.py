"""Asks pip-audit and npm for known flaws of the locked packages: `make audit-dependencies`.

It exits with 1 if there is one. What cannot be asked, because its data is out of reach, is named and fails nothing.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[1]
LOCKS = ("run.lock", "dev.lock")
PACKAGES = ("app/panel", "client/typescript")


def flaws_of_python(report: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    """Yields the flaws that pip-audit found, one line each.

    Raises:
        LookupError: it could not ask about any package.
    """
    asked = [item for item in report["dependencies"] if "skip_reason" not in item]
    if not asked:
        raise LookupError(next((item["skip_reason"] for item in report["dependencies"]), "no answer"))
    for item in asked:
        for flaw in item["vulns"]:
            fixed_in = ", ".join(flaw["fix_versions"]) or "no version yet"
            yield f"{item['name']} {item['version']}: {flaw['id']}, fixed in {fixed_in}"


def flaws_of_npm(report: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    """Yields the flaws that npm found, one line each.

    Raises:
        LookupError: it could not ask.
    """
    if "vulnerabilities" not in report:
        raise LookupError(report.get("message") or report.get("error", {}).get("summary") or "no answer")
    for name, item in report["vulnerabilities"].items():
        yield f"{name} {item['range']}: {item['severity']}"


def _reported(words: Sequence[str], folder: Path) -> Any:  # noqa: ANN401 - JSON
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise LookupError(said[-1]) from None


def _audits() -> Iterator[tuple[str, Iterator[str]]]:
    tool = [str(Path(sys.executable).with_name("pip-audit")), "--disable-pip", "--require-hashes", "-f", "json"]
    for lock in LOCKS:
        yield f"requirements/{lock}", _later(flaws_of_python, [*tool, "-r", f"requirements/{lock}"], REPOSITORY)
    for package in PACKAGES:
        words = ["npm", "audit", "--package-lock-only", "--json"]
        yield f"{package}/package-lock.json", _later(flaws_of_npm, words, REPOSITORY / package)


def _later(read: Any, words: Sequence[str], folder: Path) -> Iterator[str]:  # noqa: ANN401 - a function of the above
    try:
        yield from read(_reported(words, folder))
    except OSError as error:
        raise LookupError(str(error)) from None


def main() -> int:
    """Prints what was found; returns the exit code."""
    flawed = False
    for name, flaws in _audits():
        try:
            found = list(flaws)
        except LookupError as error:
            print(f"{name}: not audited, as its data is out of reach: {error}")
            continue
        flawed = flawed or bool(found)
        print("\n  ".join([f"{name}: {len(found)} known flaws", *found]))
    return int(flawed)


if __name__ == "__main__":
    sys.exit(main())
