"""Extracts the cues of real session logs, and compares them with what a reader of the logs labelled."""

import argparse
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from app.foundation.text.words import content_words
from app.intake.sessions.formats.detect import read_log
from app.intake.sessions.transcript import USER, Turn
from app.recall.cues.cue import NewCue
from app.recall.cues.extraction.extract import extract, ordinal_of
from app.recall.cues.signs import TurnModel
from benchmarks.figures import Figure, report
from benchmarks.reading import read_spoken
from benchmarks.stage import SHARED_DATA, rows_of

REAL = SHARED_DATA / "real-logs-dev"
OLDER = SHARED_DATA / "cues-dev"
READINGS = Path(__file__).parent / "readings.jsonl"
"""What a reader said of cues that were extracted from these logs: `useful` in another session, `harmless` or `junk`. A
quote begins the sentence that made the cue."""
_SAID = 0.5
"""Least share of a quote's content words that a cue of its turn has."""
_READ = 100
"""Active cues that a person reads, drawn by a fixed seed."""
_SEED = 44


@dataclass(frozen=True, kw_only=True)
class RealSession:
    """A session of a real log, with the labels that stand in its turns."""

    project: str
    log: str
    turns: Sequence[Turn]
    lessons: Sequence[tuple[int, Mapping[str, Any]]]
    """Each with the place of its turn."""
    junk: frozenset[int]
    """The ordinals of turns that hold no lesson."""
    unsure: frozenset[int] = field(default=frozenset())
    """The ordinals of turns that a more generous reader of the same log called a lesson."""
    readings: Sequence[tuple[int, Mapping[str, Any]]] = ()
    """What a reader said of cues, each with the place of a turn that has its quote."""

    @property
    def verdicts(self) -> Mapping[int, str]:
        """Returns what a reader said last of the cue of a turn, by its ordinal."""
        return {place: row["verdict"] for place, row in self.readings}


ReadSession: TypeAlias = tuple[RealSession, Sequence[NewCue]]
"""A session with its active cues."""


def read() -> list[RealSession]:
    """Reads the logs with their labels; none if the set is absent."""
    if not REAL.exists():
        return []
    lessons, junk, read_of = map(_by_log, (REAL / "lessons.jsonl", REAL / "junk.jsonl", READINGS))
    unsure = defaultdict[str, set[int]](set)
    for row in rows_of(OLDER / "cues.jsonl") if OLDER.exists() else ():
        if row["type"] != "none" and row.get("scope") != "task":
            unsure[row["session"]].add(row["message"])
    found = []
    for project, log, turns in _logs():
        own = [(_ordinal(turns, row["quote"]), row) for row in lessons[project, log]]
        said = {turn.ordinal: _fold(turn.text) for turn in turns}
        found.append(
            RealSession(
                project=project,
                log=log,
                turns=turns,
                lessons=[(place, row) for place, row in own if place is not None],
                junk=frozenset(at for row in junk[project, log] for at in said if _fold(row["quote"]) in said[at]),
                unsure=frozenset(unsure[log]),
                readings=[(at, row) for row in read_of[project, log] for at in said if row["quote"] in said[at]],
            )
        )
    return found


def _by_log(path: Path) -> defaultdict[tuple[str, str], list[Mapping[str, Any]]]:
    found = defaultdict[tuple[str, str], list[Mapping[str, Any]]](list)
    for row in rows_of(path):
        found[row["project"], row["log"]].append(row)
    return found


def _logs() -> Iterator[tuple[str, str, Sequence[Turn]]]:
    """Yields the project, the name and the turns of each session; a log may hold several."""
    for path in sorted((REAL / "logs").glob("*/*")):
        log = read_log(path.read_bytes(), suffix=path.suffix, session_id=path.name)
        for transcript in log.transcripts if log else ():
            yield path.parent.name, path.name, transcript.turns
    for row in rows_of(OLDER / "sessions.jsonl") if OLDER.exists() else ():
        said = enumerate(row["messages"])
        yield "minsky", row["session"], [Turn(ordinal=at, role=item["role"], text=item["text"]) for at, item in said]


def _fold(text: str) -> str:
    return " ".join(text.split())


