"""What failed while nobody watched: what is noted, removed and shown."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from app.interfaces.cli import failures
from tests.conftest import REPOSITORY


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This user's state."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "priors"


def since(days: float) -> str:
    """Returns the moment of some days ago."""
    return (datetime.now(UTC) - timedelta(days=days)).strftime("%Y-%m-%d %H:%M UTC")


def test_a_failure_is_noted_beside_the_store_and_goes_when_the_thing_is_done(tmp_path: Path, state: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    failures.note("session", "a", "no answer came from http://h", project="/home/ada/shop", data_dir=str(data))
    failures.note("session", "b", "the disk is full", data_dir=str(data))
    (noted,) = json.loads((data / failures.FILE).read_text()).values()
    first = noted["session a"]
    assert first == {
        "what": "session",
        "name": "a",
        "project": "/home/ada/shop",
        "reason": "no answer came from http://h",
        "at": first["at"],
    }
    assert not (state / failures.FILE).exists()
    failures.clear("session", "a", data_dir=str(data))
    assert [item.name for item in failures.failures(str(data))] == ["b"]
    failures.clear("session", "b", data_dir=str(data))
    assert failures.failures(str(data)) == []


@pytest.mark.parametrize("data_dir", ["", "/nowhere/at/all"])
def test_without_a_data_directory_here_it_is_noted_in_the_state_of_the_user(data_dir: str, state: Path) -> None:
    failures.note("session", "a", "refused", data_dir=data_dir)
    assert (state / failures.FILE).exists()
    assert [item.reason for item in failures.failures(data_dir)] == ["refused"]


def test_a_data_directory_shows_and_clears_what_was_noted_before_it_was_there(tmp_path: Path) -> None:
    failures.note("session", "a", "refused")
    assert [item.name for item in failures.failures(str(tmp_path))] == ["a"]
    failures.clear("session", "a", data_dir=str(tmp_path))
    assert failures.failures(str(tmp_path)) == []


def test_a_second_failure_of_a_thing_keeps_the_first_moment(state: Path) -> None:
    state.mkdir(parents=True)
    (state / failures.FILE).write_text("half a li")
    failures.note("session", "a", "refused")
    noted, first = json.loads((state / failures.FILE).read_text()), since(3)
    noted["failures"]["session a"]["at"] = first
    (state / failures.FILE).write_text(json.dumps(noted))
    failures.note("session", "a", "no answer came")
    (found,) = failures.failures()
    assert (found.at, found.reason) == (first, "no answer came")


def test_a_line_tells_how_many_things_failed_since_when_and_why() -> None:
    made = partial(failures.NotedFailure, project="")
    found = [
        made(at=since(3), what="session", name="a", reason="refused"),
        made(at=since(0), what="session", name="b", reason="no answer came"),
        made(at=since(40), what="service", name="c", reason="the port is taken"),
    ]
    assert failures.summary([]) == ""
    told, other = failures.summary(found).split("; ")
    assert told == f"2 sessions could not be stored since {since(3)}: no answer came"
    assert other == f"1 service could not be started since {since(40)}: the port is taken"


def test_nothing_is_lost_where_several_note_at_once() -> None:
    code = "import sys; from app.interfaces.cli import failures; failures.note('session', sys.argv[1], 'refused')"
    run = partial(subprocess.run, check=True, cwd=REPOSITORY)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: run([sys.executable, "-c", code, str(number)]), range(12)))
    assert {item.name for item in failures.failures()} == {str(number) for number in range(12)}
