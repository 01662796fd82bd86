"""Fits the models that tell lessons in sessions, and measures them on projects that the fit has not seen."""

import argparse
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped] # the package has no types

from app.intake.sessions.transcript import USER, ToolUse, Turn
from app.recall.cues import signs
from app.recall.cues.cue import PERSON, NewCue
from app.recall.cues.extraction.extract import extract, ordinal_of
from app.recall.cues.signs import (
    ALONE,
    READ,
    SaidPart,
    SpokenTurn,
    TurnModel,
    may_be_read,
    may_teach,
    of_person,
    spoken_turns,
)
from benchmarks import public_logs, real_logs
from benchmarks.figures import Figure, report
from benchmarks.reading import read_spoken
from benchmarks.real_logs import ReadSession, RealSession, active, shares_words
from benchmarks.stage import SHARED_DATA, rows_of

LESSONS = SHARED_DATA / "lessons-dev"
OWN = Path(__file__).parent / "lessons"
"""Invented sessions of other projects, in the same form."""
STRENGTH = 0.1
"""Inverse of the ridge, with which the figures of left-out projects were measured. Others were not compared for the
features of sentences."""
LESSON, JUNK, UNLABELLED = 3.0, 3.0, 0.6
VERDICTS = {"useful": 2.0, "harmless": 1.0, "junk": JUNK}
"""Weights of the turns of real logs. Their labels are not exhaustive, so that a turn without one counts less than one
whose cue somebody read. They are set by hand."""
FOLDS = 12
"""Parts of the projects of public logs that are left out in turn."""
LIMITS = {ALONE: (0.3, 0.2), READ: (0.35, 0.2)}
"""Probabilities from which on a turn is shown, and from which on it is a candidate, by what the model knows of its
sentences. They are chosen on projects that were left out in turn: `benchmarks/cues.md`."""


@dataclass(frozen=True, kw_only=True)
class Labelled:
    """A session with its lessons."""

    session_id: str
    project: str
    turns: tuple[Turn, ...]
    lessons: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class Example:
    """A sentence of a person with its features, and whether it holds a lesson."""

    project: str
    features: Mapping[str, float]
    holds: bool
    weight: float = 1.0
    forms: frozenset[str] = frozenset({ALONE, READ})
    """The models by which it may teach: that of signs alone, and that of sentences which were read."""
    is_trained: bool = False
    """True if the adapter of the embedding model was trained on it."""


def read(folder: Path) -> list[Labelled]:
    """Reads a set of sessions with their lessons; none if it is absent."""
    if not (folder / "sessions.jsonl").exists():
        return []
    lessons = defaultdict[str, list[Mapping[str, Any]]](list)
    for row in rows_of(folder / "gold.jsonl"):
        lessons[row["session"]].append(row)
    return [
        Labelled(
            session_id=row["id"],
            project=row["project"],
            turns=tuple(_turn(place, message) for place, message in enumerate(row["messages"])),
            lessons=tuple(lessons[row["id"]]),
        )
        for row in rows_of(folder / "sessions.jsonl")
    ]


def _turn(place: int, message: Mapping[str, Any]) -> Turn:
    tools = tuple(ToolUse(name=str(tool["name"])) for tool in message.get("tools") or ())
    return Turn(ordinal=place, role=message["role"], text=message["text"], tools=tools)


def examples(sessions: Sequence[Labelled]) -> list[Example]:
    """Returns the sentences of these sessions that hold a lesson, and those of the turns that hold none."""
    found = list[Example]()
    for session in sessions:
        rows = {row["message"]: row for row in session.lessons}
        for item in read_spoken(session.turns):
            row = rows.get(item.turn.ordinal)
            phrases = [phrase for group in row["lesson"] for phrase in group] if row else []
            held = [bool(phrases) and holds(part.text, phrases) for part in item.sentences]
            found += _sentences(item, session.project, held, is_lesson=row is not None)
    return found


