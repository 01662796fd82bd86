"""The SQL of quotas: what a workspace may have, and what it has.

What is used grows with each write, in its transaction, under the lock of one row: so writers of one workspace with a
quota follow each other, and none passes it. What is deleted is not subtracted. Where the quota seems to be reached,
what is live is counted again, at most once in COUNT_HOLDS.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from app.db.session import COMPRESS, DECIDE, EXTRACT, Row, Session
from app.errors import QuotaReached
from app.settings import Quota

COUNT_HOLDS = timedelta(seconds=10)
"""Time for which a count holds: a count reads every live memory of the workspace, 0.1 s for 100,000."""
FULL_SHARE = 0.9
"""The share of a quota from which on metrics name it as nearly used."""

COLUMNS = "memories, bytes, jobs, used_memories, used_bytes, counted_at"
READ = f"SELECT {COLUMNS} FROM quotas WHERE workspace_id = %(workspace_id)s"  # noqa: S608 - constants
LOCK = f"{READ} FOR UPDATE"
TAKE = f"""
UPDATE quotas SET used_memories = used_memories + %(memories)s, used_bytes = used_bytes + %(size)s
WHERE workspace_id = %(workspace_id)s RETURNING {COLUMNS}
"""  # noqa: S608 - constants
BEGIN = "INSERT INTO quotas (workspace_id) VALUES (%(workspace_id)s) ON CONFLICT DO NOTHING"
COUNT = """
SELECT count(*) AS memories, coalesce(sum(octet_length(title) + octet_length(body)), 0)::bigint AS bytes
FROM memories WHERE workspace_id = %(workspace_id)s AND valid_until IS NULL
"""
KEEP = f"""
UPDATE quotas SET used_memories = %(memories)s, used_bytes = %(size)s, counted_at = now()
WHERE workspace_id = %(workspace_id)s RETURNING {COLUMNS}
"""  # noqa: S608 - constants
# What was written while there was no limit may not have been counted.
SET = """
INSERT INTO quotas AS q (workspace_id, memories, bytes, jobs)
VALUES (%(workspace_id)s, %(memories)s, %(bytes)s, %(jobs)s)
ON CONFLICT (workspace_id) DO UPDATE SET memories = EXCLUDED.memories, bytes = EXCLUDED.bytes, jobs = EXCLUDED.jobs,
    counted_at = NULL
"""
FORGET = "UPDATE quotas SET counted_at = NULL WHERE workspace_id = %(workspace)s"
UNFINISHED = "SELECT priors_jobs(%(tasks)s::text[], %(most)s)"
ASKED = [COMPRESS, EXTRACT, DECIDE]
"""The jobs that count: somebody asks for them, once for each run, session or record. The others are upkeep."""
NEARLY_USED = """
SELECT count(*) FILTER (WHERE used_memories >= %(share)s * nullif(coalesce(memories, %(memories)s), 0)) AS memories,
    count(*) FILTER (WHERE used_bytes >= %(share)s * nullif(coalesce(bytes, %(bytes)s), 0)) AS bytes
FROM quotas
"""


class OwnQuota(NamedTuple):
    """The quota of one workspace: None stands for the setting's, 0 for no limit."""

    memories: int | None = None
    bytes: int | None = None
    jobs: int | None = None


@dataclass(frozen=True, slots=True)
class Use:
    """What a workspace has of one quota."""

    quota: str
    """`memories`, `bytes` or `jobs`."""
    used: int
    """Never less than what is live of memories and bytes, and more where some were deleted since the last count."""
    most: int
    """0 for no limit."""

    def has_room(self, more: int) -> bool:
        """Tells whether so much more fits."""
        return not self.most or self.used + more <= self.most

    def check(self, more: int) -> None:
        """Raises QuotaReached if so much more does not fit."""
        if not self.has_room(more):
            raise QuotaReached(self.quota, _told(self, more), used=self.used, most=self.most)


class More(NamedTuple):
    """Memories that are about to be written, and the bytes of their texts."""

    memories: int
    size: int


NOTHING = More(0, 0)


class _Stored(NamedTuple):
    """A row of `quotas`."""

    memories: int | None = None
    bytes: int | None = None
    jobs: int | None = None
    used_memories: int = 0
    used_bytes: int = 0
    counted_at: datetime | None = None


UNKNOWN = _Stored()
"""A workspace without a row."""


class Usage(NamedTuple):
    """What a workspace has of its quotas of memories and bytes, and whether that is known well enough."""

    memories: Use
    bytes: Use
    counted: bool
    """False if what is live was never counted."""
    old: bool
    """True if what is live was not counted within COUNT_HOLDS."""

    def check(self, more: More) -> None:
        """Raises QuotaReached if so much more does not fit."""
        self.memories.check(more.memories)
        self.bytes.check(more.size)

    def lacks_a_count(self, more: More) -> bool:
        """Tells whether what is live is to be counted before so much more is taken or refused."""
        if not self.old or not (self.memories.most or self.bytes.most):
            return False
        return not self.counted or not (self.memories.has_room(more.memories) and self.bytes.has_room(more.size))


