"""The shell and Python blocks of the documents run as they are written, page by page, against a real service.

A block that cannot run here is named as such in its page, with the reason: `<!-- not run: it needs Docker -->` in the
line before it. `<!-- output -->` before a block of text states what the block before it prints; a line with nothing but
an ellipsis stands for any lines.
"""

import json
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import httpx
import pytest

from app.operations.examples import example_runs
from tests.conftest import REPOSITORY, data_folder

BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*?) -->\n)?^(?P<fence>`{3,})(?P<language>\w*)\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
RUN = {"sh": ("bash", "-euo", "pipefail", "-c"), "python": (sys.executable, "-c")}
ADDRESS = re.compile(r"\b(?:127\.0\.0\.1|localhost):8000\b")
GIVEN = re.compile(r"^(?:make run|source \.venv/bin/activate|priors run)\b.*$", re.MULTILINE)
"""Lines that are true already when a block runs: the service serves, and the environment is active."""
PAGES = [
    REPOSITORY / "README.md",
    *sorted(path for path in (REPOSITORY / "docs").glob("*/*.md") if path.parent.name != "adr"),
]


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    note: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    """Returns the fenced blocks of a page, each with the note in the line before it."""
    text = page.read_text()
    return [
        Block(match["language"], match["text"], match["note"] or "", text.count("\n", 0, match.start("fence")) + 1)
        for match in BLOCK.finditer(text)
    ]


def runs(block: Block) -> bool:
    """Tells if a block is run here."""
    return block.language in RUN and not block.note.startswith("not run: ")


@dataclass(frozen=True)
class Place:
    """A folder beside a running service, as a reader's second terminal has it."""

    folder: Path
    address: str
    variables: dict[str, str]

    def printed(self, block: Block) -> str:
        """Runs a block and returns what it prints."""
        text = ADDRESS.sub(self.address.removeprefix("http://"), GIVEN.sub("", block.text))
        done = subprocess.run(
            [*RUN[block.language], text],
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"line {block.line} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done.stdout


@contextmanager
def place(folder: Path, models: Path, *, examples: bool) -> Iterator[Place]:
    """Runs `priors run` on a new store until the reader is done."""
    data_dir = data_folder(folder, models)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PRIORS_")}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    given = {"PATH": path, "PRIORS_DATA_DIR": str(data_dir), "COLUMNS": "200"}
    # `priors connect` notes the names of projects there.
    given["XDG_STATE_HOME"] = str(folder / "state")
    given["HF_HOME"] = str(folder / "datasets")
    variables = {**inherited, **given}
    log = (folder / "service.log").open("w")
    serving = {**variables, "PRIORS_PORT": "0", "PRIORS_EXAMPLES": str(examples)}
    process = subprocess.Popen(["priors", "run"], env=serving, stdout=log, stderr=subprocess.STDOUT)
    try:
        here = folder / "here"
        (here / "path/to/your/reports").mkdir(parents=True)
        (here / "path/to/your/reports/release.md").write_text(REPORT)
        where = _address(data_dir / "service.json", process, folder / "service.log")
        if examples:
            _await_the_examples(where)
        yield Place(here, where, variables)
    finally:
        process.terminate()
        process.wait()
        log.close()


WITH_EXAMPLES = [REPOSITORY / "docs" / "tutorial" / "first-answers.md"]
FIRST_READ = [PAGES[0], *WITH_EXAMPLES]
EXAMPLE_RUNS = len(example_runs())
REPORT = """# Release 4.2

Date: 2026-10-02

## What went wrong

The migration dropped the column `deprecated_flag` while two workers still read it. Checkout failed for 22 minutes.
"""


def _address(notice: Path, process: subprocess.Popen[bytes], log: Path) -> str:
    """Waits until the service has told its address."""
    while not notice.exists():
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)
    return str(json.loads(notice.read_text())["url"])


def _await_the_examples(address: str) -> None:
    """Waits until the first start has stored the examples, as the tutorial tells its reader to do."""
    with httpx.Client(base_url=address, timeout=60) as client:
        while True:
            runs = client.get("/api/runs", params={"limit": 50}).json()["runs"]
            if len(runs) == EXAMPLE_RUNS and all(run["finished_at"] for run in runs):
                return
            time.sleep(0.5)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=[pytest.mark.smoke] if page in FIRST_READ else [])
        for page in PAGES
        if any(map(runs, blocks_of(page)))
    ],
)
@pytest.mark.test_all("documents")
def test_every_block_of_a_page_runs(page: Path, tmp_path: Path, model_folder: Path) -> None:
    printed = ""
    with place(tmp_path, model_folder, examples=page in WITH_EXAMPLES) as here:
        for block in blocks_of(page):
            if runs(block):
                printed = here.printed(block)
            elif block.note == "output":
                missing = _missing(block.text, printed)
                assert missing is None, f"line {block.line}: {missing!r} is not in\n{printed}"


def _missing(stated: str, printed: str) -> str | None:
    """Returns the first stated lines that were not printed there; an ellipsis stands for any lines, also none."""
    given, left = ([line.strip() for line in text.splitlines() if line.strip()] for text in (stated, printed))
    parts = [list(part) for marks, part in groupby(given, key=lambda line: line == "…") if not marks]
    for part in parts:
        first = part is parts[0] and given[0] != "…"
        found = next((at for at in range(len(left)) if left[at : at + len(part)] == part), None)
        if found is None or (first and found):
            return "\n".join(part)
        left = left[found + len(part) :]
    return "\n".join(left) if left and given[-1] != "…" else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_block_that_is_not_run_says_why(page: Path) -> None:
    for block in blocks_of(page):
        assert block.language not in {"bash", "shell", "console", "py", ""}, (
            f"line {block.line}: name it sh, python or text"
        )
        if block.language in RUN and not runs(block):
            assert len(block.note) > len("not run: ") + 10, f"line {block.line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_of_data_can_be_read(page: Path) -> None:
    for block in blocks_of(page):
        if block.language == "json":
            json.loads(block.text)
        if block.language == "toml":
            tomllib.loads(block.text)


def test_an_output_that_is_not_printed_is_found() -> None:
    assert _missing("a\n…\nc\n", "a\nb\nc\n") is None
    assert _missing("…\nb\n…", "a\n\nb\nc\n") is None
    assert _missing("a\nc\n", "a\nb\nc\n") == "a\nc"
    assert _missing("b\nc\n", "a\nb\nc\n") == "b\nc", "it does not begin so"
    assert _missing("a\n", "a\nb\n") == "b", "more was printed"
