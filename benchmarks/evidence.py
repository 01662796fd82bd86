"""Fits the weights of weak signs, and measures them on families of injections that the fit has not seen."""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize  # type: ignore[import-untyped] # the package has no types

from app.safety import evidence
from app.safety.evidence import Weights, sentences, signs
from app.safety.scan import WEAK_SIGNS, Page, blocking, scan
from benchmarks.figures import Figure, report
from benchmarks.stage import SHARED_DATA

LABELLED = Path(__file__).parents[1] / "tests" / "safety"
RIDGE = 3.0
"""Strength with which a weight is held at its prior: of 0.3, 1, 3 and 10 the best on the texts of no family."""
ROUNDS = 3
"""Times that the sentence of a text that speaks most for an order is chosen anew."""
BLOCKED, FLAGGED = 0.005, 0.03
"""Shares of innocent look-alikes that may be blocked, and flagged."""
FOLDS = 5
OLDER = 0.3
"""Weight of an older labelled attack, which is of other families."""

Vector = NDArray[np.float64]
Term = str | tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A labelled text with the signs of each of its sentences, a row each."""

    family: str
    weight: float
    blocked: bool
    """True if a rule refuses it."""
    rows: Vector
    fold: int = 0
    """Place of the text in its family and language, modulo FOLDS: the same for its translations."""


class Model:
    """The terms of the sum, their priors, and a fit."""

    def __init__(self) -> None:
        given = evidence.data_of("signs.toml")
        self.design = Weights(
            bias=0.0, suspect=0.0, block=0.0, signs={sign["name"]: sign["prior"] for sign in given["sign"]},
            pairs={(pair["of"][0], pair["of"][1]): pair["prior"] for pair in given["pair"]}, groups=given["groups"],
        )  # fmt: skip
        self.terms: list[Term] = [*self.design.signs, *self.design.pairs]
        self.places = {term: place for place, term in enumerate(self.terms)}
        self.prior = np.array([self.design.weight(term) for term in self.terms])

    def rows(self, text: str) -> Vector:
        """Returns the shares of the terms in each sentence."""
        page = Page(text)
        found = [shares for _, shares in sentences(page.read.text, signs(), page.data)] or [{}]
        rows = np.zeros((len(found), len(self.terms)))
        for row, shares in zip(rows, found, strict=True):
            for term, share in self.design.terms(shares):
                row[self.places[term]] = share
        return rows

    def fitted(self, attacks: Sequence[Labelled], clean: Sequence[Labelled]) -> Vector:
        """Returns the bias and the weights. A sign for an order never counts against one, and the other way round."""
        made = np.concatenate([[-2.5], self.prior])
        weights = np.array([item.weight for item in (*attacks, *clean)])
        wanted = np.array([1.0] * len(attacks) + [0.0] * len(clean))
        bounds = [(None, None), *((0, None) if prior >= 0 else (None, 0) for prior in self.prior)]
        for _ in range(ROUNDS):
            rows = np.array([item.rows[np.argmax(item.rows @ made[1:])] for item in (*attacks, *clean)])

            def loss(now: Vector, rows: Vector = rows) -> tuple[float, Vector]:
                logits, held = rows @ now[1:] + now[0], now[1:] - self.prior
                wrong = weights * (1 / (1 + np.exp(-logits)) - wanted)
                value = weights @ (np.logaddexp(0, logits) - wanted * logits) + RIDGE / 2 * held @ held
                return float(value), np.concatenate([[wrong.sum()], rows.T @ wrong + RIDGE * held])

            made = minimize(loss, made, jac=True, method="L-BFGS-B", bounds=bounds).x
        return made


def score(item: Labelled, made: Vector) -> float:
    """Returns the highest score of a text's sentences."""
    return float((item.rows @ made[1:]).max() + made[0])


def labelled(model: Model, name: str, *, weight: float = 1.0) -> list[Labelled]:
    """Reads a file of JSON lines."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in (LABELLED / name).read_text().splitlines()]
    places: Counter[tuple[str, str]] = Counter()
    found = []
    for row in rows:
        family, text = row.get("family", ""), row["text"]
        place = places[family, row.get("language", "")]
        places[family, row.get("language", "")] += 1
        refused = any(finding.rule != WEAK_SIGNS for finding in blocking(scan(text)))
        found.append(Labelled(family=family, weight=weight, blocked=refused, rows=model.rows(text), fold=place % FOLDS))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The scores of texts by weights that were fitted without their family."""

    attacks: Sequence[tuple[Labelled, float]]
    clean: Sequence[tuple[Labelled, float]]
    highest: float
    """Score of the older innocent text that scores most, by the fit on everything."""

    @property
    def block(self) -> float:
        """The score from which on a sentence refuses its text: no innocent text that is known does so."""
        return max(self.threshold(BLOCKED), self.highest + 0.1)

    def threshold(self, share: float) -> float:
        """Returns the score that only this share of the innocent texts exceeds."""
        scores = sorted((score for _, score in self.clean), reverse=True)
        return scores[int(share * len(scores))] + 1e-6

    def caught(self, threshold: float, family: str = "") -> float:
        """Returns the share of attacks of a family, or of all, that a rule refuses or that score so much."""
        found = [item.blocked or score >= threshold for item, score in self.attacks if family in ("", item.family)]
        return sum(found) / len(found)


