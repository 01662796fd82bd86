"""Languages by name and code, and a workspace's own."""

import pytest

from app.errors import InvalidInput
from app.foundation.db.database import Database
from app.foundation.models.protocols import TokenCounter
from app.foundation.models.providers import NoopProvider
from app.intake.runs.observations.observation import Outcome
from app.recall.retrieval.recall import Query
from app.recall.retrieval.service import Retrieval
from app.storage.memories.memory import NewMemory
from app.storage.memories.remember import WriteGate
from app.storage.tenants.service import Workspaces
from app.storage.tenants.workspace import CODES, CONFIGURATIONS, Workspace, configuration, unknown_language
from app.wiring import Services


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
    services: Services, database: Database, counter: TokenCounter, workspace: Workspace, language: str
) -> None:
    says = f"{language!r} is none; there are ISO codes .* english, "
    with pytest.raises(InvalidInput, match=says):
        await Workspaces(database=database).set_language(workspace, language)
    with pytest.raises(InvalidInput, match=says):
        await Retrieval(database=database, provider=NoopProvider()).search(
            workspace, Query(text="q", k=1, language=language)
        )
    outcome = Outcome(task="t", output="The scout verified 12 producers.", language=language)
    with pytest.raises(InvalidInput, match=says):
        await services.observations.request(workspace, outcome)
    note = NewMemory(kind="note", body="A finding of the judge", language=language)
    done = await WriteGate(database=database, counter=counter).remember(workspace, [note])
    (rejected,) = done.rejected
    assert rejected.reason.startswith(f"language: {language!r} is none")


async def test_postgres_knows_every_one_of_them(database: Database) -> None:
    async with database.across() as session:
        known = set(await session.column("SELECT cfgname FROM pg_ts_config"))
    assert known >= CONFIGURATIONS
    assert set(CODES.values()) < CONFIGURATIONS


async def test_a_workspace_has_its_own(database: Database, counter: TokenCounter, workspace: Workspace) -> None:
    workspace = await Workspaces(database=database).set_language(workspace, "de")
    assert workspace.language == "german"
    assert (await Workspaces(database=database).resolve(workspace.name)).language == "german"
    memory = NewMemory(kind="note", body="Die Berichte nannten keine Quellen.")
    await WriteGate(database=database, counter=counter).remember(workspace, [memory])
    recall = await Retrieval(database=database, provider=NoopProvider()).search(
        workspace, Query(text="Bericht ohne Quelle", k=1)
    )
    assert [hit.memory.language for hit in recall.hits] == ["german"]
