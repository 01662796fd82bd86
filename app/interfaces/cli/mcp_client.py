"""Speaks MCP as a client: asks a question through a program's settings."""

import json
import os
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import TextContent

from app.errors import ConfigurationError
from app.interfaces.cli.edits import read_jsonc
from app.interfaces.cli.programs import HOOK_SECONDS, Program
from app.interfaces.cli.running import run_to_end

_QUESTION = "What should I know before I start to work on this project?"
_VARIABLE = re.compile(r"\$\{?(?:env:)?(\w+)\}?")
"""A variable of the environment, in the forms that the programs know."""


def check_tools(program: Program, root: Path) -> str:
    """Asks a tool by the server that a program's file in a project names; returns what came of it, in a line.

    Raises:
        ConfigurationError: it cannot be asked.
    """
    started = time.perf_counter()
    try:
        entry = program.entry_in((root / program.file).read_text(encoding="utf-8-sig"))
        tools, answer = run_to_end(_ask_server(entry, root))
    except Exception as error:
        reason = _first(error)
        raise ConfigurationError(f"{program.file} is written, but its server cannot be asked: {reason}") from error
    took = (time.perf_counter() - started) * 1_000
    return f"checked: {tools} tools; relevant_history answered in {took:.0f} ms: {answer}"


async def _ask_server(entry: Mapping[str, Any], root: Path) -> tuple[int, str]:
    """Returns the number of tools and the first line of an answer."""
    known = {**os.environ, "workspaceFolder": str(root)}
    given = {
        name: _VARIABLE.sub(lambda found: known.get(found[1], ""), value)
        for name, value in entry.get("env", {}).items()
    }
    process = StdioServerParameters(command=entry["command"], args=entry["args"], env={**os.environ, **given}, cwd=root)
    async with Client(stdio_client(process)) as client:
        return await _ask(client)


async def _ask(client: Client) -> tuple[int, str]:
    tools = (await client.list_tools()).tools
    answer = await client.call_tool("relevant_history", {"query": _QUESTION})
    said = next((item.text for item in answer.content if isinstance(item, TextContent)), "")
    if answer.is_error:
        raise ConfigurationError(said)
    return len(tools), said.splitlines()[0]


def _first(error: BaseException) -> BaseException:
    """Returns what went wrong first: a group of tasks wraps it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def check_hook(program: Program, root: Path) -> str:
    """Answers an event by the hook that a program's file in a project names; returns what came of it, in a line.

    Raises:
        ConfigurationError: the hook says that it cannot answer.
    """
    settings, name = root / program.hooks_file, program.tried_event
    group = read_jsonc(settings.read_text(encoding="utf-8-sig"), program.hooks_file)["hooks"][name][-1]
    command = group.get("hooks", [group])[-1]["command"]
    event = {"hook_event_name": name, "session_id": "connect", "cwd": str(root), "prompt": _QUESTION}
    started = time.perf_counter()
    try:
        done = subprocess.run(  # noqa: S602 - the programs give the line to a shell, too
            command,
            shell=True,
            input=json.dumps(event),
            capture_output=True,
            text=True,
            check=False,
            cwd=root,
            timeout=HOOK_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        reason = f"does not answer within {HOOK_SECONDS} s, after which a program goes on without it"
        raise ConfigurationError(f"{settings.name} is written, but its hook {reason}") from error
    if done.returncode or done.stderr:
        raise ConfigurationError(f"{settings.name} is written, but its hook cannot answer: {done.stderr.strip()}")
    said = "it has something to say" if done.stdout else "silent, as it knows nothing yet that would help"
    return f"checked: the hook of {name} took {(time.perf_counter() - started) * 1_000:.0f} ms: {said}"
