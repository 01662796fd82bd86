"""The SQL that finds cues by the subject that they name, by their sources, and cues and turns by a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.db.session import Session

CUES = "SELECT c.memory_id FROM cues c WHERE c.workspace_id = %(workspace_id)s"
# Trigger and lesson are found by a search; the fields of the kind are in no index.
NAMING = f"""
{CUES} AND c.cue_kind IN ('decision', 'negative_result') AND (
    SELECT bool_and(lower(jsonb_path_query_array(c.details, '$.*')::text) ~ ('\\m' || stem))
    FROM unnest(%(stems)s::text[]) AS stem
)
ORDER BY c.valid_from DESC, c.memory_id LIMIT %(limit)s
"""  # noqa: S608 - constants
ABOUT = f"""
{CUES} AND (c.memory_id = ANY(%(ids)s::uuid[]) OR c.superseded_by = ANY(%(ids)s::uuid[]) OR EXISTS (
    SELECT FROM cue_evidence e WHERE e.workspace_id = %(workspace_id)s AND e.memory_id = c.memory_id
        AND e.source_id = ANY(%(sources)s::uuid[])
))
"""
SAME_PATH = "({here} = %(path)s OR right({here}, length(%(path)s) + 1) = '/' || %(path)s)"
"""The condition of a path that is the asked one, or ends with it."""
OF_FILE = f"""
{CUES} AND EXISTS (
    SELECT FROM unnest(c.files) AS file, unnest(%(paths)s::text[]) AS given(path)
    WHERE {SAME_PATH.format(here="file").replace("%(path)s", "given.path")}
)
"""
TOUCHES = f"""
SELECT a.path, a.symbol, t.action, s.uri AS session, s.title, m.ordinal, coalesce(m.occurred_at, m.created_at) AS at,
    t.memory_id
FROM artifacts a
JOIN artifact_touches t USING (workspace_id, artifact_id)
JOIN memories m USING (workspace_id, memory_id)
JOIN sources s USING (workspace_id, source_id)
WHERE a.workspace_id = %(workspace_id)s AND m.valid_until IS NULL
    AND (%(paths)s::text[] = '{{}}' OR EXISTS (
        SELECT FROM unnest(%(paths)s::text[]) AS given(path)
        WHERE {SAME_PATH.format(here="a.path").replace("%(path)s", "given.path")}
    )) AND (%(symbol)s = '' OR a.symbol = %(symbol)s)
ORDER BY at DESC, m.source_id, m.ordinal DESC, a.symbol LIMIT %(limit)s
"""  # noqa: S608 - constants
NEAR_TURNS = """
SELECT DISTINCT e.memory_id FROM memories m
JOIN cue_evidence e ON e.workspace_id = m.workspace_id AND e.source_id = m.source_id
    AND e.ordinal BETWEEN m.ordinal - %(turns)s AND m.ordinal + %(turns)s
WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = ANY(%(ids)s::uuid[])
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """A turn that created, changed or deleted a file, or a function or section in it."""

    path: str
    symbol: str
    """Empty for the file itself."""
    action: str
    """created, changed, deleted or renamed."""
    session: str
    title: str
    ordinal: int
    at: datetime
    memory_id: UUID


async def naming(session: Session, stems: Sequence[str], *, limit: int) -> list[UUID]:
    """Returns the decisions and negative results whose fields have words with all these stems, the latest first."""
    return await session.column(NAMING, {"stems": list(stems), "limit": limit})


async def about(session: Session, ids: Sequence[UUID], sources: Sequence[UUID]) -> list[UUID]:
    """Returns these cues, those that one of them has replaced, and those that were learnt from one of these sources."""
    return await session.column(ABOUT, {"ids": list(ids), "sources": list(sources)})


async def of_file(session: Session, paths: Sequence[str]) -> list[UUID]:
    """Returns the cues about a file, given by all its names."""
    return await session.column(OF_FILE, {"paths": list(paths)})


async def touches(session: Session, paths: Sequence[str], symbol: str, *, limit: int) -> list[Touch]:
    """Returns the turns that changed a file, given by all its names, or a symbol, the latest first; none is any."""
    rows = await session.rows(TOUCHES, {"paths": list(paths), "symbol": symbol, "limit": limit})
    return [Touch(**row._asdict()) for row in rows]


async def near_turns(session: Session, ids: Sequence[UUID], *, turns: int) -> list[UUID]:
    """Returns the cues whose evidence is at most some turns away from these turns."""
    return await session.column(NEAR_TURNS, {"ids": list(ids), "turns": turns})
