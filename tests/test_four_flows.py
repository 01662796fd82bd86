"""The four calls of the pipeline that the examples tell of: each must get the right chunk among the first three."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
import pytest_asyncio

from app.foundation.db.database import Database
from app.foundation.models.protocols import EmbeddingProvider, TokenCounter
from app.foundation.models.providers import NoopProvider
from app.intake.reports.ingest import Ingestions
from app.operations.examples import REPORTS
from app.recall.context.history import Histories
from app.recall.retrieval.recall import Query
from app.storage.tenants.workspace import Workspace
from tests.conftest import histories_of, workspace_in

FLOWS = [
    ("director", "scout actors results BADs Russia", "v6", ["0 actors", "not escalate"]),
    ("scout", "source quality issues BADs Russia", "v5", ["ok.ru", "listicle"]),
    ("researcher", "TAM SAM SOM methodology issues", "", ["TAM", "SAM", "methodology", "recurring"]),
    ("judge", "known scoring patterns BADs Russia", "", ["v1", "v7", "4.1", "7.6"]),
]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def examples(database: Database, provider: EmbeddingProvider, counter: TokenCounter) -> AsyncIterator[Workspace]:
    """A workspace that holds the example reports."""
    workspace = await workspace_in(database, f"examples-{uuid4().hex[:12]}")
    ingestions = Ingestions(database=database, provider=provider, counter=counter, max_file_bytes=1_000_000)
    result = await ingestions.ingest(workspace, [REPORTS])
    assert result.failed == ()
    assert len(result.outcomes) >= 40
    yield workspace


@pytest.mark.parametrize("words_alone", [False, True])
@pytest.mark.parametrize(("agent", "query", "version", "says"), FLOWS)
async def test_the_right_chunk_is_among_the_first_three(
    database: Database,
    provider: EmbeddingProvider,
    counter: TokenCounter,
    examples: Workspace,
    agent: str,
    query: str,
    version: str,
    says: list[str],
    words_alone: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    histories = histories_of(database, NoopProvider() if words_alone else provider, counter)
    result = await histories.get(examples, Query(text=query, k=3, agent=agent, purpose="history"), budget_tokens=900)
    found = [f"{hit.title}\n{hit.body}" for hit in result.recall.hits]
    assert any(version in text and all(word in text for word in says) for text in found), result.markdown
    assert result.tokens <= 900


@pytest.fixture
def histories(database: Database, provider: EmbeddingProvider, counter: TokenCounter) -> Histories:
    return histories_of(database, provider, counter)


async def test_other_niches_do_not_crowd_in(histories: Histories, examples: Workspace) -> None:
    result = await histories.get(
        examples, Query(text="scout actors results BADs Russia", k=3, purpose="history"), budget_tokens=900
    )
    assert {hit.memory.tags[0] for hit in result.recall.hits} == {"bads-russia"}


@pytest.mark.parametrize(
    ("agent", "query", "says"),
    [
        ("scout", "source quality issues BADs Russia", "ok.ru and three listicle sites"),
        ("judge", "How far apart are judges and humans?", "The second judge of v4 was 0.8 higher"),
    ],
)
async def test_the_first_block_answers(
    histories: Histories, examples: Workspace, agent: str, query: str, says: str
) -> None:
    result = await histories.get(examples, Query(text=query, k=3, agent=agent, purpose="history"), budget_tokens=500)
    assert says in result.markdown.split("```\n")[1], result.markdown


async def test_a_question_for_sources_alone_is_answered_from_where_reports_keep_them(
    histories: Histories, examples: Workspace
) -> None:
    answered, silent = [
        await histories.get(examples, Query(text=text, k=3, agent="scout", purpose="history"), budget_tokens=500)
        for text in ("Which domains should I avoid?", "Which restaurants should I avoid?")
    ]
    assert "ok.ru and three listicle sites" in answered.markdown
    assert "weak sources behind key figures" in answered.markdown
    assert not silent.markdown
