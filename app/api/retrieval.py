"""`POST /api/search`, `POST /api/history`, `GET /api/recalls/{id}`."""

from uuid import UUID

from litestar import Controller, get, post
from litestar.datastructures import State
from litestar.params import FromPath, JSONBody

from app.api.context import WorkspaceHeader, context_of
from app.api.fields import degraded_view
from app.api.problems import PROBLEMS
from app.api.retrieval_views import HistoryInput, HistoryView, HitView, RecallView, SearchInput, SearchView
from app.context.history import history
from app.retrieval.log import get_recall
from app.retrieval.search import search


class RetrievalController(Controller):
    """Finding what matters."""

    path = "/api"
    tags = ("retrieval",)

    @post("/search", status_code=200, responses=PROBLEMS)
    async def search(self, state: State, data: JSONBody[SearchInput], workspace: WorkspaceHeader = None) -> SearchView:
        """The memories that matter for a query, best first, each with every component of its score."""
        context = context_of(state)
        services = context.opened
        recall = await search(
            services.database,
            services.provider,
            workspace=context.workspace(workspace),
            language=services.settings.language,
            query=data.asked(),
            mask=services.settings.mask_secrets,
            reranker=services.reranker,
        )
        context.metrics.note_recall(recall, "search")
        return SearchView(
            hits=[HitView.of(hit) for hit in recall.hits],
            mode=recall.mode,
            degraded=degraded_view(recall.degraded),
            recall_id=recall.recall_id,
            took_ms=recall.took_ms,
        )

    @post("/history", status_code=200, responses=PROBLEMS)
    async def history(
        self, state: State, data: JSONBody[HistoryInput], workspace: WorkspaceHeader = None
    ) -> HistoryView:
        """The `## Relevant History` section for an agent, within a token budget.

        With `stable`, consecutive calls of one run share the longest possible prefix of bytes.
        """
        context = context_of(state)
        services = context.opened
        result = await history(
            services.database,
            services.provider,
            services.counter,
            workspace=context.workspace(workspace),
            language=services.settings.language,
            query=data.asked(),
            mask=services.settings.mask_secrets,
            reranker=services.reranker,
            budget_tokens=data.budget_tokens,
            stable=data.stable,
        )
        context.metrics.note_recall(result.recall, "history")
        return HistoryView.of(result)

    @get("/recalls/{recall_id:uuid}", responses=PROBLEMS)
    async def recall(self, state: State, recall_id: FromPath[UUID], workspace: WorkspaceHeader = None) -> RecallView:
        """One logged recall with its hits."""
        context = context_of(state)
        found = await get_recall(context.opened.database, workspace=context.workspace(workspace), recall_id=recall_id)
        return RecallView.of(found)
