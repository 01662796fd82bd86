"""`GET /api/audit`: who changed what, and who took data away."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from litestar import Controller, get
from litestar.params import FromQuery, QueryParameter
from msgspec import Struct

from app.errors import Forbidden, check
from app.foundation.text.faults import unstorable
from app.interfaces.http.context import ThisCall
from app.interfaces.http.problems import PROBLEMS
from app.operations.audit import LARGEST_PAGE, AuditEntry, AuditQuestion, list_entries

Given = Annotated[str, QueryParameter(max_length=200)]


class AuditPage(Struct, frozen=True):
    """Entries, the newest first."""

    entries: Sequence[AuditEntry]
    next: UUID | None
    """Pass it as `before` for the page after; null at the end."""


class AuditController(Controller):
    """Shows the audit log. Its route demands the scope `admin`."""

    path = "/api/audit"
    tags = ("audit",)

    @get(responses=PROBLEMS)
    async def page(
        self,
        call: ThisCall,
        since: Annotated[datetime | None, QueryParameter(description="not earlier than this moment")] = None,
        until: Annotated[datetime | None, QueryParameter(description="earlier than this moment")] = None,
        who: Given = "",
        action: FromQuery[Literal["add", "change", "remove", "export", "erase"] | None] = None,
        of: Annotated[str, QueryParameter(name="object", description="memory, run, key, …", max_length=200)] = "",
        before: Annotated[UUID | None, QueryParameter(description="the last entry of the page before")] = None,
        limit: Annotated[int, QueryParameter(ge=1, le=LARGEST_PAGE)] = 100,
        *,
        store: Annotated[bool, QueryParameter(description="what concerns the whole store, as keys do")] = False,
    ) -> AuditPage:
        """Who changed what in the workspace and who exported it, the newest first. Reads are not logged."""
        check(unstorable({"who": who, "object": of}))
        if store and call.key.workspaces is not None:
            raise Forbidden("this key serves some workspaces; what concerns the whole store is for a key of all")
        asked = AuditQuestion(
            since=since, until=until, who=who, action=action or "", object=of, before=before, limit=limit
        )
        found = await list_entries(call.database, workspace=None if store else await call.tenant(), asked=asked)
        following = found[-1].entry_id if len(found) == limit else None
        return AuditPage(entries=found, next=following)
