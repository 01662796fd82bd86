"""Spans: where the time of a request or a job goes, for the log, and for a collector that OTEL_* variables name.

Without such a variable nothing of OpenTelemetry is imported, and a span only notes its time.
"""

import os
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import structlog

if TYPE_CHECKING:
    from app.tracing.export import Export

PARENT = "traceparent"
"""The name of a trace's context in headers (W3C Trace Context) and among the arguments of a job."""
STOP_SECONDS = 2.0
"""Longest wait at the end for a collector to take what was not sent yet."""
CLOSING = "otel-close"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_TRACED = ("/api/", "/mcp")
"""Beginnings of the paths whose requests have a span; probes of health and metrics have none."""
Value = str | int | float | bool
Sent = Callable[[str, int], None]
"""Takes the route and the status of an answer."""

logger = structlog.get_logger()


class Sample(Protocol):
    """A value of a Prometheus metric."""

    name: str
    labels: dict[str, str]
    value: float


class Family(Protocol):
    """A Prometheus metric."""

    name: str
    documentation: str
    type: str
    samples: list[Any]


class Registry(Protocol):
    """The metrics of an application."""

    def collect(self) -> Iterable[Family]:
        """Returns the metrics as they are now."""


_times: "ContextVar[dict[str, float] | None]" = ContextVar("_times", default=None)
_exporting: "list[Export]" = []
"""The export in progress; none where it is off."""


@contextmanager
def span(name: str, **attributes: Value) -> Generator[None]:
    """Measures a step of a request or a job. Attributes hold numbers and names, never what a caller wrote."""
    times, started = _times.get(), perf_counter()
    try:
        with _exporting[0].span(name, attributes) if _exporting else nullcontext():
            yield
    finally:
        if times is not None:
            times[name] = times.get(name, 0.0) + (perf_counter() - started) * 1000


def times() -> Mapping[str, float]:
    """Returns the milliseconds of each step of this request so far."""
    return {name: round(spent, 1) for name, spent in (_times.get() or {}).items()}


@contextmanager
def request(method: str, path: str, headers: Iterable[tuple[bytes, bytes]]) -> Generator[Sent]:
    """Measures a request and its steps; the caller passes the answer's route and status on."""
    token = _times.set({})
    try:
        if not _exporting or not path.startswith(_TRACED):
            yield _ignore_status
            return
        parent = next((value.decode("latin-1") for name, value in headers if name == PARENT.encode()), "")
        with _exporting[0].serve_span(method, parent) as note_answer:
            yield note_answer
    finally:
        _times.reset(token)


def job(task: str, parent: str) -> AbstractContextManager[object]:
    """Measures a job, as a part of the trace of the request that asked for it."""
    return _exporting[0].job(task, parent) if _exporting else nullcontext()


def carried_context() -> dict[str, str]:
    """Returns what a job needs to continue the trace; nothing outside of one."""
    return _exporting[0].carried_context() if _exporting else {}


def is_on() -> bool:
    """Tells whether something is exported."""
    return bool(_exporting)


def export_metrics(registry: Registry) -> None:
    """Exports an application's counters and gauges, too, if anything is exported."""
    if _exporting:
        _exporting[0].add(registry)


@contextmanager
def exporting() -> Generator[None]:
    """Exports while this is open, if an OTEL_* variable names a collector, and the extra `otel` is installed."""
    signals = [] if _exporting else [signal for signal in ("traces", "metrics") if _is_wanted(signal)]
    export = _make_export(signals) if signals else None
    if export is None:
        yield
        return
    _exporting.append(export)
    try:
        yield
    finally:
        _exporting.remove(export)
        # A collector that does not answer holds nobody up: the thread ends with the process.
        stopping = threading.Thread(target=export.close, name=CLOSING, daemon=True)
        stopping.start()
        stopping.join(STOP_SECONDS)


def _is_wanted(signal: str) -> bool:
    """Tells whether the variables of OpenTelemetry ask for the export of a signal."""
    own = ENDPOINT.replace("ENDPOINT", f"{signal.upper()}_ENDPOINT")
    named = os.environ.get(own) or os.environ.get(ENDPOINT)
    disabled = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    return bool(named) and not disabled and os.environ.get(f"OTEL_{signal.upper()}_EXPORTER", "otlp") == "otlp"


def _make_export(signals: Iterable[str]) -> "Export | None":
    try:
        from app.tracing.export import Export  # noqa: PLC0415 - OpenTelemetry is optional, and takes 0.4 s

        return Export(signals)
    except ImportError:
        logger.warning("a collector is named, but the extra is not installed: pip install 'priors[otel]'")
    except Exception as error:  # noqa: BLE001 - a wrong variable must not keep the service from serving
        logger.warning("nothing is exported by OpenTelemetry", reason=f"{type(error).__name__}: {error}")
    return None


def _ignore_status(route: str, status: int) -> None:
    """Takes the answer of a request without a span."""
