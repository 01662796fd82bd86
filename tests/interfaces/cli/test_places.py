"""The store, the service and the workspace of a command in a connected project, and the service that starts there."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # it has no types
import pytest
from priors_client import AsyncClient
from priors_client.models import CueInput, MessageInput

from app.errors import ConfigurationError
from app.interfaces.cli import places, starting
from app.interfaces.cli.projects import RECORD, store_project
from tests.conftest import data_folder
from tests.interfaces.cli import forked
from tests.interfaces.cli.test_connect import free_port, names_in

PRIORS = Path(sys.executable).with_name("priors")


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment without settings, whose record and own store are this test's."""
    for name in [name for name in os.environ if name.startswith("PRIORS_")]:
        monkeypatch.delenv(name)
    for name in ("STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    return dict(os.environ)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The root of a repository."""
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    return root


@pytest.fixture(scope="module")
def shell() -> Iterator[forked.Shell]:
    """A process for commands."""
    with forked.shell() as made:
        yield made


async def test_a_command_in_a_project_takes_its_service_and_its_workspace(
    project: Path, environment: dict[str, str], server: str, workspace_name: str, shell: forked.Shell
) -> None:
    store_project(project, workspace_name, url=server, program="codex")
    turns = [MessageInput(role="user", text="Never drop a column directly: deprecate it first.")]
    async with AsyncClient(server, workspace=workspace_name) as priors:
        await priors.store_session(id="logs/s-1", messages=turns, title="Versions", wait=True)
        lesson = CueInput(kind="correction", trigger="dropping a column", lesson="Deprecate it first.")
        await priors.admin.store_cues(lesson)
        told = (await priors.activate("drop the column deprecated_flag")).tokens
    inner = project / "src"
    inner.mkdir()
    found = await asyncio.to_thread(shell.run, ["api", "GET", "/api/sessions"], environment, within=inner)
    assert "logs/s-1" in found.stdout
    shown = await asyncio.to_thread(shell.run, ["status"], environment, within=inner)
    lines = shown.stdout.splitlines()
    assert lines[0].startswith(f"sessions: 1 in the workspace {workspace_name}; the last one ended 20")
    assert lines[1:3] == [
        "lessons this week: 1 told, 0 heeded, 0 ignored",
        f"tokens this week: {told:,} in histories and lessons",
    ]
    assert (lines[3][:26], lines[4][:10], len(lines)) == ("waiting for your decision:", "failures: ", 5)
    wish = "the docs folder has the pages of the last build in it and a few of our own files"
    turns = [
        MessageInput(role="user", text="format the file"),
        MessageInput(role="assistant", text="Done."),
        MessageInput(role="user", text=wish),
        MessageInput(role="assistant", text="OK."),
    ]
    async with AsyncClient(server, workspace=workspace_name) as priors:
        await priors.store_session(id="logs/s-2", messages=turns, wait=True)
    pending = (await asyncio.to_thread(shell.run, ["status"], environment, within=inner)).stdout.splitlines()[4]
    assert "turn 2 of session logs/s-2" in pending
    assert wish in pending.lower()
    other = await asyncio.to_thread(
        shell.run, ["api", "GET", "/api/sessions", "-w", "other"], environment, within=inner
    )
    assert other.stdout == "none\n"
    named = {**environment, "PRIORS_WORKSPACE": "other"}
    assert (await asyncio.to_thread(shell.run, ["api", "GET", "/api/sessions"], named, within=inner)).stdout == "none\n"
    assert names_in(project) == {".git", "src"}


@pytest.mark.usefixtures("environment")
def test_the_store_is_that_of_the_environment_the_project_the_folder_or_the_user(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    own = tmp_path / "data" / "priors"
    assert (places.settings_here().data_dir, places.workspace_here()) == (own, "")
    (project / ".priors").mkdir()
    assert places.settings_here().data_dir == Path(".priors")
    store_project(project, url="http://127.0.0.1:9", data_dir="/srv/priors", program="codex")
    assert (places.settings_here().data_dir, places.workspace_here()) == (Path("/srv/priors"), "shop")
    store_project(project, url="https://memory.example", program="codex")
    assert (places.settings_here().url, places.workspace_here()) == ("https://memory.example", "shop")
    monkeypatch.setenv("PRIORS_DATA_DIR", str(tmp_path / "named"))
    assert (places.settings_here().url, places.settings_here().data_dir) == ("", tmp_path / "named")


def test_a_service_starts_with_the_settings_of_the_one_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    given = {"PRIORS_EXAMPLES": "false", "PRIORS_PORT": "9", "PRIORS_WORKSPACE": "w", "PRIORS_API_KEY": "secret-1"}
    starting.write_settings(tmp_path, {**environment, **given})
    assert "secret-1" not in (tmp_path / starting.SETTINGS).read_text()
    with pytest.raises(ConfigurationError, match="ran with PRIORS_API_KEY, not set here: start it yourself"):
        starting.start(tmp_path, "http://127.0.0.1:8")
    monkeypatch.setenv("PRIORS_API_KEY", "secret-2")
    monkeypatch.setenv("PRIORS_WORKSPACE", "callers")
    made = starting.service_environment(tmp_path, "http://127.0.0.1:8")
    assert {name: value for name, value in made.items() if name.startswith("PRIORS_")} == {
        "PRIORS_EXAMPLES": "false",
        "PRIORS_API_KEY": "secret-2",
        "PRIORS_HOST": "127.0.0.1",
        "PRIORS_PORT": "8",
        "PRIORS_DATA_DIR": str(tmp_path),
    }


@pytest.mark.test_all("processes")
def test_commands_at_once_start_one_service_and_another_after_it_was_killed(
    project: Path, tmp_path: Path, environment: dict[str, str], model_folder: Path
) -> None:
    data_dir = data_folder(tmp_path / "shop", model_folder)
    starting.write_settings(data_dir, {"PRIORS_EXAMPLES": "false"})
    store_project(project, url=f"http://127.0.0.1:{free_port()}", data_dir=str(data_dir), program="codex")
    numbers: list[int] = []
    for end in (psutil.Process.kill, psutil.Process.terminate):
        calls = [
            subprocess.Popen(
                [PRIORS, "api", "GET", "/api/sessions"],
                cwd=project,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for _ in range(3)
        ]
        told = [call.communicate() for call in calls]
        assert [call.returncode for call in calls] == [0, 0, 0], told
        assert sum(b"no service runs: starting one" in errors for _, errors in told) == 1, told
        process = psutil.Process(json.loads((data_dir / RECORD).read_bytes())["process"])
        end(process)
        process.wait()
        numbers.append(process.pid)
    assert len(set(numbers)) == 2
