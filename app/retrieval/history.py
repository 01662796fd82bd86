"""The verb that gives an agent its history."""

from functools import partial

from app.aside import aside
from app.db.engine import Database
from app.embeddings.provider import EmbeddingProvider, Reranker, TokenCounter
from app.errors import InvalidInput
from app.retrieval.query import Query
from app.retrieval.recall import History
from app.retrieval.search import find, log
from app.retrieval.section import is_long, section
from app.retrieval.stable import continued_history

LEAST_BUDGET, LARGEST_BUDGET = 1, 100_000
"""Tokens."""


async def history(
    database: Database,
    provider: EmbeddingProvider,
    counter: TokenCounter,
    *,
    workspace: str,
    language: str,
    query: Query,
    budget_tokens: int,
    stable: bool = False,
    mask: bool = True,
    reranker: Reranker | None = None,
) -> History:
    """The `## Relevant History` section for a query, of at most `budget_tokens` model tokens.

    What is logged as given is what the section shows. A `stable` one continues the previous stable one of the query's
    run: what that showed keeps its place and bytes as long as there is room, and what is new follows. The log
    has no secrets of the query, unless `mask` is off.

    Raises:
        InvalidInput: the query, its filters or the budget cannot be taken, or `stable` is asked for without a run.
        DatabaseUnavailable: the database does not answer.
    """
    if not LEAST_BUDGET <= budget_tokens <= LARGEST_BUDGET:
        raise InvalidInput("budget_tokens", f"must be from {LEAST_BUDGET} to {LARGEST_BUDGET:,}")
    if stable and not query.run_id:
        raise InvalidInput("run_id", "is missing; `stable` continues what a run was given before, so name the run")
    finding = await find(database, provider, workspace=workspace, query=query, mask=mask, reranker=reranker)
    if stable:
        return await continued_history(database, counter, finding, budget_tokens=budget_tokens, language=language)
    made = partial(section, finding.hits, budget=budget_tokens, counter=counter)
    markdown, tokens, shown = await aside(made, long=is_long(finding.hits))
    recall = await log(database, finding, hits=shown, tokens=tokens, language=language)
    return History(markdown=markdown, tokens=tokens, recall=recall)
