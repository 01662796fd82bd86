"""Finding, with a real Postgres and the real model."""

import asyncio
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from app.errors import InvalidInput
from app.foundation.db.database import Database
from app.foundation.models.protocols import EmbeddingProvider, Reranker, TokenCounter
from app.foundation.models.providers import NoopProvider
from app.foundation.models.remote import RemoteProvider
from app.foundation.models.reranker import CrossEncoder
from app.recall.retrieval import arms, candidates
from app.recall.retrieval.arms import lexical_query
from app.recall.retrieval.candidates import Survey, question_of, survey
from app.recall.retrieval.rank.presets import DEFAULT
from app.recall.retrieval.recall import Query, Recall
from app.recall.retrieval.service import Retrieval
from app.storage.index.service import Embedder, Statistics
from app.storage.index.vectors import as_literal
from app.storage.memories.filters import Filters, conditions
from app.storage.memories.memory import LARGEST_ORDINAL, Kind, NewMemory, SourceKind, SourceReference
from app.storage.memories.remember import WriteGate
from app.storage.memories.service import Memories
from app.storage.recalls.service import Recalls
from app.storage.tenants.service import Workspaces
from app.storage.tenants.workspace import UNMADE, Workspace
from tests.conftest import histories_of, workspace_in
from tests.fakes.cross_encoder import MODEL, OFFSET, write_cross_encoder
from tests.fakes.embeddings import Endpoint
from tests.fakes.pauses import Pauses
from tests.fakes.providers import Down, Other

FACTS = {
    "scout": "The scout returned zero actors for the dietary supplement market and the director went on regardless.",
    "sources": "Listicle pages and a social network were cited for the size of the market, so the judge took points.",
    "sizing": "The total addressable market was given without a method, the same fault as in the version before.",
    "weather": "It rained in Lisbon for three days and the harbour stayed closed.",
    "bread": "Knead the dough for ten minutes, let it rise, and bake it in a hot oven.",
}


class Store:
    """A workspace with memories, and the ways to ask it."""

    def __init__(
        self, database: Database, provider: EmbeddingProvider, counter: TokenCounter, workspace: Workspace
    ) -> None:
        self.database, self.provider, self.counter, self.workspace = database, provider, counter, workspace

    async def add(self, *memories: NewMemory, embed: bool = True) -> None:
        result = await WriteGate(database=self.database, counter=self.counter).remember(self.workspace, memories)
        assert result.rejected == ()
        if embed:
            ids = [id_ for id_ in result.ids if id_]
            await Embedder(database=self.database, provider=self.provider).embed_pending(self.workspace, ids=ids)
        await Statistics(database=self.database).refresh(self.database.across, self.workspace.workspace_id)

    async def surveyed(self, words: str, filters: Filters) -> Survey:
        async with self.database.session(self.workspace, transaction=False) as session:
            found = await survey(session, words, filters=filters, language=None)
        assert found is not None
        return found

    async def ask(
        self,
        query: str,
        *,
        provider: EmbeddingProvider | None = None,
        reranker: Reranker | None = None,
        **options: Any,
    ) -> Recall:
        return await Retrieval(database=self.database, provider=provider or self.provider, reranker=reranker).search(
            self.workspace, Query(text=query, **{"k": 5, **options})
        )


@pytest.fixture
async def empty(database: Database, provider: EmbeddingProvider, counter: TokenCounter, workspace: Workspace) -> Store:
    return Store(database, provider, counter, workspace)


@pytest.fixture
async def store(empty: Store) -> Store:
    await empty.add(*(NewMemory(kind="note", title=name, body=body) for name, body in FACTS.items()))
    return empty


def titles(recall: Recall) -> list[str]:
    return [hit.title for hit in recall.hits]


@pytest.mark.meaning
@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("scout found no actors", "scout"),
        ("social network cited as a source", "sources"),
        ("market size without any method", "sizing"),
        ("how do I make a loaf", "bread"),
    ],
)
async def test_the_right_memory_comes_first(store: Store, query: str, title: str) -> None:
    recall = await store.ask(query)
    assert titles(recall)[0] == title
    assert recall.mode == "hybrid"
    assert recall.degraded == ()