def real_examples(sessions: Sequence[RealSession]) -> list[Example]:
    """Returns the sentences of real logs: those that a reader labelled, and those that nobody called a lesson."""
    found, seen = list[Example](), set[str]()
    for session in sessions:
        quotes = defaultdict[int, list[str]](list)
        for place, row in session.lessons:
            quotes[place].append(row["quote"])
        for item in read_spoken(session.turns):
            own, place = quotes[item.turn.ordinal], item.turn.ordinal
            read_as = session.verdicts.get(place, "")
            if not own and (item.text in seen or (place in session.unsure and not read_as)):
                continue
            seen.add(item.text)
            is_useful = read_as == "useful" and not own
            held = [is_useful or any(shares_words(quote, part.text) for quote in own) for part in item.sentences]
            weight = LESSON if own else JUNK if place in session.junk else VERDICTS.get(read_as, UNLABELLED)
            found += _sentences(item, session.project, held, is_lesson=is_useful or bool(own), weight=weight)
    return found


def public_examples(rows: Sequence[tuple[Mapping[str, Any], Sequence[Turn]]], *, is_trained: bool) -> list[Example]:
    """Returns the sentences of public logs that a reader called useful, and those of the turns of junk.

    Those that the adapter was trained on are not read by it: its odds would tell too much.
    """
    found = list[Example]()
    for row, turns in rows:
        for item in spoken_turns(turns) if is_trained else read_spoken(turns):
            said = public_logs.verdict(row, item.turn.ordinal)
            if item.turn.ordinal in row["read"] and said != public_logs.HARMLESS:
                useful = row["useful"].get(str(item.turn.ordinal), ())
                held = [public_logs.digest(part.text) in useful for part in item.sentences]
                sentences = _sentences(item, row["repository"], held, is_lesson=bool(useful))
                found += [replace(sentence, is_trained=is_trained) for sentence in sentences]
    return found


def _sentences(
    item: SpokenTurn, project: str, held: Sequence[bool], *, is_lesson: bool, weight: float = 1.0
) -> Iterator[Example]:
    """Yields the sentences of a person's turn; of one that holds a lesson only those that are the lesson."""
    said = zip(item.sentences, of_person(item), held, strict=True) if item.turn.role == USER else ()
    for part, row, is_held in said:
        if is_held is is_lesson:
            yield Example(project=project, features=row, holds=is_held, weight=weight, forms=_forms(part))


def _forms(part: SaidPart) -> frozenset[str]:
    return frozenset(form for form, may in ((ALONE, may_teach), (READ, may_be_read)) if may(part))


def fitted(examples: Sequence[Example], form: str) -> TurnModel:
    """Returns the model of this form that is fitted to these sentences."""
    parts = [item for item in examples if form in item.forms and (form == ALONE or not item.is_trained)]
    names = [name for name in parts[0].features if form == READ or name != "read"]
    described = np.array([[part.features[name] for name in names] for part in parts])
    fit = LogisticRegression(C=STRENGTH, max_iter=5_000)
    fit.fit(described, [part.holds for part in parts], sample_weight=[part.weight for part in parts])
    weights = dict(zip(names, fit.coef_[0].tolist(), strict=True))
    shown, candidate = LIMITS[form]
    return TurnModel(bias=float(fit.intercept_[0]), shown=shown, candidate=candidate, weights=weights)


def holds(text: str, group: Sequence[str]) -> bool:
    """Tells if a text holds one of the phrases of a group, whatever its case and markup."""
    plain = text.lower().replace("`", "").replace("*", "")
    return any(phrase.lower() in plain for phrase in group)


def text_of(cue: NewCue) -> str:
    """Returns all the text that a cue tells."""
    return "\n".join([cue.trigger, cue.lesson, *map(str, cue.details.values())])


@dataclass(kw_only=True)
class Found:
    """Cues of a session with the lessons that they match."""

    session: Labelled
    cues: Sequence[NewCue]
    matched: Mapping[int, Mapping[str, Any]]
    """The lesson of each matched cue, by the cue's place."""


def matched(session: Labelled, cues: Sequence[NewCue]) -> Found:
    """Matches cues and lessons, each once, the best first: a cue holds at least half of a lesson's groups."""
    shares = [
        (
            statistics.mean(holds(text_of(cue), group) for group in row["lesson"]),
            -abs(ordinal_of(cue) - row["message"]),
            at,
            no,
        )
        for at, cue in enumerate(cues)
        for no, row in enumerate(session.lessons)
    ]
    pairs = dict[int, int]()
    for share, _, at, no in sorted(shares, reverse=True):
        if share >= 0.5 and at not in pairs and no not in pairs.values():
            pairs[at] = no
    return Found(session=session, cues=cues, matched={at: session.lessons[no] for at, no in pairs.items()})


