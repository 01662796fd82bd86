"""Fits the weights of weak signs and of words, and measures them on injections that the fit has not seen."""

import argparse
import json
import sysconfig
import zlib
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack  # type: ignore[import-untyped] # the package has no types
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped] # the package has no types

from app.foundation.safety import evidence
from app.foundation.safety.scan import BLOCK, SUSPECT, WEAK_SIGNS, ScannedText, blocking, scan
from benchmarks.figures import Figure, report
from benchmarks.stage import SHARED_DATA

ROOT = Path(__file__).parents[1]
LABELLED = ROOT / "tests" / "foundation" / "safety"
SETS = ("indirect_", "", "second_", "third_", "fourth_", "reviewed_")
"""Files of labelled texts; only the families of the first are indirect."""
OLDER, PROSE = 0.5, 0.1
"""Weights of an attack of an older family, and of a sentence of prose, which is in English: with 0.3, fewer attacks in
English were caught."""
STRENGTH = 10.0
"""Inverse of the ridge; 3, 10 and 30 differ by less than a point."""
SHARE_OF_SIGNS = 0.15
"""Unit of a sign beside that of a text's words: of 0, 0.15 and 0.3 the best."""
FLAGGED, BLOCKED = 0.08, 0.005
"""Shares of our own innocent texts, left out, that may be flagged, and blocked. They were written to resemble attacks;
of the innocent texts of others, a third to a tenth as many are flagged (benchmarks/injection.md)."""
FEWER = 0.03
"""Share of them at which the figures are stated as well."""
FOLDS = 6
LANGUAGES = (*evidence.LANGUAGES, "zh")
LEAST_PROSE = 40
"""Characters of the shortest text in a JSON file that is taken for prose."""
PARAGRAPH = range(80, 3_000)
"""Characters of a paragraph of the installed packages that counts."""
MOST_PARAGRAPHS = 6_000
NAMES = [sign.name for sign in evidence.signs()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A labelled text with the features of each of its sentences, a row each."""

    text: str
    family: str
    language: str
    place: int
    """Place in its family and language: the same for its translations."""
    attack: bool
    weight: float
    rows: csr_matrix

    @property
    def indirect(self) -> bool:
        """True for an attack of the families that are measured."""
        return self.attack and self.weight == 1.0


Vector = NDArray[np.float64]


def rows_of(text: str) -> csr_matrix:
    """Returns the features of each sentence: the counts of its words' features, and the shares of its signs."""
    page = ScannedText(text)
    blank = evidence.without_data(evidence.blank_out(page.read.text, page.data))
    spans = evidence.sentence_spans(blank) or [(0, len(blank))]
    found = evidence.features([blank])
    owners = np.maximum(np.searchsorted([start for start, _ in spans], found.places, side="right") - 1, 0)
    rows, columns = np.concatenate([owners + step for step in (-1, 0, 1)]), np.tile(found.buckets, 3)
    kept = (rows >= 0) & (rows < len(spans))
    numbers = np.sqrt(np.maximum(np.bincount(rows[kept], minlength=len(spans)), 1))
    said = [
        (row, evidence.BUCKETS + NAMES.index(name), share * SHARE_OF_SIGNS)
        for row, shares in enumerate(evidence.shares(blank, spans, evidence.present_signs(blank)))
        for name, share in shares.items()
    ]
    of_signs = np.array(said or np.empty((0, 3)))
    return csr_matrix(
        (
            np.concatenate([1 / numbers[rows[kept]], of_signs[:, 2]]),
            (np.concatenate([rows[kept], of_signs[:, 0]]), np.concatenate([columns[kept], of_signs[:, 1]])),
        ),
        shape=(len(spans), evidence.BUCKETS + len(NAMES)),
    )


def read(data: Path = SHARED_DATA) -> list[Labelled]:
    """Reads all labelled texts, and innocent prose and code: the documentation, and half of what others wrote."""
    prose = [path.read_text() for path in sorted(ROOT.glob("docs/*/*.md")) if path.parent.name != "adr"]
    prose += [text for text in (*_reports(data), *installed()) if known(text)]
    prompts = [text for text in _not_injections(data) if known(text)]
    return labelled() + [
        Labelled(text="", family="prose", language="en", place=0, attack=False, weight=weight, rows=rows_of(text))
        for texts, weight in ((prose, PROSE), (prompts, 1.0))
        for text in texts
    ]


def labelled(languages: Container[str] = LANGUAGES) -> list[Labelled]:
    """Reads the labelled texts of the repository in these languages."""
    return [item for name in SETS for item in _labelled(name, languages)]


def known(text: str) -> bool:
    """Tells if a text of others is of the half that the weights are fitted to; the other half measures them."""
    return zlib.crc32(text.encode()) % 2 == 0


def _reports(data: Path) -> Iterator[str]:
    """Yields the Markdown files of a reports directory, and the texts in its JSON files, each once."""
    folder = data / "reports-scylla"
    yield from (path.read_text() for path in sorted(folder.rglob("*.md")))
    values = (text for path in sorted(folder.rglob("*.json")) for text in _texts(json.loads(path.read_text())))
    yield from dict.fromkeys(text for text in values if len(text) >= LEAST_PROSE)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def installed() -> list[str]:
    """Returns paragraphs of the installed packages' descriptions and of the standard library's code, in no order."""
    texts = [str(item.metadata.get_payload()) for item in distributions()]  # type: ignore[attr-defined] # a message
    texts += [path.read_text() for path in Path(sysconfig.get_paths()["stdlib"]).glob("*.py")]
    paragraphs = {part for text in texts for part in text.split("\n\n") if len(part) in PARAGRAPH}
    return sorted(paragraphs, key=lambda part: zlib.adler32(part.encode()))[:MOST_PARAGRAPHS]


def _not_injections(data: Path) -> list[str]:
    path = data / "injection-dev" / "cases.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
    return [row["text"] for row in rows if row["label"] == 0]


def _labelled(name: str, languages: Container[str]) -> Iterator[Labelled]:
    for kind in ("attacks", "clean"):
        places: Counter[tuple[str, str]] = Counter()
        for line in (LABELLED / f"{name}{kind}.jsonl").read_text().splitlines():
            row = json.loads(line)
            family, language = row.get("family", ""), row["language"]
            if language not in languages:
                continue
            places[family, language] += 1
            yield Labelled(
                text=row["text"], family=f"{name}{family}", language=language, place=places[family, language],
                attack=kind == "attacks", weight=OLDER if name != SETS[0] and kind == "attacks" else 1.0,
                rows=rows_of(row["text"]),
            )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Fitted weights of the words' features, then of the signs."""

    bias: float
    weights: Vector

    def scores(self, item: Labelled) -> Vector:
        """Returns the score of each sentence."""
        return np.asarray(item.rows @ self.weights + self.bias)


def fitted(items: Sequence[Labelled]) -> Fit:
    """Fits every sentence of innocent texts, and of each attack the one that speaks most for an order."""
    made = Fit(bias=0.0, weights=np.ones(evidence.BUCKETS + len(NAMES)))
    for _ in range(2):
        chosen = [item.rows[int(np.argmax(made.scores(item)))] if item.attack else item.rows for item in items]
        wanted = np.concatenate([np.full(rows.shape[0], item.attack) for item, rows in zip(items, chosen, strict=True)])
        weights = np.concatenate(
            [np.full(rows.shape[0], item.weight) for item, rows in zip(items, chosen, strict=True)]
        )
        model = LogisticRegression(C=STRENGTH, solver="liblinear")
        model.fit(vstack(chosen).tocsr(), wanted, sample_weight=weights)
        made = Fit(bias=float(model.intercept_[0]), weights=model.coef_[0])
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The highest scores of texts by weights that were fitted without them."""

    attacks: Sequence[tuple[Labelled, float]]
    clean: Sequence[tuple[Labelled, float]]

    def threshold(self, share: float) -> float:
        """Returns the score that only this share of the innocent texts exceeds."""
        scores = sorted((score for _, score in self.clean), reverse=True)
        return scores[int(share * len(scores))] + 1e-6

    def caught(self, threshold: float, name: str = "") -> float:
        """Returns the share of attacks, or of those of a family or language, that a rule refuses or that score it."""
        found = [
            score >= threshold or refused(item)
            for item, score in self.attacks
            if name in ("", item.family, item.language)
        ]
        return sum(found) / len(found)

    def wrongly(self, threshold: float) -> float:
        """Returns the share of innocent texts that score so much."""
        return sum(score >= threshold for _, score in self.clean) / len(self.clean)


def refused(item: Labelled) -> bool:
    """Tells if a rule refuses a text."""
    return any(finding.rule != WEAK_SIGNS for finding in blocking(scan(item.text)))


def left_out(items: Sequence[Labelled], *, families: bool, folds: Iterable[int] = range(FOLDS)) -> Measured:
    """Scores the texts of folds by fits without them, their translations and, if asked, their families of attacks."""
    names = sorted({item.family for item in items if item.indirect})
    order = sorted({(item.family, item.place) for item in items})

    def fold(item: Labelled) -> int:
        if not item.text or (item.attack and not item.indirect):
            return -1
        if families and item.attack:
            return names.index(item.family) % FOLDS
        return order.index((item.family, item.place)) % FOLDS

    numbers = [fold(item) for item in items]
    attacks: list[tuple[Labelled, float]] = []
    clean: list[tuple[Labelled, float]] = []
    for out in folds:
        made = fitted([item for item, number in zip(items, numbers, strict=True) if number != out])
        for item, number in zip(items, numbers, strict=True):
            if number == out:
                (attacks if item.attack else clean).append((item, float(made.scores(item).max())))
    return Measured(attacks=attacks, clean=clean)


def figures(items: Sequence[Labelled]) -> Iterator[Figure]:
    """Measures left-out texts and families at the thresholds that left-out innocent texts give."""
    for families, name in ((False, "left-out texts"), (True, "left-out families")):
        measured = left_out(items, families=families)
        yield from _figures(measured, name)
        groups = {item.family if families else item.language for item, _ in measured.attacks}
        for group in sorted(groups):
            value = measured.caught(measured.threshold(FLAGGED), group)
            yield Figure(name=f"… {group.removeprefix(SETS[0])}", value=value)


def _figures(measured: Measured, name: str) -> Iterator[Figure]:
    flagged, blocked = measured.threshold(FLAGGED), measured.threshold(BLOCKED)
    yield Figure(name=f"{name}: caught or flagged", value=measured.caught(flagged), at_least=0.8)
    yield Figure(name=f"{name}: blocked", value=measured.caught(blocked))
    yield Figure(name="innocents flagged", value=measured.wrongly(flagged))
    yield Figure(name="innocents blocked", value=measured.wrongly(blocked), at_most=0.01)
    strict = measured.threshold(FEWER)
    yield Figure(name=f"caught or flagged, if {FEWER:.0%} of the innocents were", value=measured.caught(strict))


def in_use(name: str = "unseen") -> Iterator[Figure]:
    """Measures the scan as it is on texts that nothing was fitted to."""
    for kind in ("attacks", "clean"):
        rows = [json.loads(line) for line in (LABELLED / f"{name}_{kind}.jsonl").read_text().splitlines()]
        found = [{finding.severity for finding in scan(row["text"])} for row in rows]
        yield Figure(
            name=f"{name} {kind}: caught or flagged", value=sum(bool(x & {BLOCK, SUSPECT}) for x in found) / len(rows)
        )
        yield Figure(name=f"{name} {kind}: blocked", value=sum(BLOCK in x for x in found) / len(rows))


def _innocents() -> Iterator[Figure]:
    """Measures the scan as it is on the half of the installed packages' texts that nothing was fitted to."""
    found = [{finding.severity for finding in scan(text)} for text in installed() if not known(text)]
    flagged, blocked = (sum(bool(x & kinds) for x in found) / len(found) for kinds in ({BLOCK, SUSPECT}, {BLOCK}))
    yield Figure(name="descriptions and code of packages: flagged", value=flagged, at_most=0.03)
    yield Figure(name="descriptions and code of packages: blocked", value=blocked, at_most=0.01)


def write(items: Sequence[Labelled]) -> None:
    """Replaces the weights in use by those of a fit to everything, and the thresholds by those of left-out texts."""
    made, measured = fitted(items), left_out(items, families=False)
    folder = Path(evidence.__file__).parent
    of_words = made.weights[: evidence.BUCKETS]
    unit = np.abs(of_words).max() / np.iinfo(np.int8).max
    np.savez_compressed(folder / "words.npz", weights=np.round(of_words / unit).astype(np.int8), unit=np.float32(unit))
    lines = [
        "# Fitted by `python -m benchmarks.evidence --write`; the figures are in benchmarks/injection.md.",
        f"bias = {made.bias:.2f}",
        f"suspect = {measured.threshold(FLAGGED):.2f}",
        f"block = {measured.threshold(BLOCKED):.2f}",
        "",
        "[signs]",
        *(
            f"{name} = {weight * SHARE_OF_SIGNS:.2f}"
            for name, weight in zip(NAMES, made.weights[evidence.BUCKETS :], strict=True)
        ),
    ]
    (folder / "weights.toml").write_text("\n".join(lines) + "\n")
    evidence.weights.cache_clear()
    evidence.table.cache_clear()


def main(arguments: Sequence[str] | None = None) -> None:
    """Fits if asked, measures and reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="replace the weights in use")
    parser.add_argument("--data", type=Path, default=SHARED_DATA)
    given = parser.parse_args(arguments)
    items = read(given.data)
    if given.write:
        write(items)
    report("evidence", [*figures(items), *in_use(), *_innocents()])


if __name__ == "__main__":
    main()
