"""The client's retries, against a server on a socket that misbehaves as told."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
import pytest
from priors_client import (
    AsyncClient,
    Client,
    ConnectionFailed,
    InvalidRequest,
    NotFound,
    PriorsError,
    ServiceFailed,
    Unauthorized,
    UnreadableAnswer,
)
from priors_client import requests as rules

OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
STATUS = OK % (15, b'{"status":"ok"}')
SAVED = OK % (len(b'{"run_id":"r","status":"x"}'), b'{"run_id":"r","status":"x"}')
BROKEN = b""
"""The connection closes without an answer."""


def failing(status: int, *headers: str) -> bytes:
    """Returns an answer without a problem document, as a proxy gives it."""
    lines = "".join(f"{header}\r\n" for header in headers)
    return f"HTTP/1.1 {status} Busy\r\n{lines}content-length: 4\r\n\r\nbusy".encode()


@asynccontextmanager
async def answering(*answers: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Serves these answers, one a connection, the last one for ever; yields the address and the heads it was sent."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        heads.append(head)
        length = next((line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), b": 0")
        await reader.readexactly(int(length.partition(b":")[2]))
        writer.write(answers[min(len(heads), len(answers)) - 1])
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heads


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the pauses short."""
    monkeypatch.setattr(rules, "FIRST_PAUSE", 0.001)


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_makes_the_path_of_another_route_is_refused(name: str) -> None:
    with Client("http://127.0.0.1:9") as priors, pytest.raises(PriorsError, match="cannot stand in a path"):
        priors.admin.delete_session(name)


@pytest.mark.parametrize("failure", [BROKEN, failing(503), failing(429), failing(502), failing(408)])
async def test_what_may_be_repeated_is(failure: bytes) -> None:
    async with answering(failure, failure, STATUS) as (url, heads), AsyncClient(url, retries=2) as priors:
        assert (await priors.admin.health()).status == "ok"
        assert len(heads) == 3


@pytest.mark.parametrize(("failure", "error"), [(BROKEN, ConnectionFailed), (failing(503), ServiceFailed)])
async def test_a_run_that_may_have_been_recorded_is_not_sent_again(failure: bytes, error: type[Exception]) -> None:
    async with answering(failure, STATUS) as (url, heads), AsyncClient(url) as priors:
        with pytest.raises(error):
            await priors.record_run("r", task="once")
        assert len(heads) == 1


async def test_what_was_not_taken_is_always_sent_again() -> None:
    async with answering(failing(429), SAVED) as (url, heads), AsyncClient(url) as priors:
        with pytest.raises(UnreadableAnswer):
            await priors.record_run("r", task="twice")
        assert len(heads) == 2


async def test_a_rating_has_one_key_for_all_attempts() -> None:
    async with answering(BROKEN, failing(503), failing(400)) as (url, heads), AsyncClient(url) as priors:
        with pytest.raises(Exception, match="busy"):
            await priors.rate("00000000-0000-0000-0000-000000000000", 1)  # type: ignore[arg-type]  # any text will do
        keys = {line for head in heads for line in head.split(b"\r\n") if line.lower().startswith(b"idempotency-key")}
        assert (len(heads), len(keys)) == (3, 1)


@pytest.mark.parametrize("path", ["activate", "history"])
async def test_what_may_fire_cues_has_one_key_for_all_attempts(path: str) -> None:
    async with answering(BROKEN, failing(400)) as (url, heads), AsyncClient(url) as priors:
        with pytest.raises(InvalidRequest):
            await (priors.activate(plan="x") if path == "activate" else priors.history("x", activate=True))
        keys = {line for head in heads for line in head.split(b"\r\n") if line.lower().startswith(b"idempotency-key")}
        assert (len(heads), len(keys)) == (2, 1)


async def test_a_deletion_whose_answer_was_lost_is_done() -> None:
    for lost in (BROKEN, failing(503)):
        async with answering(lost, failing(404)) as (url, heads), AsyncClient(url) as priors:
            await priors.admin.delete_session("x")
            assert len(heads) == 2
    async with answering(failing(429), failing(404)) as (url, _), AsyncClient(url) as priors:
        with pytest.raises(NotFound):
            await priors.admin.delete_session("x")


async def test_a_stream_that_is_refused_while_it_is_sent_is_told_with_the_reason() -> None:
    notes = [{"kind": "note", "body": "x" * 10_000}] * 1_000
    async with answering(failing(401)) as (url, _), AsyncClient(url) as priors:
        with pytest.raises(Unauthorized, match="401: busy"):
            await priors.store_many(notes)
    async with answering(BROKEN, STATUS) as (url, _), AsyncClient(url) as priors:
        with pytest.raises(ConnectionFailed):
            await priors.store_many(notes)


@pytest.mark.parametrize("given", [{"key": "secret\nkey"}, {"workspace": "secret\r"}])
def test_what_no_header_can_have_is_refused_without_being_shown(given: dict[str, str]) -> None:
    for client in (Client, AsyncClient):
        with pytest.raises(PriorsError, match=f"the {next(iter(given))} has a line break") as refused:
            client(**given)  # type: ignore[arg-type]  # the key or the workspace
        assert "secret" not in str(refused.value)


async def test_the_attempts_end_with_the_last_error() -> None:
    async with answering(failing(503)) as (url, heads), AsyncClient(url, retries=2) as priors:
        with pytest.raises(ServiceFailed, match="503: busy"):
            await priors.search("x")
        assert len(heads) == 3


async def test_the_blocking_client_retries_too() -> None:
    async with answering(BROKEN, failing(503), STATUS) as (url, heads):

        def work() -> str:
            with Client(url) as priors:
                return priors.admin.health().status

        assert await asyncio.to_thread(work) == "ok"
        assert len(heads) == 3


async def test_the_answer_of_another_program_is_told() -> None:
    async with answering(OK % (6, b"<html>")) as (url, _), AsyncClient(url) as priors:
        with pytest.raises(UnreadableAnswer, match="check the URL"):
            await priors.search("x")
        with pytest.raises(UnreadableAnswer):
            _ = [line async for line in priors.admin.export_feedback()]


@pytest.mark.parametrize(
    ("header", "holds"),
    [
        ("3", lambda pause: pause == 3),
        ("3600", lambda pause: pause == rules.LONGEST_PAUSE),
        ("Wed, 21 Oct 2015 07:28:00 GMT", lambda pause: pause == 0),
        ("soon", lambda pause: 0 < pause <= rules.FIRST_PAUSE),
    ],
)
def test_the_pause_that_the_service_asks_for_is_kept(header: str, holds: Callable[[float], bool]) -> None:
    request: rules.Request[None] = rules.Request("GET", "/health", None, repeatable=True)
    pause = rules.pause_after(request, httpx.Response(503, headers={"retry-after": header}), 0)
    assert pause is not None
    assert holds(pause)


def test_pauses_double_up_to_the_longest() -> None:
    for attempt in range(40):
        most = min(rules.FIRST_PAUSE * 2.0**attempt, rules.LONGEST_PAUSE)
        assert most / 2 <= rules._pause(attempt) <= most
