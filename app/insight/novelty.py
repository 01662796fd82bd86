"""The verb that measures how much texts add to the store: by meaning if there are vectors, else by words."""

import asyncio
from collections.abc import Mapping, Sequence
from statistics import fmean
from uuid import UUID

from msgspec import Struct

from app.errors import InvalidInput, check
from app.foundation.db.database import Database
from app.foundation.models.protocols import EmbeddingProvider, Vector
from app.foundation.text.data import unstorable
from app.foundation.values import frozen
from app.insight.novelty_scoring import NoveltyScore, Profile, passages, score_passage, shares, spread, tokens_about
from app.recall.retrieval.log import UnloggedRecall
from app.recall.retrieval.rank.presets import CLOSEST
from app.recall.retrieval.recall import VECTOR as VECTOR_ARM
from app.recall.retrieval.recall import Hit, Query
from app.recall.retrieval.service import Retrieval
from app.storage.index.following import OncePerText, provider_of_model
from app.storage.index.vectors import embedded_text
from app.storage.tenants.workspace import Workspace

_COMPARED = 12
"""Memories that a passage is compared with: the 6 nearest by each arm, or more if both arms find the same."""
_NEAREST = 5
"""Nearest memories that the answer names for each text."""
MOST_RESULTS = 100
LONGEST_RESULT = 20_000
"""Most characters of a text whose novelty is asked for."""
MOST_PASSAGES = 200
"""Passages that are compared in one call; embedding and searching for 200 takes 6 s on 2 cores."""
_LONGEST_COMPARED = 20_000
"""Characters of a memory that are compared."""
_SEARCHES_AT_ONCE = 2
"""Concurrent searches of one call: few, so that they do not delay the recalls of agents."""

VECTOR, LEXICAL = "vector", "lexical"


class Nearest(Struct, frozen=True, kw_only=True, rename={"memory_id": "id"}):
    """A memory that a text was compared with."""

    memory_id: UUID
    title: str
    similarity: float
    """From 0 (it has nothing in common with the text) to 1 (it says the same as a passage of the text)."""


@frozen
class ResultNovelty:
    """The novelty of one text."""

    novelty: float
    """From 0 (the whole text is stored already) to 1 (all of it is new)."""
    nearest: tuple[Nearest, ...]
    passages: int
    """Passages that the text has."""
    compared: int
    """Passages that were compared, evenly spread over the text."""


@frozen
class Novelty:
    """The novelty of several texts, each and all together."""

    novelty: float
    """The mean novelty of the texts, weighted by their lengths."""
    results: tuple[ResultNovelty, ...]
    path: str
    """VECTOR or LEXICAL: how they were compared."""
    degraded: str = ""
    """The reason why the vectors were not used, or not all of them."""


@frozen
class Novelties:
    """Says how much texts add to what is stored."""

    database: Database
    provider: EmbeddingProvider

    async def measure(
        self, workspace: Workspace, *, task: str, results: Sequence[str], known: Sequence[str] = ()
    ) -> Novelty:
        """Returns how much each of these texts adds, 0 to 1, with the nearest memories.

        A text adds what is neither in the workspace, nor in the `known` texts, nor in the results before it. A long
        text is compared passage by passage; its novelty is the mean of the passages', weighted by their lengths. The
        words, numbers and names of the task count neither for a text nor against it.

        Raises:
            InvalidInput: there are no texts or too many, or a text is empty or too long.
            DatabaseUnavailable: the database does not answer.
        """
        _check(task, results, known)
        parts, others = await asyncio.to_thread(lambda: (_parts(results), _parts(known)))
        chosen, heard = (list(dict.fromkeys(text for part in some for text in part.chosen)) for some in (parts, others))
        unique = list(dict.fromkeys((*chosen, *heard)))
        embedding = OncePerText(provider_of_model(self.provider, self.provider.model_id) or self.provider)
        if embedding.enabled:
            await embedding.embed_first(unique)
        retrieval = Retrieval(database=self.database, provider=embedding, mask_secrets=False)
        found = await _nearest_memories(retrieval, workspace, chosen)
        reasons = [item for finding in found.values() for item in finding.degraded if item.arm == VECTOR_ARM]
        path = LEXICAL if any(item.silent for item in reasons) else VECTOR
        vectors = {text: await embedding.embed_query(text) for text in unique} if path == VECTOR else {}
        comparison = _PassageComparison(found, vectors, Profile(task))
        judged = await asyncio.to_thread(comparison.judge_passages, parts, heard)
        return Novelty(
            novelty=fmean([item.novelty for item in judged], [tokens_about(text) for text in results]),
            results=tuple(judged),
            path=path,
            degraded=next((item.reason for item in reasons if item.silent or path == VECTOR), ""),
        )


