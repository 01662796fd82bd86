"""The time to put a log beside its stored session grows with the number of turns, however few of them are the same."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from app.foundation.models.protocols import TokenCounter
from app.intake.sessions.merge import GivenTurn, KnownTurn, SessionComparison, TurnText
from app.intake.sessions.prepare import Preparation, prepare_turns
from app.intake.sessions.transcript import Turn
from tests.growth import assert_linear

MOST = 4_000
START = datetime(2026, 7, 1, 10, tzinfo=UTC)


def test_a_log_with_other_turns_takes_no_longer_the_longer_it_is(counter: TokenCounter) -> None:
    preparation = Preparation(language="english", folder="", counter=counter, mask=False)
    turns = [
        Turn(ordinal=place, role="user", text=f"step {place} of the plan", at=START + timedelta(minutes=place))
        for place in range(MOST)
    ]
    given = [
        GivenTurn(message_id="", digest=row.digest, at=row.row.memory.occurred_at, is_dated=True, prepared=row)
        for row in prepare_turns(turns, preparation)
    ]
    source = uuid4()
    known = [
        KnownTurn(
            source_id=source,
            memory_id=uuid4(),
            content_hash=bytes([1, *place.to_bytes(2)]),
            ordinal=place,
            live=True,
            message_id="",
            digest=bytes([1, *place.to_bytes(2)]),
            at=START - timedelta(days=9) + timedelta(minutes=place),
        )
        for place in range(MOST)
    ]
    texts = {turn.memory_id: TurnText("user", "something else was said", ()) for turn in known}

    def merge(marks: str) -> object:
        comparison = SessionComparison(known[: len(marks)], given[: len(marks)])
        comparison.compare_identities()
        comparison.compare_texts()
        comparison.texts = texts
        comparison.compare_changes()
        return comparison.merge()

    assert_linear(merge, "x", characters=MOST // 8)
