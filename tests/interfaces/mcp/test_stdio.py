"""`priors mcp`: over pipes, beside other processes on one database, and in front of a service."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from app.intake.sessions.transcript import Transcript, Turn
from app.interfaces.cli.agents import STARTS
from app.interfaces.cli.places import remove_record, write_record
from app.interfaces.cli.projects import RECORD, store_project
from app.interfaces.mcp.tools import TOOLS
from app.settings import Settings
from app.wiring import Services
from tests.conftest import REPOSITORY, workspace_in
from tests.interfaces.mcp.agent import NEW, agent, ids_in, told

COMMAND = ("-c", "from app.interfaces.cli import main; main()", "mcp")
TELLS_ITS_END = ("-c", '"$@"; echo "it ended with code $?" >&2', "sh", sys.executable)
"""Arguments of a shell that runs Python and tells its exit code: the SDK's client keeps that to itself."""
NOTE = "The pipe between the two services is flushed every nine minutes."


def environment(settings: Settings, **given: str) -> dict[str, str]:
    """Returns the environment of a process on the tests' database."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PRIORS_")}
    named = {"DATABASE_URL": settings.database_url, "DATA_DIR": str(settings.data_dir), **given}
    return {**kept, "PYTHONPATH": str(REPOSITORY), **{f"PRIORS_{name}": value for name, value in named.items()}}


@asynccontextmanager
async def agent_of_process(environ: Mapping[str, str], workspace: str, errors: Path) -> AsyncIterator[Client]:
    """Yields a client of a process. What the process writes to standard error is a note to whatever fails."""
    words = [*TELLS_ITS_END, *COMMAND, "--workspace", workspace]
    parameters = StdioServerParameters(command="sh", args=words, env=dict(environ))
    with errors.open("w+") as log:
        try:
            async with Client(stdio_client(parameters, errlog=log), mode=NEW) as client:
                yield client
        except BaseException as error:
            log.seek(0)
            error.add_note(f"the process wrote to standard error:\n{log.read()}")
            raise


@pytest.mark.meaning
async def test_a_process_beside_a_service(settings: Settings, server: str, workspace_name: str, tmp_path: Path) -> None:
    # Other tests leave work in this database that no worker may do.
    environ = environment(settings, EMBEDDED_WORKER="false")
    piping = agent_of_process(environ, workspace_name, tmp_path / "errors")
    async with piping as piped, agent(server, workspace_name) as served:
        (memory_id,) = ids_in(await told(piped, "remember", body=NOTE))
        assert NOTE in await told(served, "relevant_history", query="how often is the pipe flushed?")
        assert "quality is 1 now" in await told(served, "rate", id=memory_id, rating=1)
        assert f"priors://memories/{memory_id}" in [item.uri for item in (await piped.list_resources()).resources]
        assert await told(piped, "forget", ids=[memory_id]) == "Forgotten: 1"


async def test_a_process_on_the_data_directory_of_a_service_asks_it(
    settings: Settings, server: str, workspace_name: str, tmp_path: Path
) -> None:
    write_record(settings, server)
    try:
        async with agent_of_process(environment(settings), workspace_name, tmp_path / "errors") as piped:
            assert ids_in(await told(piped, "remember", body=NOTE))
    finally:
        remove_record(settings)
    assert STARTS not in (tmp_path / "errors").read_text()


async def test_a_process_without_a_service_starts_one_that_runs_the_jobs(
    own_services: Services, tmp_path: Path
) -> None:
    """A session that was stored before becomes cues while the process serves."""
    workspace = await workspace_in(own_services.database, "w")
    said = {"assistant": "I dropped the column.", "user": "No, never drop a column directly. Deprecate it first."}
    turns = tuple(Turn(ordinal=place, role=role, text=text) for place, (role, text) in enumerate(said.items()))
    await own_services.session_intake.take_in(workspace, Transcript(session_id="s", format="messages", turns=turns))
    async with agent_of_process(environment(own_services.settings), "w", tmp_path / "errors") as piped:
        while True:
            answer = await told(piped, "before_you_act", plan="drop the column")
            if "never drop a column directly" in answer.lower():
                assert STARTS in (tmp_path / "errors").read_text()
                record = own_services.settings.data_dir / RECORD
                assert not record.exists(), "who asked this service would lose it when this process ends"
                return
            await asyncio.sleep(0.1)


async def test_a_process_in_front_of_a_service_prints_messages_alone_and_ends_with_its_input(
    settings: Settings, server: str, workspace_name: str
) -> None:
    begun = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    call = {"name": "remember", "arguments": {"body": NOTE}}
    messages: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begun},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call},
    ]
    words = [*COMMAND, "--url", server, "--workspace", workspace_name]
    environ = environment(settings, DATABASE_URL="postgresql://nowhere.invalid/x")
    piped = await asyncio.create_subprocess_exec(
        sys.executable, *words, stdin=PIPE, stdout=PIPE, env=environ, limit=1_000_000
    )
    assert piped.stdin is not None
    assert piped.stdout is not None
    answers = {}
    for message in messages:
        piped.stdin.write(json.dumps(message).encode() + b"\n")
        if "id" in message:
            answer = json.loads(await piped.stdout.readline())
            answers[answer["id"]] = answer["result"]
    piped.stdin.close()
    assert (await piped.stdout.read(), await piped.wait()) == (b"", 0)
    assert answers[1]["protocolVersion"] == "2025-03-26"
    assert "relevant_history" in answers[1]["instructions"]
    assert [tool["name"] for tool in answers[2]["tools"]] == list(TOOLS)
    assert answers[3]["content"][0]["text"].startswith("Stored: ")


async def test_a_request_of_another_form_gets_an_answer(settings: Settings, server: str) -> None:
    piped = await asyncio.create_subprocess_exec(
        sys.executable, *COMMAND, "--url", server, stdin=PIPE, stdout=PIPE, env=environment(settings)
    )
    output, _ = await piped.communicate(b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": ["recall"]}')
    answer = json.loads(output)
    assert (answer["id"], "cannot be passed on" in answer["error"]["message"]) == (7, True)


async def test_an_input_that_ends_at_once_ends_the_process(settings: Settings, server: str) -> None:
    words = [*COMMAND, "--url", server]
    piped = await asyncio.create_subprocess_exec(
        sys.executable, *words, stdin=DEVNULL, stdout=PIPE, env=environment(settings)
    )
    output, _ = await piped.communicate()
    assert (output, piped.returncode) == (b"", 0)


async def test_a_service_that_is_not_there_is_named(settings: Settings) -> None:
    words = [*COMMAND, "--url", "http://127.0.0.1:9"]
    piped = await asyncio.create_subprocess_exec(
        sys.executable, *words, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=environment(settings)
    )
    output, errors = await piped.communicate()
    assert (output, piped.returncode) == (b"", 2)
    assert errors.startswith(b"priors: the service at http://127.0.0.1:9 cannot be asked: ")


async def test_a_process_in_a_connected_project_follows_its_service(
    server: str, workspace_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service of the project goes away, and comes back, while the process serves."""
    shop, data_dir = tmp_path / "shop" / "src", tmp_path / "store"
    shop.mkdir(parents=True)
    data_dir.mkdir()
    (data_dir / RECORD).write_text(json.dumps({"url": server}))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    store_project(tmp_path / "shop", workspace_name, url="http://127.0.0.1:9", data_dir=str(data_dir))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PRIORS_")}
    piped = await asyncio.create_subprocess_exec(
        sys.executable, *COMMAND, stdin=PIPE, stdout=PIPE, cwd=shop, env={**kept, "PYTHONPATH": str(REPOSITORY)}
    )
    assert piped.stdin is not None
    assert piped.stdout is not None
    begun = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    call = {"name": "remember", "arguments": {"body": NOTE}}
    asked: list[tuple[str, object, str]] = [
        (server, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begun}, "relevant_history"),
        ("http://127.0.0.1:9", {"jsonrpc": "2.0", "id": 2, "method": "ping"}, "http://127.0.0.1:9 cannot be asked"),
        (server, {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call}, "Stored: "),
        (server, {"jsonrpc": "2.0", "id": 4, "method": "none"}, "error"),
        (server, ["no", "message"], "the message is no object with a method"),
    ]
    for url, message, expected in asked:
        (data_dir / RECORD).write_text(json.dumps({"url": url}))
        piped.stdin.write(json.dumps(message).encode() + b"\n")
        assert expected in (await piped.stdout.readline()).decode()
    piped.stdin.close()
    assert (await piped.stdout.read(), await piped.wait()) == (b"", 0)
    async with agent(server, workspace_name) as served:
        assert NOTE in await told(served, "relevant_history", query="how often is the pipe flushed?")
