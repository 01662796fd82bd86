"""The protocol's own inspector lists and calls everything. It runs where npm has installed it."""

import asyncio
import json
import os
import shutil
from asyncio.subprocess import PIPE
from typing import Any

import pytest

from app.interfaces.mcp.tools import TOOLS
from tests.interfaces.mcp.agent import ids_in

NAME = "PRIORS_TEST_INSPECTOR"
INSPECTOR = os.environ.get(NAME) or shutil.which("mcp-inspector")
NOTE = "The inspector was here at noon."

pytestmark = pytest.mark.skipif(
    INSPECTOR is None,
    reason=f"mcp-inspector is not on the PATH: npm install --global @modelcontextprotocol/inspector, or set {NAME}",
)


async def asked(server: str, method: str, *words: str, **given: str) -> Any:
    """Returns what the inspector prints for a method."""
    arguments = [word for name, value in given.items() for word in ("--tool-arg", f"{name}={value}")]
    command = [str(INSPECTOR), "--cli", f"{server}/mcp", "--transport", "http", "--method", method, *words, *arguments]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return json.loads(output)


async def told(server: str, tool: str, **given: str) -> str:
    """Returns the answer of a tool."""
    answer = await asked(server, "tools/call", "--tool-name", tool, **given)
    assert not answer.get("isError"), answer
    return str(answer["content"][0]["text"])


async def test_the_inspector_lists_and_calls_every_tool(server: str) -> None:
    assert [tool["name"] for tool in (await asked(server, "tools/list"))["tools"]] == list(TOOLS)
    (memory_id,) = ids_in(await told(server, "remember", body=NOTE))
    answers = {
        "relevant_history": await told(server, "relevant_history", query="when was the inspector here?", k="1"),
        "before_you_act": await told(server, "before_you_act", plan="Let the inspector in."),
        "recall": await told(server, "recall", query="inspector"),
        "context": await told(server, "context", observation="When was the inspector here?"),
        "why": await told(server, "why", subject="the inspector's visit"),
        "learn": await told(server, "learn", kind="discovery", when="visits", lesson="Inspect.", severity="low"),
        "rate": await told(server, "rate", id=memory_id, rating="1"),
        "forget": await told(server, "forget", ids=json.dumps([memory_id])),
    }
    assert {"remember", *answers} == set(TOOLS)
    assert memory_id in answers["recall"]
    assert answers["forget"] == "Forgotten: 1"
    assert (await asked(server, "prompts/list"))["prompts"]
    assert len((await asked(server, "resources/templates/list"))["resourceTemplates"]) == 2
    assert "resources" in await asked(server, "resources/list")
