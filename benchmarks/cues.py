"""Fits the model that tells cues, and measures it on whole sessions that the fit has not seen."""

import argparse
import asyncio
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr  # type: ignore[import-untyped] # the package has no types
from sklearn.linear_model import LogisticRegression, Ridge  # type: ignore[import-untyped] # the package has no types
from sklearn.model_selection import GroupKFold  # type: ignore[import-untyped] # the package has no types

from app.cues.cue import CUE_KINDS
from app.cues.extraction import model
from app.cues.extraction.extract import extract
from app.cues.extraction.features import ANSWERED, PLACED, heard, names, numbers
from app.intake.sessions.transcript import ASSISTANT, USER, Turn
from app.models.providers import provider_from
from app.settings import Settings
from benchmarks.figures import Figure, report
from benchmarks.records import without_headings
from benchmarks.stage import SHARED_DATA

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "tests" / "cues" / "extraction" / "examples.jsonl"
RECORDS = ROOT / "docs" / "adr"
LABELLED = "cues-dev"
NONE = "none"
DEGREES = ("low", "medium", "high")
"""Consequences as labels state them."""
FOLDS = 6
STRENGTH, KIND_STRENGTH = 0.1, 0.05
"""Inverses of the ridges: the best of 0.03 to 1 on people whom the fit had not seen."""
GRAVITY_STRENGTH = 60.0
"""Ridge of the consequences: of 3 to 100 the left-out rank correlation hardly differs."""
VECTOR_UNIT = 1.5
"""Unit of a vector beside that of a sign: of 1, 1.5, 2 and 3 the best that leaves words their say."""
RARITY = 0.25
"""Power of a kind's rarity by which its turns weigh more: of 0, 0.15 and 0.25 the best."""
TOO_SURE = 0.6
"""Log odds by which the fit was too sure of a cue on people whom it has not seen; subtracted from its bias."""
THRESHOLD = 0.31
"""Probability from which on a turn is a cue: the highest F1 of people whom the fit has not seen, were cues as frequent
as in the labelled sessions."""
TRIGGER_WORDS = 0.673
"""F1 of a list of trigger words on the labelled sessions, as issue 14 states it."""
CUES_THERE = 0.544
"""Share of the labelled user turns of the dev set that hold a cue."""
Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A user's turn with its label."""

    session: str
    """"" for an example that stands alone."""
    turns: Sequence[Turn]
    ordinal: int
    kinds: Sequence[str]
    """Empty if it holds no cue."""
    gravity: int | None = None
    """The consequence that its label states: 0 low, 1 medium, 2 high; None if it states none."""

    @property
    def text(self) -> str:
        """What was said."""
        return self.turns[self.ordinal].text


def sessions(folder: Path) -> list[Labelled]:
    """Reads labelled sessions; turns whose label is doubtful are left out."""
    logs = {row["session"]: row["messages"] for row in _rows(folder / "sessions.jsonl")}
    doubtful = {(row["session"], row["message"]) for row in _rows(folder / "doubtful.jsonl")}
    told: dict[tuple[str, int], list[str]] = {}
    grave: dict[tuple[str, int], int] = {}
    for row in _rows(folder / "cues.jsonl"):
        if row.get("consequence") in DEGREES:
            place = (row["session"], row["message"])
            grave[place] = max(grave.get(place, 0), DEGREES.index(row["consequence"]))
        told.setdefault((row["session"], row["message"]), []).extend([row["type"]] if row["type"] != NONE else [])
    found = []
    for name, messages in logs.items():
        turns = [Turn(ordinal=place, role=said["role"], text=said["text"]) for place, said in enumerate(messages)]
        found += [
            Labelled(
                session=name,
                turns=turns,
                ordinal=turn.ordinal,
                kinds=told.get((name, turn.ordinal), []),
                gravity=grave.get((name, turn.ordinal)),
            )
            for turn in turns
            if turn.role == USER and (name, turn.ordinal) not in doubtful
        ]
    return found


def examples() -> list[Labelled]:
    """Reads the examples: turns of our own writing by many kinds of people, some with the agent's turns beside them."""
    return [_example(row) for row in _rows(EXAMPLES)]