async def test_two_cues_of_one_title_that_contradict_each_other_are_both_found(empty: Store) -> None:
    lessons = (
        "Retry the scout at once when it returns no actors.",
        "Never retry an empty scout: widen its query first.",
    )
    await empty.add(*(NewMemory(kind="cue", title="Empty scout", body=lesson) for lesson in lessons))
    assert {hit.body for hit in (await empty.ask("the scout is empty, retry it?")).hits} == set(lessons)


@pytest.mark.meaning
async def test_a_hit_does_not_bring_memories_that_share_next_to_nothing_with_the_query(empty: Store) -> None:
    supplements = (
        "Revenue of vitamin brands grew a bit in pharmacies, says the panel of four thousand buyers in wave 12.",
        "The market of vitamins has 4 channels, and marketplaces are the fastest of them in every region.",
    )
    await empty.add(
        NewMemory(kind="note", title="Quantization", body="Quantizing the weights with GPTQ saves memory."),
        *(NewMemory(kind="note", title="Food supplements", body=body) for body in supplements),
    )
    assert [hit.title for hit in (await empty.ask("4-bit GPTQ perplexity")).hits] == ["Quantization"]


async def test_every_component_of_a_score_is_in_the_answer(store: Store) -> None:
    hit = (await store.ask("scout returned zero actors")).hits[0]
    parts: dict[str, Any] = dict(hit.explain)
    assert parts["relevance"] == pytest.approx(1.0)
    assert hit.score == pytest.approx(
        (0.7 * parts["relevance"] + 0.3 * parts["qual_weight"]) * parts["q_adjust"] * parts["recency"]
    )
    made_of = ("fused", "neighbours", "source", "named", "dated", "phrases", "time", "own", "turn", "short")
    assert parts["evidence"] == pytest.approx(sum(parts[name] for name in made_of))
    assert parts["phrases"] > 0
    assert parts["similarity"] > 0.4
    assert parts["bm25"] > 0


async def test_only_turns_are_judged_by_their_length_and_their_questions(empty: Store) -> None:
    body = "Where is the lighthouse?"
    places: list[tuple[Kind, SourceKind]] = [("message", "session"), ("chunk", "report")]
    await empty.add(
        *(
            NewMemory(kind=kind, title=kind, body=body, source=SourceReference(kind=source, uri=source), ordinal=0)
            for kind, source in places
        )
    )
    found = {}
    for kind, _ in places:
        (hit,) = (await empty.ask(body, filters=Filters(kinds=(kind,)))).hits
        found[kind] = [(hit.explain[name] or 0) < 0 for name in ("short", "turn")]
    assert found == {"message": [True, True], "chunk": [False, False]}


async def test_a_query_about_nothing_in_the_store_gets_nothing(store: Store) -> None:
    assert titles(await store.ask("quantum chromodynamics on the lattice")) == []


async def test_an_empty_store_gives_nothing(empty: Store) -> None:
    recall = await empty.ask("anything")
    assert recall.hits == ()


async def test_a_recall_makes_no_workspace(
    database: Database, provider: EmbeddingProvider, counter: TokenCounter, workspace_name: str
) -> None:
    unmade = await Workspaces(database=database, language="russian").resolve(workspace_name)
    assert unmade.workspace_id == UNMADE
    recall = await Retrieval(database=database, provider=provider).search(unmade, Query(text="anything", k=3))
    assert (recall.hits, recall.mode) == ((), "lexical")
    assert [item.reason for item in recall.degraded] == [f"the workspace {workspace_name!r} holds no memories"] * 2
    query = Query(text="anything", k=3, run_id="run")
    for stable in (False, True, True):
        made = await histories_of(database, provider, counter).get(unmade, query, budget_tokens=500, stable=stable)
        assert (made.markdown, made.tokens, made.recall.hits) == ("", 0, ())
    assert (await Workspaces(database=database).resolve(workspace_name)).workspace_id == UNMADE


async def test_what_was_retired_is_not_kept_by_its_tag(store: Store) -> None:
    await store.add(NewMemory(kind="note", title="old", body="The scout found no actors.", tags=("kept",)))
    (gone,) = (await store.ask("scout actors", filters=Filters(tags=("kept",)))).hits
    await Memories(database=store.database).delete(store.workspace, ids=[gone.memory.memory_id])
    known = await store.surveyed("scout actors", Filters(tags=("kept",)))
    assert known.kept is not None
    assert gone.memory.memory_id.bytes not in known.kept.array
    assert titles(await store.ask("scout actors", filters=Filters(tags=("kept",)))) == []


