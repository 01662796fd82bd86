"""Languages by name and code, and a workspace's own."""

import pytest
from sqlalchemy import text

from app.db.engine import Database
from app.errors import InvalidInput
from app.memories.memory import NewMemory
from app.memories.remember import remember
from app.models.protocols import TokenCounter
from app.models.remote import NoopProvider
from app.retrieval.query import Query
from app.retrieval.search import search
from app.runs.observations.observation import Outcome
from app.runs.observations.request import request_observation
from app.workspaces.languages import CODES, CONFIGURATIONS, configuration, set_language, unknown_language


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        ("Russian", "russian"),
        ("ru", "russian"),
        ("ru-RU", "russian"),
        ("pt_BR", "portuguese"),
        ("tlh", "simple"),
        ("", "simple"),
    ],
)
def test_names_and_codes(given: str, chosen: str) -> None:
    assert configuration(given) == chosen


@pytest.mark.parametrize("language", ["Russian", "ru-RU", "pt_BR", "tlh", "pl", "zh-Hant", "simple", ""])
def test_languages(language: str) -> None:
    assert unknown_language(language) is None


@pytest.mark.parametrize("language", ["klingon", "englsh", "12", "e"])
async def test_what_is_no_language_is_refused_with_those_that_are_known(
    database: Database, counter: TokenCounter, workspace: str, language: str
) -> None:
    says = f"{language!r} is none; there are ISO codes .* english, "
    with pytest.raises(InvalidInput, match=says):
        await set_language(database, workspace=workspace, language=language)
    with pytest.raises(InvalidInput, match=says):
        await search(
            database,
            NoopProvider(),
            workspace=workspace,
            language="english",
            query=Query(text="q", k=1, language=language),
        )
    with pytest.raises(InvalidInput, match=says):
        await request_observation(
            database, workspace=workspace, language="english",
            outcome=Outcome(task="t", output="The scout verified 12 producers.", language=language),
        )  # fmt: skip
    note = NewMemory(kind="note", body="A finding of the judge", language=language)
    done = await remember(database, counter, workspace=workspace, language="english", memories=[note])
    (rejected,) = done.rejected
    assert rejected.reason.startswith(f"language: {language!r} is none")


async def test_postgres_knows_every_one_of_them(database: Database) -> None:
    async with database.statements() as connection:
        known = set((await connection.execute(text("SELECT cfgname FROM pg_ts_config"))).scalars())
    assert known >= CONFIGURATIONS
    assert set(CODES.values()) < CONFIGURATIONS


async def test_a_workspace_has_its_own(database: Database, counter: TokenCounter, workspace: str) -> None:
    assert await set_language(database, workspace=workspace, language="de") == "german"
    memory = NewMemory(kind="note", body="Die Berichte nannten keine Quellen.")
    await remember(database, counter, workspace=workspace, language="english", memories=[memory])
    recall = await search(
        database, NoopProvider(), workspace=workspace, language="english", query=Query(text="Bericht ohne Quelle", k=1)
    )
    assert [hit.memory.language for hit in recall.hits] == ["german"]