def _example(row: Mapping[str, Any]) -> Labelled:
    said = [(ASSISTANT, row.get("before")), (USER, row["text"]), (ASSISTANT, row.get("after"))]
    turns = [Turn(ordinal=0, role=role, text=text) for role, text in said if text]
    turns = [replace(turn, ordinal=place) for place, turn in enumerate(turns)]
    place = next(turn.ordinal for turn in turns if turn.role == USER)
    return Labelled(session="", turns=turns, ordinal=place, kinds=[] if row["kind"] == NONE else [row["kind"]])


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    yield from (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


def described(items: Sequence[Labelled]) -> Matrix:
    """Returns the features of the turns, a row each."""
    known = {id(item.turns): {one.turn.ordinal: one for one in heard(item.turns)} for item in items}
    return np.array([numbers(known[id(item.turns)][item.ordinal]) for item in items])


async def _embedded(texts: Sequence[str]) -> tuple[str, Matrix]:
    with tempfile.TemporaryDirectory(prefix="priors-cues-") as folder:
        provider = provider_from(Settings(data_dir=Path(folder)))
        await provider.start()
        found = await provider.embed_documents(texts)
        await provider.close()
        return provider.model_id, np.asarray(found, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Turns with their features, vectors and labels."""

    items: Sequence[Labelled]
    features: Matrix
    vectors: Matrix

    @property
    def cues(self) -> NDArray[np.bool_]:
        """True for each turn that holds a cue."""
        return np.array([bool(item.kinds) for item in self.items])

    def __getitem__(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> "Data":
        """Returns some of the turns."""
        places = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        return Data(
            items=[self.items[place] for place in places], features=self.features[chosen], vectors=self.vectors[chosen]
        )


def supposed(known: Data, told: Data) -> Matrix:
    """Returns features with those means of others in place of what is not known: what surrounds a turn without a
    session, and what the agent said in a session that has the person's turns only.
    """
    features = known.features.copy()
    for place, item in enumerate(known.items):
        alone = not any(turn.role == ASSISTANT for turn in item.turns)
        unknown = [names().index(name) for name in (*(() if item.session else PLACED), *(ANSWERED if alone else ()))]
        features[place, unknown] = told.features[:, unknown].mean(axis=0)
    return features


def graded(data: Data) -> Data:
    """Returns the turns whose label states a consequence."""
    return data[np.array([item.gravity is not None and bool(item.kinds) for item in data.items])]


def _of_kinds(data: Data, kinds: Sequence[str]) -> Matrix:
    return np.hstack([data.features, np.array([[kind == one for one in CUE_KINDS] for kind in kinds], float)])


def _grave(told: Data) -> Ridge:
    data = graded(told)
    rows = _of_kinds(data, [item.kinds[0] for item in data.items])
    return Ridge(alpha=GRAVITY_STRENGTH).fit(rows, [item.gravity for item in data.items])


def fitted(told: Data, own: Data, model_id: str, *, graves: Data | None = None) -> model.Weights:
    """Fits all heads to sessions and examples; that of consequences to `graves`, if what is told grades none."""
    both = Data(
        items=[*told.items, *own.items],
        features=np.vstack([told.features, supposed(own, told)]),
        vectors=np.vstack([told.vectors, own.vectors]),
    )
    cue = LogisticRegression(C=STRENGTH, max_iter=3_000, class_weight="balanced").fit(both.features, both.cues)
    held = both[both.cues]
    wanted = np.array([CUE_KINDS.index(item.kinds[0]) for item in held.items])
    counts = np.bincount(wanted, minlength=len(CUE_KINDS))
    kind = LogisticRegression(C=KIND_STRENGTH, max_iter=3_000)
    mean = held.vectors.mean(axis=0)
    kind.fit(
        np.hstack([held.features, held.vectors * VECTOR_UNIT]),
        wanted,
        sample_weight=(counts[wanted] / counts.max()) ** -RARITY,
    )
    signs = len(names())
    weight = _grave(graves or told)
    return model.Weights(
        bias=float(cue.intercept_[0]) - TOO_SURE, cue=cue.coef_[0], threshold=THRESHOLD,
        weight_bias=float(weight.intercept_),
        weight=weight.coef_[:signs], weight_kinds=weight.coef_[signs:], kind_bias=kind.intercept_,
        kinds=kind.coef_[:, :signs], model_id=model_id, kind_vectors=kind.coef_[:, signs:] * VECTOR_UNIT, mean=mean,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a model told of turns that it had not seen."""

    wanted: NDArray[np.bool_]
    probabilities: Matrix
    kinds: Sequence[str]
    """The likeliest kind of each turn, were it a cue."""
    items: Sequence[Labelled]

    @property
    def called(self) -> NDArray[np.bool_]:
        """True for each turn that is taken for a cue."""
        return self.probabilities >= THRESHOLD

    def precision(self) -> float:
        """Returns the share of turns taken for cues that are some."""
        return float(self.wanted[self.called].mean())

    def recall(self) -> float:
        """Returns the share of cues that are found."""
        return float(self.called[self.wanted].mean())

    def f1(self) -> float:
        """Returns the harmonic mean of precision and recall."""
        return f1(self.wanted, self.called)

    def f1_at(self, share: float, wanted: float) -> float:
        """Returns the F1, were the share of cues among the turns another one."""
        hits = self.recall() * wanted
        false = float(self.called[~self.wanted].mean()) * (1 - wanted) if share < 1 else 0.0
        return 2 * hits / (hits + false + wanted)

    def kind_accuracy(self, *, first: bool = True) -> float:
        """Returns the share of cues whose kind is right: the first that is labelled, or any of them."""
        pairs = [(kind, item.kinds) for kind, item in zip(self.kinds, self.items, strict=True) if item.kinds]
        return float(np.mean([kind == known[0] if first else kind in known for kind, known in pairs]))


def f1(wanted: NDArray[np.bool_], called: NDArray[np.bool_]) -> float:
    """Returns the F1 of calls."""
    return 2 * float((wanted & called).sum()) / float(wanted.sum() + called.sum())


def applied(weights: model.Weights, data: Data, *, vectors: bool = True) -> tuple[Matrix, list[str]]:
    """Returns each turn's probability and likeliest kind."""
    probabilities = 1 / (1 + np.exp(-(weights.bias + data.features @ weights.cue)))
    known = data.vectors if vectors else np.repeat(weights.mean[None, :], len(data.items), axis=0)
    scores = weights.kind_bias + data.features @ weights.kinds.T + known @ weights.kind_vectors.T
    return probabilities, [CUE_KINDS[place] for place in scores.argmax(axis=1)]


def left_out(told: Data, own: Data, *, vectors: bool = True) -> Told:
    """Tells each session's turns by a fit without that session."""
    probabilities, kinds = np.zeros(len(told.items)), [""] * len(told.items)
    folds = GroupKFold(FOLDS).split(told.features, groups=[item.session for item in told.items])
    for seen, unseen in folds:
        found, likeliest = applied(fitted(told[seen], own, ""), told[unseen], vectors=vectors)
        probabilities[unseen] = found
        for place, kind in zip(unseen, likeliest, strict=True):
            kinds[place] = kind
    return Told(wanted=told.cues, probabilities=probabilities, kinds=kinds, items=told.items)


def grades(told: Data) -> float:
    """Returns the rank correlation of labelled consequences with those that a fit without their sessions tells."""
    data = graded(told)
    found = np.zeros(len(data.items))
    for seen, unseen in GroupKFold(FOLDS).split(data.features, groups=[item.session for item in data.items]):
        fit, rest = _grave(data[seen]), data[unseen]
        found[unseen] = fit.predict(_of_kinds(rest, [item.kinds[0] for item in rest.items]))
    return float(spearmanr(found, [item.gravity for item in data.items]).statistic)


def figures(told: Data, own: Data) -> Iterator[Figure]:
    """Measures left-out sessions, the baselines, and the quotes of the weights in use."""
    found = left_out(told, own)
    firsts = [item.kinds[0] for item in told.items if item.kinds]
    yield Figure(name="left-out sessions: F1 of cue or none", value=found.f1(), at_least=0.82)
    yield Figure(name="… precision", value=found.precision())
    yield Figure(name="… recall", value=found.recall())
    yield Figure(name="… kind accuracy", value=found.kind_accuracy(), at_least=0.8)
    yield Figure(name="… kind accuracy, any of a turn's kinds", value=found.kind_accuracy(first=False))
    bare = left_out(told, own, vectors=False)
    yield Figure(name="… kind accuracy without vectors", value=bare.kind_accuracy())
    yield Figure(name="baseline: everything is a cue, F1", value=f1(told.cues, np.ones(len(told.items), bool)))
    yield Figure(name="baseline: trigger words, F1 (as the issue states it)", value=TRIGGER_WORDS)
    share = max(map(firsts.count, CUE_KINDS)) / len(firsts)
    yield Figure(name="baseline: most frequent kind", value=share)
    alone = applied(fitted(own, own, "", graves=told), told)
    called = Told(wanted=told.cues, probabilities=alone[0], kinds=alone[1], items=told.items)
    yield Figure(name="fitted to the examples alone: F1", value=called.f1())
    yield Figure(name="… kind accuracy", value=called.kind_accuracy())
    yield Figure(name="rank correlation of consequences", value=grades(told))
    yield Figure(name="quotes that stand in their turns", value=quoted(told.items), at_least=1.0)


def by_language(told: Data, own: Data) -> Iterator[Figure]:
    """Measures the examples of each language but English by a fit without them."""
    spoken = np.array([row["language"] for row in _rows(EXAMPLES)])
    for language in sorted({*spoken} - {"en"}):
        rest = own[spoken == language]
        probabilities, kinds = applied(fitted(told, own[spoken != language], ""), rest)
        found = Told(wanted=rest.cues, probabilities=probabilities, kinds=kinds, items=rest.items)
        yield Figure(name=f"examples in {language}, fitted without them: F1", value=found.f1())
        yield Figure(name="… kind accuracy", value=found.kind_accuracy())


def unseen(folder: Path, told: Data) -> Iterator[Figure]:
    """Measures the weights in use on labelled sessions of other people."""
    items = sessions(folder)
    _, vectors = asyncio.run(_embedded([item.text for item in items]))
    data = Data(items=items, features=described(items), vectors=vectors)
    data = replace(data, features=supposed(data, told))
    probabilities, kinds = applied(model.weights(), data)
    found = Told(wanted=data.cues, probabilities=probabilities, kinds=kinds, items=items)
    yield Figure(name="unseen people: F1 of cue or none", value=found.f1(), at_least=0.72)
    yield Figure(name="… kind accuracy", value=found.kind_accuracy(), at_least=0.6)
    yield Figure(name="… were everything a cue", value=f1(data.cues, np.ones(len(items), bool)))
    yield Figure(name="… were cues as frequent as there", value=found.f1_at(float(data.cues.mean()), CUES_THERE))


def quoted(items: Sequence[Labelled]) -> float:
    """Returns the share of extracted cues whose quote stands in its turn, word for word."""
    logs = {item.session: item.turns for item in items}
    stands = [cue.quote in turns[cue.ordinal].text for turns in logs.values() for cue in extract(turns)]
    return float(np.mean(stands))


def write(weights: model.Weights) -> None:
    """Replaces the weights in use."""
    folder = Path(model.__file__).parent
    lines = ["# Fitted by `python -m benchmarks.cues --write`; the figures are in docs/cues.md.", "[cue]"]
    lines += [f"bias = {weights.bias:.3f}", f"threshold = {weights.threshold:.2f}", "", "[cue.features]"]
    lines += [f"{name} = {weight:.3f}" for name, weight in zip(names(), weights.cue, strict=True)]
    lines += ["", "[consequence]", f"bias = {weights.weight_bias:.3f}", "", "[consequence.kinds]"]
    lines += [f"{kind} = {weight:.3f}" for kind, weight in zip(CUE_KINDS, weights.weight_kinds, strict=True)]
    lines += ["", "[consequence.features]"]
    lines += [f"{name} = {weight:.3f}" for name, weight in zip(names(), weights.weight, strict=True)]
    for kind, bias, row in zip(CUE_KINDS, weights.kind_bias, weights.kinds, strict=True):
        lines += ["", f"[kinds.{kind}]", f"bias = {bias:.3f}", "", f"[kinds.{kind}.features]"]
        lines += [f"{name} = {weight:.3f}" for name, weight in zip(names(), row, strict=True)]
    (folder / model.WEIGHTS).write_text("\n".join(lines) + "\n", encoding="utf-8")
    np.savez_compressed(
        folder / model.KIND_VECTORS,
        model_id=np.array(weights.model_id),
        weights=weights.kind_vectors.astype(np.float16),
        mean=weights.mean.astype(np.float16),
    )
    model.weights.cache_clear()


def read(folder: Path) -> tuple[Data, Data, str]:
    """Reads the labelled sessions and the examples, and embeds them; returns the embedding model's id as well."""
    told, own = sessions(folder / LABELLED), examples()
    model_id, vectors = asyncio.run(_embedded([item.text for item in (*told, *own)]))
    number = len(told)
    return (
        Data(items=told, features=described(told), vectors=vectors[:number]),
        Data(items=own, features=described(own), vectors=vectors[number:]),
        model_id,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Fits if asked, measures and reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="replace the weights in use")
    parser.add_argument("--data", type=Path, default=SHARED_DATA)
    parser.add_argument("--unseen", type=Path, help="folder of labelled sessions of other people")
    parser.add_argument("--records", type=Path, nargs="*", default=[], help="folders of more decision records")
    given = parser.parse_args(arguments)
    told, own, model_id = read(given.data)
    if given.write:
        write(fitted(told, own, model_id))
    found = [*figures(told, own), *by_language(told, own), *(unseen(given.unseen, told) if given.unseen else ())]
    report("cues", [*found, *without_headings([RECORDS, *given.records])])


if __name__ == "__main__":
    main()
