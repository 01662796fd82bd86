"""Measures the wording of decision records (ADRs) without their headings."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from app.recall.cues.extraction.sections import ALTERNATIVES, DECIDED, META, STATUS, blocks_of, by_wording, quote_in
from benchmarks.figures import Figure


def without_headings(folders: Sequence[Path]) -> Iterator[Figure]:
    """Measures the wording alone on decision records: their headings are taken away and tell what is right."""
    records = [path.read_text(encoding="utf-8") for folder in folders for path in sorted(folder.rglob("*.md"))]
    read = [
        (title, [block for block in blocks if block.role not in {STATUS, META}])
        for title, blocks in map(blocks_of, records)
    ]
    told = [
        (blocks, by_wording(title, blocks)) for title, blocks in read if DECIDED in {block.role for block in blocks}
    ]
    pairs = [pair for blocks, called in told for pair in zip(blocks, called, strict=True)]
    yield Figure(name="decision records without their headings", value=len(told))
    for role in (DECIDED, ALTERNATIVES):
        wanted = np.array([block.role == role for block, _ in pairs])
        called = np.array([block.role == role for _, block in pairs])
        if not wanted.any():
            continue
        yield Figure(name=f"… paragraphs of the {role}", value=int(wanted.sum()))
        yield Figure(name="… … precision", value=float(wanted[called].mean()))
        yield Figure(name="… … recall", value=float(called[wanted].mean()))
        yield Figure(name="… … precision, were every paragraph called so", value=float(wanted.mean()))
    quotes = [(quote_in(called), blocks) for blocks, called in told]
    stands = [any(quote in block.text for block in blocks if block.role == DECIDED) for quote, blocks in quotes]
    yield Figure(name="… records whose quoted sentence stands under Decision", value=float(np.mean(stands)))
