"""Tests of the re-ranker, with a small cross-encoder that the test writes, and with none."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from app.errors import RerankerUnavailable
from app.foundation.models.reranker import RERANKER_RETRY_SECONDS, CrossEncoder, reranker_from
from app.settings import Settings
from tests.fakes.cross_encoder import MODEL, OFFSET, write_cross_encoder


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.foundation.models.reranker.LONGEST_WAIT", None)


@pytest.fixture
async def encoder(tmp_path: Path) -> AsyncIterator[CrossEncoder]:
    encoder = CrossEncoder(tmp_path, model=MODEL, folder=str(write_cross_encoder(tmp_path / "model")))
    yield encoder
    await encoder.close()


async def test_it_is_off_unless_a_setting_names_one(tmp_path: Path) -> None:
    assert reranker_from(Settings()) is None
    write_cross_encoder(tmp_path / "reranker")
    named = reranker_from(Settings(data_dir=tmp_path, reranker=MODEL))
    assert named is not None
    assert await named.scores("actor", ["actor"]) == [1 - OFFSET]
    await named.close()


async def test_each_text_is_scored_together_with_the_query(encoder: CrossEncoder) -> None:
    texts = ["the scout found an actor", "bread", "actor", ""]
    assert await encoder.scores("which actor did the scout find", texts) == [3 - OFFSET, -OFFSET, 1 - OFFSET, -OFFSET]
    assert await encoder.scores("actor", []) == []


async def test_any_text_is_scored_and_long_ones_are_cut(encoder: CrossEncoder) -> None:
    scores = await encoder.scores("scout " * 100_000, ["a\ud800\x00b", "bread " * 100_000 + "scout"])
    assert scores == [-OFFSET, -OFFSET]


async def test_queries_at_once_share_one_model(encoder: CrossEncoder) -> None:
    several = await asyncio.gather(*(encoder.scores("actor", ["actor"] * count) for count in range(1, 6)))
    assert several == [[1 - OFFSET] * count for count in range(1, 6)]


async def test_a_model_that_is_not_there_is_named_and_tried_again_later(tmp_path: Path) -> None:
    now = [0.0]
    folder = tmp_path / "model"
    encoder = CrossEncoder(tmp_path, model=MODEL, folder=str(folder), clock=lambda: now[0])
    with pytest.raises(RerankerUnavailable, match=f"{MODEL} cannot be loaded"):
        await encoder.scores("actor", ["actor"])
    write_cross_encoder(folder)
    with pytest.raises(RerankerUnavailable, match="cannot be loaded"):
        await encoder.scores("actor", ["actor"])
    now[0] = RERANKER_RETRY_SECONDS
    assert await encoder.scores("actor", ["actor"]) == [1 - OFFSET]
    await encoder.close()


async def test_a_model_that_fastembed_does_not_know_is_named(tmp_path: Path) -> None:
    encoder = CrossEncoder(tmp_path, model="nobody/nothing")
    with pytest.raises(RerankerUnavailable, match="nobody/nothing"):
        await encoder.scores("actor", ["actor"])
    await encoder.close()


async def test_no_query_waits_long_for_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, load = threading.Event(), CrossEncoder._load

    def load_later(self: CrossEncoder, loading: Any) -> None:
        asked.wait()
        load(self, loading)

    monkeypatch.setattr(CrossEncoder, "_load", load_later)
    monkeypatch.setattr("app.foundation.models.reranker.LONGEST_WAIT", 0.0)
    encoder = CrossEncoder(tmp_path, model=MODEL, folder=str(write_cross_encoder(tmp_path / "model")))
    with pytest.raises(RerankerUnavailable, match="still being loaded"):
        await encoder.scores("actor", ["actor"])
    asked.set()
    monkeypatch.setattr("app.foundation.models.reranker.LONGEST_WAIT", None)
    assert await encoder.scores("actor", ["actor"]) == [1 - OFFSET]
    await encoder.close()
