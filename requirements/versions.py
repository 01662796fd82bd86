"""Prints the version that all packages of a release have, and fails where two differ.

`--tag v0.1.0` also compares it with a tag; the workflow that releases does so first.
"""

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]


def versions(root: Path = REPOSITORY) -> dict[str, str]:
    """Returns the version that each file states."""
    found = {
        name: str(tomllib.loads((root / name).read_text())["project"]["version"])
        for name in ("pyproject.toml", "client/pyproject.toml")
    }
    for name in ("client/typescript/package.json", "client/typescript/package-lock.json"):
        found[name] = str(json.loads((root / name).read_text())["version"])
    image = re.search(r"image: priors:(\S+)", (root / "compose.yaml").read_text())
    changes = re.search(r"(?m)^## \[(\d[^]]*)\]", (root / "CHANGELOG.md").read_text())
    found["compose.yaml"] = image[1] if image else ""
    found["CHANGELOG.md"] = changes[1] if changes else ""
    return found


def differing(found: Mapping[str, str], tag: str = "") -> str:
    """Returns what is wrong with these versions, or nothing."""
    all_of_them = {*found.values()} | ({tag.removeprefix("v")} if tag else set())
    if len(all_of_them) == 1:
        return ""
    lines = [f"{name}: {version or 'none'}" for name, version in found.items()]
    return "\n".join(["the versions differ:", *lines, *([f"the tag: {tag}"] if tag else [])])


def main() -> None:
    """Prints the version; exits with 1 if there is not one alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tag", default="", help="the tag of the release, such as v0.1.0")
    found = versions()
    wrong = differing(found, parser.parse_args().tag)
    print(wrong or found["pyproject.toml"])
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
