"""Words of languages other than English are found."""

import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.foundation.db.database import Database
from app.foundation.db.pool import libpq_url
from app.foundation.models.protocols import EmbeddingProvider, TokenCounter
from app.foundation.models.providers import NoopProvider
from app.foundation.text.words import fold
from app.recall.retrieval.recall import Query
from app.recall.retrieval.service import Retrieval
from app.storage.index.service import Embedder
from app.storage.memories.memory import NewMemory
from app.storage.memories.remember import WriteGate
from app.storage.tenants.workspace import Workspace
from tests.conftest import link_pending

TEXTS = {
    "chinese": "内存每小时增长30 MB，因为已解析模板的缓存从来没有清空。使用pgvector索引后恢复。",
    "japanese": "夜間の請求書の取り込みは、銀行のファイルに見出しが二行あったため停止した。",
    "korean": "두 번째 서버의 시계가 칠 분 늦어서 서명이 거부되었다.",
    "thai": "เครื่องพิมพ์ชั้นสามกระดาษติดเมื่อกระดาษบางเกินไป",
    "russian": "Отчёт о тепловых насосах вернули: цены были за прошлый год.",
    "other": "The trash is emptied on Fridays.",
}
QUESTIONS = {
    "缓存没有清空，内存会怎样": "chinese",
    "pgvector": "chinese",
    "請求書の取り込みが停止した理由": "japanese",
    "서버가 서명을 거부한 이유": "korean",
    "กระดาษติด": "thai",
    "отчет насосы": "russian",
}
INFLECTED = {
    "снижение оценки отчётов": "Оценку отчёта снизили. The scored reports were returned.",
    "αναφορά": "Οι αναφορές επιστράφηκαν.",
    "الكتاب": "كتاب جديد",
    "քաղաք": "Նոր քաղաքները",
    "लड़की": "लड़कियाँ",
    "புத்தகம்": "புத்தகங்கள்",
    "score of a report": "Scoring one reported failure.",
}


@pytest.fixture
def postgres(database: Database) -> Iterator[psycopg.Connection]:
    with psycopg.connect(libpq_url(database.url)) as connection:
        yield connection


@pytest.fixture
async def stored(database: Database, counter: TokenCounter, workspace: Workspace) -> dict[str, str]:
    """Stores the texts in a workspace whose language is English; returns their names by text."""
    memories = [NewMemory(kind="note", body=body) for body in TEXTS.values()]
    assert (await WriteGate(database=database, counter=counter).remember(workspace, memories)).rejected == ()
    return {body: name for name, body in TEXTS.items()}


async def test_words_of_scripts_without_blanks_are_found(
    database: Database, workspace: Workspace, stored: dict[str, str]
) -> None:
    found = {}
    for question in QUESTIONS:
        recall = await Retrieval(database=database, provider=NoopProvider()).search(
            workspace, Query(text=question, k=1)
        )
        found[question] = [stored[hit.memory.body] for hit in recall.hits]
    assert found == {question: [name] for question, name in QUESTIONS.items()}


FORMS = {
    "chaudière café": "résumé-café.md",
    "Müller": "résumé-café.md",
    "학점인정": "résumé-café.md",
    "Bäckerei Prüfung": "nfc.md",
    "payment gateway": "zero-width.md",
    "first retry": "zero-width.md",
    "A-1042": "zero-width.md",
    "4000 ms": "zero-width.md",
}


@pytest.mark.parametrize("form", ["NFC", "NFD"])
async def test_a_word_is_found_in_each_form_in_which_it_is_written(
    database: Database, counter: TokenCounter, workspace: Workspace, shared_data: Path, form: Literal["NFC", "NFD"]
) -> None:
    """What a Mac or a PDF writes is found by what a keyboard types; the body stays as it was written."""
    paths = (shared_data / "field-dev" / "07-nfd-nfc").glob("*.md")
    names = {unicodedata.normalize("NFC", path.name): path.read_text(encoding="utf-8") for path in paths}
    bodies = {names[name]: name for name in FORMS.values()}
    bodies |= {unicodedata.normalize("NFD", body): name for body, name in bodies.items()}
    memories = [NewMemory(kind="note", body=body) for body in bodies]
    assert (await WriteGate(database=database, counter=counter).remember(workspace, memories)).rejected == ()
    for text, name in FORMS.items():
        query = Query(text=unicodedata.normalize(form, text), k=2)
        recall = await Retrieval(database=database, provider=NoopProvider()).search(workspace, query)
        assert {bodies[hit.memory.body] for hit in recall.hits} == {name}, text
        assert all((hit.explain["lexical"] or 0) > 0 for hit in recall.hits)


LETTERS = st.characters(max_codepoint=0x2FFF, exclude_categories=["Cs", "Cc", "Cn"])


@given(text=st.text(alphabet=st.one_of(LETTERS, st.sampled_from("0123\u00a0\u2011\u00ad\u2122")), max_size=40))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_service_folds_a_text_as_the_database_does(postgres: psycopg.Connection, text: str) -> None:
    assert postgres.execute("SELECT priors_folded(%s)", [text]).fetchall() == [(fold(text),)]


async def test_words_are_stemmed_as_their_script_is_written(
    database: Database, counter: TokenCounter, workspace: Workspace
) -> None:
    """English words are stemmed as before, in an English text and in others."""
    bodies = {body: question for question, body in INFLECTED.items()}
    memories = [NewMemory(kind="note", body=body) for body in bodies]
    assert (await WriteGate(database=database, counter=counter).remember(workspace, memories)).rejected == ()
    for body, question in bodies.items():
        recall = await Retrieval(database=database, provider=NoopProvider()).search(
            workspace, Query(text=question, k=1)
        )
        assert [hit.memory.body for hit in recall.hits] == [body]


async def test_a_text_mentions_a_title_of_another_script(
    database: Database, counter: TokenCounter, workspace: Workspace
) -> None:
    """The older text is found by the words of the title, which are stemmed in both."""
    gate = WriteGate(database=database, counter=counter)
    await gate.remember(workspace, [NewMemory(kind="note", body="Смотри «Отчёты по Тепловым насосам», они полные.")])
    await link_pending(database, workspace)
    await gate.remember(workspace, [NewMemory(kind="note", title="Отчёты по тепловым насосам", body="Цены выросли.")])
    await link_pending(database, workspace)
    async with database.session(workspace) as session:
        assert await session.column("SELECT relation FROM links WHERE workspace_id = %(workspace_id)s", {}) == [
            "mentions"
        ]


@pytest.mark.usefixtures("stored")
async def test_a_question_about_something_else_finds_nothing(
    database: Database, provider: EmbeddingProvider, workspace: Workspace
) -> None:
    """The model knows only letters of these scripts, so that every text is near to every other one."""
    await Embedder(database=database, provider=provider).embed_pending(workspace)
    for question in ("苹果的收成为什么不好？", "Кто построил стену?"):
        for model in (NoopProvider(), provider):
            recall = await Retrieval(database=database, provider=model).search(workspace, Query(text=question, k=1))
            assert recall.hits == ()


async def test_the_longest_text_of_different_characters_is_stored(
    database: Database, counter: TokenCounter, workspace: Workspace
) -> None:
    """Postgres refuses more than 1 MB of words, which the pairs of such a text would be."""
    body = "".join(chr(0x4E00 + (number * 7919 + number // 20_000) % 20_900) for number in range(200_000))
    assert (
        await WriteGate(database=database, counter=counter).remember(workspace, [NewMemory(kind="note", body=body)])
    ).rejected == ()
