"""The SQL of samples: what asks for them, and their texts. No search and no history reads them."""

from collections.abc import Sequence
from dataclasses import asdict
from uuid import UUID

from app.foundation.db.database import Lease
from app.foundation.db.session import Session
from app.intake.runs.observations.observation import Compressed
from app.intake.runs.run import JOINED, STORED
from app.intake.runs.samples.sample import OutputSample, SamplesAsked
from app.storage.memories.store import as_json

REPEATED = "the output adds nothing to an earlier memory, which it joined; samples are made of that memory's own output"
_NOT_STORED = "its observation is not stored"
_NOT_LIVE = "its memory is deleted, replaced or in quarantine"
_NO_OUTPUT = "its output is not stored"

ASKED = """
SELECT c.observation_id, c.memory_id, c.samples, c.sampling, c.last_seed, c.outcome, c.has_output, o.prompt,
    m.valid_until IS NULL AND m.memory_id IS NOT NULL AS is_live
FROM (
    SELECT workspace_id, observation_id, memory_id, samples, NOT sampled AS sampling, last_seed, outcome,
        request ->> 'output' <> '' AS has_output
    FROM compressions WHERE workspace_id = %(workspace_id)s AND observation_id = %(observation_id)s {lock}
) AS c
LEFT JOIN memories m ON m.workspace_id = c.workspace_id AND m.memory_id = c.memory_id
LEFT JOIN observations o ON o.workspace_id = c.workspace_id AND o.memory_id = c.memory_id
"""

LEASE = Lease(
    take="""
UPDATE compressions SET maker = %(maker)s, made_until = statement_timestamp() + make_interval(secs => %(seconds)s)
WHERE workspace_id = %(workspace_id)s AND observation_id = %(observation_id)s AND outcome IS NOT NULL AND NOT sampled
    AND (maker IS NULL OR maker = %(maker)s OR made_until < statement_timestamp())
RETURNING observation_id
""",
    end="""
UPDATE compressions SET maker = NULL, made_until = NULL
WHERE workspace_id = %(workspace_id)s AND observation_id = %(observation_id)s AND maker = %(maker)s
""",
)
"""Lets one maker alone make the samples of an observation."""

# A request for more samples that came meanwhile stays.
_FINISH = """
UPDATE compressions SET sampled = true, shortfall = %(shortfall)s, maker = NULL, made_until = NULL
WHERE workspace_id = %(workspace_id)s AND observation_id = %(observation_id)s AND samples = %(samples)s
"""

_NOTE_SEED = """
UPDATE compressions SET last_seed = greatest(last_seed, %(last_seed)s)
WHERE workspace_id = %(workspace_id)s AND observation_id = %(observation_id)s
"""

_ALL = """
SELECT s.sample, s.title, s.narrative, s.facts, s.compressor, s.model, s.created_at, s.sample = o.sample AS chosen
FROM samples s JOIN observations o USING (workspace_id, memory_id) JOIN memories m USING (workspace_id, memory_id)
WHERE s.workspace_id = %(workspace_id)s AND s.memory_id = %(memory_id)s ORDER BY s.sample
"""
_FIRST = """
SELECT m.title, o.narrative, o.facts, o.compressor, o.model
FROM memories m JOIN observations o USING (workspace_id, memory_id)
WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = %(memory_id)s
"""
_CHOSEN = "SELECT sample FROM observations WHERE workspace_id = %(workspace_id)s AND memory_id = %(memory_id)s"

_ADD = """
INSERT INTO samples (workspace_id, memory_id, sample, title, narrative, facts, compressor, model)
SELECT %(workspace_id)s, %(memory_id)s, sample, title, narrative, facts, compressor, model
FROM jsonb_to_recordset(%(rows)s::jsonb) AS made(
    sample smallint, title text, narrative text, facts text[], compressor text, model text
)
ON CONFLICT DO NOTHING
"""


async def find_asked(session: Session, observation_id: UUID, *, lock: bool = False) -> SamplesAsked | None:
    """Returns what was asked for an observation; with `lock` other makers wait."""
    statement = ASKED.format(lock="FOR UPDATE" if lock else "")
    row = await session.row(statement, {"observation_id": observation_id})
    if row is None:
        return None
    objection = "" if row.has_output else _NO_OUTPUT
    if not row.is_live:
        objection = _NOT_LIVE
    if row.outcome != STORED:
        objection = REPEATED if row.outcome == JOINED else _NOT_STORED
    fields = {name: getattr(row, name) for name in SamplesAsked.__slots__ if name != "objection"}
    return SamplesAsked(**fields, objection=objection)


async def finish(session: Session, wanted: SamplesAsked, shortfall: str) -> None:
    """Notes that the samples are made, and the reason why there are fewer than asked for."""
    values = {"observation_id": wanted.observation_id, "samples": wanted.samples, "shortfall": shortfall}
    await session.execute(_FINISH, values)


async def note_seed(session: Session, observation_id: UUID, last_seed: int) -> None:
    """Notes the highest seed that samples were drawn with, so that the next draw takes others."""
    await session.execute(_NOTE_SEED, {"observation_id": observation_id, "last_seed": last_seed})


async def of_memory(session: Session, memory_id: UUID) -> list[OutputSample]:
    """Returns the samples of a memory's output in their order; none if its output was compressed once."""
    rows = await session.rows(_ALL, {"memory_id": memory_id})
    return [OutputSample(**{**row._asdict(), "facts": tuple(row.facts)}) for row in rows]


async def first_of(session: Session, memory_id: UUID) -> Compressed:
    """Returns the compression that a memory was made of, with the evaluator's issues among its facts."""
    row = await session.one(_FIRST, {"memory_id": memory_id})
    return Compressed(**{**row._asdict(), "facts": tuple(row.facts)})


async def chosen_sample(session: Session, memory_id: UUID) -> int:
    """Returns the number of the sample that a memory has the text of."""
    return int(await session.value(_CHOSEN, {"memory_id": memory_id}) or 0)


async def add(session: Session, memory_id: UUID, made: Sequence[Compressed], *, first: int) -> None:
    """Stores samples, numbered from `first` on."""
    rows = [{**asdict(item), "sample": first + place} for place, item in enumerate(made)]
    await session.execute(_ADD, {"memory_id": memory_id, "rows": as_json(rows)})