def _check(task: str, results: Sequence[str], known: Sequence[str]) -> None:
    if not results:
        raise InvalidInput("results", "needs a text")
    for name, texts in (("results", results), ("known", known)):
        if len(texts) > MOST_RESULTS:
            raise InvalidInput(name, f"at most {MOST_RESULTS} texts are taken")
        for place, text in enumerate(texts):
            if not text.strip() or len(text) > LONGEST_RESULT:
                raise InvalidInput(f"{name}[{place}]", f"has 1 to {LONGEST_RESULT:,} characters that say something")
        check(unstorable({name: list(texts), "task": task}))


@frozen
class _Parts:
    """A text's passages: their number, and those that are compared."""

    total: int
    chosen: tuple[str, ...]


def _parts(results: Sequence[str]) -> list[_Parts]:
    found = [passages(text) for text in results]
    counts = shares([len(item) for item in found], MOST_PASSAGES)
    return [
        _Parts(total=len(item), chosen=tuple(spread(item, count))) for item, count in zip(found, counts, strict=True)
    ]


async def _nearest_memories(
    retrieval: Retrieval, workspace: Workspace, chosen: Sequence[str]
) -> dict[str, UnloggedRecall]:
    """Returns, for each passage, the memories that are nearest to it, regardless of their scores and ratings."""

    async def one(passage: str) -> UnloggedRecall:
        query = Query(text=passage, k=_COMPARED, preset=CLOSEST.name, purpose="novelty")
        # This recall is not logged.
        return await retrieval.find(workspace, query)

    found: dict[str, UnloggedRecall] = {}
    for start in range(0, len(chosen), _SEARCHES_AT_ONCE):
        some = chosen[start : start + _SEARCHES_AT_ONCE]
        found |= zip(some, await asyncio.gather(*map(one, some)), strict=True)
    return found


class _PassageComparison:
    """Compares passages with the memories found for them and with texts; makes the profile of each only once."""

    def __init__(self, found: Mapping[str, UnloggedRecall], vectors: Mapping[str, Vector], task: Profile) -> None:
        """`vectors` are of all passages and texts; empty to compare by words."""
        self._found, self._vectors, self._task = found, vectors, task
        self._profiles: dict[UUID | str, Profile] = {}

    def judge_passages(self, parts: Sequence[_Parts], known: Sequence[str]) -> list[ResultNovelty]:
        """Returns the novelty of each text; the passages of a text are known to the texts after it."""
        heard = dict.fromkeys(known)
        judged = []
        for part in parts:
            scores = [self._score(passage, list(heard)) for passage in part.chosen]
            weights = [tokens_about(passage) for passage in part.chosen]
            hits = [self._found[passage].hits for passage in part.chosen]
            judged.append(
                ResultNovelty(
                    novelty=fmean([item.novelty for item in scores], weights),
                    nearest=_nearest(list(zip(hits, scores, strict=True))),
                    passages=part.total,
                    compared=len(part.chosen),
                )
            )
            heard |= dict.fromkeys(part.chosen)
        return judged

    def _score(self, passage: str, heard: Sequence[str]) -> NoveltyScore:
        """Compares one passage with its memories, and with as many of the texts, those nearest to it."""
        hits = self._found[passage].hits
        others = self._nearest_of(passage, heard)
        memories = [
            self._profile(hit.memory.memory_id, embedded_text(hit.title, hit.body)[:_LONGEST_COMPARED]) for hit in hits
        ]
        by_meaning = [hit.explain["similarity"] if self._vectors else None for hit in hits]
        return score_passage(
            self._profile(passage, passage),
            [*memories, *(self._profile(text, text) for text, _ in others)],
            [*by_meaning, *(similarity for _, similarity in others)],
            self._task,
        )

    def _nearest_of(self, passage: str, heard: Sequence[str]) -> list[tuple[str, float | None]]:
        if self._vectors:
            own = self._vectors[passage]
            similar = [(text, float(own @ self._vectors[text])) for text in heard]
            return sorted(similar, key=lambda item: -item[1])[:_COMPARED]  # type: ignore[return-value]  # none is None
        words = set(self._profile(passage, passage).content)
        shared = {text: len(words.intersection(self._profile(text, text).content)) for text in heard}
        return [(text, None) for text in sorted(heard, key=lambda text: -shared[text])[:_COMPARED]]

    def _profile(self, key: UUID | str, text: str) -> Profile:
        if key not in self._profiles:
            self._profiles[key] = Profile(text)
        return self._profiles[key]


def _nearest(judged: Sequence[tuple[Sequence[Hit], NoveltyScore]]) -> tuple[Nearest, ...]:
    best: dict[UUID, Nearest] = {}
    for hits, score in judged:
        for hit, share in zip(hits, score.shares, strict=False):  # the other shares are of texts
            item = Nearest(memory_id=hit.memory.memory_id, title=hit.title, similarity=1 - share)
            if item.memory_id not in best or item.similarity > best[item.memory_id].similarity:
                best[item.memory_id] = item
    return tuple(sorted(best.values(), key=lambda item: (-item.similarity, item.memory_id))[:_NEAREST])
