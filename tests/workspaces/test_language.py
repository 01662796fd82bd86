"""Languages by name and code, and a workspace's own."""

import pytest

from app.db.database import Database
from app.errors import InvalidInput
from app.memories.memory import NewMemory
from app.memories.remember import Door, remember
from app.models.protocols import TokenCounter
from app.models.providers import NoopProvider
from app.retrieval.recall import Query
from app.retrieval.search import search
from app.runs.observations.observation import Outcome
from app.runs.observations.request import request_observation
from app.workspaces.resolve import resolve, set_language
from app.workspaces.workspace import CODES, CONFIGURATIONS, Workspace, configuration, unknown_language


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
    database: Database, counter: TokenCounter, workspace: Workspace, language: str
) -> None:
    says = f"{language!r} is none; there are ISO codes .* english, "
    with pytest.raises(InvalidInput, match=says):
        await set_language(database, workspace, language)
    with pytest.raises(InvalidInput, match=says):
        await search(
            database,
            NoopProvider(),
            workspace=workspace,
            query=Query(text="q", k=1, language=language),
        )
    with pytest.raises(InvalidInput, match=says):
        await request_observation(
            database, workspace=workspace,
            outcome=Outcome(task="t", output="The scout verified 12 producers.", language=language),
        )  # fmt: skip
    note = NewMemory(kind="note", body="A finding of the judge", language=language)
    done = await remember(Door(database, counter, workspace), [note])
    (rejected,) = done.rejected
    assert rejected.reason.startswith(f"language: {language!r} is none")


async def test_postgres_knows_every_one_of_them(database: Database) -> None:
    async with database.across() as session:
        known = set(await session.column("SELECT cfgname FROM pg_ts_config"))
    assert known >= CONFIGURATIONS
    assert set(CODES.values()) < CONFIGURATIONS


async def test_a_workspace_has_its_own(database: Database, counter: TokenCounter, workspace: Workspace) -> None:
    workspace = await set_language(database, workspace, "de")
    assert workspace.language == "german"
    assert (await resolve(database, workspace.name, language="english")).language == "german"
    memory = NewMemory(kind="note", body="Die Berichte nannten keine Quellen.")
    await remember(Door(database, counter, workspace), [memory])
    recall = await search(database, NoopProvider(), workspace=workspace, query=Query(text="Bericht ohne Quelle", k=1))
    assert [hit.memory.language for hit in recall.hits] == ["german"]
