"""Threads: which decisions belong together, what belongs to them, and how each thread ended."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import numpy as np

from app.cues.cue import Cue, Evidence
from app.cues.why.threads import likeness, named_in, threads

FIRST = datetime(2026, 3, 1, tzinfo=UTC)
LIKE = np.array([[1, 0.7, 0.1], [0.7, 1, 0.1], [0.1, 0.1, 1]], dtype=np.float32)
"""The likeness of three cues, of which the last is about something else."""


def cue(
    kind: str = "decision", *, day: int = 0, session: str = "s1", subject: str = "API versioning", **given: Any
) -> Cue:
    values: dict[str, Any] = {
        "cue_id": uuid4(), "kind": kind, "trigger": subject, "lesson": "Put the version into the path.",
        "details": {"subject": subject} if kind == "decision" else {}, "confidence": 0.8, "consequence": 0.5,
        "scope": "project", "quote": "", "trust": "person", "origin": "extracted", "state": "active",
        "action_types": (), "files": (), "tags": (), "seen_on": (), "fired": 0, "heeded": 0, "ignored": 0,
        "last_fired_at": None, "valid_from": FIRST, "valid_until": None, "superseded_by": None, "disputed_by": (),
        "edited": (), "suspect": False, "quality": 0, "created_at": FIRST, "updated_at": FIRST,
        "evidence": (Evidence(session=session, ordinal=3, at=FIRST + timedelta(days=day)),),
    }  # fmt: skip
    return Cue(**{**values, **given})


def found(*cues: Cue) -> list[list[UUID]]:
    alike = likeness([item.trigger for item in cues], None)
    return [[item.cue_id for item in thread.decisions] for thread in threads(cues, alike)]


def test_decisions_on_one_subject_near_in_time_form_a_thread() -> None:
    one, other = cue(day=0), cue(day=20, session="s2", subject="versioning of the API")
    apart, else_ = cue(day=200, session="s9"), cue(day=1, subject="cache of rendered pages")
    assert found(one, other, apart, else_) == [[one.cue_id, other.cue_id], [apart.cue_id], [else_.cue_id]]


def test_a_decision_stands_with_the_one_that_replaced_it_however_late() -> None:
    new = cue(day=300, session="s7", subject="the public interface", details={"choice": "a header names the version"})
    old = cue(state="superseded", superseded_by=new.cue_id, details={"choice": "the version in the path"})
    (thread,) = threads([new, old], likeness([new.trigger, old.trigger], None))
    assert thread.sessions == ("s1", "s7")
    assert (thread.begins, thread.ends) == (FIRST, FIRST + timedelta(days=300))
    assert thread.outcome == "a header names the version (before: the version in the path)"


def test_what_failed_on_the_subject_stands_in_its_thread_and_other_things_do_not() -> None:
    decided = cue(day=2)
    failed = cue("negative_result", day=1, subject="API versioning by a query parameter", session="s0")
    (thread,) = threads([decided, failed, cue("correction", subject="tabs")], LIKE)
    assert thread.around == (failed,)
    assert thread.sessions == ("s0", "s1")


def test_an_alternative_that_mentions_a_subject_is_not_about_it() -> None:
    decision = cue(
        details={"choice": "the path", "alternatives": ["a query parameter", "errors for backends of tasks"]}
    )
    assert named_in(decision, ["query", "paramet"]) == 1
    assert named_in(decision, ["tasks"]) < 0.45
    assert named_in(decision, ["tasks", "cache"]) == 0
