"""The benchmarks of clusters and costs at a small size. Speed is not judged here."""

import math
import re
from pathlib import Path

import pytest

from benchmarks import citus
from benchmarks.figures import Figure
from benchmarks.traffic import RECALL, WRITE, Answer, outages
from tests.cluster import is_cluster


def by_name(figures: list[Figure]) -> dict[str, float]:
    return {figure.name: figure.value for figure in figures}


def test_what_failed_why_and_for_how_long() -> None:
    answers = [
        Answer("a", RECALL, 0.0, 0.1, 200, ""),
        Answer("a", RECALL, 1.0, 0.5, 503, "away"),
        Answer("a", RECALL, 2.0, 0.1, 500, "wrong"),
        Answer("a", RECALL, 3.0, 0.2, 200, ""),
        Answer("a", WRITE, 1.0, 2.0, 503, "away"),
        Answer("b", RECALL, 1.0, 0.1, 200, ""),
    ]
    figures = by_name(list(outages("x", answers)))
    assert figures["x: recalls, a"] == 4
    assert figures["x: recalls, a: longest"] == 0.5
    assert figures["x: recalls, a: failed"] == 2
    assert figures["x: recalls, a: from the first failure to well again"] == pytest.approx(2.2)
    assert figures["x: recalls, a: 503 away"] == 1
    assert figures["x: recalls, a: 500 wrong"] == 1
    assert figures["x: writes, a: from the first failure to well again"] == math.inf
    assert figures["x: recalls, b: failed"] == 0


def test_a_shard_moves_and_a_node_is_away(server_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only requests of the node that is away fail, with 503; nothing fails while a shard moves."""
    if not is_cluster(server_url):
        pytest.skip("needs PRIORS_TEST_DATABASE_URL to name the coordinator of a Citus cluster on this machine")
    monkeypatch.setattr("benchmarks.figures.RESULTS", tmp_path)
    monkeypatch.setattr(citus, "DEAD_SECONDS", 3.0)
    figures = by_name(
        citus.main([server_url, "--workspaces", "8", "--memories", "100", "--rounds", "10", "--shards", "4"])
    )
    failed = {name: value for name, value in figures.items() if name.endswith("failed") and value}
    assert {name.partition(": ")[0] for name in failed} == {citus.CLUSTER}
    assert all(", of the node: " in name for name in failed)
    statuses = {found[1] for name in figures if (found := re.search(r": (\d+) ", name))}
    assert statuses <= {"503"}
