"""The samples of a run's output: their values and their SQL."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from app.foundation.db.database import Lease
from app.foundation.db.session import Session
from app.foundation.text.words import in_one_line
from app.intake.runs.observations.observation import Compressed
from app.intake.runs.run import JOINED, STORED
from app.storage.memories.store import as_json

MOST_SAMPLES = 4
"""Most compressions of one output: that many fit side by side for a reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputSample:
    """A stored compression of an output."""

    sample: int
    """Its number, from 0, in the order in which they were made."""
    title: str
    narrative: str
    facts: tuple[str, ...]
    """Its facts, without the evaluator's issues."""
    compressor: str
    model: str | None
    created_at: datetime
    chosen: bool
    """True for the one that the memory has the text of, which agents are shown; false for all others."""
    quality: int = 0
    """Its ratings in order, from -3 to 3."""
    rated: bool = False
    """True if a rating of it stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """The result of making samples of one output."""

    made: tuple[Compressed, ...] = ()
    failures: tuple[str, ...] = ()
    """The reason for each sample that could not be made."""
    last_seed: int = 0
    """The highest seed that the language model drew with; 0 if it drew none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplesAsked:
    """Samples that were asked for, with the stored data that they need."""

    observation_id: UUID
    memory_id: UUID | None
    samples: int
    sampling: bool
    prompt: str | None
    """The prompt of the first compression; None if no language model made it."""
    last_seed: int
    """The highest seed of an earlier draw for this output; 0 if there was none."""
    objection: str
    """The reason why no samples can be made; "" if they can."""


def _text_of(compressed: Compressed) -> str:
    """Returns the text by which two samples are told apart: spaces, line breaks and capitals make no difference."""
    return in_one_line(f"{compressed.title} {compressed.body}").casefold()


def new_ones(made: Iterable[Compressed], known: Sequence[Compressed], room: int) -> list[Compressed]:
    """Returns the first `room` compressions that say something else than the known ones and each other."""
    texts = {_text_of(item) for item in known}
    found: list[Compressed] = []
    for item in made:
        if len(found) < room and _text_of(item) not in texts:
            texts.add(_text_of(item))
            found.append(item)
    return found


def best_rated(qualities: Mapping[int, int]) -> int:
    """Returns the number of the best rated sample, the first among equals. The first sample counts 0 if it is unrated.

    Another unrated one is never the best: a rating against the text that is shown may be of what the output says.
    """
    return min({0: 0, **qualities}.items(), key=lambda item: (-item[1], item[0]))[0]


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
