"""What the tests share: a real Postgres, vectors of hashed words, and a workspace of its own for each test."""

import asyncio
import gc
import os
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import uuid4

import httpx
import psycopg
import pytest
import pytest_asyncio
from hypothesis import HealthCheck
from hypothesis import settings as property_settings
from psycopg import sql
from sqlalchemy import make_url
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from app.foundation.db.database import Database
from app.foundation.db.migrations import upgrade
from app.foundation.db.pool import libpq_url
from app.foundation.models.bundled import write_onnx
from app.foundation.models.protocols import EmbeddingProvider, TokenCounter
from app.foundation.models.providers import provider_from
from app.foundation.models.tokens import BundledTokenCounter
from app.foundation.postgres.embedded import EmbeddedPostgres
from app.insight.map.layout import CACHE
from app.intake.cases.service import Cases
from app.recall.context import service as contexts
from app.recall.context.history import Histories
from app.recall.cues import actions
from app.recall.cues.activate import Activations
from app.recall.retrieval.service import Retrieval
from app.settings import Settings
from app.storage.index.service import Embedder
from app.storage.links.service import Links
from app.storage.tenants.service import Workspaces
from app.storage.tenants.workspace import Workspace
from app.wiring import MAP_CACHE, Services
from tests.cluster import copied_cluster_database, distributed_template, fresh_cluster_database, is_cluster
from tests.fakes.providers import ByMark

pytest_plugins = ["tests.tiers", "tests.times"]

PANEL = "tests/panel/"
LONGEST = (
    PANEL, "cli/test_commands.py", "test_documented_blocks.py", "test_benchmarks.py", "cli/test_processes.py",
    "http/test_schema.py", "operations/test_examples.py", "postgres/test_embedded.py", "cli/test_service.py",
    "db/test_migrations.py", "index/test_reembed.py", "index/test_killed.py", "http/test_isolation.py",
    "insight/test_novelty.py", "insight/test_layout.py", "cli/test_connect.py",
    "client/test_langgraph.py", "client/test_pipeline.py", "client/test_backends.py", "postgres/test_cluster.py",
    "reports/test_ingest.py", "worker/test_worker.py", "tenants/test_keys.py", "test_tracing.py", "cli/test_hooks.py",
    "http/test_judgement.py", "safety/test_scan.py", "http/test_effect.py", "longmemeval.py",
)  # fmt: skip
"""Folders and files that take more than a hundredth of the time each, longest first."""
GIVEN_URL = "PRIORS_TEST_DATABASE_URL"
IMAGE = "pgvector/pgvector:0.8.1-pg18-trixie"


def _docker_runs() -> bool:
    docker = shutil.which("docker")
    if docker is None:
        return False
    return subprocess.run([docker, "info"], capture_output=True, check=False, timeout=30).returncode == 0


def _chosen_postgres() -> str:
    if os.environ.get(GIVEN_URL):
        return GIVEN_URL
    return "docker" if _docker_runs() else "embedded"


POSTGRES = _chosen_postgres()
REPOSITORY = Path(__file__).parents[1]
WITHOUT_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients of `http://` addresses: to read the system's certificates takes each client 28 ms of a core."""
COMPILED = REPOSITORY / ".pytest_cache" / MAP_CACHE
"""Folder of the machine code that computes maps: compiling it takes half a minute of a core."""
os.environ[CACHE] = str(COMPILED)
# Each process that a test starts would compile all modules again, which takes 2 s of a core.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# And each test process would rewrite the assertions of all tests again, which takes 10 s of a core.
sys.dont_write_bytecode = False


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A script's background job ignores interrupts, and so would the processes that the tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)


property_settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# A busy machine fails no property test: it takes as long as it takes.
property_settings.load_profile("unhurried")