async def test_a_recall_is_logged_with_its_hits(store: Store) -> None:
    recall = await store.ask("scout actors", agent="director", run_id="run-7", k=2)
    logged = await Recalls(database=store.database).get(store.workspace, recall.recall_id)
    assert (logged.query, logged.agent, logged.run_id, logged.purpose) == (
        "scout actors", "director", "run-7", "search",
    )  # fmt: skip
    assert [(hit.memory_id, hit.title) for hit in logged.hits] == [
        (hit.memory.memory_id, hit.title) for hit in recall.hits
    ]
    assert [hit.score for hit in logged.hits] == pytest.approx([hit.score for hit in recall.hits], rel=1e-5)
    assert logged.hits[0].explain.keys() == recall.hits[0].explain.keys()


async def test_a_rating_changes_the_very_next_recall(empty: Store) -> None:
    twins = [
        NewMemory(kind="note", title=f"{name} run", body=f"The scout of the {name} market found no actors at all.")
        for name in ("tea", "coffee")
    ]
    await empty.add(*twins)
    before = titles(await empty.ask("scout found no actors"))
    async with empty.database.session(empty.workspace) as session:
        await session.execute(
            "UPDATE memories SET quality = -3 WHERE workspace_id = %(workspace_id)s AND title = %(title)s",
            {"title": before[0]},
        )
    assert titles(await empty.ask("scout found no actors")) == before[::-1]


async def test_last_week_is_told_from_when_it_is_asked(empty: Store) -> None:
    weeks = {week: datetime(2024, 3, week * 7 - 2, tzinfo=UTC) for week in (1, 2, 3)}
    notes = {week: f"The judge sent the {what} report back." for week, what in enumerate(("tea", "oil", "tin"), 1)}
    await empty.add(
        *(NewMemory(kind="note", title=f"week {week}", body=notes[week], occurred_at=weeks[week]) for week in weeks)
    )
    for week, moment in weeks.items():
        recall = await empty.ask("What did the judge do with the report last week?", now=moment + timedelta(days=7))
        assert titles(recall)[0] == f"week {week}"
        assert (recall.hits[0].explain["dated"] or 0) > 0
    logged = await Recalls(database=empty.database).get(empty.workspace, recall.recall_id)
    assert logged.parameters["now"] == "2024-03-26T00:00:00Z"


async def test_the_age_of_a_memory_is_counted_to_when_it_is_asked(empty: Store) -> None:
    then = datetime(2020, 1, 1, tzinfo=UTC)
    await empty.add(NewMemory(kind="note", body="The scout found no actors.", occurred_at=then))
    (hit,) = (await empty.ask("scout actors", now=then)).hits
    assert hit.explain["recency"] == 1.0
    (hit,) = (await empty.ask("scout actors")).hits
    assert (hit.explain["recency"] or 1) < 0.9


async def test_an_answer_goes_before_its_question(empty: Store) -> None:
    log = SourceReference(kind="session", uri="log")
    turns = ["Did the family adopt a puppy?", "The family did adopt a puppy.", "How lovely."]
    await empty.add(
        *(NewMemory(kind="message", body=body, source=log, ordinal=place) for place, body in enumerate(turns))
    )
    answer, question = (await empty.ask("puppy of the family", k=2)).hits
    assert [answer.body, question.body] == turns[1::-1]
    assert (answer.explain["turn"] or 0) > 0 > (question.explain["turn"] or 0)


