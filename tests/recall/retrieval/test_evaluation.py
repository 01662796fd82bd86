"""Tests of evaluations: their questions and figures, a running store that stays as it was, and fits."""

import json
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from app.errors import InvalidInput
from app.foundation.db.database import Database
from app.foundation.models.local import CrossEncoder
from app.foundation.models.protocols import EmbeddingProvider, TokenCounter
from app.foundation.models.providers import NoopProvider
from app.foundation.text.words import WORD
from app.recall.retrieval.evaluation import evaluate as evaluating
from app.recall.retrieval.evaluation.bench import DEPTHS, QuestionOutcome, gain, outcome
from app.recall.retrieval.evaluation.evaluate import evaluate, forget_fit
from app.recall.retrieval.evaluation.questions import (
    SUBJECTS,
    QuestionMemory,
    Wanted,
    about_nothing,
    known_items,
    praised_queries,
    read_questions,
)
from app.recall.retrieval.rank.presets import CLASSIC, DEFAULT, weights_of, with_weights
from app.recall.retrieval.recall import Query
from app.recall.retrieval.service import Retrieval
from app.storage.index.embedding import embed_pending, refresh_all_statistics
from app.storage.memories.memory import NewMemory, SourceReference
from app.storage.memories.remember import Door, remember
from app.storage.recalls.service import Recalls
from app.storage.recalls.store import mark_used
from app.storage.tenants import store as workspaces
from app.storage.tenants.service import resolve
from app.storage.tenants.workspace import Workspace
from tests.fakes.cross_encoder import MODEL, write_cross_encoder

TURNS = [
    "The plumber mended the boiler in the cellar after the second visit on Monday.",
    "Our neighbour grows tomatoes and basil on a balcony that faces the harbour.",
    "The accountant found an invoice from a printer that nobody had ordered.",
    "Two cyclists crossed the mountain pass before the snow closed the road.",
    "A violinist practised the slow movement until the hotel asked for silence.",
    "The museum lent a bronze statue to a gallery in the capital for spring.",
    "Engineers replaced the turbine blades because hail had cracked three of them.",
    "The bakery sells rye bread with caraway to restaurants near the station.",
    "A fisherman reported dolphins between the lighthouse rock and the ferry route.",
    "The librarian digitised letters of a botanist who travelled through Peru.",
    "Volunteers painted the school gym yellow during the summer holidays.",
    "The dentist moved her practice above the pharmacy next to the tram stop.",
]
BAD = {"blend.next": 1.5, "blend.second": 0.0, "text_features.phrases": 0.0}
"""Weights by which the neighbours of a turn come before it."""
UNTOUCHED = """
SELECT (SELECT count(*) FROM recalls WHERE workspace_id = %(workspace_id)s),
    (SELECT count(*) FROM accesses WHERE workspace_id = %(workspace_id)s AND access_count > 0),
    (SELECT statistics_at FROM workspaces WHERE workspace_id = %(workspace_id)s)
"""


@pytest.fixture
async def diary(
    database: Database, provider: EmbeddingProvider, counter: TokenCounter, workspace: Workspace
) -> Workspace:
    source = SourceReference(kind="session", uri="diary")
    turns = [
        NewMemory(kind="message", title="Ann", body=body, source=source, ordinal=place)
        for place, body in enumerate(TURNS)
    ]
    result = await remember(Door(database, counter, workspace), turns)
    assert result.rejected == ()
    await embed_pending(database, provider, workspace=workspace)
    await refresh_all_statistics(database, across=database.across)
    return await resolve(database, workspace.name, language="english")


async def state(database: Database, workspace: Workspace) -> object:
    async with database.session(workspace) as session:
        return await session.one(UNTOUCHED)


def test_a_file_of_questions_is_read_and_a_bad_line_is_named() -> None:
    known = uuid4()
    lines = [{"question": "who?", "ids": [str(known)]}, {"question": "what?", "texts": ["x"], "sources": ["a.md"]}]
    found = read_questions("\n\n".join(map(json.dumps, lines)).encode())
    assert found[0] == Wanted(question="who?", ids=(known,))
    assert found[1].sources == ("a.md",)
    for content, reason in ((b'{"question": "a"}\nno', "line 2"), (b'{"ask": 1}', "line 1"), (b"", "no line")):
        with pytest.raises(InvalidInput, match=reason):
            read_questions(content)
    with pytest.raises(InvalidInput, match="empty"):
        read_questions(b'{"question": " "}')
    with pytest.raises(InvalidInput, match=r"line 1: texts: contains a NUL"):
        read_questions(b'{"question": "who?", "texts": ["a\\u0000b"]}')


