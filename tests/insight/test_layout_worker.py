"""Tests of the layout process: its start, its jobs and its end."""

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import numpy as np
import pytest
from structlog.testing import capture_logs

from app.errors import GraphUnavailable
from app.insight.map.layout import laid_out
from app.insight.map.process import CACHE, HEADER, Failure, Job, Layout, answer_of, encode_message
from app.insight.map.worker import COMPILED, LayoutWorker, SingleFlight


@asynccontextmanager
async def worker(tmp_path: Path, *, idle: float = 60, longest: float = 120) -> AsyncIterator[LayoutWorker]:
    made = LayoutWorker(tmp_path, idle_seconds=idle, longest_seconds=longest)
    try:
        yield made
    finally:
        await made.close()


def job(count: int, dimension: int = 3) -> Job:
    """Makes a job of equal memories, which need no UMAP."""
    header = dimension.to_bytes(2, "big") + b"\0\0"
    return Job(
        shown=count,
        dimension=dimension,
        vectors=(header + np.ones(dimension, dtype=">f2").tobytes()) * count,
        texts=msgspec.json.encode([("english", f"apple pear {number}") for number in range(count)]),
        coordinates=np.full((count, 2), np.nan, dtype=np.float32).tobytes(),
        fitted=bytes(count),
        clusters=[-1] * count,
    )


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - a process has no event
            await asyncio.sleep(0.01)


async def test_it_starts_with_the_first_job_and_ends_when_closed(tmp_path: Path) -> None:
    async with worker(tmp_path) as made:
        layout = await made.compute(job(2))
        assert (layout.clusters, layout.mode) == ([0, 0], "computed")
        assert {word for word, _ in layout.words[0]} == {"apple", "pear"}
        pid = made.pid
        await made.compute(job(1))
        assert pid is not None
        assert made.pid == pid
    assert not exists(pid)


