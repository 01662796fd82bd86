"""What Prometheus reads. A registry for each application, so that two in one process do not clash."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from app.index.reembed import Move
from app.memories.memory import Remembered
from app.retrieval.recall import Recall

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
LATENCIES = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
"""Seconds; a recall takes 10 to 20 ms."""


class Metrics:
    """The counters of one application."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self.requests = Counter("priors_requests", "Requests", ["method", "route", "status"], registry=registry)
        self.latency = Histogram(
            "priors_request_seconds", "Time to answer", ["route"], buckets=LATENCIES, registry=registry
        )
        self.recalls = Counter("priors_recalls", "Recalls", ["purpose", "mode"], registry=registry)
        self.degraded = Counter("priors_degraded", "Recalls without all of an arm", ["arm"], registry=registry)
        self.memories = Counter("priors_memories", "Memories sent", ["outcome"], registry=registry)
        self.refused = Counter("priors_refused", "Memories that were not stored", ["reason"], registry=registry)
        self.refusals = Gauge(
            "priors_refusals",
            "Memories and observations that the store refused, as its database counts them, whoever sent them",
            ["reason"],
            registry=registry,
        )
        self.reports = Counter("priors_reports", "Report files sent", ["outcome"], registry=registry)
        self.graphs = Counter("priors_graphs", "Graphs shown", ["mode"], registry=registry)
        self.waiting = Gauge("priors_embeddings_waiting", "Memories that wait for a vector", registry=registry)

        self.moved = Gauge(
            "priors_reembed_memories",
            "Memories, and how many of them have a vector of the model that the store moves to",
            ["model", "count"],
            registry=registry,
        )

    def note_move(self, move: Move | None) -> None:
        """Show how far a change of model is; nothing while there is none."""
        self.moved.clear()
        if move is not None:
            self.moved.labels(move.model.name, "embedded").set(move.done)
            self.moved.labels(move.model.name, "all").set(move.total)

    def note_refusals(self, counts: Mapping[str, int]) -> None:
        """Show what was refused so far, by reason; also what a worker refused, or another process."""
        for reason, count in counts.items():
            self.refusals.labels(reason).set(count)

    def note_recall(self, recall: Recall, purpose: str) -> None:
        """Count a recall."""
        self.recalls.labels(purpose, recall.mode).inc()
        for item in recall.degraded:
            self.degraded.labels(item.arm).inc()

    def note_remembered(self, result: Remembered) -> None:
        """Count the memories of a call."""
        for outcome, count in (
            ("stored", result.stored),
            ("updated", result.updated),
            ("unchanged", result.unchanged),
            ("rejected", len(result.rejected)),
        ):
            self.memories.labels(outcome).inc(count)
        for item in result.rejected:
            self.refused.labels(item.code).inc()

    def exposition(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self.registry)