def test_known_items_are_the_same_each_time_and_never_the_memorys_own_words() -> None:
    memories = [QuestionMemory(UUID(int=place), "message", "Ann", body, None) for place, body in enumerate(TURNS)]
    heading = "Market of vitamins in Europe › Method of the total addressable size"
    memories.insert(0, QuestionMemory(UUID(int=99), "chunk", heading, "12 of 40.", UUID(int=7)))
    twice = [*memories, QuestionMemory(UUID(int=50), "message", "Ann", TURNS[0], None)]
    found = known_items(memories, 50)
    assert found == known_items(memories, 50)
    assert len(found) == len(memories)
    assert found[0].group == str(UUID(int=7))
    bodies = {memory.memory_id: f"{memory.title} {memory.body}".lower() for memory in memories}
    for item in found:
        ((answer,),) = item.answers
        assert item.question not in bodies[answer]
        assert len(set(WORD.findall(item.question)) & set(WORD.findall(bodies[answer]))) > 2
    asked = {item.question for item in known_items(twice, 50)}
    assert asked == {item.question for item in found if item.answers != (frozenset({UUID(int=0)}),)}
    assert len(known_items(memories, 5)) == 5


def test_known_items_of_a_text_without_blanks() -> None:
    body = "内存每小时增长三十兆，因为已解析模板的缓存从来没有清空。"
    (item,) = known_items([QuestionMemory(UUID(int=1), "note", "", body, None)], 5)
    assert item.question == "已解 析模 缓存 从来 清空 内存 每小 长三 十兆"


def test_subjects_that_the_store_knows_are_not_asked_as_unknown() -> None:
    subjects = dict.fromkeys(SUBJECTS, False)
    assert len(about_nothing(subjects)) == 200
    without = about_nothing({**subjects, "lighthouse": True})
    assert len(without) == 195
    assert not any("lighthouse" in item.question for item in without)


def test_figures_of_a_question() -> None:
    first, second, third = (UUID(int=place) for place in range(3))
    answers = (frozenset({first}), frozenset({second, third}))
    found = outcome([UUID(int=9), third, UUID(int=8)], answers)
    assert found == QuestionOutcome(recall={1: 0.0, 5: 0.5, 10: 0.5}, reciprocal_rank=0.5)
    assert found.score == 0.5
    assert outcome([], answers).reciprocal_rank == 0


def test_a_gain_is_sure_only_beyond_chance() -> None:
    good, bad = (QuestionOutcome(recall=dict.fromkeys(DEPTHS, value), reciprocal_rank=value) for value in (1.0, 0.0))
    assert gain([bad] * 30, [good] * 10 + [bad] * 20).is_sure
    assert not gain([bad] * 30, [good] + [bad] * 29).is_sure
    mixed = gain([bad, good] * 15, [good, bad] * 15)
    assert mixed.mean == 0
    assert not mixed.is_sure


def test_weights_are_read_and_set_by_their_names() -> None:
    weights = weights_of(DEFAULT)
    assert with_weights(DEFAULT, weights) == DEFAULT
    assert with_weights(DEFAULT, {"blend.of_another_version": 1.0}) == DEFAULT
    for name, value in weights.items():
        assert weights_of(with_weights(DEFAULT, {name: value + 1})) == {**weights, name: value + 1}
    assert weights_of(CLASSIC).keys() < weights.keys()


