"""The SQL that reads which memories a run was given."""

from collections import defaultdict
from collections.abc import Iterable

from app.db.session import Session
from app.memories.gate import Given

MOST_GIVEN = 500
"""Memories of one run that are looked at; a run is given a few dozen."""
# What a run itself wrote and was given back is no echo: sent again it is known, corrected it is news.
GIVEN = """
SELECT given.run_id, m.memory_id, m.title, m.body
FROM (
    SELECT r.run_id, h.memory_id, row_number() OVER (PARTITION BY r.run_id ORDER BY min(h.rank), h.memory_id) AS place
    FROM recalls r JOIN recall_hits h USING (workspace_id, recall_id)
    WHERE r.workspace_id = %(workspace_id)s AND r.run_id = ANY(%(run_ids)s::text[])
    GROUP BY r.run_id, h.memory_id
) AS given JOIN memories m ON m.workspace_id = %(workspace_id)s AND m.memory_id = given.memory_id
WHERE given.place <= %(limit)s AND m.run_id IS DISTINCT FROM given.run_id
ORDER BY given.run_id, m.memory_id
"""


async def given_to(session: Session, run_ids: Iterable[str]) -> dict[str, list[Given]]:
    """Returns the memories of others that recalls gave to these runs, by run."""
    values = {"run_ids": sorted(set(run_ids)), "limit": MOST_GIVEN}
    found: dict[str, list[Given]] = defaultdict(list)
    for row in await session.rows(GIVEN, values):
        found[row.run_id].append(Given(memory_id=row.memory_id, text=f"{row.title}\n{row.body}"))
    return found
