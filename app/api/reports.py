"""`POST /api/reports`."""

from litestar import Controller, post
from litestar.datastructures import State
from litestar.params import JSONBody

from app.api.context import WorkspaceHeader, context_of
from app.api.problems import PROBLEMS
from app.api.schemas import OutcomeView, ReportInput
from app.errors import check
from app.memories.admission import unstorable
from app.reports.ingest import ingest_content


class ReportsController(Controller):
    """Taking report files in."""

    path = "/api"
    tags = ("reports",)

    @post("/reports", status_code=200, responses=PROBLEMS)
    async def ingest(self, state: State, data: JSONBody[ReportInput], workspace: WorkspaceHeader = None) -> OutcomeView:
        """Take in one report file's content, as `priors ingest` takes a file."""
        context = context_of(state)
        services = context.opened
        check(unstorable({"language": data.language or ""}))
        outcome = await ingest_content(
            services.database,
            services.provider,
            services.counter,
            workspace=context.workspace(workspace),
            language=data.language,
            default_language=services.settings.language,
            path=data.path,
            content=data.content.encode(errors="surrogatepass"),
            max_file_bytes=services.settings.max_file_bytes,
            mask=services.settings.mask_secrets,
        )
        context.metrics.reports.labels(outcome.status).inc()
        return OutcomeView(
            path=outcome.path,
            status=outcome.status,
            chunks=outcome.chunks,
            stored=outcome.stored,
            tokens=outcome.tokens,
            left_out=outcome.left_out,
            quarantined=outcome.quarantined,
        )