def left_out(sessions: Sequence[Labelled], others: Sequence[Example], form: str) -> list[Found]:
    """Extracts the cues of each project with models that are fitted to the other projects and to `others`."""
    found = []
    for project in sorted({session.project for session in sessions}):
        known = [session for session in sessions if session.project != project]
        model = fitted([*examples(known), *others], form)
        found += [
            matched(session, _told(extract(read_spoken(session.turns), model)))
            for session in sessions
            if session.project == project
        ]
    return found


def left_out_logs(sessions: Sequence[RealSession], others: Sequence[Example], form: str) -> list[ReadSession]:
    """Extracts the active cues of each project's real logs with models that are fitted to the other projects."""
    every = real_examples(sessions)
    found = list[ReadSession]()
    for project in sorted({session.project for session in sessions}):
        model = fitted([*(item for item in every if item.project != project), *others], form)
        found += [(item, active(item, model)) for item in sessions if item.project == project]
    return found


def left_out_public(
    rows: Sequence[tuple[Mapping[str, Any], Sequence[Turn]]], others: Sequence[Example], form: str
) -> Iterator[tuple[str, str]]:
    """Yields what models make of the turns of public logs, each fitted without a part of the projects; and verdicts."""
    every = public_examples(rows, is_trained=False)
    projects = sorted({row["repository"] for row, _ in rows})
    for first in range(FOLDS):
        part = set(projects[first::FOLDS])
        model = fitted([*(item for item in every if item.project not in part), *others], form)
        for row, turns in rows:
            if row["repository"] in part:
                yield from public_logs.judged(row, turns, model)


def _told(cues: Sequence[NewCue]) -> list[NewCue]:
    return [cue for cue in cues if not cue.is_candidate and cue.trust == PERSON]


def figures(found: Sequence[Found]) -> Iterator[Figure]:
    """Yields the figures of extracted cues."""
    cues = sum(len(item.cues) for item in found)
    pairs = [(item.cues[at], row) for item in found for at, row in item.matched.items()]
    rows = [row for item in found for row in item.session.lessons if not row.get("superseded_by")]
    hit = {(row["session"], row["id"]) for _, row in pairs}
    families = defaultdict[str, set[str]](set)
    for item in found:
        for row in item.session.lessons:
            families[row.get("same_as") or row["id"]].add(row["id"])
    known = {row["id"] for _, row in pairs}
    recalled = [bool(families[row.get("same_as") or row["id"]] & known) for row in rows]
    yield Figure(name="cues that may be told", value=cues)
    yield Figure(name="precision", value=len(hit) / max(1, cues), at_least=0.8)
    yield Figure(name="recall", value=statistics.mean(recalled), at_least=0.65)
    yield Figure(
        name="remedy kept",
        value=statistics.mean(all(holds(text_of(cue), group) for group in row["lesson"]) for cue, row in pairs),
        at_least=0.85,
    )
    yield Figure(
        name="trigger right",
        value=statistics.mean(all(holds(cue.trigger, group) for group in row["trigger"]) for cue, row in pairs),
        at_least=0.75,
    )
    yield Figure(
        name="kind right",
        value=statistics.mean(cue.kind in {row["kind"], *row.get("kind_also", ())} for cue, row in pairs),
        at_least=0.8,
    )
    without = [item for item in found if not item.session.lessons]
    yield Figure(
        name=f"cues of the {len(without)} sessions without a lesson",
        value=sum(len(item.cues) for item in without),
        at_most=3,
    )
    wrong = [
        cue
        for item in found
        for cue in item.cues
        if any(holds(text_of(cue), [phrase]) for row in item.session.lessons for phrase in row.get("never", ()))
    ]
    yield Figure(name="cues that hold what they must not", value=len(wrong), at_most=0)