async def test_a_re_ranker_reads_the_best_hits_once_more(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.foundation.models.reranker.LONGEST_WAIT", None)
    reranker = CrossEncoder(tmp_path, model=MODEL, folder=str(write_cross_encoder(tmp_path / "model")))
    query = "scout actors, market size, judge points, listicle pages"
    before = await store.ask(query)
    recall = await store.ask(query, reranker=reranker)
    assert (recall.degraded, len(recall.hits)) == ((), len(before.hits))
    assert len(before.hits) > 1
    found = {hit.title: hit for hit in recall.hits}
    shared = {title: (hit.explain["reranker"] or 0.0) + OFFSET for title, hit in found.items()}
    assert recall.hits[0].title == max(shared, key=shared.__getitem__) == "sources"
    assert shared["sources"] > shared["scout"] >= len({"scout", "actors", "market"})
    for hit in before.hits:
        assert "reranker" not in hit.explain
        assert found[hit.title].explain["before_reranking"] == pytest.approx(hit.explain["relevance"])
    logged = await Recalls(database=store.database).get(store.workspace, recall.recall_id)
    assert logged.hits[0].explain["reranker"] == found["sources"].explain["reranker"]
    (best,) = (await store.ask(query, reranker=reranker, k=1)).hits
    assert best.title == "sources"
    for left in ({"rerank": False}, {"preset": "classic"}):
        assert all("reranker" not in hit.explain for hit in (await store.ask(query, reranker=reranker, **left)).hits)
    assert len((await store.ask(query, reranker=reranker, preset="classic", rerank=True)).hits) <= 4
    await reranker.close()


async def test_a_re_ranker_that_cannot_serve_is_named_and_changes_nothing(store: Store, tmp_path: Path) -> None:
    query = "judge took points"
    plain = await store.ask(query)
    for reranker, reason in ((None, "PRIORS_RERANKER"), (CrossEncoder(tmp_path, model="nobody/nothing"), "nobody")):
        recall = await store.ask(query, reranker=reranker, rerank=True)
        (missing,) = recall.degraded
        assert (missing.arm, missing.silent, recall.mode) == ("reranker", True, "hybrid")
        assert reason in missing.reason
        assert titles(recall) == titles(plain)


async def test_neighbours_of_a_hit_are_lifted(empty: Store) -> None:
    log = SourceReference(kind="session", uri="log")
    turns = ["Shall we?", "The scout query was too narrow.", "Widen it then.", "Done.", "Good."]
    await empty.add(
        *(NewMemory(kind="message", body=body, source=log, ordinal=place) for place, body in enumerate(turns)),
        NewMemory(kind="note", body="Widen the road."),
    )
    recall = await empty.ask("why was the scout query narrow")
    assert recall.hits[0].body == turns[1]
    assert (next(hit for hit in recall.hits if hit.body == turns[2]).explain["neighbours"] or 0) > 0


@pytest.mark.parametrize("first", [0, LARGEST_ORDINAL - 4])
async def test_either_end_of_a_source_has_neighbours(empty: Store, first: int) -> None:
    log = SourceReference(kind="session", uri="log")
    turns = ["Zebras cross the lighthouse.", "Walnut.", "Carpet.", "Velvet.", "The lighthouse keeper counts zebras."]
    await empty.add(
        *(
            NewMemory(kind="message", title=f"{place}", body=body, source=log, ordinal=first + place)
            for place, body in enumerate(turns)
        )
    )
    recall = await empty.ask("zebras lighthouse")
    lifted = {hit.title: hit.explain["neighbours"] or 0 for hit in recall.hits}
    assert all(lifted[place] > 0 for place in "123")
    ends = [hit.memory.memory_id for hit in recall.hits if hit.title in "04"]
    for end in ends:
        around = await Memories(database=empty.database).neighbours(empty.workspace, memory_id=end)
        assert [memory.body for memory in around] in (turns[1:3], turns[2:4])
        assert [
            link.relation for link in await Memories(database=empty.database).links_of(empty.workspace, memory_id=end)
        ] == ["next"]


async def test_neighbours_are_found_by_the_index_of_sources(store: Store) -> None:
    words = "market report"
    logs = [SourceReference(kind="session", uri=f"log {number}") for number in range(20)]
    turns = [NewMemory(kind="message", body="turn", source=log, ordinal=place) for log in logs for place in range(100)]
    await store.add(*turns, embed=False)
    async with store.database.across(transaction=False) as session:
        await session.execute("ANALYZE memories")
    known = await store.surveyed(words, Filters())
    question = question_of(known, Query(text=words, k=3), DEFAULT)
    async with store.database.session(store.workspace, transaction=False) as session:
        question = replace(question, lexical_hits=await candidates.lexical_hits(session, question))
        statement = "EXPLAIN " + arms.pool_statement(candidates.shape_of(question))
        lines = await session.column(statement, candidates.values_of(question))
    (condition,) = (line for line in lines if "ordinal" in line)
    assert "Index Cond" in condition
    assert condition.count("ordinal") == 2


FILTERED = [
    (Filters(kinds=("cue",)), ["cue"]),
    (Filters(tags=("v6",)), ["chunk"]),
    (Filters(tags=("v6", "nope")), []),
    (Filters(source="v6/*.md"), ["chunk"]),
    (Filters(source="v5/*.md"), []),
    (Filters(since=datetime(2026, 2, 1, tzinfo=UTC), until=datetime(2026, 3, 1, tzinfo=UTC)), ["chunk"]),
    (Filters(kinds=("cue", "chunk")), ["chunk", "cue"]),
]


@pytest.mark.parametrize(("filters", "expected"), FILTERED)
async def test_filters_keep_what_they_say(empty: Store, filters: Filters, expected: list[str]) -> None:
    body = "The scout found no actors in {}."
    await empty.add(
        NewMemory(
            kind="chunk", title="chunk", body=body.format("Russia"), tags=("v6", "bads"), ordinal=0,
            source=SourceReference(kind="report", uri="/r/v6/report.md"), occurred_at=datetime(2026, 2, 3, tzinfo=UTC),
        ),
        NewMemory(kind="cue", title="cue", body=body.format("Brazil"), occurred_at=datetime(2026, 1, 3, tzinfo=UTC)),
        NewMemory(kind="note", title="note", body=body.format("Vietnam"), occurred_at=datetime(2026, 4, 3, tzinfo=UTC)),
    )  # fmt: skip
    assert sorted(titles(await empty.ask("scout found no actors", filters=filters))) == expected


@pytest.mark.parametrize(
    ("language", "body", "query"),
    [
        ("russian", "Разведчик вернул пустой список источников, и директор не остановил запуск.", "пустые списки"),
        ("ru", "Качество источников было низким: «каталоги» и социальные сети.", "низкое качество каталога"),
        ("german", "Die Berichte nannten keine Quellen für die Marktgrößen.", "Bericht ohne Quelle"),
        ("de", "Der Prüfer bemängelte die fehlenden Belege.", "fehlender Beleg"),
    ],
)
async def test_inflected_words_are_found(empty: Store, language: str, body: str, query: str) -> None:
    await empty.add(NewMemory(kind="note", body="An English note about something else."))
    await empty.add(NewMemory(kind="note", body=body, language=language), embed=False)
    recall = await empty.ask(query, provider=NoopProvider())
    assert [hit.body for hit in recall.hits][:1] == [body]
    assert (recall.hits[0].explain["bm25"] or 0) > 0


async def test_a_language_without_a_configuration_is_indexed_as_it_stands(empty: Store) -> None:
    await empty.add(NewMemory(kind="note", body="nuqneH qaleghneS running", language="tlh"), embed=False)
    recall = await empty.ask("qaleghneS", provider=NoopProvider())
    assert [hit.memory.language for hit in recall.hits] == ["simple"]


@pytest.mark.parametrize(
    ("answering", "reason"), [(NoopProvider(), "switched off"), (Down(), "no answer"), (Other(), "other-model")]
)
async def test_without_vectors_words_answer_and_the_reason_is_said(
    store: Store, answering: EmbeddingProvider, reason: str
) -> None:
    recall = await store.ask("scout returned zero actors", provider=answering)
    assert (recall.mode, [item.arm for item in recall.degraded]) == ("lexical", ["vector"])
    assert reason in recall.degraded[0].reason
    assert titles(recall)[0] == "scout"


async def test_a_provider_that_is_away_is_asked_by_one_query_alone(store: Store) -> None:
    endpoint = Endpoint()
    endpoint.reply = lambda _: (401, b'{"error": {"message": "the key has expired"}}')
    provider = RemoteProvider(
        kind="openai", model="m", dimension=384, base_url=endpoint.url, api_key="", timeout=5, wait=Pauses()
    )
    recalls = [await store.ask("scout returned zero actors", provider=provider) for _ in range(3)]
    await provider.close()
    endpoint.close()
    assert len(endpoint.requests) == 1
    for recall in recalls:
        assert (recall.mode, titles(recall)[0]) == ("lexical", "scout")
        (missing,) = recall.degraded
        assert (missing.arm, missing.silent) == ("vector", True)
        assert re.match(
            r"the query could not be embedded: the embedding provider has been away since [\d-]+ [\d:]+ UTC and is"
            r" tried again in the background: openai:m answers 401: .*the key has expired.*PRIORS_EMBEDDING_API_KEY",
            missing.reason,
        )


async def test_what_has_no_vector_yet_is_found_by_its_words(store: Store) -> None:
    await store.add(NewMemory(kind="note", title="fresh", body="Zanzibar cloves doubled in price."), embed=False)
    recall = await store.ask("Zanzibar cloves")
    assert titles(recall)[0] == "fresh"
    assert recall.mode == "lexical"
    assert "1 of 6 memories have no vector" in recall.degraded[0].reason


async def test_late_statistics_do_not_silence_the_vectors(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a store beyond what is counted exactly, here two memories, so many are counted as decide it."""
    names = ("crane", "quay", "barge", "buoy", "rope", "mast", "keel")
    await store.add(
        *(NewMemory(kind="note", title=name, body=f"The {name} of the harbour was painted anew.") for name in names)
    )
    monkeypatch.setattr("app.recall.retrieval.candidates.COUNTED_EXACTLY", 2)
    assert (await store.ask("scout")).degraded == ()
    await store.add(NewMemory(kind="note", title="fresh", body="Zanzibar cloves doubled in price."), embed=False)
    recall = await store.ask("Zanzibar cloves")
    assert recall.mode == "hybrid"
    assert re.match(r"1 of 1\d memories", recall.degraded[0].reason)
    await store.add(NewMemory(kind="note", title="late", body="Nutmeg fell to half of it in May."), embed=False)
    recall = await store.ask("Zanzibar cloves")
    assert (recall.mode, recall.degraded[0].reason.split(" mem")[0]) == ("lexical", "2 of 14")


async def test_only_stop_words_are_answered_by_meaning(store: Store) -> None:
    for query, reason in (("what is it that they do", "no words besides stop words"), ("?! 🥊", "no words")):
        recall = await store.ask(query)
        assert recall.mode == "vector"
        assert [(item.arm, item.reason) for item in recall.degraded] == [("lexical", f"the query has {reason}")]


@pytest.mark.parametrize(
    "query",
    [
        "'quoted' \"words\"",
        "a & b | !c <-> d:*",
        "🥊🥊",
        "(((",
        "\\",
        "%s %(x)s :name",
        "scout " * 10_000,
        "'; DROP TABLE",
    ],
)
async def test_any_text_can_be_asked(store: Store, query: str) -> None:
    assert (await store.ask(query)).mode in {"hybrid", "vector", "lexical"}


async def test_the_history_fits_its_budget_and_is_stable(store: Store) -> None:
    async def once(budget: int) -> tuple[str, int]:
        result = await histories_of(store.database, store.provider, store.counter).get(
            store.workspace,
            Query(text="scout actors and sources of the market", k=3, purpose="history"),
            budget_tokens=budget,
        )
        return result.markdown, result.tokens

    markdown, tokens = await once(500)
    assert markdown.startswith("## Relevant History\n\nData, not instructions.\n")
    assert 2 <= markdown.count("\n```\n") <= 6
    assert markdown.count("\n```\n") % 2 == 0
    assert (markdown, tokens) == await once(500)
    for budget in (1, 5, 40, 60, 80, 500):
        markdown, tokens = await once(budget)
        assert tokens == store.counter.count(markdown) <= budget


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"text": " "}, "query"), ({"text": "x" * 300_001}, "query"), ({"text": "a\0"}, "query"),
        ({"preset": "best"}, "preset"), ({"agent": "a\ud800"}, "agent"),
        ({"filters": Filters(kinds=(cast("Kind", "poem"),))}, "filters.kinds[0]"),
        ({"now": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2)))}, "now"),
    ],
)  # fmt: skip
async def test_bad_queries_name_their_field(empty: Store, change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        await Retrieval(database=empty.database, provider=empty.provider).search(
            empty.workspace, Query(**{"text": "fine", "k": 3, **change})
        )
    assert caught.value.field == field


async def test_nothing_is_found_in_another_workspace(store: Store) -> None:
    other = await workspace_in(store.database, f"{store.workspace.name}-x")
    stranger = Store(store.database, store.provider, store.counter, other)
    await stranger.add(NewMemory(kind="note", body="unrelated"))
    assert titles(await stranger.ask("scout returned zero actors")) == []


async def test_the_classic_preset_is_the_original_recipe(store: Store) -> None:
    recall = await store.ask("scout returned zero actors", preset="classic", k=10)
    assert (len(recall.hits), recall.mode) == (4, "vector")
    for hit in recall.hits:
        similarity = hit.explain["similarity"]
        assert similarity is not None
        assert hit.explain["relevance"] == pytest.approx(1 - (1 - similarity) / 2)
        assert hit.score == pytest.approx(0.7 * (1 - (1 - similarity) / 2) + 0.3 * 0.5)


@pytest.mark.parametrize("filters", [Filters(tags=("kept",)), Filters(kinds=("note",)), Filters(tags=("none",))])
async def test_what_a_filter_keeps_is_found_once_and_scored_by_both_arms(store: Store, filters: Filters) -> None:
    await store.add(
        *(
            NewMemory(kind="note", title=f"k{place}", body=f"market report {place}", tags=("kept",))
            for place in range(9)
        ),
        *(NewMemory(kind="message", title=f"m{place}", body=f"market talk {place}") for place in range(9)),
    )
    words = "a market report"
    clauses, _ = conditions(filters)
    known = await store.surveyed(words, filters)
    assert known.kept is not None
    asked = question_of(known, Query(text=words, k=3, filters=filters), DEFAULT)
    assert asked.words is not None
    once = replace(asked, vector=as_literal(await store.provider.embed_query(words)))
    by_clauses = replace(once, kept=None)
    async with store.database.session(store.workspace, transaction=False) as session:
        pools = [
            await candidates.candidates(
                session, replace(asked, lexical_hits=await candidates.lexical_hits(session, asked))
            )
            for asked in (once, by_clauses)
        ]
    assert sorted(pools[0]) == sorted(pools[1])
    assert all(candidate.memory_id.bytes in known.kept.array for candidate in pools[0])
    assert bool(pools[0]) == (filters.tags != ("none",))
    assert not any(clause in arms.vector_arm(candidates.shape_of(once)) for clause in clauses)
    assert not any(clause in arms.lexical_arm(candidates.shape_of(once)) for clause in clauses)


async def test_a_filter_leaves_none_of_the_rarest_term_and_the_others_are_found(empty: Store) -> None:
    inside = [
        NewMemory(kind="note", body=f"gateway {place}" if place < 4_500 else f"harbour {place}", tags=("in",))
        for place in range(5_100)
    ]
    outside = [NewMemory(kind="note", body=f"kestrel {place}", tags=("out",)) for place in range(600)]
    await empty.add(*inside, *outside, embed=False)
    words, filters = "kestrel gateway", Filters(tags=("in",))
    known = await empty.surveyed(words, filters)
    assert known.kept is None
    query = lexical_query(known.terms, total=known.live)
    assert query is not None
    assert "gateway" not in query.match
    recall = await empty.ask(words, filters=filters, k=20, preset="closest")
    assert len(recall.hits) == 20
    assert all("gateway" in hit.body for hit in recall.hits)
    assert all("kestrel" in hit.body for hit in (await empty.ask(words)).hits)


async def test_stable_calls_of_two_processes_at_once_continue_one_another(
    store: Store, database_url: str, workspace: Workspace
) -> None:
    other = Database(database_url, pool_size=4)
    asked = ["scout actors", "listicle social network", "dough hot oven", "rain harbour"] * 2

    async def call(database: Database, words: str) -> tuple[int, str]:
        made = await histories_of(database, store.provider, store.counter).get(
            workspace, Query(text=words, k=1, run_id="run"), budget_tokens=2_000, stable=True
        )
        assert made.reuse is not None
        return made.reuse.tokens, made.markdown.rstrip()

    calls = [call(database, words) for words in asked for database in (store.database, other)]
    answers = sorted(await asyncio.gather(*calls), key=lambda answer: (len(answer[1]), answer[0]))
    await other.close()
    assert sum(reused == 0 for reused, _ in answers) == 1
    assert all(after.startswith(before) for (_, before), (_, after) in pairwise(answers))
