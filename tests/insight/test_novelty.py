"""Novelty on both paths: a copy, the same facts in other words, other facts in the same words, something else."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import pytest

from app.foundation.db.database import Database
from app.foundation.models.protocols import EmbeddingProvider, TokenCounter
from app.foundation.models.providers import NoopProvider
from app.insight.novelty import MOST_PASSAGES, Novelties, Novelty
from app.insight.novelty_scoring import Profile, passages, score_passage, shares, spread, tokens_about
from app.intake.runs.feedback.service import Ratings
from app.intake.runs.feedback.store import FeedbackEntry
from app.storage.index.service import Embedder
from app.storage.memories.memory import NewMemory
from app.storage.memories.remember import WriteGate
from app.storage.tenants.workspace import Workspace
from tests.insight.novelty_pairs import KEPT_APART, PAIRS, UNRELATED

STORED = "The market of food supplements in Russia reached 221 billion rubles in 2025, and Evalar leads with 17 %."
OTHER = "The market of food supplements in Russia reached 305 billion rubles in 2027, and Solgar leads with 23 %."
NOTHING = Profile("")
SUBJECTS = ("harbour", "orchestra", "glacier", "bakery", "observatory", "vineyard", "tannery", "lighthouse", "quarry")
PROSE = [
    f"The {subject} keeper repaired the {tool} of the {place} because {reason} had damaged it badly."
    for subject in SUBJECTS
    for tool, reason in (("roof", "hail"), ("engine", "sand"), ("ledger", "damp"), ("gate", "cattle"))
    for place in ("northern annex", "old mill")
]


async def store(
    database: Database, counter: TokenCounter, provider: EmbeddingProvider, workspace: Workspace, *memories: NewMemory
) -> list[UUID]:
    found = await WriteGate(database=database, counter=counter).remember(workspace, memories)
    ids = [memory_id for memory_id in found.ids if memory_id]
    assert len(ids) == len(memories)
    if provider.enabled:
        await Embedder(database=database, provider=provider).embed_pending(workspace, ids=ids)
    return ids


def note(body: str, title: str = "", score: float | None = None) -> NewMemory:
    return NewMemory(kind="note", body=body, title=title, final_score=score)


@pytest.fixture(params=["vector", "lexical"])
def comparing(request: pytest.FixtureRequest, provider: EmbeddingProvider) -> EmbeddingProvider:
    """With vectors and without."""
    return provider if request.param == "vector" else NoopProvider()


@pytest.mark.meaning
@pytest.mark.parametrize("language", ["english", "russian"])
async def test_facts_are_told_from_words(
    database: Database, comparing: EmbeddingProvider, counter: TokenCounter, workspace: Workspace, language: str
) -> None:
    pairs = PAIRS[language]
    await store(database, counter, comparing, workspace, *(note(stored) for stored, _, _ in pairs))

    async def of(texts: list[str]) -> list[float]:
        found = await Novelties(database=database, provider=comparing).measure(workspace, task="", results=texts)
        assert found.path == ("vector" if comparing.enabled else "lexical")
        return [item.novelty for item in found.results]

    copies, retold, others = [await of([pair[place] for pair in pairs]) for place in range(3)]
    assert copies == [0] * len(pairs)
    assert max(retold) < 0.45
    assert sum(retold) / len(retold) < 0.2
    assert min(others) > 0.5
    assert sum(others) / len(others) > 0.7
    assert all(other > again + 0.15 for again, other in zip(retold, others, strict=True))
    assert min(await of(UNRELATED[language])) > 0.8


@pytest.mark.meaning
async def test_most_pairs_on_which_nothing_was_set_are_told_apart_too(
    database: Database, comparing: EmbeddingProvider, counter: TokenCounter, workspace: Workspace
) -> None:
    pairs = [pair for language in KEPT_APART.values() for pair in language]
    await store(database, counter, comparing, workspace, *(note(stored) for stored, _, _ in pairs))
    texts = [text for _, retold, other in pairs for text in (retold, other)]
    found = await Novelties(database=database, provider=comparing).measure(workspace, task="", results=texts)
    values = [item.novelty for item in found.results]
    assert sum(values[at] + 0.1 < values[at + 1] for at in range(0, len(values), 2)) >= 7


async def test_an_empty_store_knows_nothing(database: Database, workspace: Workspace) -> None:
    found = await Novelties(database=database, provider=NoopProvider()).measure(workspace, task="", results=[STORED])
    assert (found.novelty, found.results[0].nearest) == (1, ())
    assert found.degraded


async def test_a_copy_is_known_however_the_memory_was_judged(
    database: Database, comparing: EmbeddingProvider, counter: TokenCounter, workspace: Workspace
) -> None:
    """Beside fifty that are like it, rated up, of one title, and newer."""
    base = "Pump {} of the block leaks in winter because its oil is too thick, says the operator {}."
    copy = base.format(77, "Zimmer")
    (held,) = await store(database, counter, comparing, workspace, note(copy, "Daily note", 1.0))
    names = [f"{first}{second}ler" for first in "BDFGHKLMNP" for second in ("a", "e", "i", "o", "u")]
    await store(
        database, counter, comparing, workspace,
        *(note(base.format(number, name), "Daily note", 10.0) for number, name in enumerate(names)),
    )  # fmt: skip
    for _ in range(3):
        await Ratings(database=database).rate(workspace, FeedbackEntry(memory_id=held, rating=-1))
    found = await Novelties(database=database, provider=comparing).measure(workspace, task="", results=[copy])
    assert found.novelty == 0
    assert found.results[0].nearest[0].memory_id == held
    assert found.results[0].nearest[0].similarity == 1


async def test_a_copy_is_known_before_it_has_its_vector(
    database: Database, provider: EmbeddingProvider, counter: TokenCounter, workspace: Workspace
) -> None:
    await store(database, counter, provider, workspace, *(note(text) for text in PROSE))
    await WriteGate(database=database, counter=counter).remember(workspace, [note(STORED)])
    found = await Novelties(database=database, provider=provider).measure(workspace, task="", results=[STORED])
    assert (found.path, found.novelty) == ("vector", 0)
    assert "1 of 73 memories have no vector yet" in found.degraded


async def test_a_long_text_is_compared_to_its_end(
    database: Database, comparing: EmbeddingProvider, counter: TokenCounter, workspace: Workspace
) -> None:
    known = " ".join(PROSE[:24])
    await store(database, counter, comparing, workspace, note(known))

    async def of(text: str) -> float:
        return (
            await Novelties(database=database, provider=comparing).measure(workspace, task="", results=[text])
        ).novelty

    news = " ".join(
        f"Vaccinated hens of farm {number} in Ghent laid {number + 60} eggs a week, which pleased veterinarian Maes."
        for number in range(72)
    )
    assert await of(known) == 0
    assert await of(f"{known} {news}") > 0.6
    assert await of(f"{news} {known}") > 0.6
    assert await of(news) > 0.9
    assert await of(" " * 5_000 + known) == 0
    assert await of(" " * 5_000 + news) > 0.9


@pytest.mark.parametrize(("text", "at_least"), [("12345 67890", 0.9), ("我们发现该集群在夜间写入速率很高", 0.3)])
async def test_a_text_without_words_is_compared_by_what_it_has(
    database: Database, counter: TokenCounter, workspace: Workspace, text: str, at_least: float
) -> None:
    await store(database, counter, NoopProvider(), workspace, note(STORED))
    found = await Novelties(database=database, provider=NoopProvider()).measure(workspace, task="", results=[text])
    assert found.novelty >= at_least


async def test_what_the_task_says_is_not_new(
    database: Database, comparing: EmbeddingProvider, counter: TokenCounter, workspace: Workspace
) -> None:
    await store(database, counter, comparing, workspace, *(note(text) for text in [STORED, *PROSE[:12]]))

    async def of(task: str, text: str) -> Novelty:
        return await Novelties(database=database, provider=comparing).measure(workspace, task=task, results=[text])

    asked = "Find out whether Solgar sold 305 billion rubles of food supplements in Russia in 2027, or 23 %."
    assert (await of(asked, asked)).novelty == 0
    assert (await of(asked, OTHER)).novelty < (await of("", OTHER)).novelty - 0.2
    assert (await of(asked, UNRELATED["english"][0])).novelty > 0.9


async def test_the_work_of_a_call_is_bounded_and_holds_up_nobody(
    database: Database, provider: EmbeddingProvider, counter: TokenCounter, workspace: Workspace
) -> None:
    await store(database, counter, provider, workspace, *(note(text) for text in PROSE))
    texts = [" ".join(f"{text} Number {number}." for text in PROSE * 3)[:20_000] for number in range(100)]
    turns, stop = 0, asyncio.Event()

    async def wait_for_the_loop() -> None:
        nonlocal turns
        while not stop.is_set():
            await asyncio.sleep(0.001)
            turns += 1

    waiting = asyncio.create_task(wait_for_the_loop())
    found = await Novelties(database=database, provider=provider).measure(workspace, task="", results=texts)
    stop.set()
    await waiting
    assert sum(item.compared for item in found.results) <= MOST_PASSAGES
    assert all(0 < item.compared <= item.passages for item in found.results)
    assert turns > MOST_PASSAGES, "each passage gives way to others"


def test_passages_are_of_whole_sentences_and_lose_nothing() -> None:
    text = " ".join(PROSE)
    parts = passages(text)
    assert len(parts) > 5
    assert " ".join(parts) == text
    assert all(part.endswith(".") and tokens_about(part) <= 200 for part in parts)
    assert max(len(part) for part in passages("насос " * 500)) < 300
    assert max(len(part) for part in passages("x" * 5_000)) < 1_000
    assert passages("😀") == ["😀"]


def test_long_texts_share_what_short_ones_leave() -> None:
    assert shares([1, 2, 50, 60], 20) == [1, 2, 8, 8]
    assert shares([3, 3], 20) == [3, 3]
    assert shares([20] * 100, 200) == [2] * 100
    assert shares([9] * 5, 3) == [1] * 5
    assert spread(list("abcdefghi"), 3) == ["b", "e", "h"]


@pytest.mark.parametrize("similarity", [0.96, 0.5, 0.0, None])
def test_scores_stay_within_their_ends(similarity: float | None) -> None:
    memory = Profile(STORED)
    assert 0 <= score_passage(Profile(OTHER), [memory], [similarity], NOTHING).novelty <= 1
    assert score_passage(memory, [memory], [similarity], NOTHING).novelty == 0


@pytest.mark.parametrize(
    ("text", "stored", "known"),
    [
        ("1,250 requests", "1250 requests", True),
        ("17,5 %", "17.5 %", True),
        ("12 weeks", "20 weeks, 12 %", False),
        ("12 %", "12 weeks", False),
        ("block 3's pump", "block 3 leaks", True),
        ("€ 40", "40 euros", True),
    ],
)
def test_numbers_are_known_with_their_units(text: str, stored: str, *, known: bool) -> None:
    memory = Profile(stored)
    assert all(memory.states(number) for number in Profile(text).numbers) is known


def test_a_denial_is_news() -> None:
    memory = Profile("The valve of the third pump closes at night, when the plant is idle.")
    text = Profile("The valve of the third pump does not close at night, when the plant is idle.")
    assert score_passage(text, [memory], [0.97], NOTHING).novelty > 0.4


@pytest.mark.parametrize("text", ["...", "🎉", "— ! —", "***\n***"])
def test_what_says_nothing_adds_nothing(text: str) -> None:
    assert score_passage(Profile(text), [], [], NOTHING).novelty == 0
    assert score_passage(Profile(text), [Profile(OTHER)], [0.1], NOTHING).novelty == 0


async def test_what_this_run_knows_already_is_not_new(
    database: Database, comparing: EmbeddingProvider, counter: TokenCounter, workspace: Workspace
) -> None:
    await store(database, counter, comparing, workspace, note("The harbour keeper repaired the roof of the old mill."))

    async def of(*results: str, known: Sequence[str] = ()) -> list[float]:
        found = await Novelties(database=database, provider=comparing).measure(
            workspace, task="", results=results, known=known
        )
        return [item.novelty for item in found.results]

    (alone,) = await of(STORED)
    assert alone > 0.8
    assert await of(STORED, STORED, STORED) == [alone, 0, 0]
    assert await of(STORED, known=[STORED]) == [0]
    assert (await of(OTHER, known=[STORED]))[0] > 0.5
    first, second = await of(STORED, OTHER)
    assert first == alone
    assert 0.5 < second < alone


async def test_a_text_made_of_several_known_texts_is_known(
    database: Database, comparing: EmbeddingProvider, counter: TokenCounter, workspace: Workspace
) -> None:
    await store(database, counter, comparing, workspace, note("Nothing of this."))
    found = await Novelties(database=database, provider=comparing).measure(
        workspace, task="", results=[" ".join(PROSE[:6]), f"{PROSE[3]} {STORED}"],
        known=[" ".join(PROSE[:4]), *PROSE[4:6]],
    )  # fmt: skip
    assert found.results[0].novelty == 0
    assert found.results[1].novelty > 0.3
