"""Tokens of named models: by tokenizers that are at hand, else by an estimate that is not too low."""

import json
import shutil
from pathlib import Path

import pytest

from app.errors import TokenizerUnavailable
from app.foundation.models.protocols import TokenCounter
from app.foundation.models.tokens import MINILM, BundledTokenCounter, Counting
from benchmarks.tokens import LEAST, TEXTS, measured

EVERY_FIGURE = 2 * 4 * 6
"""Two for each of four tokenizers and six texts."""


@pytest.fixture
def counting(tmp_path: Path, counter: BundledTokenCounter) -> Counting:
    """Counters over an empty folder."""
    return Counting(tmp_path, counter, embedding_model="all-MiniLM")


def test_the_estimate_is_at_most_a_twentieth_too_low() -> None:
    """The texts were not used to fit it; `python -m benchmarks.tokens --packages` counts them anew."""
    figures = measured(json.loads((TEXTS / "counts.json").read_bytes()))
    assert len(figures) == EVERY_FIGURE
    assert all(figure.value >= LEAST for figure in figures)


async def test_no_model_and_the_embedding_model_are_counted_by_its_own_tokenizer(
    counting: Counting, counter: TokenCounter
) -> None:
    for model in ("", "all-MiniLM"):
        found = await counting.of(model)
        assert (found.name, found.exact, found.count("two words")) == ("embedding", True, counter.count("two words"))


@pytest.mark.parametrize("model", ["gpt-4o", "unknown", "../../etc/passwd", "a\0b", "claude-sonnet-4"])
async def test_a_model_without_tables_is_estimated_and_nothing_is_fetched(counting: Counting, model: str) -> None:
    found = await counting.of(model)
    assert (found.name, found.exact) == ("estimate", False)


async def test_a_tokenizer_file_of_the_model_counts(counting: Counting, tmp_path: Path, counter: TokenCounter) -> None:
    shutil.copy(MINILM / "tokenizer.json", tmp_path / "org--small.json")
    found = await counting.of("org/small")
    text = "The quick brown fox jumps. Привет!"
    assert (found.name, found.exact, found.count(text)) == ("org/small", True, counter.count(text))
    assert found.count_many([text, "\ud800"]) == [counter.count(text), 1]


async def test_a_file_that_is_no_tokenizer_is_named(counting: Counting, tmp_path: Path) -> None:
    (tmp_path / "gpt-4o.json").write_text("IQ== 0\n")
    with pytest.raises(TokenizerUnavailable, match=r"gpt-4o\.json"):
        await counting.of("gpt-4o")
