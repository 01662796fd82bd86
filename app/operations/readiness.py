"""Whether the service can do its work."""

from dataclasses import dataclass

from app.db.engine import Database
from app.db.migrations import current, head, lacking
from app.embeddings.backfill import backfill_state
from app.errors import DatabaseUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """What the service needs, and what it has of it."""

    database: bool
    migrations: str | None
    """The revision that the database is at."""
    head: str
    """The revision that this version needs."""
    model: bool
    """Whether the embedding model is loaded, or switched off."""
    waiting: int
    """Memories that wait for a vector; they are found by their words, so it does not make the service unready."""
    reasons: tuple[str, ...]
    """Why it is not ready."""

    @property
    def ready(self) -> bool:
        """Whether requests can be served as they should be."""
        return not self.reasons


async def readiness(database: Database, *, model_loaded: bool) -> Readiness:
    """Ask the database; it never raises."""
    wanted = head()
    reasons = [] if model_loaded else ["the embedding model is not loaded yet; answers are by words alone"]
    try:
        revision = await current(database)
        waiting = await backfill_state(database) if revision == wanted else 0
    except DatabaseUnavailable as error:
        return Readiness(
            database=False, migrations=None, head=wanted, model=model_loaded, waiting=0, reasons=(*reasons, str(error))
        )
    if mend := lacking(revision):
        reasons.append(mend)
    return Readiness(
        database=True,
        migrations=revision,
        head=wanted,
        model=model_loaded,
        waiting=waiting,
        reasons=tuple(reasons),
    )
