"""Exports spans and metrics by OpenTelemetry, which is an extra and takes 0.4 s to import."""

import logging
import os
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from time import perf_counter

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, NoOpMeterProvider, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from app.tracing import PARENT, Registry, Sample, Sent, Value


class Export:
    """The providers of OpenTelemetry's SDK: their own threads send what they are given, and drop what is too much."""

    def __init__(self, signals: Iterable[str]) -> None:
        # Each retry would be a warning; a batch that is lost is an error.
        logging.getLogger("opentelemetry").setLevel(logging.ERROR)
        resource = Resource.create({} if "OTEL_SERVICE_NAME" in os.environ else {SERVICE_NAME: "priors"})
        # Its own spans about its exports are of no use to anyone here.
        self._traces = TracerProvider(resource=resource, shutdown_on_exit=False, meter_provider=NoOpMeterProvider())
        readers = []
        if "traces" in signals:
            self._traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        if "metrics" in signals:
            readers.append(PeriodicExportingMetricReader(OTLPMetricExporter()))
        self._metrics = MeterProvider(metric_readers=readers, resource=resource, shutdown_on_exit=False)
        self._tracer, self._meter = self._traces.get_tracer("priors"), self._metrics.get_meter("priors")
        self._steps = self._meter.create_histogram("priors.step.duration", unit="s", description="Time of a step")
        self._context = TraceContextTextMapPropagator()

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, Value]) -> Generator[Span]:
        """Measures a step."""
        with self._time_step(name), self._tracer.start_as_current_span(name, attributes=dict(attributes)) as current:
            yield current

    @contextmanager
    def serve_span(self, method: str, parent: str) -> Generator[Sent]:
        """Measures a request that continues the trace of its caller."""
        context = self._context.extract({PARENT: parent})
        attributes = {"http.request.method": method}
        with (
            self._time_step("request"),
            self._tracer.start_as_current_span(
                method, context=context, kind=SpanKind.SERVER, attributes=attributes
            ) as current,
        ):

            def note_answer(route: str, status: int) -> None:
                current.update_name(f"{method} {route}")
                current.set_attributes({"http.route": route, "http.response.status_code": status})
                if status >= 500:  # noqa: PLR2004 - the statuses of a server's faults
                    current.set_status(StatusCode.ERROR)

            yield note_answer

    @contextmanager
    def job(self, task: str, parent: str) -> Generator[Span]:
        """Measures a job that continues the trace of the request that asked for it."""
        context, name = self._context.extract({PARENT: parent}), f"job {task}"
        with self._time_step(name), self._tracer.start_as_current_span(name, context, SpanKind.CONSUMER) as current:
            yield current

    def carried_context(self) -> dict[str, str]:
        """Returns the context of the present span, if there is one."""
        carrier = dict[str, str]()
        self._context.inject(carrier)
        return {name: value for name, value in carrier.items() if name == PARENT}

    def add(self, registry: Registry) -> None:
        """Exports the counters and gauges of a registry under their names."""
        for family in registry.collect():
            kinds = {"counter": self._meter.create_observable_counter, "gauge": self._meter.create_observable_gauge}
            if family.type in kinds:
                callback = _observing(registry, family.name)
                kinds[family.type](family.name, callbacks=[callback], description=family.documentation)

    def close(self) -> None:
        """Sends what was not sent yet."""
        self._traces.shutdown()
        self._metrics.shutdown()

    @contextmanager
    def _time_step(self, step: str) -> Generator[None]:
        started = perf_counter()
        try:
            yield
        finally:
            self._steps.record(perf_counter() - started, {"step": step})


def _observing(registry: Registry, name: str) -> Callable[[CallbackOptions], list[Observation]]:
    def observe(_options: CallbackOptions) -> list[Observation]:
        (family,) = (item for item in registry.collect() if item.name == name)
        samples: list[Sample] = [sample for sample in family.samples if not sample.name.endswith("_created")]
        return [Observation(sample.value, sample.labels) for sample in samples]

    return observe
