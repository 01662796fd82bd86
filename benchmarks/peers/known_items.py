"""Known-item questions about report files: each is made of one chunk's words, and that chunk must come back.

The rule. A chunk gives questions of two sorts: its heading path, where it comes from Markdown; and each of a
judge's reasons in it, at least eight words long. A text that stands in more than one chunk makes no question, because
no answer could be called the right one; nor do two texts that come to the same paraphrase. Where there are more than
asked for, every n-th is taken, in the order of the files.

The paraphrase is that of `app/recall/retrieval/evaluation/questions.py`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from app.errors import InvalidInput
from app.foundation.models.tokens import BundledTokenCounter
from app.intake.reports.chunk import HEADING_SEPARATOR
from app.intake.reports.prepare import chunk_report
from app.intake.reports.scan import SUFFIXES
from app.recall.retrieval.evaluation.questions import reword_text
from benchmarks.peers.system import Memory

REASON = re.compile(r"(?m)^(?:[\w.]+\.)?reason(?:ing)?: (.+)$")
REASON_WORDS = 8
LEAST_WORDS = 4
"""Of a paraphrase: a shorter one asks for too little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, and the chunk that must come back."""

    exact: str
    paraphrased: str
    key: str


def chunks(folder: Path) -> list[Memory]:
    """Every chunk of the report files, as Priors' own chunker makes them; for every system the same."""
    counting = BundledTokenCounter()
    found: list[Memory] = []
    for path in sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES):
        uri = path.relative_to(folder).as_posix()
        try:
            made = chunk_report(PurePosixPath(uri), path.read_bytes(), counting)
        except InvalidInput:
            continue
        found += [
            Memory(
                key=f"{uri}#{ordinal}", kind="chunk", title=chunk.title, body=chunk.text, source=uri, ordinal=ordinal
            )
            for ordinal, chunk in enumerate(made)
        ]
    return found


def questions(memories: Sequence[Memory], most: int) -> list[Question]:
    """At most so many, spread evenly over the files."""
    found = [
        Question(exact=text, paraphrased=reword_text(text), key=memory.key)
        for memory in memories
        for text in dict.fromkeys(_askable(memory))
    ]
    chunk_texts = [memory.text.replace(HEADING_SEPARATOR, " ") for memory in memories]
    exact, other = Counter(item.exact for item in found), Counter(item.paraphrased for item in found)
    known = [
        item
        for item in found
        if exact[item.exact] == other[item.paraphrased] == 1
        and len(item.paraphrased.split()) >= LEAST_WORDS
        and sum(item.exact in text for text in chunk_texts) == 1
    ]
    return known[:: max(1, -(-len(known) // most))]


def _askable(memory: Memory) -> Iterator[str]:
    if memory.source.endswith(".md"):
        yield memory.title.replace(HEADING_SEPARATOR, " ")
    for reason in REASON.findall(memory.body):
        if len(reason.split()) >= REASON_WORDS:
            yield reason
