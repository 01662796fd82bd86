"""Reads sentences of sessions by the default model with its adapter of lessons, for the benchmarks of cues."""

import asyncio
from collections.abc import Sequence
from functools import cache

from app.foundation.models.local import LocalProvider
from app.foundation.models.protocols import LESSONS
from app.intake.sessions.transcript import Turn
from app.recall.cues.signs import SpokenTurn, spoken_turns, texts_to_read, with_odds
from app.settings import Settings

_ODDS = dict[str, float]()


@cache
def _provider() -> LocalProvider:
    return LocalProvider(Settings().data_dir)


def read_spoken(turns: Sequence[Turn]) -> Sequence[SpokenTurn]:
    """Returns what persons and agents say in these turns, with the odds of the sentences that are read."""
    spoken = spoken_turns(turns)
    texts = texts_to_read(spoken)
    unread = list(dict.fromkeys(text for text in texts if text not in _ODDS))
    if unread:
        found = asyncio.run(_provider().embed_adapted(unread, LESSONS, queries=False))
        assert found is not None, "the default model has this adapter"  # noqa: S101
        _ODDS.update(zip(unread, found[:, 0].tolist(), strict=True))
    return with_odds(spoken, [_ODDS[text] for text in texts])