class ByFile(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives each process whole files, and one process all of the panel: its browser, service and map are made once."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return PANEL if file.startswith(PANEL) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile | None:
    """Distribute the tests by file where that is asked for."""
    return ByFile(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let no collector of garbage walk over the tests and their modules, which all stay.

    Collecting the tests makes millions of objects: to walk over them takes 6 s of a core meanwhile, and a tenth of the
    time of the tests afterwards.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files first that take longest, so that no process is left with one of them at the end."""
    items.sort(
        key=lambda item: next((place for place, path in enumerate(LONGEST) if path in item.nodeid), len(LONGEST))
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Choose what embeds, before any fixture does, and skip what cannot hold on a cluster."""
    # Processes that a test starts load the real model, and answer over the same store.
    understands = any(item.get_closest_marker(name) for name in ("meaning", "system"))
    if understands != ByMark.understands:
        # The process keeps the examples' vectors by the name of the model, which both kinds of tests have.
        actions._CACHED.clear()
    ByMark.understands = understands
    mark = item.get_closest_marker("one_server")
    if mark is not None and POSTGRES == GIVEN_URL and is_cluster(libpq_url(os.environ[GIVEN_URL])):
        pytest.skip(f"on a Citus cluster: {mark.args[0]}")


def pytest_report_header() -> str:
    """Say which Postgres the tests use."""
    meaning = {
        GIVEN_URL: f"the one that {GIVEN_URL} names",
        "docker": f"a container of {IMAGE}",
        "embedded": "the embedded one (no Docker engine answers)",
    }
    return f"postgres: {meaning[POSTGRES]}"


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    """The URL of a database on the server that the tests use."""
    if POSTGRES == GIVEN_URL:
        yield libpq_url(os.environ[GIVEN_URL])
    elif POSTGRES == "docker":
        from testcontainers.postgres import PostgresContainer  # noqa: PLC0415 - only where Docker runs

        with PostgresContainer(IMAGE, driver=None) as container:
            yield container.get_connection_url()
    else:
        with EmbeddedPostgres(folder) as server:
            yield server.start()


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database whose role may create others."""
    with _server(tmp_path_factory.mktemp("postgres")) as url:
        if POSTGRES == "embedded":
            _without_waiting_for_the_disk(url)
        yield url


def _without_waiting_for_the_disk(url: str) -> None:
    """Lets the server lose its data where the machine stops: a killed process loses nothing by it."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")


@contextmanager
def store_database(server_url: str, template: str) -> Iterator[str]:
    """Yields the URL of a database that copies `store_template`, and drops it at the end."""
    copied = copied_cluster_database if is_cluster(server_url) else copied_database
    with copied(server_url, template) as url:
        yield url


@contextmanager
def copied_database(server_url: str, template: str) -> Iterator[str]:
    """Yields the URL of a database on one server that copies `template`, and drops it at the end."""
    name = f"priors_{uuid4().hex[:12]}"
    create = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(create)
    yield make_url(server_url).set(database=name).render_as_string(hide_password=False)
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def migrated_template(server_url: str) -> Iterator[str]:
    """The name of a migrated database that nobody uses: a copy of it takes a fraction of the time of the migrations."""
    with copied_database(server_url, "template1") as url:
        upgrade(url)
        yield str(make_url(url).database)


@pytest.fixture(scope="session")
def store_template(server_url: str, migrated_template: str) -> Iterator[str]:
    """The name of the database that the tests' stores copy: the migrated one, on a cluster a distributed one."""
    if not is_cluster(server_url):
        yield migrated_template
        return
    with distributed_template(server_url) as name:
        yield name


@pytest.fixture
def empty_database_url(server_url: str) -> Iterator[str]:
    """An empty database for one test, not migrated."""
    empty = fresh_cluster_database(server_url) if is_cluster(server_url) else copied_database(server_url, "template1")
    with empty as url:
        yield url


@pytest.fixture
def own_database_url(server_url: str, store_template: str) -> Iterator[str]:
    """A migrated database for one test that needs one for itself."""
    with store_database(server_url, store_template) as url:
        yield url


@pytest.fixture
def undistributed_database_url(server_url: str, migrated_template: str) -> Iterator[str]:
    """A migrated database for one test, before `priors store distribute`."""
    with copied_database(server_url, migrated_template) as url:
        yield url


@pytest.fixture(scope="session")
def database_url(server_url: str, store_template: str) -> Iterator[str]:
    """The migrated database that the tests share; each test has a workspace of its own in it."""
    with store_database(server_url, store_template) as url:
        yield url


@pytest_asyncio.fixture(scope="session")
async def database(database_url: str) -> AsyncIterator[Database]:
    """Connections to the shared database."""
    database = Database(database_url, pool_size=8)
    yield database
    await database.close()


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the written embedding model, one for all processes of a test run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "models"
    write_onnx(folder)
    return folder


@pytest.fixture(scope="session", autouse=True)
def patient() -> Iterator[None]:
    """A busy machine takes as long as it takes to ask the sources of a context."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(contexts, "SECONDS", 240.0)
        patched.setattr(contexts, "EMBEDDING_SECONDS", 240.0)
        yield


def data_folder(parent: Path, models: Path) -> Path:
    """Returns a new data directory below `parent` that has the embedding model already."""
    folder = parent / "data"
    folder.mkdir()
    (folder / "models").symlink_to(models)
    return folder


@pytest.fixture(scope="session")
def settings(database_url: str, tmp_path_factory: pytest.TempPathFactory, model_folder: Path) -> Settings:
    """Settings for the shared database, with the model that all tests share."""
    data_dir = data_folder(tmp_path_factory.mktemp("settings"), model_folder)
    return Settings(database_url=database_url, data_dir=data_dir, port=0)


@pytest_asyncio.fixture(scope="session")
async def provider(settings: Settings, database: Database) -> AsyncIterator[EmbeddingProvider]:
    """Hashed words, as vectors of the local embedding model; in tests that are marked `meaning` that model itself."""
    provider = ByMark(provider_from(settings))
    await Embedder(database=database, provider=provider).serving_model()
    yield provider
    await provider.close()


@pytest.fixture(scope="session")
def counter() -> BundledTokenCounter:
    """The embedding model's own tokenizer."""
    return BundledTokenCounter()


@pytest.fixture(scope="session")
def services(
    settings: Settings, database: Database, provider: EmbeddingProvider, counter: BundledTokenCounter
) -> Services:
    """Everything that the verbs need."""
    return Services(settings=settings, database=database, provider=provider, counter=counter)


async def link_pending(database: Database, workspace: Workspace) -> int:
    """Links a workspace's pending memories, not those that all other tests left in the store; returns their number."""
    return (await Links(database=database).link_pending(partial(database.session, workspace))).memories


def histories_of(database: Database, provider: EmbeddingProvider, counter: TokenCounter) -> Histories:
    """Returns the service of histories over these parts."""
    return Histories(
        retrieval=Retrieval(database=database, provider=provider),
        activations=Activations(database=database, provider=provider, counter=counter),
        cases=Cases(database=database, provider=provider, counter=counter),
        counter=counter,
    )


@pytest_asyncio.fixture
async def own_services(services: Services, own_database_url: str) -> AsyncIterator[Services]:
    """The same over a database of its own, for a test that needs one for itself."""
    database = Database(own_database_url, pool_size=4)
    yield replace(services, database=database, settings=replace(services.settings, database_url=own_database_url))
    await database.close()


@asynccontextmanager
async def serving(services: Services) -> AsyncIterator[str]:
    """Serves at the address that this yields, without a worker."""
    from app.interfaces.http.serving.server import address, bound_socket, serve  # noqa: PLC0415 - the tests of lower rooms need no door

    services = replace(services, settings=replace(services.settings, embedded_worker=False))
    stop, ready = asyncio.Event(), asyncio.Event()
    listening = bound_socket(services.settings)
    task = asyncio.create_task(serve(services, listening, stop=stop, on_ready=lambda _: ready.set()))
    try:
        await ready.wait()
        yield address(listening)
    finally:
        stop.set()
        await task
        listening.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def server(services: Services) -> AsyncIterator[str]:
    """The address of a running service, without a worker: other tests share the store and its waiting memories."""
    async with serving(services) as where:
        yield where


@pytest.fixture
def workspace_name() -> str:
    """The name of a workspace that no other test sees."""
    return f"test-{uuid4().hex[:12]}"


@pytest_asyncio.fixture
async def workspace(database: Database, workspace_name: str) -> Workspace:
    """The workspace of that name, made in the shared database, its language English."""
    return await workspace_in(database, workspace_name)


async def workspace_in(database: Database, name: str, *, language: str = "english") -> Workspace:
    """Returns the workspace of that name, made now: for a test with a database of its own, or with two workspaces."""
    workspaces = Workspaces(database=database, language=language)
    return await workspaces.get_or_create(await workspaces.resolve(name))


@pytest.fixture
def headers(workspace_name: str) -> dict[str, str]:
    """The header that names the test's own workspace."""
    return {"X-Workspace": workspace_name}


@pytest_asyncio.fixture(loop_scope="session")
async def client(server: str, headers: dict[str, str]) -> AsyncIterator[httpx.AsyncClient]:
    """An HTTP client in the test's own workspace."""
    async with httpx.AsyncClient(base_url=server, headers=headers, timeout=60, verify=WITHOUT_TLS) as client:
        yield client


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the project."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared_data(repository: Path) -> Path:
    """The real data that does not come with the project."""
    folder = repository.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the evaluation data is not at {folder}")
    return folder
