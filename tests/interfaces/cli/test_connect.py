"""`priors connect`: the files of each program, and the question through them, on a real service."""

import asyncio
import json
import os
import re
import signal
import socket
import sys
import tomllib
from asyncio.subprocess import PIPE
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # it has no types
import pytest

from app.errors import ConfigurationError, InvalidInput
from app.interfaces.cli.connect import _write_all
from app.interfaces.cli.edits import read_jsonc
from app.interfaces.cli.mcp_client import check_hook
from app.interfaces.cli.programs import EVENTS, PROGRAMS, Connected, Program, with_hooks
from app.interfaces.cli.projects import RECORD
from app.interfaces.cli.starting import LOG
from app.interfaces.mcp.tools import TOOLS
from tests.conftest import REPOSITORY, data_folder
from tests.interfaces.cli import forked

MAIN = "from app.interfaces.cli import main; main()"
COMMAND = [sys.executable, "-c", MAIN, "connect"]
GIVEN = Connected(has_key=False, command="/bin/priors")
SMOKE = {"claude-code": pytest.mark.smoke, "codex": pytest.mark.smoke}
"""The programs of the two formats of files: JSON and TOML."""
OWN = {"matcher": "Bash", "hooks": [{"type": "command", "command": "./own.sh"}]}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The root of a repository, in which a person has a hook."""
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / ".claude").mkdir()
    (root / ".claude" / "settings.local.json").write_text(json.dumps({"hooks": {"PreToolUse": [OWN]}}))
    return root


def files_below(folder: Path) -> dict[Path, bytes]:
    """Returns the content of each file."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def names_in(folder: Path) -> set[str]:
    """Returns the names of a folder's files and folders."""
    return {path.name for path in folder.iterdir()}


def free_port() -> str:
    """Returns a port below those that the system hands out, so that no other program gets it in the meantime."""
    for port in range(20_000 + os.getpid() % 10_000, 32_000):
        with socket.socket() as free, suppress(OSError):
            free.bind(("127.0.0.1", port))
            return str(port)
    raise AssertionError("no port is free")


@pytest.fixture(scope="module", autouse=True)
def one_process() -> Iterator[None]:
    """The process that runs the commands which start no service."""
    with forked.shared():
        yield


