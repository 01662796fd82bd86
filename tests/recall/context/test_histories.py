"""What a history says of a request: what holds now, the state of a case, silence, and each of several needs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.foundation.db.database import Database
from app.foundation.models.protocols import EmbeddingProvider, TokenCounter
from app.intake.cases.service import Cases
from app.recall.retrieval.rank.rank import COMPONENTS
from app.recall.retrieval.recall import History, Query
from app.recall.retrieval.service import Retrieval
from app.storage.memories.filters import Filters
from app.storage.tenants.workspace import Workspace
from tests.conftest import histories_of
from tests.intake.cases.test_history import Store

pytestmark = pytest.mark.meaning

JUDGED = """# Tea exports Kenya {version}: judgement

**Date:** 2026-0{month}-01

**Score:** {score}

## Issues

{issues}
"""
SIZING = "- P1: The market size has no derivation. The report gives 40 million without a method."
REOPENED = "- P1: Reopened: the market size has no derivation. v6 gives 40 million without a method again."
REPORT = """# Tea exports Kenya v5

**Date:** 2026-05-01

The market size is derived from auctions. With this, the issue that the market size has no derivation is fixed.
"""
NOTES = {
    "auctions.md": "# Auctions\n\nThe auction of Mombasa publishes weekly volumes for each factory as a spreadsheet.",
    "freight.md": "# Freight\n\nReefer containers from Mombasa to Karachi took nineteen days in the dry season.",
    "labels.md": "# Labels\n\nRetail packs need the moisture content printed beside the date of packing.",
    "pests.md": "# Pests\n\nRed spider mites halved the harvest of two estates near Kericho in a dry year.",
}
PLAN = "Plan version 7 of tea_exports_kenya. Which auctions publish volumes? Be brief."


@pytest.fixture
async def tea(
    tmp_path: Path, database: Database, provider: EmbeddingProvider, counter: TokenCounter, workspace: Workspace
) -> Store:
    """Four notes, and a case whose issue is open in v4, fixed by the report of v5, and reopened by the judge of v6."""
    (tmp_path / "reports").mkdir()
    store = Store(tmp_path / "reports", database, provider, counter, workspace)
    for name, text in NOTES.items():
        store.write(f"notes/{name}", text)
    for version, score, issues in ((4, 5.0, SIZING), (6, 4.5, REOPENED)):
        text = JUDGED.format(version=f"v{version}", month=version, score=score, issues=issues)
        store.write(f"tea-exports-kenya/v{version}/judgement.md", text)
    store.write("tea-exports-kenya/v5/report.md", REPORT)
    await store.ingest()
    await Cases(database=database, provider=provider, counter=counter).match(workspace)
    return store


class Even:
    """A re-ranker for which all texts are equal."""

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        return [0.0 for _ in texts] if query else []

    async def close(self) -> None:
        """Has nothing to release."""


async def told(store: Store, text: str, *, reranker: Even | None = None, **given: Any) -> History:
    query = Query(text=text, k=3, purpose="history", **given)
    histories = histories_of(store.database, store.provider, store.counter)
    histories = replace(histories, retrieval=replace(histories.retrieval, reranker=reranker))
    return await histories.get(store.workspace, query, budget_tokens=500)


async def test_the_reopening_is_first_and_the_old_claim_is_left_out(tea: Store) -> None:
    markdown = (await told(tea, "Is the missing derivation of the market size fixed?")).markdown
    assert "reopened" in markdown.split("```")[1].lower()
    assert "is fixed" not in markdown


async def test_who_plans_the_next_version_is_told_the_state_of_the_case_first(tea: Store) -> None:
    found = await told(tea, PLAN)
    first, *others = found.markdown.split("```\n")[1::2]
    assert "Tea exports Kenya, latest judged version v6" in first
    assert "- The market size has no derivation: reopened in v6, P1, in v4 and v6" in first
    assert "the market size has no derivation" not in first
    assert any("auctions.md" in other for other in others)


async def test_the_state_of_a_case_passes_the_filters_and_a_reranker(tea: Store) -> None:
    chunks = await told(tea, PLAN, filters=Filters(kinds=("chunk",)))
    assert {hit.memory.kind for hit in chunks.recall.hits} == {"chunk"}
    again = await told(tea, PLAN, reranker=Even(), rerank=True)
    assert "reopened in v6" in again.markdown.split("```\n")[1]


@pytest.mark.parametrize("preset", ["default", "classic"])
async def test_a_search_gives_at_most_k_hits_with_all_components(tea: Store, preset: str) -> None:
    found = await Retrieval(database=tea.database, provider=tea.provider).search(
        tea.workspace, Query(text=PLAN, k=2, preset=preset)
    )
    assert len(found.hits) == 2
    assert all(set(COMPONENTS) <= set(hit.explain) for hit in found.hits)
    assert [hit.score for hit in found.hits] == sorted((hit.score for hit in found.hits), reverse=True)


async def test_a_request_about_something_else_gets_nothing(tea: Store) -> None:
    assert not (await told(tea, "Plan the next version of the compiler's register allocator.")).markdown


async def test_a_prompt_finds_what_only_one_of_its_sentences_names(tea: Store) -> None:
    prompt = (
        "You are the planner of an export campaign. Compare the volumes that auctions publish. "
        "Say what spider mites did to harvests near Kericho. Explain what retail packs must print. Answer in two lines."
    )
    assert "Red spider mites" in (await told(tea, prompt)).markdown
