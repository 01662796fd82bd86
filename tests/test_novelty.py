"""Novelty by words alone: shared vocabulary does not fool it. And the two pure scores at their ends."""

import pytest

from app.db.engine import Database
from app.embeddings.noop import NoopProvider
from app.embeddings.provider import TokenCounter
from app.memories.memory import NewMemory
from app.memories.remember import remember
from app.novelty import novelty, novelty_by_meaning, novelty_by_words

STORED = "The market of food supplements in Russia reached 221 billion rubles in 2025, and Evalar leads with 17 %."
PARAPHRASE = "In Russia the food supplements market reached 221 billion rubles in 2025; Evalar leads it with 17 %."
OTHER = "The market of food supplements in Russia reached 305 billion rubles in 2027, and Solgar leads with 23 %."
UNRELATED = "Container ships cross the Panama canal in nine hours."


async def test_without_vectors_words_and_figures_decide(
    database: Database, counter: TokenCounter, workspace: str
) -> None:
    background = [f"The market of food supplements in town {number} is served by pharmacies." for number in range(5)]
    notes = [NewMemory(kind="note", body=body) for body in (STORED, *background)]
    await remember(database, counter, workspace=workspace, language="english", memories=notes)
    texts = [STORED, PARAPHRASE, OTHER, UNRELATED]
    found = await novelty(database, NoopProvider(), workspace=workspace, task="market", results=texts)
    copy, paraphrase, other, unrelated = (item.novelty for item in found.results)
    assert (found.path, "noop" in found.degraded) == ("lexical", True)
    assert copy == 0
    assert paraphrase < 0.35
    assert other > 0.6
    assert unrelated > 0.8
    assert found.results[0].nearest[0].similarity == 1
    assert copy < found.novelty < unrelated


async def test_an_empty_store_knows_nothing(database: Database, workspace: str) -> None:
    found = await novelty(database, NoopProvider(), workspace=workspace, task="", results=[STORED])
    assert (found.novelty, found.results[0].nearest) == (1, ())


@pytest.mark.parametrize("similarity", [0.96, 0.5, 0.0])
def test_scores_stay_within_their_ends(similarity: float) -> None:
    assert 0 <= novelty_by_meaning(PARAPHRASE, STORED, similarity) <= 1
    assert novelty_by_meaning(STORED, STORED, similarity) == 0
    assert novelty_by_words(STORED, STORED, [STORED]) == 0