async def connect(
    folder: Path, *words: str, state: Path, command: Sequence[str] = (), **settings: str
) -> tuple[int, str, str]:
    """Returns the exit code, the output and the errors of the command in a folder.

    It runs in the shared process, unless `command` names a program, which gets a process of its own.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PRIORS_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    places = {"HOME": str(state / "home"), "XDG_STATE_HOME": str(state)}
    environ = {**kept, "PATH": path, "PYTHONPATH": str(REPOSITORY), **places}
    environ |= {f"PRIORS_{name}": value for name, value in settings.items()}
    if not command:
        done = await asyncio.to_thread(forked.run, ["connect", *words], environ, within=folder)
        return done.returncode, done.stdout, done.stderr
    process = await asyncio.create_subprocess_exec(*command, *words, cwd=folder, stdout=PIPE, stderr=PIPE, env=environ)
    output, errors = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode(), errors.decode()


@pytest.mark.parametrize("name", [name for name, program in PROGRAMS.items() if not program.file.endswith(".toml")])
def test_what_a_person_added_to_the_entry_stays(name: str) -> None:
    program, other = PROGRAMS[name], {"other": {"url": "b"}}
    entry = {**program.entry(GIVEN), "disabled": True, "env": {"PROXY": "p"}}
    text = json.dumps({program.servers: {"priors": entry, **other}})
    for given in (replace(GIVEN, has_key=True), GIVEN):
        text = program.with_entry(text, given)
        found, wanted = program.entry_in(text), program.entry(given)
        assert found == {**wanted, "disabled": True, "env": {"PROXY": "p", **wanted.get("env", {})}}
    assert read_jsonc(program.with_entry(text, None), program.file) == {program.servers: other}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_an_entry_that_names_an_address_gives_way_to_the_command(program: Program) -> None:
    text = json.dumps({program.servers: {"priors": {"type": "http", "url": "http://h/mcp"}, "other": {"url": "b"}}})
    if program.file.endswith(".toml"):
        text = f'[{program.servers}.priors]\nurl = "http://h/mcp"\n\n[{program.servers}.other]\nurl = "b"\n'
    after = program.with_entry(text, GIVEN)
    assert stored_in(after, program.file)[program.servers] == {"other": {"url": "b"}, "priors": program.entry(GIVEN)}


@pytest.mark.parametrize("name", [pytest.param(name, marks=SMOKE.get(name, ())) for name in PROGRAMS])
@pytest.mark.test_all("processes")
async def test_a_program_asks_through_what_was_written(
    name: str, project: Path, server: str, workspace_name: str, tmp_path: Path
) -> None:
    place = ("--url", server, "--workspace", workspace_name)
    code, output, errors = await connect(project, name, *place, state=tmp_path)
    assert (code, errors) == (0, "")
    assert f"checked: {len(TOOLS)} tools; relevant_history answered" in output
    program = PROGRAMS[name]
    entry = program.entry_in((project / program.file).read_text())
    assert (entry["command"], entry["args"]) == ("priors", ["mcp"])
    code, output, errors = await connect(project, name, "--remove", state=tmp_path)
    assert (code, errors, (project / program.file).exists()) == (0, "", False)
    assert f"removed {program.file}" in output
    assert names_in(project) == {".git", ".claude"}, "no empty folder stays"


@pytest.mark.parametrize(("name", "tool"), [("claude-code", "Edit"), ("codex", "apply_patch")])
async def test_the_hooks_stand_beside_a_persons_own(
    name: str, tool: str, project: Path, server: str, workspace_name: str, tmp_path: Path
) -> None:
    settings = project / PROGRAMS[name].hooks_file
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"hooks": {"PreToolUse": [OWN]}}))
    place = ("--url", server, "--workspace", workspace_name)
    for _ in range(2):
        code, output, errors = await connect(project, name, *place, state=tmp_path)
        assert (code, errors) == (0, "")
        assert "the hook of UserPromptSubmit took" in output
        hooks = json.loads(settings.read_text())["hooks"]
        counts = {event: len(groups) for event, groups in hooks.items()}
        assert counts == {**dict.fromkeys(PROGRAMS[name].events, 1), "PreToolUse": 2}
        assert {*EVENTS} <= hooks.keys()
        assert hooks["PreToolUse"][0] == OWN
        assert tool in hooks["PreToolUse"][1]["matcher"]
        assert hooks["SessionEnd"][0]["hooks"][0]["command"].endswith(f"--agent {name}")
    assert hooks["Stop"][0]["hooks"][0]["command"].endswith(f"--agent {name} --no-lessons")
    await connect(project, name, *place, "--lessons", state=tmp_path)
    asking = json.loads(settings.read_text())["hooks"]["Stop"]
    assert [group["hooks"][0]["command"].endswith(f"--agent {name}") for group in asking] == [True]
    await connect(project, name, "--remove", state=tmp_path)
    assert json.loads(settings.read_text()) == {"hooks": {"PreToolUse": [OWN]}}


async def test_one_file_holds_the_server_and_the_hooks(
    project: Path, server: str, workspace_name: str, tmp_path: Path
) -> None:
    settings = project / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{\n  // how it looks\n  "ui": {"theme": "GitHub"}\n}\n')
    place = ("--url", server, "--workspace", workspace_name)
    code, output, errors = await connect(project, "gemini-cli", *place, state=tmp_path)
    assert (code, errors) == (0, "")
    assert "the hook of BeforeAgent took" in output
    written = read_jsonc(settings.read_text(), "settings.json")
    assert written["mcpServers"]["priors"]["command"] == "priors"
    assert written["hooks"].keys() == {"SessionStart", "BeforeAgent"}
    (hook,) = written["hooks"]["BeforeAgent"][0]["hooks"]
    assert (hook["timeout"], hook["command"].endswith("--agent gemini-cli")) == (10_000, True)
    await connect(project, "gemini-cli", "--remove", state=tmp_path)
    assert settings.read_text() == '{\n  // how it looks\n  "ui": {"theme": "GitHub"}\n}\n'


async def test_a_file_of_hooks_without_groups_keeps_a_persons_hook(
    project: Path, server: str, workspace_name: str, tmp_path: Path
) -> None:
    settings, own = project / ".cursor" / "hooks.json", {"command": "./format.sh"}
    settings.parent.mkdir()
    settings.write_text(json.dumps({"version": 1, "hooks": {"sessionStart": [own]}}))
    place = ("--url", server, "--workspace", workspace_name)
    for _ in range(2):
        code, output, errors = await connect(project, "cursor", *place, state=tmp_path)
        assert (code, errors) == (0, "")
        assert "the hook of sessionStart took" in output
    written = json.loads(settings.read_text())
    assert (written["version"], written["hooks"]["sessionStart"][0]) == (1, own)
    (hook,) = written["hooks"]["sessionStart"][1:]
    assert hook["command"].endswith("--agent cursor")
    await connect(project, "cursor", "--remove", state=tmp_path)
    assert json.loads(settings.read_text()) == {"version": 1, "hooks": {"sessionStart": [own]}}


async def test_two_projects_of_one_name_have_workspaces_of_their_own(
    project: Path, server: str, tmp_path: Path
) -> None:
    other = tmp_path / "elsewhere" / "shop"
    (other / "src").mkdir(parents=True)
    (other / ".git").mkdir()
    for folder in (project, other / "src", project):
        assert (await connect(folder, "cursor", "--url", server, state=tmp_path))[0] == 0
    record = json.loads((tmp_path / "priors" / "projects.json").read_text())
    assert record[str(project)]["workspace"] == "shop"
    assert record[str(other)]["workspace"].startswith("shop-")


async def test_a_worktree_is_of_its_repositorys_project(project: Path, server: str, tmp_path: Path) -> None:
    worktree = tmp_path / "shop-fix"
    worktree.mkdir()
    (worktree / ".git").write_text(f"gitdir: {project}/.git/worktrees/shop-fix\n")
    assert (await connect(worktree, "zed", "--url", server, state=tmp_path))[0] == 0
    assert (worktree / ".zed" / "settings.json").exists()
    (stored,) = json.loads((tmp_path / "priors" / "projects.json").read_text()).values()
    assert stored["workspace"] == "shop"


async def test_a_dry_run_changes_nothing(project: Path, server: str, tmp_path: Path) -> None:
    before = files_below(project)
    code, output, _ = await connect(project, "claude-code", "--url", server, "--dry-run", state=tmp_path / "state")
    assert code == 0
    assert '+    "priors": {' in output
    assert files_below(project) == before
    assert not (tmp_path / "state").exists()


async def test_a_file_that_cannot_be_read_stops_all_changes(project: Path, server: str, tmp_path: Path) -> None:
    (project / ".claude" / "settings.local.json").write_text("{ broken")
    code, _, errors = await connect(project, "claude-code", "--url", server, state=tmp_path)
    assert code == 2
    assert "settings.local.json: is no JSON, so nothing is changed" in errors
    assert not (project / ".mcp.json").exists()


async def test_a_service_that_does_not_answer_is_named(project: Path, tmp_path: Path) -> None:
    code, _, errors = await connect(project, "cursor", "--url", "http://127.0.0.1:9", state=tmp_path)
    assert (code, "no service answers at http://127.0.0.1:9" in errors) == (2, True)


@pytest.mark.test_all("processes")
async def test_a_service_is_started_where_none_runs_and_goes_on(
    project: Path, tmp_path: Path, model_folder: Path
) -> None:
    port = free_port()
    data_dir = data_folder(tmp_path, model_folder)
    settings = {"DATA_DIR": str(data_dir), "PORT": port, "EXAMPLES": "false"}
    code, output, errors = await connect(project, "cursor", state=tmp_path, command=COMMAND, **settings)
    (process_id,) = re.findall(r"kill (\d+)", errors)
    try:
        assert code == 0
        assert "relevant_history answered" in output
        again = await connect(project, "cursor", state=tmp_path, **settings)
        assert (again[0], "no service runs" in again[2]) == (0, False)
        (stored,) = json.loads((tmp_path / "priors" / "projects.json").read_text()).values()
        assert (stored["url"], stored["data_dir"]) == (f"http://127.0.0.1:{port}", str(data_dir))
    finally:
        os.kill(int(process_id), signal.SIGTERM)
        for _ in range(600):
            if not (data_dir / RECORD).exists():
                break
            await asyncio.sleep(0.1)
        else:
            os.kill(int(process_id), signal.SIGKILL)
            pytest.fail("the service did not end")


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_key_and_no_address_is_written_into_a_file(name: str) -> None:
    program = PROGRAMS[name]
    text = program.with_entry("", replace(GIVEN, has_key=True))
    entry = program.entry_in(text)
    assert (entry["command"], entry["args"]) == ("priors", ["mcp"])
    # Zed's server inherits the environment.
    assert ("PRIORS_API_KEY" in text) is (name != "zed")
    hooks = with_hooks(program, "", GIVEN) if program.hooks_file else ""
    for written in (text, hooks):
        assert "://" not in written
        assert "/bin/priors" not in written or program.hooks_are_personal


@pytest.mark.parametrize("groups", [{"matcher": "Bash"}, "own", None, ["own"]])
def test_hooks_in_an_unknown_form_are_refused(groups: object) -> None:
    text = json.dumps({"hooks": {"PreToolUse": groups}})
    with pytest.raises(InvalidInput, match=r"settings\.local\.json: has hooks\.PreToolUse that is no list of objects"):
        with_hooks(PROGRAMS["claude-code"], text, GIVEN)


async def test_a_password_in_the_url_is_written_into_no_file(project: Path, tmp_path: Path) -> None:
    before = files_below(project)
    code, output, errors = await connect(project, "cursor", "--url", "http://u:secret@127.0.0.1:9", state=tmp_path)
    assert (code, "--url: the URL has a user or a password" in errors) == (2, True)
    assert "secret" not in output + errors
    assert files_below(project) == before


def test_a_hook_that_does_not_answer_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.interfaces.cli.mcp_client.HOOK_SECONDS", 0.2)
    settings = tmp_path / PROGRAMS["codex"].hooks_file
    settings.parent.mkdir()
    settings.write_text(json.dumps({"hooks": {"UserPromptSubmit": [{"hooks": [{"command": "exec sleep 600"}]}]}}))
    with pytest.raises(ConfigurationError, match="its hook does not answer within"):
        check_hook(PROGRAMS["codex"], tmp_path)


async def test_a_name_that_no_workspace_can_have_is_refused_before_anything_is_written(
    project: Path, server: str, tmp_path: Path
) -> None:
    before = files_below(project)
    words = ("cursor", "--url", server, "--workspace", "two words")
    code, _, errors = await connect(project, *words, state=tmp_path / "state")
    assert (code, "--workspace: a workspace's name has 1 to 64 letters" in errors) == (2, True)
    assert files_below(project) == before
    assert not (tmp_path / "state").exists()


async def test_the_command_is_linked_where_programs_find_it(project: Path, server: str, tmp_path: Path) -> None:
    """A process whose PATH does not have `priors`, as that of an editor which was started from the desktop."""
    home, command = tmp_path / "home", [sys.executable, "-c", f"import os; os.environ['PATH'] = '/bin'; {MAIN}"]
    code, _, errors = await connect(project, "zed", "--url", server, state=tmp_path, command=[*command, "connect"])
    assert (code, "`priors` by its name, and it is not on the PATH; link it" in errors) == (2, True)
    assert not (project / ".zed").exists()
    there = f"import os; os.environ |= {{'HOME': '{home}', 'PATH': '/bin:{home}/.local/bin'}}; {MAIN}"
    words = [sys.executable, "-c", there, "connect"]
    code, output, errors = await connect(project, "zed", "--url", server, state=tmp_path, command=words)
    assert (code, errors, f"linked {home}/.local/bin/priors to " in output) == (0, "", True)


@pytest.mark.parametrize(
    "kind", ["folder", pytest.param("file", marks=pytest.mark.smoke), "link to a file", "link to nothing"]
)
@pytest.mark.test_all("processes")
async def test_only_a_link_to_nothing_is_replaced_by_the_command(
    kind: str, project: Path, server: str, tmp_path: Path
) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    place = home / ".local" / "bin" / "priors"
    place.parent.mkdir(parents=True)
    if kind == "folder":
        place.mkdir()
    elif kind == "file":
        place.write_text("mine")
    else:
        place.symlink_to(other)
    if kind == "link to a file":
        other.write_text("mine")
    there = f"import os; os.environ |= {{'HOME': '{home}', 'PATH': '/bin:{home}/.local/bin'}}; {MAIN}"
    words = [sys.executable, "-c", there, "connect"]
    code, output, errors = await connect(project, "zed", "--url", server, state=tmp_path, command=words)
    if kind == "link to nothing":
        assert (code, errors, f"linked {place} to " in output) == (0, "", True)
        return
    assert (code, "Traceback" in errors, (project / ".zed").exists()) == (2, False, False)
    assert f"{place} is in the place of the command" in " ".join(errors.split())
    assert place.is_dir() or place.read_text() == "mine"


EDITED = {
    "comments": '{\n  // how it looks\n  "theme": "One", /* nice */\n}\n',
    "blanks at the end": '{"theme": "One"}  \n\n\n',
    "the line endings of Windows": '{\r\n  "theme": "One"\r\n}\r\n',
    "no line ending": '{\n\t"theme": "One"\n}',
    "a byte order mark": '\ufeff{ "theme": "One" }\n',
    "an empty object": "{ }\n",
    "nothing": "",
    "servers in one line": '{"mcpServers": {"other": {"command": "x"}}, "context_servers":{"o":{"url":"y"},},"a":1}',
    "both endings": '{\r\n  "theme": "One",\n  "hooks": {}\r\n}\n',
}
"""Settings files as people and editors leave them."""
TABLES = {
    "comments": '# mine\nmodel = "x" # nice\n',
    "blanks at the end": 'model = "x"\n\n\n',
    "the line endings of Windows": '[profiles.fast]\r\nmodel = "z"\r\n',
    "no line ending": '[mcp_servers.other]\ncommand = "y"',
    "nothing": "",
}


def stored_in(text: str, name: str) -> dict[str, object]:
    """Returns what a file says; an empty object says nothing."""
    plain = text.removeprefix("\ufeff")
    found = tomllib.loads(plain) if name.endswith(".toml") else read_jsonc(plain, name)
    return {key: value for key, value in found.items() if value != {}}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_connect_wrote_is_taken_away_and_nothing_else(name: str, tmp_path: Path) -> None:
    program = PROGRAMS[name]
    for text in (TABLES if program.file.endswith(".toml") else EDITED).values():
        path = tmp_path / program.file
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
        for lessons in (False, True, False):
            _write_all(tmp_path, program, replace(GIVEN, lessons=lessons), dry_run=False)
            assert program.entry_in(path.read_text(encoding="utf-8-sig"))["command"] == "priors"
        _write_all(tmp_path, program, None, dry_run=False)
        stored = stored_in(text, program.file)
        left = path.read_bytes().decode() if path.exists() else ""
        assert stored_in(left, program.file) == stored
        assert path.exists() is bool(stored)
        for comment in ("// how it looks", "/* nice */", "# mine", "# nice"):
            assert (comment in left) is (comment in text)


@pytest.mark.parametrize("text", EDITED.values(), ids=EDITED)
def test_what_a_person_wrote_around_it_since_stays(text: str, tmp_path: Path) -> None:
    program, path = PROGRAMS["gemini-cli"], tmp_path / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.write_bytes(text.encode())
    _write_all(tmp_path, program, GIVEN, dry_run=False)
    first = path.read_text(encoding="utf-8").index("{") + 1
    written = path.read_bytes().decode()
    own = '// since\n "model": "pro", '
    path.write_bytes(f"{written[:first]}{own}{written[first:]}\n\n".encode())
    _write_all(tmp_path, program, None, dry_run=False)
    after = path.read_bytes().decode()
    assert stored_in(after, program.file) == {"model": "pro", **stored_in(text, program.file)}
    assert "// since" in after
    assert after.startswith("\ufeff") is text.startswith("\ufeff")


async def test_the_record_names_the_programs_and_goes_with_the_last_one(
    project: Path, server: str, tmp_path: Path
) -> None:
    record = tmp_path / "priors" / "projects.json"
    for name in ("cursor", "zed"):
        await connect(project, name, "--url", server, state=tmp_path)
    since = json.loads(record.read_text())[str(project)]["since"]
    stored = {"workspace": "shop", "url": server, "data_dir": "", "since": since}
    assert json.loads(record.read_text()) == {str(project): {**stored, "programs": ["cursor", "zed"]}}
    await connect(project, "cursor", "--remove", state=tmp_path)
    assert json.loads(record.read_text()) == {str(project): {**stored, "programs": ["zed"]}}
    await connect(project, "zed", "--remove", state=tmp_path)
    assert json.loads(record.read_text()) == {}


@pytest.mark.test_all("processes")
async def test_a_service_that_does_not_start_in_time_is_ended(project: Path, tmp_path: Path) -> None:
    impatient = "from app.interfaces.cli import main, places; places.START_SECONDS = 0.0; main()"
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    (data_dir / LOG).write_text("an earlier service\n")
    command, settings = [sys.executable, "-c", impatient, "connect"], {"DATA_DIR": str(data_dir), "PORT": free_port()}
    code, _, errors = await connect(project, "cursor", state=tmp_path, command=command, **settings)
    assert (code, "the service does not start" in errors) == (2, True)
    (process_id,) = re.findall(r"kill (\d+)", errors)
    assert not psutil.pid_exists(int(process_id))
    assert (data_dir / LOG).read_text().startswith("an earlier service\n"), "the log of the earlier one stays"
    assert not (project / ".cursor").exists()