async def test_an_evaluation_leaves_the_store_as_it_was(
    database: Database, provider: EmbeddingProvider, diary: Workspace, tmp_path: Path
) -> None:
    reranker = CrossEncoder(tmp_path, model=MODEL, folder=str(write_cross_encoder(tmp_path / "model")))
    before = await state(database, diary)
    found = await evaluate(database, provider, workspace=diary, reranker=reranker)
    await reranker.close()
    assert await state(database, diary) == before
    assert found.origin == "known items"
    assert (found.questions, found.nothing) == (len(TURNS), 195)
    rows = {row.name: row for row in found.rows}
    assert [*rows][:2] == ["default", "default, re-ranked"]
    assert {"classic", "ranks", "closest", "default, more words"} < rows.keys()
    assert rows["default"].figures.recall[5] > 0.9
    assert rows["closest"].figures.junk == 1
    assert rows["default"].figures.junk is not None
    assert rows["default"].figures.junk < 0.2
    assert found.reranker is None
    assert all(row.degraded == () for row in found.rows)


async def test_a_users_own_questions_are_measured(
    database: Database, provider: EmbeddingProvider, diary: Workspace
) -> None:
    asked = [
        Wanted(question="who mended the boiler?", texts=(TURNS[0],)),
        Wanted(question="where does basil grow?", sources=("diary",)),
        Wanted(question="what does a submarine weigh?"),
    ]
    found = await evaluate(database, provider, workspace=diary, wanted=asked)
    assert (found.origin, found.questions, found.nothing) == ("given", 2, 1)
    assert found.rows[0].figures.mrr == 1
    assert found.better is None, "two questions decide nothing"
    assert found.reranker == "none is configured"
    lexical = await evaluate(database, NoopProvider(), workspace=diary, wanted=asked)
    assert any("switched off" in reason for reason in lexical.rows[0].degraded)
    with pytest.raises(InvalidInput, match=r"question 1: no live memory has the text 'gone'"):
        await evaluate(database, provider, workspace=diary, wanted=[Wanted(question="a", texts=("gone",))])
    nowhere = await resolve(database, "nowhere", language="english")
    with pytest.raises(InvalidInput, match="holds no memories"):
        await evaluate(database, provider, workspace=nowhere)


async def test_queries_whose_hits_were_used_belong_to_the_source_of_these(
    database: Database, provider: EmbeddingProvider, diary: Workspace
) -> None:
    asked = Query(text="who mended the boiler?", k=1, run_id="r")
    (hit,) = (await Retrieval(database=database, provider=provider).search(diary, asked)).hits
    async with database.session(diary) as session:
        assert await praised_queries(session) == []
        await mark_used(session, "r", [hit.memory.memory_id])
        (item,) = await praised_queries(session)
    assert item.answers == (frozenset({hit.memory.memory_id}),)
    assert (item.question, item.group) == (asked.text, str(hit.memory.source_id))


async def test_a_fit_is_stored_only_if_the_left_out_part_gains(
    database: Database, provider: EmbeddingProvider, diary: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluating, "STEPS", (0.5,))
    asked = [Wanted(question=" ".join(body.split()[:4]), texts=(body,)) for body in TURNS]
    asked += [Wanted(question="what does a submarine weigh?")] * 2
    with pytest.raises(InvalidInput, match="a fit needs 20"):
        await evaluate(database, provider, workspace=diary, wanted=asked, fit=True, on_progress=pytest.fail)
    monkeypatch.setattr(evaluating, "LEAST_PART", 3)
    monkeypatch.setattr(evaluating, "_parts", lambda items: (items[::2], items[1::2]))
    kept = await evaluate(database, provider, workspace=diary, wanted=asked, fit=True)
    assert kept.fit is not None
    assert not kept.fit.stored
    assert (await resolve(database, diary.name, language="english")).weights == {}

    async with database.session(diary) as session:
        await workspaces.set_ranking(session, {"weights": BAD})
    bad = await resolve(database, diary.name, language="english")
    fitted = (await evaluate(database, provider, workspace=bad, wanted=asked, fit=True)).fit
    assert fitted is not None
    assert fitted.stored
    assert fitted.after.score > fitted.before.score
    own = await resolve(database, diary.name, language="english")
    assert own.weights == fitted.weights
    assert own.weights["blend.next"] == 0.75
    recall = await Retrieval(database=database, provider=provider).search(own, Query(text=asked[0].question, k=3))
    logged = await Recalls(database=database).get(own, recall.recall_id)
    assert logged.parameters["fitted"] == own.weights
    assert (await forget_fit(database, workspace=own)).weights == {}
    assert (await resolve(database, diary.name, language="english")).ranking == {}