def faults(found: Sequence[Found]) -> Iterator[str]:
    """Yields what is wrong with the cues, in words for a person."""
    for item in found:
        for at, cue in enumerate(item.cues):
            row = item.matched.get(at)
            said = [] if row else ["no lesson"]
            if row is not None:
                said += [f"lacks {group}" for group in row["lesson"] if not holds(text_of(cue), group)]
                said += [f"trigger lacks {group}" for group in row["trigger"] if not holds(cue.trigger, group)]
                said += [] if cue.kind in {row["kind"], *row.get("kind_also", ())} else [f"is a {row['kind']}"]
            bad = [p for row in item.session.lessons for p in row.get("never", ()) if holds(text_of(cue), [p])]
            said += [f"holds {phrase!r}" for phrase in bad]
            if said:
                yield f"{item.session.session_id} [{ordinal_of(cue)}] {cue.kind} {cue.confidence}: {'; '.join(said)}"
                yield f"  When: {cue.trigger}\n  Then: {cue.lesson}"
        seen = {row["id"] for row in item.matched.values()}
        for row in item.session.lessons:
            if row["id"] not in seen:
                turn = item.session.turns[row["message"]]
                yield f"{item.session.session_id} [{row['message']}] missed a {row['kind']}: {turn.text[:300]!r}"


def write(models: Mapping[str, TurnModel]) -> None:
    """Writes the weights in use."""
    lines = [
        "# Fitted to labelled sessions by `python -m benchmarks.cues --write --public FOLDER`, [read] without those",
        "# that the adapter of lessons was trained on. So their figures with these weights are in-sample; those of",
        "# left-out projects are in benchmarks/cues.md.",
    ]
    for form, model in models.items():
        lines += [
            "",
            f"[{form}]",
            f"bias = {model.bias:.3f}",
            f"shown = {model.shown}",
            f"candidate = {model.candidate}",
            "",
            f"[{form}.weights]",
            *(f"{name} = {weight:.3f}" for name, weight in model.weights.items()),
        ]
    path = Path(signs.__file__).parent / "extraction" / "weights.toml"
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Fits if asked, measures and reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="replace the weights in use")
    parser.add_argument("--alone", action="store_true", help="measure the signs of speech without the embedding model")
    parser.add_argument("--faults", action="store_true", help="print what is wrong with the cues of unseen projects")
    parser.add_argument("--data", type=Path, default=LESSONS)
    parser.add_argument("--unseen", type=Path, help="folder of a further set, measured with the weights of the others")
    parser.add_argument("--public", type=Path, help="folder with clones of the repositories of public_turns*.jsonl")
    given = parser.parse_args(arguments)
    form = ALONE if given.alone else READ
    dev, own, real = read(given.data), read(OWN), real_logs.read()
    trained, public = (
        [(row, public_logs.turns_of(row, given.public)) for row in public_logs.read(path)] if given.public else []
        for path in (public_logs.TURNS, public_logs.HELD_OUT)
    )
    of_dev, of_own, of_real = examples(dev), examples(own), real_examples(real)
    of_trained = public_examples(trained, is_trained=True)
    of_public = [*public_examples(public, is_trained=False), *of_trained]
    every = [*of_dev, *of_own, *of_real, *of_public]
    if given.write and not public:
        raise SystemExit("the weights in use are fitted to public logs too: --write needs --public FOLDER")
    if given.write:
        write({name: fitted(every, name) for name in (READ, ALONE)})
    for name, sessions, others in (("lessons-dev", dev, of_own), ("own lessons", own, of_dev)):
        if sessions:
            found = left_out(sessions, [*others, *of_real, *of_public], form)
            report(f"cues, {name}, each project left out", list(figures(found)))
            print("\n".join(faults(found)) if given.faults else "")
    if real:
        read_sessions = left_out_logs(real, [*of_dev, *of_own, *of_public], form)
        report("cues, real-logs-dev, each project left out", list(real_logs.figures(read_sessions)))
    if public:
        judged = list(left_out_public(public, [*of_dev, *of_own, *of_real, *of_trained], form))
        report("cues, public logs that the adapter has not seen, projects left out", list(public_logs.figures(judged)))
    if given.unseen:
        model = fitted(every, form)
        found = [matched(item, _told(extract(read_spoken(item.turns), model))) for item in read(given.unseen)]
        report("cues, unseen set", list(figures(found)))


if __name__ == "__main__":
    main()
