"""Notes whether cues were heeded, as the end of a run shows it."""

from app.foundation.db.session import Session
from app.foundation.text.words import content_words
from app.recall.cues import log, render, store
from app.recall.cues.cue import Cue

HEEDED, IGNORED = "heeded", "ignored"
_FOLLOWED = 0.6
"""Share of a lesson's words from which an output that has them followed it."""
LOW_SCORE = 6.0
"""Score below which an output that contains what a cue rejects ignored it, even if it has the lesson's words too."""


async def infer_outcomes(session: Session, run_id: str, *, output: str | None, score: float | None) -> None:
    """Notes what the end of a run shows of the cues that it was told, in the transaction that stores the run.

    An output that contains what a cue rejects ignored it; one that has most words of the lesson heeded it. Of others
    nothing is known.
    """
    if not output:
        return
    told = [item for item in await log.of_run(session, run_id) if item.settled_at is None]
    cues = await store.read(session, sorted({cue_id for item in told for cue_id in item.outcomes}))
    words = content_words(output)
    for item in told:
        found = {cue_id: outcome(cues[cue_id], output, words, score) for cue_id in item.outcomes if cue_id in cues}
        inferred = {cue_id: value for cue_id, value in found.items() if value is not None}
        await log.settle(session, item.activation_id, inferred)


def outcome(cue: Cue, output: str, words: frozenset[str], score: float | None) -> str | None:
    """Returns whether an output heeded or ignored a cue; None if it does not tell."""
    lesson = content_words(cue.lesson)
    followed = bool(lesson) and len(lesson & words) >= _FOLLOWED * len(lesson)
    rejected = any(render.contradiction(cue, line) is not None for line in output.splitlines())
    if rejected and (not followed or (score is not None and score < LOW_SCORE)):
        return IGNORED
    return HEEDED if followed else None