def left_out(model: Model, texts: "Texts") -> Measured:
    """Scores each family of attacks by a fit without it, and each innocent text by a fit without it in any language."""
    attacks, clean = [], []
    for family in dict.fromkeys(item.family for item in texts.attacks):
        known = [item for item in texts.attacks if item.family != family]
        made = model.fitted([*known, *texts.older_attacks], [*texts.clean, *texts.other_clean])
        attacks += [(item, score(item, made)) for item in texts.attacks if item.family == family]
    for fold in sorted({item.fold for item in texts.clean}):
        rest = [item for item in texts.clean if item.fold != fold]
        made = model.fitted([*texts.attacks, *texts.older_attacks], [*rest, *texts.other_clean])
        clean += [(item, score(item, made)) for item in texts.clean if item.fold == fold]
    made = model.fitted([*texts.attacks, *texts.older_attacks], [*texts.clean, *texts.other_clean])
    highest = max(score(item, made) for item in texts.other_clean if item.weight == 1)
    return Measured(attacks=attacks, clean=clean, highest=highest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Everything that the weights are fitted to."""

    attacks: Sequence[Labelled]
    clean: Sequence[Labelled]
    older_attacks: Sequence[Labelled]
    other_clean: Sequence[Labelled]
    """Older labelled texts, and those of other people as far as they are there."""


SETS = ("", "second_", "third_", "fourth_", "reviewed_")


def read(model: Model, data: Path) -> Texts:
    """Reads the labelled texts."""
    older = [item for name in SETS for item in labelled(model, f"{name}attacks.jsonl", weight=OLDER)]
    other = [item for name in SETS for item in labelled(model, f"{name}clean.jsonl")]
    cases = data / "injection-dev" / "cases.jsonl"
    rows = [json.loads(line) for line in cases.read_text().splitlines()] if cases.is_file() else []
    other += [
        Labelled(family="", weight=OLDER, blocked=False, rows=model.rows(row["text"]))
        for row in rows
        if row["label"] == 0
    ]
    return Texts(
        attacks=labelled(model, "indirect_attacks.jsonl"),
        clean=labelled(model, "indirect_clean.jsonl"),
        older_attacks=older,
        other_clean=other,
    )


def figures(data: Path) -> Iterator[Figure]:
    """Measures the left-out families, and the texts of no family with the weights that are in use."""
    model = Model()
    texts = read(model, data)
    measured = left_out(model, texts)
    for name, limit in (("caught or flagged", measured.threshold(FLAGGED)), ("blocked", measured.block)):
        yield Figure(name=f"left-out families: {name}", value=measured.caught(limit))
        share = sum(value >= limit for _, value in measured.clean) / len(measured.clean)
        yield Figure(name=f"… innocents {name}", value=share)
    limit = measured.threshold(FLAGGED)
    for family in dict.fromkeys(item.family for item in texts.attacks):
        yield Figure(name=f"… {family}", value=measured.caught(limit, family))
    yield from in_use()


def in_use() -> Iterator[Figure]:
    """Measures the scan as it is on texts that nothing was fitted to."""
    for name in ("unseen",):
        if not (LABELLED / f"{name}_attacks.jsonl").is_file():
            continue
        for kind in ("attacks", "clean"):
            rows = [json.loads(line) for line in (LABELLED / f"{name}_{kind}.jsonl").read_text().splitlines()]
            found = [{finding.severity for finding in scan(row["text"])} for row in rows]
            blocked, kept = (
                sum("block" in item for item in found),
                sum(bool(item & {"block", "suspect"}) for item in found),
            )
            yield Figure(name=f"{name} {kind}: caught or flagged", value=kept / len(rows))
            yield Figure(name=f"{name} {kind}: blocked", value=blocked / len(rows))


def written(model: Model, made: Vector, measured: Measured) -> str:
    """Returns the file of weights."""
    weights = dict(zip(model.terms, made[1:], strict=True))
    lines = [
        "# Fitted by `python -m benchmarks.evidence --write`; the figures are in docs/injection.md.",
        f"bias = {made[0]:.2f}",
        f"suspect = {measured.threshold(FLAGGED):.2f}",
        f"block = {measured.block:.2f}",
        "",
        "[signs]",
        *(f"{term} = {weight:.2f}" for term, weight in weights.items() if isinstance(term, str)),
    ]
    for term, weight in weights.items():
        if not isinstance(term, str) and weight >= LEAST_PAIR:
            lines += ["", "[[pair]]", f'of = ["{term[0]}", "{term[1]}"]', f"weight = {weight:.2f}"]
    return "\n".join(lines) + "\n"


LEAST_PAIR = 0.05
"""A pair of less weight is left out."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Fits, measures and reports; with --write it replaces the weights in use."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--data", type=Path, default=SHARED_DATA)
    given = parser.parse_args(arguments)
    if given.write:
        model = Model()
        texts = read(model, given.data)
        measured = left_out(model, texts)
        made = model.fitted([*texts.attacks, *texts.older_attacks], [*texts.clean, *texts.other_clean])
        Path(evidence.__file__).with_name("weights.toml").write_text(written(model, made, measured))
        evidence.weights.cache_clear()
    report("evidence", list(figures(given.data)))


if __name__ == "__main__":
    main()
