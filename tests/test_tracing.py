"""Traces and metrics over OTLP, as a collector receives them; and a collector that is slow, away or not named."""

import asyncio
import os
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterator

import httpx
import psycopg
import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from app import tracing
from app.foundation.db.session import EMBED
from app.interfaces.worker.worker import work_off
from app.operations.status import Overview
from app.wiring import Services
from tests.conftest import serving
from tests.fakes.collector import Collector, collecting
from tests.interfaces.http.calls import post

WRITTEN, ASKED = "0af7651916cd43dd8448eb211c80319c", "1bf7651916cd43dd8448eb211c80319d"
CALLER = "b7ad6b7169203331"
QUERY = "Which valve was replaced at the pumphouse"
STEPS = {f"recall.{step}" for step in ("embed", "survey", "lexical", "candidates", "rank", "hydrate", "log")}


def parent(trace: str) -> dict[str, str]:
    return {"traceparent": f"00-{trace}-{CALLER}-01"}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No variable of OpenTelemetry is set; at the end nothing is exported any more."""
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    yield
    closed()
    assert not tracing.is_on()


def closed() -> None:
    """Waits until exports that were left behind have ended."""
    for thread in threading.enumerate():
        if thread.name == tracing.CLOSING:
            thread.join()


@pytest_asyncio.fixture
async def collected(own_services: Services, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Collector]:
    """What a collector has of a memory, of the jobs that it asked for, and of a search."""
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        with tracing.exporting():
            async with serving(own_services) as where, httpx.AsyncClient(base_url=where, timeout=60) as client:
                note = {"kind": "note", "body": "The gate valve of the pumphouse was replaced."}
                await post(client, "/api/memories", note, **parent(WRITTEN))
                report = {"path": "a.md", "content": "# Pumps\n\nThe second pump was repaired in May."}
                await post(client, "/api/reports", report, **parent(WRITTEN))
                await work_off(own_services)
                assert (await post(client, "/api/search", {"query": QUERY}, **parent(ASKED)))["mode"] == "hybrid"
                await client.get("/health")
        yield collector


async def test_a_request_is_a_trace_of_its_steps_and_jobs(collected: Collector) -> None:
    (request,) = collected.named("POST /api/search")
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == (ASKED, CALLER)
    inside = [span for span in collected.spans if span.parent_span_id == request.span_id]
    assert {span.name for span in inside} == STEPS
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano <= request.end_time_unix_nano for span in inside)
    written = {span.name for span in collected.spans if span.trace_id.hex() == WRITTEN}
    assert {"remember.screen", "remember.echoes", "remember.write"} <= written
    assert {"ingestion.prepare", "ingestion.embed", "ingestion.write"} <= written
    assert {f"job {task}" for task in ("embed_waiting", "link_waiting", "refresh_statistics")} <= written
    (job, *_) = collected.named("job link_waiting")
    assert job.parent_span_id in {span.span_id for span in collected.spans}
    assert not collected.named("GET /health")
    assert not [span for span in collected.spans if "pumphouse" in str(span)]
    assert "priors" in collected.resources
    assert {point.as_double for point in collected.metrics["priors_recalls"]} == {1.0}
    assert collected.metrics["priors_embeddings_waiting"]
    steps = {point.attributes[0].value.string_value for point in collected.metrics["priors.step.duration"]}
    assert STEPS | {"request", "job link_waiting"} <= steps


async def answered(services: Services) -> int:
    async with serving(services) as where, httpx.AsyncClient(base_url=where, timeout=60) as client:
        await client.post("/api/search", json={"query": QUERY})
        return (await client.post("/api/search", json={"query": QUERY})).status_code


async def test_a_slow_collector_delays_nothing(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "STOP_SECONDS", 0.1)
    with collecting() as collector:
        collector.may_answer.clear()
        # Whoever waited for it would wait for longer than a test may take.
        for name, value in {"ENDPOINT": collector.url, "TIMEOUT": "3600"}.items():
            monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{name}", value)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
        with tracing.exporting():
            assert await answered(services) == 200
            collector.asked.wait()
        collector.may_answer.set()
        closed()
    assert collector.spans


async def test_a_collector_that_is_away_fails_nothing(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "STOP_SECONDS", 0.1)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{bound.getsockname()[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
        with tracing.exporting():
            assert await answered(services) == 200


async def test_gauges_that_cannot_be_read_stop_nothing(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "STOP_SECONDS", 0.1)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    asked = asyncio.Event()

    async def locked(_: Overview) -> None:
        asked.set()
        raise psycopg.errors.LockNotAvailable("a migration runs")

    monkeypatch.setattr(Overview, "gauges", locked)
    with tracing.exporting():
        async with serving(services) as where, httpx.AsyncClient(base_url=where, timeout=60) as client:
            await asked.wait()
            assert (await client.get("/health")).status_code == 200


async def test_a_job_runs_where_its_trace_is_not_exported(own_services: Services) -> None:
    async with own_services.database.across() as session:
        await session.enqueue(EMBED, traceparent=parent(WRITTEN)["traceparent"])
    await work_off(own_services)
    async with own_services.database.across() as session:
        assert await session.column("SELECT status FROM procrastinate_jobs WHERE task_name = %(n)s", {"n": EMBED}) == []


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"ENDPOINT": "http://127.0.0.1:1", "SDK_DISABLED": "true"},
        {"ENDPOINT": "http://127.0.0.1:1", "TRACES_EXPORTER": "none", "METRICS_EXPORTER": "none"},
    ],
)
def test_it_is_off_unless_a_collector_is_named(given: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in given.items():
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT" if name == "ENDPOINT" else f"OTEL_{name}", value)
    with tracing.exporting(), tracing.request("POST", "/api/search", []), tracing.span("recall.embed"):
        assert not tracing.is_on()
        assert tracing.carried_context() == {}
    assert tracing.times() == {}


@pytest.mark.parametrize(
    ("missing", "said"), [({"opentelemetry.sdk.trace": None}, "priors[otel]"), ({}, "ValueError")], ids=str
)
def test_what_cannot_be_exported_is_said(missing: dict[str, None], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "-1")
    monkeypatch.delitem(sys.modules, "app.tracing.export", raising=False)
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    with capture_logs() as lines, tracing.exporting():
        assert not tracing.is_on()
    assert said in str(lines)


def test_the_steps_of_a_request_are_summed() -> None:
    with tracing.request("POST", "/api/search", []):
        for _ in range(2):
            with tracing.span("recall.rank"):
                pass
        assert set(tracing.times()) == {"recall.rank"}