@pytest.fixture
def _never_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uses a folder of compiled code that nothing says is complete."""
    folder = Path(os.environ[CACHE])
    folder.mkdir(parents=True, exist_ok=True)
    for part in folder.iterdir():
        if part.name != COMPILED:
            (tmp_path / part.name).symlink_to(part)
    monkeypatch.setenv(CACHE, str(tmp_path))


@pytest.mark.usefixtures("_never_prepared")
@pytest.mark.test_all("processes")
async def test_code_is_compiled_ahead_once(tmp_path: Path) -> None:
    async with worker(tmp_path) as made:
        preparing = asyncio.create_task(made.prepare())
        await until(lambda: made.stage == "compiling")
        await preparing
        assert (tmp_path / COMPILED).exists()
        assert made.stage == ""
    async with worker(tmp_path) as made:
        await made.prepare()
        assert made.pid is None
        asking = asyncio.create_task(made.compute(job(2)))
        await until(lambda: made.stage == "starting")
        await asking


async def test_without_a_folder_nothing_is_compiled_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(CACHE, str(tmp_path / "file" / "folder"))
    async with worker(tmp_path) as made:
        with capture_logs() as lines:
            await made.prepare()
        assert [line["event"] for line in lines] == [
            "the folder for compiled code is read-only: each map process compiles"
        ]
        assert made.pid is None
        asking = asyncio.create_task(made.compute(job(2)))
        await until(lambda: made.stage != "")
        assert made.stage == "starting"
        await asking


def test_the_words_of_a_text_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Counter[str]()

    def words_of(text: str) -> list[str]:
        read[text] += 1
        return text.split()

    monkeypatch.setattr("app.insight.map.process.words_of", words_of)
    assert len(laid_out(job(9)).islands) == 1
    assert list(read.values()) == [1] * 9


@pytest.mark.test_all("processes")
async def test_it_ends_when_idle_and_starts_again(tmp_path: Path) -> None:
    async with worker(tmp_path, idle=0.1) as made:
        await made.compute(job(1))
        pid = made.pid
        assert pid is not None
        await until(lambda: not exists(pid))
        assert len((await made.compute(job(3))).clusters) == 3


@pytest.mark.test_all("processes")
async def test_what_takes_too_long_is_ended(tmp_path: Path) -> None:
    async with worker(tmp_path, longest=0.001) as made:
        with pytest.raises(GraphUnavailable, match="longer than"):
            await made.compute(job(1))
        assert made.pid is None


async def test_a_job_that_cannot_be_computed_is_told(tmp_path: Path) -> None:
    async with worker(tmp_path) as made:
        with pytest.raises(GraphUnavailable, match="ValueError"):
            await made.compute(msgspec.structs.replace(job(2), vectors=b"123"))
        pid = made.pid
        assert len((await made.compute(job(2))).clusters) == 2
        assert made.pid == pid


@pytest.mark.test_all("processes")
async def test_who_gives_up_leaves_nothing_behind(tmp_path: Path) -> None:
    async with worker(tmp_path) as made:
        asking = asyncio.create_task(made.compute(job(2)))
        await until(lambda: made.pid is not None)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert len((await made.compute(job(3))).clusters) == 3


@pytest.mark.test_all("processes")
async def test_closing_ends_the_job_in_progress(tmp_path: Path) -> None:
    made = LayoutWorker(tmp_path)
    asking = asyncio.create_task(made.compute(job(2)))
    await until(lambda: made.pid is not None)
    pid = made.pid
    asking.cancel()
    await made.close()
    await asyncio.gather(asking, return_exceptions=True)
    assert pid is not None
    assert not exists(pid)


@pytest.mark.test_all("processes")
def test_the_process_ends_with_its_input() -> None:
    command = [sys.executable, "-P", "-m", "app.insight.map.process"]
    done = subprocess.run(
        command, input=encode_message(job(2)) + encode_message(job(1)), capture_output=True, check=True, timeout=60
    )
    first, rest = framed(done.stdout)
    second, nothing = framed(rest)
    assert [len(item.clusters) for item in (first, second) if isinstance(item, Layout)] == [2, 1]
    assert nothing == b""


def framed(sent: bytes) -> tuple[Layout | Failure, bytes]:
    (size,) = HEADER.unpack(sent[: HEADER.size])
    return answer_of(sent[HEADER.size : HEADER.size + size]), sent[HEADER.size + size :]


@pytest.mark.test_all("processes")
def test_ctrl_c_is_left_to_the_service() -> None:
    command = [sys.executable, "-P", "-m", "app.insight.map.process"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(encode_message(job(1)))
        process.stdin.flush()
        assert process.stdout.read(HEADER.size)
        process.send_signal(signal.SIGINT)
        process.stdin.write(encode_message(job(1)))
        process.stdin.close()
        assert process.stdout.read()
    assert process.returncode == 0


def test_the_service_itself_loads_none_of_it() -> None:
    code = (
        "import sys; from app.interfaces.http.serving.application import create_app; from app.settings import Settings;"
        "create_app(Settings()); print(sorted({'umap', 'sklearn', 'numba', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"


async def test_without_umap_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # So Python knows a module that cannot be imported.
    monkeypatch.setitem(sys.modules, "umap", None)
    async with worker(tmp_path) as made:
        await made.prepare()
        with pytest.raises(GraphUnavailable, match=r"pip install 'priors\[map\]'"):
            await made.compute(job(5))
        assert made.pid is None, "no process is started for it"


async def test_the_same_work_is_done_once() -> None:
    flight: SingleFlight[int] = SingleFlight()
    begun, go = [], asyncio.Event()

    async def work() -> int:
        begun.append(1)
        await go.wait()
        return len(begun)

    asking = [asyncio.create_task(flight.once("a", work)) for _ in range(3)]
    other = asyncio.create_task(flight.once("b", work))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    go.set()
    assert await asyncio.gather(*asking, other) == [2, 2, 2, 2]
    assert await flight.once("a", work) == 3


async def test_an_error_reaches_all_and_is_forgotten() -> None:
    flight: SingleFlight[int] = SingleFlight()

    async def fail() -> int:
        await asyncio.sleep(0)
        raise GraphUnavailable("no")

    async def succeed() -> int:
        return 1

    found = await asyncio.gather(*(flight.once("a", fail) for _ in range(2)), return_exceptions=True)
    assert [type(error) for error in found] == [GraphUnavailable] * 2
    assert await flight.once("a", succeed) == 1


async def test_work_can_be_ended() -> None:
    flight: SingleFlight[None] = SingleFlight()
    pending = asyncio.create_task(flight.once("a", lambda: asyncio.sleep(60)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await flight.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pending