async def take(session: Session, more: More) -> None:
    """Counts memories which the transaction is about to write.

    Raises:
        QuotaReached: they do not fit.
    """
    if more == NOTHING:
        return
    row = await session.row(TAKE, more._asdict())
    if row is None:
        if not (session.quota.memories or session.quota.bytes):
            return
        await session.execute(BEGIN)
        row = await session.one(TAKE, more._asdict())
    found = _usage(row, session.quota, more)
    if found.lacks_a_count(more):
        found = await count(session, more)
    found.check(more)


async def note(session: Session, size: int) -> None:
    """Counts so many bytes of a text that is changed, which is never refused."""
    await session.execute(TAKE, {"memories": 0, "size": size})


async def take_jobs(session: Session, number: int) -> None:
    """Checks that the workspace may ask for so many jobs; its other writers wait until the transaction ends.

    Raises:
        QuotaReached: they are too many.
    """
    if not number:
        return
    row = await session.row(LOCK)
    if row is None and session.quota.jobs:
        await session.execute(BEGIN)
        row = await session.one(LOCK)
    if row is not None:
        (await _jobs(session, row)).check(number)


async def read(session: Session) -> Usage | None:
    """Returns what the workspace has, as far as that is known; None if it has no quota."""
    row = await session.row(READ)
    if row is None and not (session.quota.memories or session.quota.bytes):
        return None
    return _usage(row or UNKNOWN, session.quota)


async def count(session: Session, more: More = NOTHING) -> Usage:
    """Counts what is live, of all users, and keeps it with what the transaction is about to write."""
    await session.execute(BEGIN)
    await session.row(LOCK)
    live = await session.one_of_everyone(COUNT)
    given = {"memories": live.memories + more.memories, "size": live.bytes + more.size}
    return _usage(await session.one(KEEP, given), session.quota, more)


async def limited_uses(session: Session) -> tuple[Use, ...]:
    """Returns what the workspace has of each quota that it has: memories, bytes and jobs."""
    row = await session.row(READ) or UNKNOWN
    found = _usage(row, session.quota)
    if not found.counted and (found.memories.most or found.bytes.most):
        live = await session.one_of_everyone(COUNT)
        found = _usage(row._replace(used_memories=live.memories, used_bytes=live.bytes), session.quota)
    return tuple(use for use in (found.memories, found.bytes, await _jobs(session, row)) if use.most)


async def forget_count(session: Session, workspace_id: int) -> None:
    """Lets what is live be counted again, after rows were written that nobody counted."""
    await session.execute(FORGET, {"workspace": workspace_id})


async def set_quota(session: Session, quota: OwnQuota) -> None:
    """Sets the quota of the workspace."""
    await session.execute(SET, quota._asdict())


async def own_quota(session: Session) -> OwnQuota:
    """Returns the limits that the workspace has of its own."""
    row = await session.row(READ) or UNKNOWN
    return OwnQuota(row.memories, row.bytes, row.jobs)


async def nearly_used_of_all(session: Session, quota: Quota) -> dict[str, int]:
    """Returns the numbers of workspaces that have used FULL_SHARE of a quota or more; `quota` is the settings'."""
    values = {"share": FULL_SHARE, "memories": quota.memories, "bytes": quota.bytes}
    found = await session.one(NEARLY_USED, values)
    return dict(found._asdict())


async def _jobs(session: Session, row: "Row | _Stored") -> Use:
    most = session.quota.jobs if row.jobs is None else row.jobs
    return Use("jobs", await session.value(UNFINISHED, {"tasks": ASKED, "most": most}) if most else 0, most)


def _usage(row: "Row | _Stored", default: Quota, more: More = NOTHING) -> Usage:
    """Returns what a workspace has by its row, without what the transaction is about to write."""
    memories, size = row.used_memories - more.memories, row.used_bytes - more.size
    # The clock of the database may differ: a count from the future is old, or a full workspace would stay full.
    is_recent = row.counted_at is not None and abs(datetime.now(UTC) - row.counted_at) <= COUNT_HOLDS
    return Usage(
        memories=Use("memories", memories, default.memories if row.memories is None else row.memories),
        bytes=Use("bytes", size, default.bytes if row.bytes is None else row.bytes),
        counted=row.counted_at is not None,
        old=not is_recent,
    )


def _told(use: Use, more: int) -> str:
    if use.quota == "jobs":
        return (
            f"this workspace has {use.used:,} unfinished jobs of at most {use.most:,}: try again when some are done, or"
            " raise its quota (`priors quota`)"
        )
    return (
        f"this workspace has {use.used:,} of at most {use.most:,} {use.quota}, so {more:,} more do not fit: delete what"
        " is not needed, or raise its quota (`priors quota`)"
    )
