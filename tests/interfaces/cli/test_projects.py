"""The record of connected projects, and where a hook finds its service by it."""

import json
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.errors import ConfigurationError
from app.interfaces.cli import hooks
from app.interfaces.cli.projects import RECORD, Project, keep_programs, known_projects, project_of, store_project


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of the record of this test; the environment names neither a service nor a project."""
    for name in ("URL", "WORKSPACE", "DATA_DIR", "HOST", "PORT", "API_KEY"):
        monkeypatch.delenv(f"PRIORS_{name}", raising=False)
    for name in ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    return tmp_path / "state" / "priors" / "projects.json"


def git(folder: Path, *words: str) -> None:
    """Runs Git in a folder."""
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def repository(folder: Path) -> Path:
    """Makes a repository with a commit."""
    folder.mkdir(parents=True)
    git(folder, "init", "--initial-branch=main")
    git(folder, "commit", "--allow-empty", "--message=first")
    return folder


@pytest.mark.usefixtures("record")
def test_a_project_is_found_from_its_folders_its_worktrees_and_its_submodules(tmp_path: Path) -> None:
    shop, library = repository(tmp_path / "shop"), repository(tmp_path / "library")
    git(shop, "worktree", "add", str(tmp_path / "shop-fix"))
    git(shop, "submodule", "add", str(library), "vendor/library")
    for inner in ("shop/src/api", "shop-fix/src"):
        (tmp_path / inner).mkdir(parents=True)
    stored = store_project(tmp_path / "shop-fix", url="http://127.0.0.1:9", data_dir="/srv/priors", program="codex")
    assert stored == Project(str(shop), "shop", "http://127.0.0.1:9", "/srv/priors", ("codex",), stored.since)
    assert 0 <= time.time() - stored.since < 600
    for inner in ("shop", "shop/src/api", "shop-fix", "shop-fix/src", "shop/vendor/library"):
        assert project_of(tmp_path / inner) == stored
    assert project_of(repository(shop / "experiments" / "other")) is None, "a repository of its own"
    assert project_of(tmp_path) is None


@pytest.mark.usefixtures("record")
def test_a_worktree_of_a_bare_repository_is_of_its_project(tmp_path: Path) -> None:
    repository(tmp_path / "shop")
    git(tmp_path, "clone", "--bare", "shop", "shop.git")
    for name in ("one", "two"):
        git(tmp_path / "shop.git", "worktree", "add", "-b", name, str(tmp_path / name))
    assert store_project(tmp_path / "one").root == str(tmp_path / "shop.git")
    assert project_of(tmp_path / "two") == store_project(tmp_path / "one")


@pytest.mark.usefixtures("record")
def test_a_folder_that_is_in_no_repository_has_the_project_of_the_folder_above_it(tmp_path: Path) -> None:
    (tmp_path / "notes" / "2026").mkdir(parents=True)
    store_project(tmp_path / "notes")
    found = project_of(tmp_path / "notes" / "2026")
    assert found is not None
    assert found.workspace == "notes"


@pytest.mark.parametrize("text", ["{ broken", "[]", '{"/shop": 3}', '{"/shop": {"url": "http://h"}}'])
def test_a_record_that_cannot_be_read_is_named_and_not_overwritten(text: str, record: Path, tmp_path: Path) -> None:
    record.parent.mkdir(parents=True)
    record.write_text(text)
    with pytest.raises(ConfigurationError, match="the record of the projects"):
        store_project(tmp_path)
    assert record.read_text() == text


def test_projects_that_are_connected_at_once_are_all_stored(record: Path, tmp_path: Path) -> None:
    roots = [tmp_path / f"p{number}" for number in range(16)]
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda root: store_project(root, program="zed"), roots))
    assert {root: item.workspace for root, item in known_projects().items()} == {str(item): item.name for item in roots}
    keep_programs(roots[0], ["zed"])
    assert str(roots[0]) in json.loads(record.read_text())
    keep_programs(roots[0], [])
    assert str(roots[0]) not in json.loads(record.read_text())


@pytest.mark.usefixtures("record")
def test_no_project_gets_the_workspace_of_the_examples(tmp_path: Path) -> None:
    (tmp_path / "default").mkdir()
    assert store_project(tmp_path / "default").workspace.startswith("default-")


@pytest.mark.usefixtures("record")
def test_a_hook_finds_its_service_by_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data_dir, inner = tmp_path / "store", tmp_path / "shop" / "src"
    data_dir.mkdir()
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    unconnected = hooks.Destination("http://127.0.0.1:8000", "", "default", "codex")
    assert hooks.place_of(["--agent", "codex"]) == unconnected
    store_project(tmp_path / "shop", url="http://127.0.0.1:9", data_dir=str(data_dir))
    connected = unconnected._replace(url="http://127.0.0.1:9", workspace="shop", data_dir=str(data_dir))
    assert hooks.place_of(["--agent", "codex"]) == connected
    (data_dir / RECORD).write_text(json.dumps({"url": "http://127.0.0.1:8123"}))
    found = hooks.place_of([])
    assert found is not None
    assert found.url == "http://127.0.0.1:8123", "the service was started again, on another port"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(inner))
    assert hooks.place_of([]) == found, "the agent has changed the working folder"
    monkeypatch.setenv("PRIORS_WORKSPACE", "named")
    monkeypatch.setenv("PRIORS_URL", "http://127.0.0.1:7")
    assert hooks.place_of(["-w", "given"]) == found._replace(url="http://127.0.0.1:7", workspace="given")


@pytest.mark.usefixtures("record")
def test_a_hook_without_a_project_asks_the_service_of_the_folder_or_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, folder in enumerate((tmp_path / "data" / "priors", tmp_path / ".priors", tmp_path / "named")):
        folder.mkdir(parents=True)
        (folder / RECORD).write_text(json.dumps({"url": f"http://127.0.0.1:{number}"}))
        if folder.name == "named":
            monkeypatch.setenv("PRIORS_DATA_DIR", str(folder))
        found = hooks.place_of([])
        assert found is not None
        assert found.url.endswith(f":{number}")


def test_a_hook_says_that_the_record_cannot_be_read(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record.parent.mkdir(parents=True)
    record.write_text("{ broken")
    monkeypatch.chdir(tmp_path)
    assert hooks.place_of([]) is not None
    assert "the record of the projects, cannot be read" in capsys.readouterr().err
