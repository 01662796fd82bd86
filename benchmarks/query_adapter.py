"""Trains the adapter of the default model's queries, and writes it.

The vector of a request comes near that of the passage that answers it, also where both share no word: as a task, or as
a prompt with a role, limits and distractions. The vectors of documents stay as they are, so nothing stored is embedded
again. The requests are invented, 4,320 on 36 subjects and 559 on 20 conversations; the real and the invented report
trees that other benchmarks ask are not among them.

It needs PyTorch, which nothing else here needs: `pip install torch`. It takes 5 to 15 minutes on 2 cores.
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch  # type: ignore[import-not-found]  # it is not among the requirements
import torch.nn.functional as F  # type: ignore[import-not-found]  # noqa: N812 - its usual name

from app.foundation.models.encoder import QUERY_ADAPTER
from app.foundation.models.local import LocalProvider
from app.intake.reports.chunk import HEADING_SEPARATOR
from app.storage.index.vectors import embedded_text
from benchmarks.adapter import Encoder, Tensor
from benchmarks.stage import SHARED_DATA

REQUESTS, CHATS = SHARED_DATA / "requests-train" / "requests.jsonl", SHARED_DATA / "chats-train" / "chats.jsonl"
STYLES = ("keywords", "question", "question2", "task", "prompt")
LEFT_OUT = 6, 3
"""Subjects and conversations that `--left-out` keeps for judging."""
EPOCHS, RATE, WARM_UP, BATCH = 1.2, 1e-3, 20, 48
"""After one epoch the requests of left-out subjects are answered best; after three, worse again."""
SHARPNESS, ANCHOR = 20.0, 30.0
"""Factor of the cosines in the loss, and weight of the mean square by which they differ from the default model's."""
TOKENS = 128
"""Tokens of a request that are read in training."""
SEED = 0


class Asked(NamedTuple):
    """A request, and the numbers of the documents that answer it."""

    text: str
    answers: Sequence[int]
    style: str
    subject: str


def read_requests(documents: list[str]) -> Iterator[Asked]:
    """Yields the requests on reports, and appends each passage and one that only looks like it to `documents`."""
    for line in REQUESTS.read_text(encoding="utf-8").splitlines():
        row: Mapping[str, str] = json.loads(line)
        title = HEADING_SEPARATOR.join([Path(row["path"]).stem, *filter(None, row["heading"].split(" > "))])
        answer = len(documents)
        documents += [embedded_text(title, row["passage"]), embedded_text(title, row["near"])]
        yield from (Asked(row[style], [answer], style, row["domain"]) for style in STYLES)


def read_chats(documents: list[str]) -> Iterator[Asked]:
    """Yields the questions on conversations, and appends the turns of these to `documents`."""
    for line in CHATS.read_text(encoding="utf-8").splitlines():
        chat: Mapping[str, Any] = json.loads(line)
        places: dict[str, int] = {}
        for turn in (turn for session in chat["sessions"] for turn in session["turns"]):
            places[turn["id"]] = len(documents)
            documents.append(embedded_text(turn["speaker"], turn["text"]))
        for question in chat["questions"]:
            if answers := [places[name] for name in question["evidence"] if name in places]:
                yield Asked(question["question"], answers, "chat", chat["id"])


def train(encoder: Encoder, asked: Sequence[Asked], documents: Tensor) -> None:
    """Trains the adapter: each request's documents among all documents."""
    encoder.prepare([item.text for item in asked])
    before = _embedded(encoder, asked)
    factors = [factor for both in encoder.factors.values() for factor in both]
    optimizer = torch.optim.AdamW(factors, lr=RATE, weight_decay=0.01)
    steps = int(EPOCHS * len(asked) / BATCH)
    for step, batch in zip(range(steps), _batches(len(asked)), strict=False):
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / WARM_UP) * max(0.02, 1 - step / steps)
        optimizer.zero_grad()
        cosines = encoder.embed([asked[place].text for place in batch]) @ documents.T
        loss = _loss(cosines, [asked[place].answers for place in batch])
        loss = loss + ANCHOR * (cosines - before[batch] @ documents.T).square().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(factors, 1.0)
        optimizer.step()
        print(f"step {step + 1} of {steps}: loss {loss.item():.3f}", end="\r", flush=True)


def _batches(count: int) -> Iterator[list[int]]:
    while True:
        order = random.sample(range(count), count)
        yield from (order[first : first + BATCH] for first in range(0, count - BATCH + 1, BATCH))


def _loss(cosines: Tensor, answers: Sequence[Sequence[int]]) -> Tensor:
    """Returns the cross-entropy of the answers among all documents; one of several answers is enough."""
    right = torch.zeros_like(cosines, dtype=torch.bool)
    for row, places in zip(right, answers, strict=True):
        row[list(places)] = True
    likely = torch.logsumexp((SHARPNESS * cosines).masked_fill(~right, -1e9), 1)
    return (torch.logsumexp(SHARPNESS * cosines, 1) - likely).mean()


def _embedded(encoder: Encoder, asked: Sequence[Asked]) -> Tensor:
    texts = [item.text for item in asked]
    with torch.no_grad():
        return torch.cat([encoder.embed(texts[first : first + BATCH]) for first in range(0, len(texts), BATCH)])


def reciprocal_ranks(encoder: Encoder, asked: Sequence[Asked], documents: Tensor) -> dict[str, float]:
    """Returns the mean of 1 ÷ the rank of the best answer among all documents, by the style of the request."""
    encoder.prepare([item.text for item in asked])
    found: dict[str, list[float]] = defaultdict(list)
    for item, cosines in zip(asked, _embedded(encoder, asked) @ documents.T, strict=True):
        rank = 1 + int((cosines > cosines[list(item.answers)].max()).sum())
        found[item.style].append(1 / rank)
    return {style: round(statistics.mean(values), 3) for style, values in found.items()}


async def _embed_documents(documents: Sequence[str]) -> Tensor:
    with tempfile.TemporaryDirectory(prefix="priors-model-") as folder:
        provider = LocalProvider(Path(folder))
        try:
            return F.normalize(torch.tensor(await provider.embed_documents(documents)), dim=1)
        finally:
            await provider.close()


def main() -> None:
    """Trains on all requests and writes the adapter; or leaves some out, and prints what it brings there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--left-out", action="store_true", help="judge on subjects left out; nothing is written")
    options = parser.parse_args()
    if not REQUESTS.exists():
        print(f"{REQUESTS} is absent: nothing is trained", file=sys.stderr)
        return
    random.seed(SEED)
    torch.manual_seed(SEED)
    texts: list[str] = []
    on_reports, on_chats = list(read_requests(texts)), list(read_chats(texts))
    documents = asyncio.run(_embed_documents(texts))
    unseen: set[str] = set()
    if options.left_out:
        for items, count in zip((on_reports, on_chats), LEFT_OUT, strict=True):
            unseen |= set(random.sample(sorted({item.subject for item in items}), count))
    encoder = Encoder(precision=torch.float32, tokens=TOKENS)
    judged = [item for item in (*on_reports, *on_chats) if item.subject in unseen]
    if judged:
        print("before:", reciprocal_ranks(encoder, judged, documents))
    train(encoder, [item for item in (*on_reports, *on_chats) if item.subject not in unseen], documents)
    if judged:
        print("\nafter:", reciprocal_ranks(encoder, judged, documents))
        return
    encoder.write(QUERY_ADAPTER)
    print(f"\nwritten to {QUERY_ADAPTER}: raise _GRAPH_VERSION (bundled.py)")


if __name__ == "__main__":
    main()
