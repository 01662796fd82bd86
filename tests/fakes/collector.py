"""A collector of OpenTelemetry: an HTTP server that decodes what it is sent, and that may keep its clients waiting."""

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """What was sent so far."""

    def __init__(self) -> None:
        self.spans = list[Any]()
        self.metrics = defaultdict[str, list[Any]](list)
        """Each metric's data points, by its name."""
        self.resources = set[str]()
        self.asked, self.may_answer = threading.Event(), threading.Event()
        self.may_answer.set()
        self.url = ""

    def take(self, path: str, body: bytes) -> None:
        """Decodes what was sent."""
        if path == "/v1/traces":
            for traced in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.resources |= {item.value.string_value for item in traced.resource.attributes}
                self.spans += [span for scope in traced.scope_spans for span in scope.spans]
            return
        assert path == "/v1/metrics", path
        for measured in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            for metric in (metric for scope in measured.scope_metrics for metric in scope.metrics):
                self.metrics[metric.name] += getattr(metric, metric.WhichOneof("data")).data_points

    def named(self, name: str) -> list[Any]:
        """Returns the spans of a name."""
        return [span for span in self.spans if span.name == name]


@contextmanager
def collecting() -> Iterator[Collector]:
    """Yields a collector at a local address; at the end it has answered everybody."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            collector.asked.set()
            collector.may_answer.wait()
            collector.take(self.path, body)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its base has it
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield collector
        finally:
            collector.may_answer.set()
            server.shutdown()
            thread.join()
