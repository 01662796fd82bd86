"""The probability of hits and answers, and rare words, with a real Postgres and the real model."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.foundation.db.database import Database
from app.foundation.models.protocols import EmbeddingProvider, TokenCounter
from app.foundation.models.providers import NoopProvider
from app.recall.retrieval import candidates
from app.recall.retrieval.rank.presets import OBSERVED, PROMISED, hit_probability
from app.recall.retrieval.recall import History, Query, Recall
from app.recall.retrieval.service import Retrieval
from app.storage.index.service import Embedder, Statistics
from app.storage.memories.memory import NewMemory
from app.storage.memories.remember import WriteGate
from app.storage.recalls.service import Recalls
from app.storage.tenants.workspace import Workspace
from tests.conftest import histories_of
from tests.fakes.providers import Wordless

pytestmark = pytest.mark.meaning

SHARE = st.floats(0, 1)
SCOUT = "The scout returned zero actors for the dietary supplement market and the director went on regardless."
BREAD = "Knead the dough for ten minutes, let it rise, and bake it in a hot oven."
RAIN = "It rained in Lisbon for three days and the harbour stayed closed."
BEFORE = "Two people read the specification of the escrow contract and noted questions on refunds and time limits. "
AFTER = "The owner agreed to another review of all changes before the release of the following version. "
AUDIT = BEFORE * 20 + "Slither and Mythril ran on the second day. " + AFTER * 20
"""A long memory that has a rare word once, so that neither its vector nor its BM25 score says much."""
TOPICS = ("market", "pump", "audit", "contract", "invoice", "harbour", "bread", "customer", "escrow", "review")
OTHERS = 300
"""More than a store counts exactly, in the test that has so many; and five times the candidates of an arm."""


class Store:
    """A workspace with memories, and the ways to ask it."""

    def __init__(
        self, database: Database, provider: EmbeddingProvider, counter: TokenCounter, workspace: Workspace
    ) -> None:
        self.database, self.provider, self.counter, self.workspace = database, provider, counter, workspace

    async def add(self, *bodies: str) -> None:
        memories = [NewMemory(kind="note", title=f"Note {len(body)}", body=body) for body in bodies]
        await WriteGate(database=self.database, counter=self.counter).remember(self.workspace, memories)

    async def embed(self) -> None:
        await Embedder(database=self.database, provider=self.provider).embed_pending(self.workspace)

    async def count_words(self) -> None:
        await Statistics(database=self.database).refresh(self.database.across, self.workspace.workspace_id)

    async def search(self, text: str, provider: EmbeddingProvider | None = None, **options: Any) -> Recall:
        query = Query(text=text, **{"k": 5, **options})
        return await Retrieval(database=self.database, provider=provider or self.provider).search(self.workspace, query)

    async def history(self, text: str, provider: EmbeddingProvider | None = None, **options: Any) -> History:
        query = Query(text=text, **{"k": 3, **options})
        histories = histories_of(self.database, provider or self.provider, self.counter)
        return await histories.get(self.workspace, query, budget_tokens=500)


@pytest.fixture
async def empty(database: Database, provider: EmbeddingProvider, counter: TokenCounter, workspace: Workspace) -> Store:
    return Store(database, provider, counter, workspace)


@pytest.fixture
async def store(empty: Store) -> Store:
    await empty.add(SCOUT, BREAD, RAIN)
    await empty.embed()
    await empty.count_words()
    return empty


async def test_a_history_answers_without_codes_of_words_and_without_vectors_of_the_requests_words(store: Store) -> None:
    about = "How long do I knead the dough for bread?"
    shown = await store.history(about)
    assert BREAD in shown.markdown
    wordless = await store.history(about, provider=Wordless(store.provider))
    assert (BREAD in wordless.markdown, wordless.recall.mode) == (True, "hybrid")
    async with store.database.session(store.workspace) as session:
        assert await session.execute("UPDATE embeddings SET tokens = NULL WHERE tokens IS NOT NULL") == 3
    for provider in (store.provider, Wordless(store.provider)):
        assert BREAD in (await store.history(about, provider=provider)).markdown
        assert (await store.history("Who repaired the violin?", provider=provider)).markdown == ""


async def test_a_memory_that_waits_for_its_vector_answers_by_its_words(empty: Store) -> None:
    await empty.add(*(f"Invoice {number} of the harbour was paid in week {number}." for number in range(120)))
    await empty.embed()
    await empty.count_words()
    await empty.add(BREAD)
    shown = await empty.history("How long do I knead the dough?")
    assert (BREAD in shown.markdown, shown.recall.mode) == (True, "hybrid")
    assert (await empty.history("Who sold ten violins in the market?")).markdown == ""


@given(SHARE, SHARE, SHARE, SHARE)
def test_the_probability_of_a_hit_rises_with_all_that_speaks_for_it(
    similarity: float, lexical: float, known: float, more: float
) -> None:
    value = hit_probability(similarity, lexical, known)
    assert 0 <= value <= OBSERVED[-1]
    for raised in ((similarity + more, lexical, known), (similarity, lexical + more, known), (similarity, lexical, 1)):
        assert hit_probability(*raised) >= value


def test_no_step_of_the_correction_falls() -> None:
    assert list(PROMISED) == sorted(set(PROMISED))
    assert list(OBSERVED) == sorted(set(OBSERVED))
    assert hit_probability(0, 0, 0) < 0.001
    assert hit_probability(0.7, 0.8, 1.0) > 0.5


async def test_each_hit_and_each_answer_has_a_probability(store: Store) -> None:
    about = "Which market had zero actors in the scout's answer?"
    found, shown = await store.search(about), await store.history(about)
    for recall in (found, shown.recall):
        assert recall.probability is not None
        assert recall.probability > 0.9
        best, *others = [hit.explain["probability"] or 0.0 for hit in recall.hits]
        assert recall.hits[0].body == SCOUT
        assert best > 0.3
        assert all(best > other for other in others)
        logged = await Recalls(database=store.database).get(store.workspace, recall.recall_id)
        assert logged.hits[0].explain["probability"] == best


async def test_an_answer_without_hits_says_how_improbable_it_was(store: Store) -> None:
    elsewhere = "Who repairs the gearbox of a tram?"
    for recall in (await store.search(elsewhere), (await store.history(elsewhere)).recall):
        assert recall.hits == ()
        assert recall.probability is not None
        assert recall.probability < 0.35


@pytest.mark.parametrize("preset", ["default", "ranks", "classic", "closest"])
async def test_each_hit_has_the_probability_that_the_query_asks_for(store: Store, preset: str) -> None:
    about = "How long is bread dough kneaded?"
    everything = await store.search(about, preset=preset, min_probability=0)
    assert len(everything.hits) == 3
    values = sorted((hit.explain["probability"] or 0.0 for hit in everything.hits), reverse=True)
    for least in values:
        recall = await store.search(about, preset=preset, min_probability=least)
        assert len(recall.hits) == values.index(least) + 1
        assert all((hit.explain["probability"] or 0.0) >= least for hit in recall.hits)
    for recall in (
        await store.search(about, preset=preset, min_probability=0.99),
        (await store.history(about, preset=preset, min_probability=0.99)).recall,
    ):
        assert recall.hits == ()


async def test_a_probability_that_is_asked_for_replaces_the_gate(store: Store) -> None:
    elsewhere = "Who repairs the gearbox of a tram?"
    assert (await store.history(elsewhere)).markdown == ""
    assert (await store.history(elsewhere, min_probability=0)).markdown
    assert (await store.history(elsewhere, min_probability=0.3)).markdown == ""


async def test_a_likely_hit_is_found_behind_better_ranked_ones(store: Store) -> None:
    about = "How long is bread dough kneaded?"
    ordered = (await store.search(about, min_probability=0)).hits
    least = max(hit.explain["probability"] or 0.0 for hit in ordered[1:])
    (only,) = (await store.search(about, k=1, min_probability=least)).hits
    assert only.memory == ordered[0].memory


async def test_without_a_measured_model_there_is_no_probability_and_words_count(store: Store) -> None:
    about = "kneading dough"
    by_words = [
        await store.search(about, provider=NoopProvider(), min_probability=0.2),
        (await store.history(about, provider=NoopProvider(), min_probability=0.2)).recall,
        await store.search("тесто dough хлеб печь", min_probability=0.1),
    ]
    for recall in by_words:
        assert [hit.body for hit in recall.hits] == [BREAD]
        assert recall.probability is None
        assert recall.hits[0].explain["probability"] is None
    assert (await store.search("harbour of Oslo in Norway", NoopProvider(), min_probability=0.9)).hits == ()


async def found_by(store: Store, text: str) -> None:
    for recall in (await store.search(text), (await store.history(text)).recall):
        assert AUDIT in [hit.body for hit in recall.hits], (text, recall.mode)


@pytest.mark.parametrize("others", [0, 20, OTHERS])
async def test_a_rare_exact_word_finds_its_memory(empty: Store, others: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "COUNTED_EXACTLY", OTHERS)
    notes = [
        f"{TOPICS[n % 10]} {TOPICS[n // 10 % 10]}s are the subject of note {n}, mythology aside." for n in range(others)
    ]
    await empty.add(*notes)
    await empty.embed()
    await empty.count_words()
    await empty.add(AUDIT)
    for prepare in (None, empty.embed, empty.count_words):
        if prepare:
            await prepare()
        for text in ("Mythril", "mythril?", "What is Mythril?"):
            await found_by(empty, text)
    assert (await empty.search("Echidna")).hits == ()
