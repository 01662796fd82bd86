"""Tests of the embedded Postgres: shared, killed, interrupted while it is made, placed where it cannot work."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine, text

from app.errors import ConfigurationError, DatabaseUnavailable
from app.foundation.db.pool import OWNER, SERVICE, sqlalchemy_url
from app.foundation.postgres import postmaster
from app.foundation.postgres.embedded import EmbeddedPostgres

ROOT = Path(__file__).parents[3]
PATIENCE_SECONDS = 60
AS_ROOT = os.geteuid() == 0

# Starts the server, prints its URL, and stops when its standard input ends.
USER = """
import sys
from pathlib import Path
from app.foundation.postgres.embedded import EmbeddedPostgres
with EmbeddedPostgres(Path(sys.argv[1])) as postgres:
    print(postgres.start(), flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_process(script: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Starts a Python process in a group of its own; the group is killed at the end."""
    process = subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    with process:
        yield process
        process.kill()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    assert line, "the other process ended early"
    return line


def leave(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait() == 0


def server_pid(data_dir: Path) -> int:
    return int((data_dir / "postgres" / "postmaster.pid").read_text().split()[0])


def is_up(data_dir: Path) -> bool:
    return (data_dir / "postgres" / "postmaster.pid").exists()


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def write_row(url: str, word: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (word text)")
        connection.execute("INSERT INTO kept VALUES (%s)", [word])


def rows(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [word for (word,) in connection.execute("SELECT word FROM kept ORDER BY word")]


def ask(url: str, query: str) -> str:
    with psycopg.connect(url) as connection:
        row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return str(row[0])


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """Returns a data directory; a server that a test leaves running in it is stopped."""
    folder = tmp_path / "data"
    yield folder
    with suppress(FileNotFoundError, ProcessLookupError):
        os.kill(server_pid(folder), signal.SIGQUIT)


def test_rows_survive_a_stop(data_dir: Path) -> None:
    for word in ("first", "second"):
        with EmbeddedPostgres(data_dir) as postgres:
            write_row(postgres.start(), word)
        assert not is_up(data_dir)
    with EmbeddedPostgres(data_dir) as postgres:
        assert rows(postgres.start()) == ["first", "second"]


def test_start_and_stop_may_be_called_again(data_dir: Path) -> None:
    postgres = EmbeddedPostgres(data_dir)
    url = postgres.start()
    pid = server_pid(data_dir)
    assert postgres.start() == url
    assert server_pid(data_dir) == pid
    postgres.stop()
    postgres.stop()
    assert not is_up(data_dir)


def test_two_objects_of_one_process_are_two_users(data_dir: Path) -> None:
    first, second = EmbeddedPostgres(data_dir), EmbeddedPostgres(data_dir, database="other")
    first.start()
    url = second.start()
    first.stop()
    assert ask(url, "SELECT current_database()") == "other"
    second.stop()
    assert not is_up(data_dir)


def test_url_suits_sqlalchemy(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir) as postgres:
        engine = create_engine(sqlalchemy_url(postgres.start()))
        with engine.connect() as connection:
            assert connection.execute(text("SELECT current_database()")).scalar_one() == "priors"
        engine.dispose()


def test_last_of_two_processes_stops_the_server(data_dir: Path) -> None:
    with another_process(USER, data_dir) as first, another_process(USER, data_dir) as second:
        url = first_line(first)
        assert first_line(second) == url
        write_row(url, "shared")
        leave(first)
        assert rows(url) == ["shared"]
        leave(second)
        assert not is_up(data_dir)


@pytest.mark.test_all("kills")
def test_a_killed_user_leaves_a_server_that_the_next_takes_over_and_stops(data_dir: Path) -> None:
    with another_process(USER, data_dir) as user:
        write_row(first_line(user), "kept")
        pid = server_pid(data_dir)
        user.kill()
        user.wait()
    with EmbeddedPostgres(data_dir) as postgres:
        assert server_pid(data_dir) == pid
        assert rows(postgres.start()) == ["kept"]
    assert not is_up(data_dir)


@pytest.mark.test_all("kills")
def test_a_process_that_exits_without_a_stop_gives_its_share_up(data_dir: Path) -> None:
    start = "EmbeddedPostgres(Path(sys.argv[1])).start()"
    script = (
        f"import sys; from pathlib import Path; from app.foundation.postgres.embedded import *; {start}; sys.exit(3)"
    )
    with another_process(script, data_dir) as user:
        assert user.wait() == 3
    assert (data_dir / "postgres").exists()
    assert not is_up(data_dir)


@pytest.mark.test_all("kills")
def test_an_interrupt_at_the_terminal_does_not_reach_the_server(data_dir: Path) -> None:
    with another_process(USER, data_dir) as user, EmbeddedPostgres(data_dir) as postgres:
        url = first_line(user)
        pid = server_pid(data_dir)
        os.killpg(user.pid, signal.SIGINT)
        user.wait()
        assert os.getsid(pid) == pid
        assert postgres.start() == url
        assert server_pid(data_dir) == pid


@pytest.mark.test_all("kills")
def test_many_processes_that_come_and_go(data_dir: Path) -> None:
    script = """
import sys
from pathlib import Path
import psycopg
from app.foundation.postgres.embedded import EmbeddedPostgres
for turn in range(5):
    with EmbeddedPostgres(Path(sys.argv[1])) as postgres, psycopg.connect(postgres.start()) as connection:
        connection.execute("SELECT 1")
print("done")
"""
    processes = [
        subprocess.Popen([sys.executable, "-c", script, str(data_dir)], cwd=ROOT, stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    assert [process.communicate()[0] for process in processes] == [b"done\n"] * 4
    assert not is_up(data_dir)


def test_committed_rows_survive_a_killed_server(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir) as postgres:
        url = postgres.start()
        write_row(url, "committed")
        os.kill(server_pid(data_dir), signal.SIGKILL)
        assert postgres.start() == url
        assert rows(url) == ["committed"]
    assert not is_up(data_dir)


@pytest.mark.test_all("kills")
def test_a_server_whose_socket_was_deleted_is_started_again(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir) as postgres:
        url = postgres.start()
        write_row(url, "kept")
        (data_dir / "postgres" / ".s.PGSQL.5432").unlink()
        assert postgres.start() == url
        assert rows(url) == ["kept"]


@pytest.mark.skipif(sys.platform != "linux", reason="the old server is found through /proc")
@pytest.mark.test_all("kills")
def test_a_deleted_data_directory_takes_its_server_along(data_dir: Path) -> None:
    with another_process(USER, data_dir) as user:
        first_line(user)
        old = server_pid(data_dir)
        shutil.rmtree(data_dir)
        with EmbeddedPostgres(data_dir) as postgres:
            assert not Path(f"/proc/{old}/cwd").exists()
            assert ask(postgres.start(), "SELECT 1") == "1"
            leave(user)
            assert ask(postgres.start(), "SELECT 1") == "1"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process' folder is known by its path alone")
@pytest.mark.test_all("kills")
def test_the_server_of_a_deleted_folder_is_not_that_of_the_copy_in_its_place(tmp_path: Path) -> None:
    folder = tmp_path / "postgres"
    folder.mkdir()
    with subprocess.Popen(["sleep", "600"], cwd=folder) as server:
        found = [postmaster._is_postgres_in(folder, server.pid)]
        folder.rmdir()
        folder.mkdir()
        found.append(postmaster._is_postgres_in(folder, server.pid))
        server.kill()
    assert found == [True, False]


@pytest.mark.skipif(sys.platform != "linux", reason="sessions of a killed server are found through /proc")
@pytest.mark.test_all("kills")
def test_a_busy_session_of_a_killed_server_does_not_block_the_next(data_dir: Path) -> None:
    def count() -> None:
        with suppress(psycopg.OperationalError):
            connection.execute("SELECT count(*) FROM generate_series(1, 1e11)")

    with EmbeddedPostgres(data_dir) as postgres:
        connection = psycopg.connect(postgres.start())
        session = threading.Thread(target=count)
        session.start()
        wait_until(lambda: ask(postgres.start(), "SELECT count(*) FROM pg_stat_activity WHERE query ~ '1e11'") == "2")
        os.kill(server_pid(data_dir), signal.SIGKILL)
        assert ask(postgres.start(), "SELECT 1") == "1"
        session.join()
        connection.close()


@pytest.mark.parametrize(
    "left", ["", "a line that is no number\n", "{pid}\n{cluster}\n1\n5432\n{cluster}\n\n 1 2\nready\n"]
)
@pytest.mark.test_all("kills")
def test_stale_lock_files_whose_pid_is_someone_elses(data_dir: Path, left: str) -> None:
    with EmbeddedPostgres(data_dir) as postgres:
        write_row(postgres.start(), "kept")
    cluster = data_dir / "postgres"
    content = left.format(pid=os.getpid(), cluster=cluster)
    for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
        (cluster / name).write_text(content)
        os.chown(cluster / name, cluster.stat().st_uid, -1)
    with EmbeddedPostgres(data_dir) as postgres:
        assert rows(postgres.start()) == ["kept"]
        assert server_pid(data_dir) != os.getpid()


@pytest.mark.test_all("kills")
def test_a_cluster_whose_making_was_killed_is_made_again(data_dir: Path) -> None:
    with another_process(USER, data_dir) as user:
        wait_until(lambda: any(data_dir.glob("postgres.new-*/global")))
        user.kill()
    assert not (data_dir / "postgres").exists()
    with EmbeddedPostgres(data_dir) as postgres:
        assert ask(postgres.start(), "SELECT 1") == "1"


def test_an_incomplete_cluster_is_renamed_not_deleted(data_dir: Path) -> None:
    cluster = data_dir / "postgres"
    cluster.mkdir(parents=True)
    (cluster / "PG_VERSION").write_text("18\n")
    with EmbeddedPostgres(data_dir) as postgres:
        assert ask(postgres.start(), "SELECT 1") == "1"
    (renamed,) = data_dir.glob("postgres.incomplete-*")
    assert (renamed / "PG_VERSION").read_text() == "18\n"


def test_a_failing_initdb_says_why_and_leaves_nothing(data_dir: Path) -> None:
    script = """
import resource, sys
from pathlib import Path
from app.foundation.postgres.embedded import EmbeddedPostgres
from app.foundation.db.pool import OWNER, SERVICE
from app.errors import DatabaseUnavailable
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    EmbeddedPostgres(Path(sys.argv[1])).start()
except DatabaseUnavailable as error:
    print(error)
"""
    with another_process(script, data_dir) as user:
        assert "initdb failed" in first_line(user)
    assert not list(data_dir.glob("postgres.*-*"))
    with EmbeddedPostgres(data_dir) as postgres:
        assert ask(postgres.start(), "SELECT 1") == "1"


def test_a_server_that_cannot_start_says_why_at_once(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir) as postgres:
        postgres.start()
    with (data_dir / "postgres" / "postgresql.auto.conf").open("a") as settings:
        settings.write("shared_buffers = 'many'\n")
    with pytest.raises(DatabaseUnavailable, match="shared_buffers"):
        EmbeddedPostgres(data_dir).start()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for data_dir in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ConfigurationError, match="PRIORS_DATA_DIR") as caught:
            EmbeddedPostgres(data_dir).start()
        assert str(data_dir) in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.skipif(AS_ROOT, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ConfigurationError, match="Permission denied"):
        EmbeddedPostgres(tmp_path / "data").start()


def test_users_locked_by_another_program(data_dir: Path) -> None:
    data_dir.mkdir()
    with (data_dir / "postgres.users").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(DatabaseUnavailable, match=r"postgres\.users"):
            EmbeddedPostgres(data_dir).start()


def test_the_service_logs_in_as_a_role_that_is_no_superuser_and_may_take_both_roles(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir) as postgres, psycopg.connect(postgres.service_url, autocommit=True) as connection:
        assert connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = session_user").fetchone() == (False,)
        for role in (SERVICE, OWNER):
            connection.execute(f"SET ROLE {role}")
            assert connection.execute("SELECT current_user").fetchone() == (role,)


def test_there_is_no_url_for_the_service_before_the_start(data_dir: Path) -> None:
    with pytest.raises(DatabaseUnavailable, match="not started"):
        _ = EmbeddedPostgres(data_dir).service_url
