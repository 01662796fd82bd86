"""Tests of how the readings of real logs are matched with their turns."""

from collections.abc import Mapping

from benchmarks.real_logs import RealSession, matches


def reading(quote: str, verdict: str = "useful", log: str = "a") -> Mapping[str, str]:
    return {"project": "p", "log": log, "quote": quote, "verdict": verdict}


def session(*readings: tuple[int, Mapping[str, str]], log: str = "a") -> RealSession:
    return RealSession(project="p", log=log, turns=(), lessons=(), junk=frozenset(), readings=readings)


def test_readings_in_no_turn_in_several_and_beside_unlike_ones_are_counted() -> None:
    one, twice, again, lost = reading("one"), reading("twice"), reading("again", "junk"), reading("lost")
    absent = reading("one", log="absent")
    sessions = [session((1, one), (2, twice), (5, twice), (5, again)), session((1, again), log="a")]

    found = {figure.name: figure.value for figure in matches(sessions, [one, twice, again, lost, absent])}

    assert found == {"5 readings, in no turn": 2, "… in several turns": 2, "turns with unlike readings": 1}


def test_the_last_reading_of_a_turn_counts() -> None:
    assert session((1, reading("one")), (1, reading("all", "junk"))).verdicts == {1: "junk"}