def _key(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Returns what tells a labelled quote from others: it may stand in several sessions of one log."""
    return row["project"], row["log"], row["quote"]


def _ordinal(turns: Sequence[Turn], quote: str) -> int | None:
    """Returns the turn in which a quote stands, a person's before an agent's; None if it stands in none."""
    said = sorted(turns, key=lambda turn: (turn.role != USER, turn.ordinal))
    return next((turn.ordinal for turn in said if _fold(quote) in _fold(turn.text)), None)


def shares_words(quote: str, text: str) -> bool:
    """Tells if a text has most of the words of a quote."""
    words = content_words(quote)
    return len(words & content_words(text)) >= _SAID * len(words)


def tells(cue: NewCue, place: int, quote: str) -> bool:
    """Tells if a cue is made of the turn of a labelled lesson, and has most of its words."""
    return ordinal_of(cue) == place and shares_words(quote, " ".join([cue.lesson, *map(str, cue.details.values())]))


def verdict(session: RealSession, cue: NewCue) -> str:
    """Returns what a reader said of a cue: a labelled lesson is useful; "" if nobody read it."""
    place = ordinal_of(cue)
    is_labelled = any(tells(cue, at, row["quote"]) for at, row in session.lessons)
    return "useful" if is_labelled else "junk" if place in session.junk else session.verdicts.get(place, "")


def active(session: RealSession, model: TurnModel | None = None) -> list[NewCue]:
    """Returns the cues of a session that an agent may be told."""
    return [cue for cue in extract(read_spoken(session.turns), model) if not cue.is_candidate]


def figures(found: Sequence[ReadSession]) -> Iterator[Figure]:
    """Yields the figures of sessions and their active cues. A lesson of a log with several sessions counts once."""
    hit = {
        _key(row): row["who"]
        for session, cues in found
        for place, row in session.lessons
        if any(tells(cue, place, row["quote"]) for cue in cues)
    }
    every = [row for session, _ in found for _, row in session.lessons]
    labelled = {_key(row): row["who"] for row in every}
    shown = [ordinal_of(cue) in session.junk for session, cues in found for cue in cues]
    junk = sum(len(session.junk) for session, _ in found)
    yield Figure(name=f"{len(labelled)} labelled lessons found", value=len(hit) / len(labelled), at_least=0.6)
    for who in ("person", "agent"):
        count = Counter(labelled.values())[who]
        yield Figure(name=f"… of {count} by the {who}", value=Counter(hit.values())[who] / max(1, count))
    yield Figure(name=f"{junk} turns of labelled junk kept out", value=1 - sum(shown) / max(1, junk), at_least=0.95)
    verdicts = Counter(verdict(session, cue) for session, cues in found for cue in cues)
    known = max(1, verdicts.total() - verdicts[""])
    yield Figure(name=f"… useful, of {known} that were read", value=verdicts["useful"] / known, at_least=0.7)
    yield Figure(name=f"… junk, of {known} that were read", value=verdicts["junk"] / known, at_most=0.1)
    yield from matches([session for session, _ in found], list(rows_of(READINGS)))
    kinds = Counter((cue.kind, cue.trust) for _, cues in found for cue in cues)
    yield Figure(name="active cues", value=kinds.total())
    for (kind, trust), number in sorted(kinds.items()):
        yield Figure(name=f"… {kind} of the {trust}", value=number)


def matches(sessions: Sequence[RealSession], readings: Sequence[Mapping[str, Any]]) -> Iterator[Figure]:
    """Yields how many readings are lost or doubtful, as a quote stands in no turn, in several, or beside another."""
    matched = [(number, *pair) for number, session in enumerate(sessions) for pair in session.readings]
    turns = Counter(_key(row) for _, _, row in matched)
    verdicts = defaultdict[tuple[int, int], set[str]](set)
    for number, place, row in matched:
        verdicts[number, place].add(row["verdict"])
    yield Figure(name=f"{len(readings)} readings, in no turn", value=sum(not turns[_key(row)] for row in readings))
    yield Figure(name="… in several turns", value=sum(turns[_key(row)] > 1 for row in readings))
    yield Figure(name="turns with unlike readings", value=sum(len(said) > 1 for said in verdicts.values()))


def texts(found: Sequence[ReadSession]) -> Iterator[str]:
    """Yields some of the active cues for a reader, drawn by a fixed seed."""
    every = [(session, cue) for session, cues in found for cue in cues]
    for number, (session, cue) in enumerate(random.Random(_SEED).sample(every, min(_READ, len(every))), 1):
        yield f"{number}. {session.project} {session.log} [{ordinal_of(cue)}] {cue.kind} of the {cue.trust}"
        yield f"   When: {cue.trigger}\n   Then: {cue.lesson}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures the rules in use on real logs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--read", action="store_true", help="print active cues that a person is to judge")
    parser.add_argument("--missed", action="store_true", help="print the labelled lessons that are not found")
    given = parser.parse_args(arguments)
    found = [(session, active(session)) for session in read()]
    if not found:
        raise SystemExit("the set real-logs-dev is absent")
    report("cues, real-logs-dev", list(figures(found)))
    print("\n".join(texts(found)) if given.read else "")
    for session, cues in found if given.missed else ():
        for place, row in session.lessons:
            if not any(tells(cue, place, row["quote"]) for cue in cues):
                print(f"{row['project']} {row['log']} [{place}] missed a {row['kind']}: {row['quote']}")


if __name__ == "__main__":
    main()
