"""The examples of frameworks run as they are."""

import asyncio
import sys
from pathlib import Path

import pytest

LINES = {
    "langgraph_store.py": [
        "Green tea is what I drink. -> nothing yet",
        "Which tea do I drink? -> Green tea is what I drink.",
    ],
    "openai_agents_session.py": [
        "taken back: {'role': 'user', 'content': 'Never mind.'}",
        "Then calibrate it before noon.",
    ],
}
"""What an example prints, among other things."""


@pytest.mark.parametrize("name", LINES)
async def test_an_example_runs(server: str, workspace_name: str, repository: Path, name: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        repository / "examples" / name,
        *("--url", server, "--workspace", workspace_name),
        env={"PYTHONPATH": str(repository / "client")},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed = (await process.communicate())[0].decode()
    assert process.returncode == 0, printed
    for line in LINES[name]:
        assert line in printed
