"""The SQL of quotas: how many memories a workspace may have, and how many it has.

What is used grows with each write, in its transaction, under the lock of one row: so writers of one workspace with a
quota follow each other, and none passes it. What is deleted is not subtracted. Where the quota seems to be reached,
what is live is counted again, at most once in _COUNT_HOLDS.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from app.errors import QuotaReached
from app.foundation.db.session import Row, Session

_COUNT_HOLDS = timedelta(seconds=10)
"""Time for which a count holds: a count reads every live memory of the workspace, 0.1 s for 100,000."""
_FULL_SHARE = 0.9
"""The share of a quota from which on metrics name it as nearly used."""

COLUMNS = "memories, used_memories, counted_at"
_READ = f"SELECT {COLUMNS} FROM quotas WHERE workspace_id = %(workspace_id)s"  # noqa: S608 - constants
_LOCK = f"{_READ} FOR UPDATE"
_TAKE = f"""
UPDATE quotas SET used_memories = used_memories + %(more)s WHERE workspace_id = %(workspace_id)s RETURNING {COLUMNS}
"""  # noqa: S608 - constants
_BEGIN = "INSERT INTO quotas (workspace_id) VALUES (%(workspace_id)s) ON CONFLICT DO NOTHING"
_COUNT = "SELECT count(*) FROM memories WHERE workspace_id = %(workspace_id)s AND valid_until IS NULL"
_KEEP = f"""
UPDATE quotas SET used_memories = %(used)s, counted_at = now() WHERE workspace_id = %(workspace_id)s RETURNING {COLUMNS}
"""  # noqa: S608 - constants
# What was written while there was no limit may not have been counted.
SET = """
INSERT INTO quotas AS q (workspace_id, memories) VALUES (%(workspace_id)s, %(memories)s)
ON CONFLICT (workspace_id) DO UPDATE SET memories = EXCLUDED.memories, counted_at = NULL
"""
_FORGET = "UPDATE quotas SET counted_at = NULL WHERE workspace_id = %(workspace)s"
_NEARLY_USED = """
SELECT count(*) FROM quotas WHERE used_memories >= %(share)s * nullif(coalesce(memories, %(default)s), 0)
"""


@dataclass(frozen=True, slots=True)
class Use:
    """The memories that a workspace with a quota has."""

    used: int
    """Never less than what is live, and more where some were deleted since the last count."""
    most: int

    def has_room(self, more: int) -> bool:
        """Tells whether so many more fit."""
        return not self.most or self.used + more <= self.most

    def check(self, more: int) -> None:
        """Raises QuotaReached if so many more do not fit."""
        if not self.has_room(more):
            raise QuotaReached(
                f"this workspace has {self.used:,} of at most {self.most:,} memories, so {more:,} more do not fit:"
                " delete what is not needed, or raise its quota (`priors workspace quota`)",
                used=self.used,
                most=self.most,
            )


class _QuotaRow(NamedTuple):
    """A row of `quotas`."""

    memories: int | None = None
    used_memories: int = 0
    counted_at: datetime | None = None


UNKNOWN = _QuotaRow()
"""A workspace without a row."""


class Usage(NamedTuple):
    """The use of a workspace's quota, and whether it is known well enough."""

    use: Use
    counted: bool
    """False if what is live was never counted."""
    old: bool
    """True if what is live was not counted within _COUNT_HOLDS."""

    def lacks_a_count(self, more: int) -> bool:
        """Tells whether what is live is to be counted before so many more are taken or refused."""
        return self.old and bool(self.use.most) and not (self.counted and self.use.has_room(more))


async def take(session: Session, more: int) -> None:
    """Counts so many memories, which the transaction is about to write.

    Raises:
        QuotaReached: they do not fit.
    """
    if not more:
        return
    row = await session.row(_TAKE, {"more": more})
    if row is None:
        if not session.quota:
            return
        await session.execute(_BEGIN)
        row = await session.one(_TAKE, {"more": more})
    usage = _usage(row, session.quota, more)
    if usage.lacks_a_count(more):
        usage = await count(session, more)
    usage.use.check(more)


async def read(session: Session) -> Usage | None:
    """Returns what the workspace has, as far as that is known; None if it has no quota."""
    row = await session.row(_READ)
    if row is None and not session.quota:
        return None
    return _usage(row or UNKNOWN, session.quota)


async def count(session: Session, more: int = 0) -> Usage:
    """Counts what is live, of all users, and stores it with what the transaction is about to write."""
    await session.execute(_BEGIN)
    await session.row(_LOCK)
    live = await session.one_of_everyone(_COUNT)
    return _usage(await session.one(_KEEP, {"used": live.count + more}), session.quota, more)


async def use_of_quota(session: Session) -> Use | None:
    """Returns what the workspace has of its quota; None if it has none."""
    row = await session.row(_READ) or UNKNOWN
    usage = _usage(row, session.quota)
    if not usage.counted and usage.use.most:
        live = await session.one_of_everyone(_COUNT)
        usage = _usage(row._replace(used_memories=live.count), session.quota)
    return usage.use if usage.use.most else None


async def forget_count(session: Session, workspace_id: int) -> None:
    """Lets what is live be counted again, after rows were written that nobody counted."""
    await session.execute(_FORGET, {"workspace": workspace_id})


async def set_quota(session: Session, memories: int | None) -> None:
    """Sets the quota of the workspace: None for the setting's, 0 for no limit."""
    await session.execute(SET, {"memories": memories})


async def nearly_used_of_all(session: Session, default: int) -> int:
    """Returns the number of workspaces that have used _FULL_SHARE of their quota or more."""
    number: int = await session.value(_NEARLY_USED, {"share": _FULL_SHARE, "default": default})
    return number


def _usage(row: "Row | _QuotaRow", default: int, more: int = 0) -> Usage:
    """Returns what a workspace has by its row, without what the transaction is about to write."""
    # The clock of the database may differ: a count from the future is old, or a full workspace would stay full.
    is_recent = row.counted_at is not None and abs(datetime.now(UTC) - row.counted_at) <= _COUNT_HOLDS
    return Usage(
        use=Use(row.used_memories - more, default if row.memories is None else row.memories),
        counted=row.counted_at is not None,
        old=not is_recent,
    )
