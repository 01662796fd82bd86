"""Trains the adapter of lessons of the default model, and writes it: it tells which sentences of a person are lessons.

The model reads a sentence with the end of the agent's turn before and with its own turn (`texts_to_read`), and gives
the log-odds that a reader called the sentence useful for later sessions. It is trained on the public logs of
`public_turns.jsonl`, and not on those of `public_turns_held_out.jsonl`, by which `python -m benchmarks.cues` fits the
signs beside it and judges both.

It needs PyTorch, which nothing else here needs: `pip install torch`. It takes half an hour on 2 quiet cores.
"""

import argparse
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch  # type: ignore[import-not-found]  # it is not among the requirements
import torch.nn.functional as F  # type: ignore[import-not-found]  # noqa: N812 - its usual name
from safetensors.torch import save_file

from app.foundation.models.encoder import ADAPTERS, HEAD
from app.foundation.models.protocols import LESSONS
from app.intake.sessions.transcript import USER
from app.recall.cues.signs import may_teach, spoken_turns, texts_to_read
from benchmarks import public_logs
from benchmarks.adapter import ADAPTED, Encoder

EPOCHS, RATE, HEAD_RATE, WARM_UP, BATCH = 2.5, 5e-4, 1e-3, 30, 32
RANK, FROZEN, TOKENS = 32, 1, 160
SHARPNESS = 10.0
"""Factor of the cosine with the head, so that unit vectors give odds of any size."""
DOUBT = 0.01
"""Wanted probability of a sentence that nobody called useful; that of a useful one is 1 less three times as much."""
PLAIN = 0.5
"""Share of the sentences without a sign that may teach, and that nobody called useful, which are trained on."""
BUCKET = 16
"""Batches whose texts are sorted by length together."""
SEED = 1


class Sentence(NamedTuple):
    """A sentence as the model reads it, and whether a reader called it useful."""

    text: str
    is_useful: bool


def sentences(folder: Path) -> Iterator[Sentence]:
    """Yields the sentences of the turns that were read, without half of those that nothing speaks for."""
    for row in public_logs.read():
        for item in spoken_turns(public_logs.turns_of(row, folder)):
            if item.turn.role != USER or item.turn.ordinal not in row["read"]:
                continue
            useful = row["useful"].get(str(item.turn.ordinal), ())
            for part, text in zip(item.sentences, texts_to_read([item]), strict=True):
                is_useful = public_logs.digest(part.text) in useful
                if is_useful or may_teach(part) or random.random() < PLAIN:
                    yield Sentence(text, is_useful)


def batches(given: Sequence[Sentence]) -> Iterator[Sequence[Sentence]]:
    """Yields batches of sentences of like length for ever."""
    while True:
        order = random.sample(given, len(given))
        for first in range(0, len(order), BATCH * BUCKET):
            part = sorted(order[first : first + BATCH * BUCKET], key=lambda item: len(item.text))
            found = [part[start : start + BATCH] for start in range(0, len(part), BATCH)]
            yield from random.sample(found, len(found))


def train(given: Sequence[Sentence]) -> tuple[Encoder, Any]:
    """Returns the encoder with its adapter, and the head, which are trained on these sentences."""
    encoder = Encoder(frozen=FROZEN, rank=RANK, scale=1.0, adapted=(*ADAPTED, "attention.self.key"), tokens=TOKENS)
    encoder.prepare([item.text for item in given])
    head, bias = (torch.randn(384) * 0.02).requires_grad_(), torch.zeros(1).requires_grad_()
    factors = [factor for both in encoder.factors.values() for factor in both]
    groups = [{"params": factors, "lr": RATE}, {"params": [head, bias], "lr": HEAD_RATE}]
    rates = [RATE, HEAD_RATE]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    steps = int(EPOCHS * len(given) / BATCH)
    for step, batch in zip(range(steps), batches(given), strict=False):
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * min(1, (step + 1) / WARM_UP) * max(0.02, 1 - step / steps)
        odds = SHARPNESS * encoder.embed([item.text for item in batch]) @ head + bias
        wanted = torch.tensor([float(item.is_useful) for item in batch]) * (1 - 4 * DOUBT) + DOUBT
        loss = F.binary_cross_entropy_with_logits(odds, wanted)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(factors, 1.0)
        optimizer.step()
        print(f"step {step + 1} of {steps}: loss {loss.item():.3f}", end="\r", flush=True)
    return encoder, SHARPNESS * head


def main() -> None:
    """Trains on the public logs and writes the adapter."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="clones of the repositories, each in OWNER/NAME")
    given = parser.parse_args()
    random.seed(SEED)
    torch.manual_seed(SEED)
    encoder, head = train(list(sentences(given.folder)))
    path = ADAPTERS[LESSONS]
    save_file({**encoder.stored(), HEAD: head.detach().to(torch.float16).reshape(-1, 1).contiguous()}, path)
    path.chmod(0o644)
    print(f"\nwritten to {path}: raise RULES (extracting.py) and _GRAPH_VERSION (bundled.py), and fit the signs anew")


if __name__ == "__main__":
    main()
