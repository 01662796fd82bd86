"""Trains the adapter of plans of the default model on plans and the lessons that apply to them, and writes it.

The vector of a plan comes near those of the lessons that apply to it, and the vector of a lesson near the plans that it
applies to and away from those that only look like them. The pairs are invented (`benchmarks/pairs`). What the adapter
brings is measured on sets that it has not seen: `python -m benchmarks.activation --fit`, or here with `--without`.

It needs PyTorch, which nothing else here needs: `pip install torch`. It takes 5 to 15 minutes on 2 cores.
"""

import argparse
import json
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch  # type: ignore[import-not-found]  # it is not among the requirements
import torch.nn.functional as F  # type: ignore[import-not-found]  # noqa: N812 - its usual name
from safetensors.torch import load_file, save_file
from sklearn.metrics import average_precision_score  # type: ignore[import-untyped]  # the package has no types

from app.foundation.models.bundled import installed_weights
from app.foundation.models.encoder import ADAPTERS
from app.foundation.models.protocols import PLANS
from app.foundation.models.tokens import MINILM, load_tokenizer
from app.recall.cues.cue import cue_text

PAIRS = Path(__file__).with_name("pairs")
LAYERS, HEADS = 6, 12
FROZEN, RANK, SCALE = 3, 16, 2.0
ADAPTED = (
    "attention.self.query",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
EPOCHS, RATE, WARM_UP, BATCH = 1.4, 1.5e-3, 20, 32
SHARPNESS = 20.0
"""Factor of the cosines in the loss."""
LESSON_ALONE = 0.3
"""Share of the pairs whose lesson stands without its trigger."""
TOKENS, TEXTS_AT_ONCE = 80, 48
"""Tokens of a text that are read in training, where texts are short; the service reads the model's whole window."""
SEED = 0

Tensor = Any
Weights = Mapping[str, Tensor]


class Pair(NamedTuple):
    """A plan, a lesson that applies to it, plans that only look as if it did, and plans and requests of its project to
    which no lesson applies."""

    plan: str
    lesson: str
    trigger: str
    near: Sequence[str]
    silent: Sequence[str]
    key: str
    """The lesson's own name: two pairs may have one lesson."""

    @property
    def together(self) -> str:
        """The text of the lesson's cue."""
        return cue_text(self.trigger, self.lesson)


def read_pairs(path: Path) -> list[Pair]:
    """Returns the pairs of a set."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    silent = {row["project"]: [*row["everyday"], *row["requests"]] for row in rows if "everyday" in row}
    return [
        Pair(plan, row["lesson"], row["trigger"], row["near"], silent[row["project"]], f"{row['project']}/{row['id']}")
        for row in rows
        if "lesson" in row
        for plan in (*row["same"], *row["other"])
    ]


class Encoder:
    """The default model with an adapter in its upper layers."""

    def __init__(
        self,
        *,
        frozen: int = FROZEN,
        rank: int = RANK,
        scale: float = SCALE,
        adapted: Sequence[str] = ADAPTED,
        tokens: int = TOKENS,
    ) -> None:
        """`frozen` lower layers stay as they are: their output is computed once for each text, of so many tokens."""
        path = installed_weights()
        assert path is not None, "the package of the weights is not installed"  # noqa: S101
        self._frozen, self._scale, self._tokens = frozen, scale, tokens
        self.weights: Weights = {name: value.float() for name, value in load_file(path).items()}
        names = [f"encoder.layer.{layer}.{name}.weight" for layer in range(frozen, LAYERS) for name in adapted]
        self.factors = {name: _new_factors(self.weights[name], rank) for name in names}
        self._tokenizer = load_tokenizer(MINILM / "tokenizer.json")
        self._lower: dict[str, Tensor] = {}

    def prepare(self, texts: Sequence[str]) -> None:
        """Computes what the frozen layers make of texts."""
        missing = sorted({text for text in texts if text not in self._lower}, key=len)
        with torch.no_grad():
            for first in range(0, len(missing), TEXTS_AT_ONCE):
                part = missing[first : first + TEXTS_AT_ONCE]
                tokens = [torch.tensor(self._cut(item.ids)) for item in self._tokenizer.encode_batch(part)]
                padded, mask = _padded([self._embedded(item) for item in tokens])
                found = self._layers(padded, mask, range(self._frozen))
                for text, row, item in zip(part, found, tokens, strict=True):
                    self._lower[text] = row[: len(item)].to(torch.bfloat16)

    def embed(self, texts: Sequence[str]) -> Tensor:
        """Returns the vectors of prepared texts, of unit length."""
        padded, mask = _padded([self._lower[text].float() for text in texts])
        kept = mask[..., None].float()
        return F.normalize((self._layers(padded, mask, range(self._frozen, LAYERS)) * kept).sum(1), dim=1)

    def stored(self) -> dict[str, Tensor]:
        """Returns the factors as the service reads them."""
        found = {f"{name}.up": self._scale * up for name, (up, _) in self.factors.items()}
        found |= {f"{name}.down": down for name, (_, down) in self.factors.items()}
        return {name: value.detach().to(torch.float16).contiguous() for name, value in found.items()}

    def _cut(self, ids: Sequence[int]) -> Sequence[int]:
        return ids if len(ids) <= self._tokens else [*ids[: self._tokens - 1], ids[-1]]

    def _embedded(self, tokens: Tensor) -> Tensor:
        own = self.weights
        summed = (
            own["embeddings.word_embeddings.weight"][tokens]
            + own["embeddings.position_embeddings.weight"][: len(tokens)]
        )
        return self._normalised(summed + own["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")

    def _layers(self, tokens: Tensor, mask: Tensor, layers: range) -> Tensor:
        barred = torch.where(mask[:, None, None] == 0, -1e9, 0.0).to(torch.bfloat16)
        with torch.autocast("cpu", torch.bfloat16):
            for layer in layers:
                name = f"encoder.layer.{layer}."
                heads = [
                    self._linear(tokens, f"{name}attention.self.{part}").unflatten(-1, (HEADS, -1)).transpose(1, 2)
                    for part in ("query", "key", "value")
                ]
                read = F.scaled_dot_product_attention(*heads, attn_mask=barred).transpose(1, 2).flatten(2)
                attended = tokens.float() + self._linear(read, f"{name}attention.output.dense")
                attended = self._normalised(attended, f"{name}attention.output.LayerNorm")
                wide = F.gelu(self._linear(attended, f"{name}intermediate.dense"))
                tokens = self._normalised(
                    attended.float() + self._linear(wide, f"{name}output.dense"), f"{name}output.LayerNorm"
                )
        return tokens.float()

    def _linear(self, value: Tensor, name: str) -> Tensor:
        found = F.linear(value, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])
        if (factors := self.factors.get(f"{name}.weight")) is None:
            return found
        up, down = factors
        return found + self._scale * F.linear(F.linear(value, down), up)

    def _normalised(self, value: Tensor, name: str) -> Tensor:
        return F.layer_norm(
            value, value.shape[-1:], self.weights[f"{name}.weight"], self.weights[f"{name}.bias"], 1e-12
        )


def _new_factors(matrix: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    rows, columns = matrix.shape
    down = (torch.randn(rank, columns) / math.sqrt(columns)).requires_grad_()
    return torch.zeros(rows, rank).requires_grad_(), down


def _padded(rows: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    mask = torch.nn.utils.rnn.pad_sequence([torch.ones(len(row), dtype=torch.long) for row in rows], batch_first=True)
    return padded, mask


def train(encoder: Encoder, pairs: Sequence[Pair], *, report: Callable[[int, int, float], None]) -> None:
    """Trains the adapter."""
    encoder.prepare(
        [text for pair in pairs for text in (pair.plan, pair.lesson, pair.together, *pair.near, *pair.silent)]
    )
    factors = [factor for both in encoder.factors.values() for factor in both]
    optimizer = torch.optim.AdamW(factors, lr=RATE, weight_decay=0.01)
    steps = int(EPOCHS * (len(pairs) // BATCH))
    for step, batch in zip(range(steps), _batches(pairs), strict=False):
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / WARM_UP) * max(0.02, 1 - step / steps)
        optimizer.zero_grad()
        loss = _loss(encoder, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(factors, 1.0)
        optimizer.step()
        report(step + 1, steps, loss.item())


def _batches(pairs: Sequence[Pair]) -> Iterator[Sequence[Pair]]:
    while True:
        order = random.sample(pairs, len(pairs))
        yield from (order[first : first + BATCH] for first in range(0, len(order) - BATCH + 1, BATCH))


def _loss(encoder: Encoder, batch: Sequence[Pair]) -> Tensor:
    """Returns the sum of two cross-entropies.

    One is that of each plan's lesson among the lessons of the batch. The other is that of each lesson's plan among the
    plans of the batch, and twice as many texts to which it does not apply: near misses and silent ones.
    """
    others = [random.choice(texts) for pair in batch for texts in (pair.near, pair.silent)]
    found = encoder.embed([*(pair.plan for pair in batch), *others])
    plans, other_plans = found[: len(batch)], found[len(batch) :]
    lessons = encoder.embed([pair.lesson if random.random() < LESSON_ALONE else pair.together for pair in batch])
    same = torch.tensor([[one.key == other.key for other in batch] for one in batch])
    barred = torch.where(same & ~torch.eye(len(batch), dtype=torch.bool), -1e9, 0.0)
    right = torch.arange(len(batch))
    of_plans = F.cross_entropy(SHARPNESS * plans @ lessons.T + barred, right)
    among = torch.cat([SHARPNESS * lessons @ plans.T + barred, SHARPNESS * lessons @ other_plans.T], dim=1)
    return of_plans + F.cross_entropy(among, right)


def average_precision(encoder: Encoder, pairs: Sequence[Pair]) -> float:
    """Returns the average precision of the cosines of all plans of a set with all its lessons."""
    lessons = {pair.key: pair.together for pair in pairs}
    plans = {pair.plan: pair.key for pair in pairs} | {
        plan: "" for pair in pairs for plan in (*pair.near, *pair.silent)
    }
    encoder.prepare([*lessons.values(), *plans])
    with torch.no_grad():
        cosines = encoder.embed([*plans]) @ encoder.embed([*lessons.values()]).T
    right = np.array([[key == plan for key in lessons] for plan in plans.values()])
    return float(average_precision_score(right.ravel(), cosines.numpy().ravel()))


def main() -> None:
    """Trains on all sets and writes the adapter; or leaves one out, and prints what the adapter brings there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without", metavar="SET", help="a set to leave out and to judge by; nothing is written")
    options = parser.parse_args()
    random.seed(SEED)
    torch.manual_seed(SEED)
    sets = {path.stem: read_pairs(path) for path in sorted(PAIRS.glob("*.jsonl"))}
    unseen = sets.pop(options.without, [])
    encoder = Encoder()
    if unseen:
        print(f"{options.without}, average precision before: {average_precision(encoder, unseen):.3f}")
    train(
        encoder,
        [pair for pairs in sets.values() for pair in pairs],
        report=lambda step, steps, loss: print(f"step {step} of {steps}: loss {loss:.3f}", end="\r", flush=True),
    )
    if unseen:
        print(f"\n{options.without}, average precision after: {average_precision(encoder, unseen):.3f}")
        return
    save_file(encoder.stored(), ADAPTERS[PLANS])
    ADAPTERS[PLANS].chmod(0o644)
    print(f"\nwritten to {ADAPTERS[PLANS]}: raise VECTORS_VERSION (cue.py) and _GRAPH_VERSION (bundled.py)")


if __name__ == "__main__":
    main()
