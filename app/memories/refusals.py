"""What was refused, counted by reason: a store that swallows silently rots silently."""

from collections import Counter
from collections.abc import Mapping, Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database
from app.memories.memory import Rejection
from app.workspaces import store as workspaces
from app.workspaces.languages import configuration

ADD = text("""
INSERT INTO refusals AS r (workspace_id, reason, count)
SELECT :workspace_id, reason, count FROM unnest(CAST(:reasons AS text[]), CAST(:counts AS bigint[]))
    AS given(reason, count)
ON CONFLICT (workspace_id, reason) DO UPDATE SET count = r.count + EXCLUDED.count, last_at = now()
""")

ALL = text("SELECT reason, sum(count)::bigint AS total FROM refusals GROUP BY reason")


async def refused(database: Database) -> dict[str, int]:
    """How many memories and observations all workspaces refused, by reason."""
    async with database.statements() as connection:
        return {row.reason: row.total for row in await connection.execute(ALL)}


async def count_refusals(database: Database, workspace: str, language: str, rejected: Sequence[Rejection]) -> None:
    """Add refused memories to the workspace's counts, by reason."""
    counts = Counter(item.code for item in rejected)
    if not counts:
        return
    async with database.transaction() as connection:
        target = await workspaces.ensure(connection, workspace, configuration(language))
        await add(connection, target.workspace_id, counts)


async def add(connection: AsyncConnection, workspace_id: int, counts: Mapping[str, int]) -> None:
    """Add to the counts; in the order of the reasons, so that two never wait for each other in a circle."""
    reasons = sorted(counts)
    values = {
        "workspace_id": workspace_id,
        "reasons": reasons,
        "counts": [counts[reason] for reason in reasons],
    }
    await connection.execute(ADD, values)
