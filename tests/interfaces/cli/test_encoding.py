"""Commands read and write UTF-8 whatever the locale is."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

LOCALES = [
    {"LC_ALL": "C", "PYTHONUTF8": "0"},
    {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"LC_ALL": "C.UTF-8"},
]
NAME, QUESTION = "отчёт-größer.md", "größer € Отчёт"


@pytest.mark.parametrize("locale", LOCALES, ids=lambda given: "+".join(given.values()))
@pytest.mark.test_all("processes")
async def test_names_arguments_and_answers_beyond_ascii_are_taken(
    server: str, headers: dict[str, str], tmp_path: Path, locale: dict[str, str]
) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / NAME).write_text("# Отчёт\n\nЗначение 3 € — größer als im März.\n", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON"))}
    environment |= {"PRIORS_URL": server, "XDG_STATE_HOME": str(tmp_path), **locale}
    command = str(Path(sys.executable).with_name("priors"))

    async def run(*words: str) -> str:
        given = [command, *words, "-w", headers["X-Workspace"]]
        process = await asyncio.create_subprocess_exec(
            *given, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        out, errors = await process.communicate()
        assert process.returncode == 0, errors.decode()
        return out.decode()

    await run("ingest", "reports")
    assert "größer als im März" in await run("history", QUESTION)
    assert NAME in await run("search", QUESTION, "--json")
