"""Commands that ask a service elsewhere (`priors --url …`) print what they print on the machine of the store."""

import asyncio
import json
import os
import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
import typer
from priors_client import AsyncClient
from priors_client.models import CueInput, MessageInput

from app.cli import app
from app.cli.remote import COMMANDS
from app.settings import Settings
from tests.cli import forked

UNLIKE = re.compile(r'[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|"(?:\w+_)?(?:ms|at)":[^,}]+')
"""Ids, durations and times, which differ from one call to the next."""
UNKNOWN = "00000000-0000-0000-0000-000000000000"
TURNS = [
    "Let's decide on API versioning: we use the URL path, because proxies can route it.",
    "Decided: versions stand in the URL path. I rejected headers, as caches ignore them.",
    "Never drop a column directly: deprecate it first.",
]
CONTEXT = {"sections": [{"id": "rules", "label": "Rules", "content": "Answer in one line.", "mode": "constraint"}]}

COMMAND_LINES: list[list[str]] = [
    ["activate", "drop the column deprecated_flag", "--file", "app/db.py", "--explain"],
    ["activate", "call the customer", "--user", "ann"],
    ["why", "API versioning", "--json"],
    ["session", "--text", "s-1"],
    ["session", "s-1"],
    ["cue", "add", "before a release", "Run the migrations on a copy.", "--session", "s-1", "--quote", "on a copy"],
    ["cue", "list", "--json"],
    ["cues", "tend"],
    ["cues", "proposals", "--state", "", "--json"],
    ["cues", "decide", UNKNOWN, "--accept"],
    ["cues", "undo", UNKNOWN],
    ["context", "template", "house", "{folder}/house.md", "--label", "House"],
    ["context", "templates"],
    ["context", "forget-template", "unknown"],
    ["context", "make", "How are versions told apart?", "--budget", "600", "--template", "house"],
    ["context", "compile", "{folder}/context.json"],
    ["context", "list"],
    ["context", "show", "{one}", "--json"],
    ["context", "diff", "{one}", "{other}"],
    ["context", "impact", "{one}"],
]
COMPARED_ELSEWHERE = {"history", "search"}
"""Commands that `test_commands.py` compares, with a service that it starts."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def store(server: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Any]]:
    """A workspace that holds a session, cues and two contexts, and a folder of files."""
    folder, name = tmp_path_factory.mktemp("remote"), f"remote-{uuid4().hex[:12]}"
    (folder / "house.md").write_text("Cite the turn that says so.")
    (folder / "context.json").write_text(json.dumps(CONTEXT))
    async with AsyncClient(server, workspace=name) as priors:
        messages = [MessageInput(role="user", text=text) for text in TURNS]
        await priors.store_session(id="s-1", messages=messages, title="Versions", wait="extracted")
        await priors.store_cues(CueInput(kind="correction", trigger="dropping a column", lesson="Deprecate it first."))
        await priors.store_cues(CueInput(kind="correction", trigger="calling a customer", lesson="Ask Ann"), user="ann")
        one, other = [(await priors.build_context(text)).id for text in ("versions", "the column")]
    yield {"folder": folder, "name": name, "one": one, "other": other}


@pytest.fixture(scope="module")
def shells() -> Iterator[tuple[forked.Shell, forked.Shell]]:
    """A process on the machine of the store, and one elsewhere."""
    with forked.shell() as here, forked.shell() as there:
        yield here, there


@pytest.fixture(scope="module")
def environment(settings: Settings, store: dict[str, Any]) -> dict[str, str]:
    """The environment of a command on the machine of the store."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PRIORS_") and name != "COLUMNS"}
    own = {"DATABASE_URL": settings.database_url, "DATA_DIR": str(settings.data_dir), "WORKSPACE": store["name"]}
    return {**kept, **{f"PRIORS_{name}": value for name, value in own.items()}}


def told(done: subprocess.CompletedProcess[str]) -> tuple[int, str, str]:
    """Returns what a command said, without what differs from call to call, and without the log."""
    errors = "\n".join(line for line in done.stderr.splitlines() if not line.startswith("{"))
    return done.returncode, UNLIKE.sub("…", done.stdout), UNLIKE.sub("…", errors)


@pytest.mark.parametrize("words", COMMAND_LINES, ids=" ".join)
async def test_a_service_elsewhere_answers_as_the_machine_itself(
    words: list[str],
    store: dict[str, Any],
    environment: dict[str, str],
    server: str,
    shells: tuple[forked.Shell, forked.Shell],
) -> None:
    given = [word.format(**store) for word in words]
    elsewhere = {name: value for name, value in environment.items() if name != "PRIORS_DATABASE_URL"}
    here, there = shells
    expected = await asyncio.to_thread(here.run, given, environment)
    answered = await asyncio.to_thread(there.run, ["--url", server, *given], elsewhere)
    assert told(answered) == told(expected)


def test_each_command_that_can_ask_elsewhere_is_compared() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]  # it is a group
    names = {
        words
        for name in COMMANDS
        for words in ([f"{name} {one}" for one in getattr(commands[name], "commands", ())] or [name])
    }
    compared = {words[0] if words[0] in names else " ".join(words[:2]) for words in COMMAND_LINES}
    assert compared | COMPARED_ELSEWHERE == names - {"cues starter"}
