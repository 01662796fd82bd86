"""Makes plans that ought to fire a cue, and neighbours that ought not, from its trigger by rules; counts. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import cycle, islice
from statistics import median
from typing import NamedTuple
from uuid import UUID

import msgspec

LEAST_RECALL = 0.5
"""Share of a cue's plans that must fire it; below it, the trigger is too narrow."""
MOST_FALSE = 0.5
"""Share of a cue's neighbours that may fire it; above it, the trigger is too broad."""
LEAST_SCORE = 0.01
"""Least score of a firing: a cue that a neighbour does not fire has none."""
VOWELS = "aeiouy"
CLOSED = re.compile(r"[^aeiou][aeiou][^aeiouwxy]$")
"""The end of a word whose last letter doubles, if it has one syllable: drop, run, set."""
LEADING = re.compile(
    r"^(?:when|whenever|before|after|while|if|on|during)\s+(?:you\s+|(?:an|the) agent\s+)?", re.IGNORECASE
)


class Data(msgspec.Struct, frozen=True):
    """The rules of `probes.toml`."""

    verbs: list[list[str]]
    harmless: list[str]
    doubled: list[str]
    plans: list[str]
    situations: list[str]
    neighbours: list[str]
    instances: dict[str, str]


class Probes(NamedTuple):
    """The plans that are asked for one cue."""

    plans: Sequence[str]
    neighbours: Sequence[str]


class Act(NamedTuple):
    """The act that a trigger names."""

    verbs: Sequence[str]
    """Its verb first, then verbs of the same meaning."""
    rest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedCue:
    """The outcome of the probes of one cue."""

    cue_id: UUID
    trigger: str
    plans: int
    fired: int
    neighbours: int
    false: int
    """Neighbours that fired it as strongly as its plans."""
    missed: tuple[str, ...]
    """The plans that did not fire it."""
    advice: str
    """A change that its trigger needs; empty for none."""

    @property
    def weak(self) -> bool:
        """True if the cue needs a better trigger."""
        return bool(self.advice)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReport:
    """The figures of a store's cues."""

    cues: int
    recall: float | None
    """Share of the plans that fired their cue; None without cues."""
    precision: float | None
    """Share of a cue's firings that were right: by its plans, out of those by its plans and its neighbours."""
    stale: int
    """Number of cues that have not fired for a long time, or hold no more."""
    weak: tuple[ProbedCue, ...]
    """The cues that need a better trigger, the worst first."""


@cache
def data() -> Data:
    """Returns the rules."""
    text = resources.files(__package__).joinpath("probes.toml").read_text(encoding="utf-8")
    return msgspec.toml.decode(text, type=Data)


def gerund(verb: str) -> str:
    """Returns the form with "ing" of a verb, of its first word if it has several."""
    first, _, particle = verb.partition(" ")
    syllables = len(re.findall(rf"[{VOWELS}]+", first))
    if first.endswith("e") and not first.endswith("ee"):
        first = first[:-1]
    elif CLOSED.search(first) and (syllables == 1 or first in data().doubled):
        first += first[-1]
    return f"{first}ing {particle}".strip()


@cache
def _known() -> Mapping[str, Sequence[str]]:
    """Returns the verbs of one meaning by each form of each."""
    found: dict[str, Sequence[str]] = {}
    for row in data().verbs:
        for verb in row:
            same = [verb, *(other for other in row if other != verb)]
            found |= {verb: same, gerund(verb): same}
    return found


def act_of(trigger: str) -> Act | None:
    """Returns the act that a trigger names; None if it begins with no known verb."""
    text = LEADING.sub("", trigger.strip()).rstrip(".")
    words = text.split()
    for count in (2, 1):
        begins = " ".join(words[:count]).lower()
        if begins in _known() and len(words) > count:
            return Act(_known()[begins], " ".join(words[count:]))
    return None


def probes_of(trigger: str) -> Probes:
    """Returns plans that ought to fire a cue with this trigger, and neighbours that ought not."""
    rules, act = data(), act_of(trigger)
    if act is None:
        text = LEADING.sub("", trigger.strip()).rstrip(".")
        shown = (text, _concrete(text))
        plans = [form.format(trigger=told) for form, told in zip(rules.situations, shown, strict=True)]
        return Probes(plans, [rules.neighbours[1].format(rest=text)])
    verbs = islice(cycle([*act.verbs[1:], act.verbs[0]]), len(rules.plans))
    objects = cycle([act.rest, _concrete(act.rest)])
    plans = [
        form.format(verb=verb, Verb=verb.capitalize(), gerund=gerund(verb), rest=rest)
        for form, verb, rest in zip(rules.plans, verbs, objects, strict=False)
    ]
    harmless = cycle(word.capitalize() for word in rules.harmless)
    neighbours = [
        form.format(Harmless=word, rest=act.rest) for form, word in zip(rules.neighbours, harmless, strict=False)
    ]
    return Probes(plans, neighbours)


def _concrete(text: str) -> str:
    """Returns a text with an instance in place of the first object that has one."""
    for word in text.split():
        bare = word.strip(".,:;").lower()
        for name, instance in data().instances.items():
            if bare in {name, f"{name}s"}:
                return text.replace(word, instance, 1)
    return text


def probed(cue_id: UUID, trigger: str, probes: Probes, scores: Mapping[str, Mapping[UUID, float]]) -> ProbedCue:
    """Returns the outcome of a cue; `scores` has those of the cues that each plan and neighbour fires.

    A store fires rather too much than too little. So a neighbour counts if it fires the cue as strongly as half of its
    own plans do.
    """
    own = [scores[plan].get(cue_id, 0.0) for plan in probes.plans]
    missed = tuple(plan for plan, score in zip(probes.plans, own, strict=True) if not score)
    least = max(median(own), LEAST_SCORE)
    right = len(own) - len(missed)
    wrong = sum(scores[neighbour].get(cue_id, 0.0) >= least for neighbour in probes.neighbours)
    advice = ""
    if right < LEAST_RECALL * len(own):
        advice = "is missed: say in the trigger what is done to what, or merge it with the cues that are told instead"
    elif wrong > MOST_FALSE * len(probes.neighbours):
        advice = "fires for neighbours: name the act in the trigger, and not the object alone"
    return ProbedCue(
        cue_id=cue_id,
        trigger=trigger,
        plans=len(own),
        fired=right,
        neighbours=len(probes.neighbours),
        false=wrong,
        missed=missed,
        advice=advice,
    )


def report(found: Sequence[ProbedCue], *, stale: int) -> ProbeReport:
    """Returns the figures of all probed cues."""
    plans, right = sum(item.plans for item in found), sum(item.fired for item in found)
    firings = right + sum(item.false for item in found)
    weak = sorted((item for item in found if item.weak), key=lambda item: (item.fired / item.plans, -item.false))
    return ProbeReport(
        cues=len(found),
        recall=right / plans if plans else None,
        precision=right / firings if firings else None,
        stale=stale,
        weak=tuple(weak),
    )
