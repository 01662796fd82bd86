"""`POST /api/reports`."""

from typing import Annotated

from litestar import Controller, post
from litestar.datastructures import State
from litestar.params import JSONBody
from msgspec import Meta, Struct

from app.api.context import WorkspaceHeader, context_of
from app.api.fields import Name
from app.api.problems import PROBLEMS
from app.errors import check
from app.intake.reports.ingest import ingest_content
from app.memories.admission import URI_LIMIT, unstorable


class ReportInput(Struct, forbid_unknown_fields=True):
    """A report file's content."""

    path: Annotated[str, Meta(min_length=1, max_length=URI_LIMIT, description="a relative path to .md or .json")]
    content: str
    language: Name | None = None


class OutcomeView(Struct, frozen=True):
    """What became of a report."""

    path: str
    status: str
    chunks: int
    stored: int
    tokens: int
    left_out: int
    quarantined: int


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
