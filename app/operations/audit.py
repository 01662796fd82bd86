"""The verbs of the audit log: list its entries, and destroy those that have expired."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from msgspec import Struct

from app.errors import InvalidInput, check
from app.foundation.db.audit import ACTIONS, STORE, SWEEP
from app.foundation.db.database import Database
from app.foundation.db.session import Across, Row
from app.foundation.text.data import unstorable
from app.storage.memories.memory import first_id, in_utc
from app.storage.tenants.workspace import Workspace

LARGEST_PAGE = 1_000
_PAGE = """
SELECT entry_id, at, who, operation, request_id, key_id, for_user, action, object, count, ids, ids_hash, before, after
FROM audit WHERE workspace_id = %(workspace_id)s{conditions}
ORDER BY entry_id DESC LIMIT %(limit)s
"""


class AuditEntry(Struct, frozen=True, kw_only=True, rename={"entry_id": "id"}):
    """A change to objects of one kind, in one transaction, or an export of them."""

    entry_id: UUID
    at: datetime
    who: str
    """`key NAME`, `token SUBJECT`, `panel`, `anyone`, `cli`, `worker`; `service` for what a process does by itself."""
    operation: str
    """The route, the command, the tool or the job."""
    request_id: str
    """The request's `X-Request-ID`, or the id of a worker's job; empty for a command."""
    key_id: UUID | None
    """The stored key of the request."""
    user: str
    """The user whose objects they are; empty for nobody's and for those of several users."""
    action: str
    """`add`, `change`, `remove`, `export` or `erase`."""
    object: str
    """`memory`, `source`, `run`, `rating`, …"""
    count: int
    ids: tuple[str, ...]
    """The objects, if they are at most ten."""
    ids_hash: str
    """The SHA-256 of the sorted ids, one a line, in hexadecimal digits; empty where they are not known."""
    before: str
    """The SHA-256 of the rows of at most ten objects as they were; empty where there were none."""
    after: str
    """The SHA-256 of the rows as they became; empty where there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuestion:
    """The entries that are asked for."""

    since: datetime | None = None
    until: datetime | None = None
    who: str = ""
    action: str = ""
    object: str = ""
    before: UUID | None = None
    """The last entry of the page before."""
    limit: int = 100


async def list_entries(
    database: Database, *, workspace: Workspace | None, asked: AuditQuestion
) -> Sequence[AuditEntry]:
    """Returns entries of a workspace, the newest first; without one, those that concern the whole store.

    Raises:
        InvalidInput: there is no such action, or a moment is outside the years 1 to 9999 in UTC.
    """
    if asked.action and asked.action not in ACTIONS:
        raise InvalidInput("action", f"must be one of {', '.join(ACTIONS)}")
    check(unstorable({"since": asked.since, "until": asked.until}))
    values = {"limit": asked.limit, **dict(_values(asked))}
    statement = _PAGE.format(conditions="".join(_conditions(asked)))
    place = STORE if workspace is None else workspace.of_everyone()
    async with database.session(place, transaction=False) as session:
        return [_entry(row) for row in await session.rows(statement, values)]


async def sweep_entries(across: Across, *, days: int) -> int:
    """Destroys entries that are older than `days`, unless these are 0; returns their number."""
    if not days:
        return 0
    async with across() as session:
        return await session.execute(SWEEP, {"days": days})


def _conditions(asked: AuditQuestion) -> Iterator[str]:
    """Yields conditions. Ids sort by time, so that a span of time is a range of the primary key."""
    if asked.since is not None:
        yield " AND entry_id >= %(first)s"
    if asked.until is not None:
        yield " AND entry_id < %(end)s"
    if asked.before is not None:
        yield " AND entry_id < %(before)s"
    for name in ("who", "action", "object"):
        if getattr(asked, name):
            yield f" AND {name} = %({name})s"


def _values(asked: AuditQuestion) -> Iterator[tuple[str, object]]:
    yield from ((name, getattr(asked, name)) for name in ("who", "action", "object", "before"))
    if asked.since is not None:
        yield "first", first_id(in_utc(asked.since))
    if asked.until is not None:
        yield "end", first_id(in_utc(asked.until))


def _entry(row: Row) -> AuditEntry:
    given = row._asdict() | {name: _hex(getattr(row, name)) for name in ("ids_hash", "before", "after")}
    return AuditEntry(user=given.pop("for_user"), **given | {"ids": tuple(row.ids)})


def _hex(found: bytes | None) -> str:
    return "" if found is None else bytes(found).hex()
