"""The contract of memory backends, as one state machine: hypothesis makes up calls, and a model says what must hold.

What depends on how a backend ranks is stated as laws: hits are live, of the workspace, at most k, with all asked tags,
each once; an exact copy is found, or one with the same words, and nothing that shares no word with it comes before it.
"""

import os
import re
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from priors_client import Entry, MemoryBackend, NotAccepted
from priors_client.entries import CONTENT_LIMIT, CONTEXT_LIMIT, LARGEST_K, QUERY_LIMIT, TAG_LIMIT, TAGS_LIMIT

EXAMPLES, STEPS = (int(part) for part in os.environ.get("CONTRACT", "3x20").split("x"))
"""Sequences of calls and the calls of each. By hand: `CONTRACT=50x50 pytest tests/client/test_backends.py`."""

WORDS = (
    "beam", "harbor", "copper", "lantern", "quartz", "velvet", "orchid", "tariff", "naïve", "молоко", "東京",
    "ÅNGSTRÖM", "🦊",
)  # fmt: skip
"""None is a stop word or has the stem of another, and neither has a sentence of them a date or a secret."""
TAGS = ("red", "Red", "two words", "ünï, 東", 'q"uo%te')
CONTEXTS = ("", "a run said so", "der Nutzer hat es bestätigt", "line\nbreak", '{"json": true}', "🦊")
WORD = re.compile(r"\w+")

sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=7).map(" ".join).filter(WORD.search)
some_tags = st.lists(st.sampled_from(TAGS), min_size=1, max_size=3)
tags: st.SearchStrategy[list[str]] = st.just([]) | some_tags
contexts = st.just("") | st.sampled_from(CONTEXTS)
counts = st.sampled_from((1, 2, 3, 10, LARGEST_K))
mosts = st.sampled_from((None, 0, 1))
places = st.just(-1) | st.integers(0, 40)
oddities = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=60)
"""Texts that a backend may find not worth keeping."""
REFUSED: dict[str, dict[str, Any]] = {
    "an empty content": {"content": ""},
    "a blank content": {"content": " \n\t "},
    "a content that is too long": {"content": "x" * (CONTENT_LIMIT + 1)},
    "NUL": {"content": "half \0 way"},
    "half of a surrogate pair": {"content": "half \ud800 pair"},
    "half of a surrogate pair in the context": {"content": "beam", "context": "half \ud800 pair"},
    "a context that is too long": {"content": "beam", "context": "x" * (CONTEXT_LIMIT + 1)},
    "half of a surrogate pair in a tag": {"content": "beam", "tags": ["half \ud800 pair"]},
    "an empty tag": {"content": "beam", "tags": [""]},
    "a tag that is too long": {"content": "beam", "tags": ["x" * (TAG_LIMIT + 1)]},
    "a text for tags": {"content": "beam", "tags": "beam"},
    "too many tags": {"content": "beam", "tags": [f"tag {number}" for number in range(TAGS_LIMIT + 1)]},
}
"""Arguments of `store` that no backend takes, by what is wrong with them."""
NO_QUERIES = {
    "an empty query": "",
    "a blank query": " \n",
    "half of a surrogate pair": "half \ud800 pair",
    "NUL": "half \0 way",
    "a query that is too long": "x" * (QUERY_LIMIT + 1),
}
LONG_AGO, FAR_AWAY = datetime(1999, 1, 1), datetime(2999, 1, 1)  # noqa: DTZ001 - a moment without a zone is in UTC


class ContractBroken(AssertionError):
    """A backend does not do what the contract says."""


def law(holds: bool, text: str) -> None:  # noqa: FBT001 - as `assert` takes it
    """Raises ContractBroken with the text of the law if it does not hold."""
    if not holds:
        raise ContractBroken(text)


def refused(argument: str, call: Callable[[], object]) -> None:
    """Checks that a backend does not accept a call, and names the argument."""
    try:
        call()
    except NotAccepted as error:
        law(str(error).startswith(f"{argument}: "), f"an error names the argument {argument}")
    else:
        raise ContractBroken(f"the argument {argument} is checked")


class Kept(NamedTuple):
    """An entry as the model knows it."""

    id: UUID
    content: str
    context: str
    tags: tuple[str, ...]
    accesses: int


class Subject(NamedTuple):
    """A kind of backend under test."""

    opened: Callable[[ExitStack], tuple[MemoryBackend, MemoryBackend]]
    """Opens backends in two new workspaces, and has the stack close them."""
    settle: Callable[[], object] = lambda: None
    """Does the work that a service does later: counting accesses."""


def words(text: str) -> frozenset[str]:
    return frozenset(WORD.findall(text.casefold()))


class Contract(RuleBasedStateMachine):
    """Calls a backend and a model of it."""

    subject: Subject
    contents = Bundle("contents")

    @initialize(target=contents, given=st.dictionaries(sentences, tags, min_size=3, max_size=6))
    def begin(self, given: dict[str, list[str]]) -> Any:
        self.stack = ExitStack()
        self.backend, self.elsewhere = self.subject.opened(self.stack)
        self.kept: dict[str, Kept] = {}
        """In the order in which they were stored."""
        self.gone: set[UUID] = set()
        self.times: dict[UUID, datetime] = {}
        return multiple(*(content for content, tags in given.items() if self.store([content], "", tags)))

    def teardown(self) -> None:
        self.stack.close()

    # Calls.

    @rule(target=contents, given=st.lists(sentences, min_size=1, max_size=4, unique=True), context=contexts, tags=tags)
    def store_some(self, given: list[str], context: str, tags: list[str]) -> Any:
        return multiple(*self.store(given, context, tags))

    @rule(content=contents, context=contexts, tags=tags)
    def store_once_more(self, content: str, context: str, tags: list[str]) -> None:
        self.stored(content, context, tags, self.backend.store(content, context=context, tags=tags))

    @rule(content=oddities, context=oddities, tag=oddities)
    def store_an_oddity(self, content: str, context: str, tag: str) -> None:
        try:
            found = self.backend.store(content, context=context, tags=[tag])
        except NotAccepted:
            return
        self.stored(content, context, [tag], found)

    @rule(name=st.sampled_from(sorted(REFUSED)))
    def store_what_nobody_takes(self, name: str) -> None:
        content, context, tags = (REFUSED[name].get(part, "") for part in ("content", "context", "tags"))
        wrong = next(part for part in ("tags", "context", "content") if part in REFUSED[name])
        refused(wrong, lambda: self.backend.store(content, context=context, tags=tags or ()))

    @rule(query=sentences, k=counts, tags=tags)
    def search(self, query: str, k: int, tags: list[str]) -> None:
        self.searched(query, k, tags)

    @rule(content=contents, wanted=some_tags)
    def search_by_tags(self, content: str, wanted: list[str]) -> None:
        self.searched(content, LARGEST_K, wanted)

    @rule(content=contents, k=counts, counted=st.booleans())
    def search_a_copy(self, content: str, k: int, counted: bool) -> None:  # noqa: FBT001 - hypothesis names it
        if content not in self.kept:
            return
        hits = [hit.content for hit in self.searched(content, k, [])]
        before = hits[: hits.index(content)] if content in hits else hits
        law(all(words(hit) & words(content) for hit in before), "no stranger comes before an exact copy")
        related = [one for one in self.kept if words(one) & words(content)]
        if k >= len(related):
            law(any(words(hit) == words(content) for hit in hits), "a copy is found")
        if counted:
            self.count()

    @rule(k=counts)
    def recent(self, k: int) -> None:
        found = [one.id for one in self.backend.recent(k)]
        law(len(found) <= k, "no list is longer than k")
        law(found == [one.id for one in self.newest()][:k], "recent entries come newest first")

    @rule(tag=st.sampled_from(TAGS), k=st.just(LARGEST_K) | counts)
    def by_tag(self, tag: str, k: int) -> None:
        found = [one.id for one in self.backend.by_tag(tag, k)]
        law(found == [one.id for one in self.newest() if tag in one.tags][:k], "by_tag gives what has the tag")

    @rule(k=st.sampled_from((0, -1, LARGEST_K + 1)))
    def ask_for_too_few_or_many(self, k: int) -> None:
        refused("k", lambda: self.backend.search("beam", k=k))
        refused("k", lambda: self.backend.recent(k))
        refused("k", lambda: self.backend.by_tag("red", k))

    @rule(name=st.sampled_from(sorted(NO_QUERIES)))
    def search_for_nothing(self, name: str) -> None:
        refused("query", lambda: self.backend.search(NO_QUERIES[name]))
        refused("tags", lambda: self.backend.search("beam", tags=[""]))
        refused("tags", lambda: self.backend.by_tag(""))

    @rule(content=consumes(contents))
    def delete(self, content: str) -> None:
        known = self.kept.pop(content, None)
        if known is not None:
            law(self.backend.delete(known.id) is True, "an entry is deleted once")
            self.gone.add(known.id)
            law(self.backend.delete(known.id) is False, "an entry is deleted once")

    @rule()
    def delete_a_stranger(self) -> None:
        law(self.backend.delete(uuid4()) is False, "an entry is deleted once")
        for known in list(self.kept.values())[:1]:
            law(self.elsewhere.delete(known.id) is False, "workspaces are apart")

    @rule(content=contents, place=places, most=mosts)
    def search_and_prune(self, content: str, place: int, most: int | None) -> None:
        self.searched(content, 2, [])
        self.pruned(place, most)

    @rule(place=places, most=mosts)
    def prune(self, place: int, most: int | None) -> None:
        self.pruned(place, most)

    @rule(content=sentences, tags=tags)
    def store_elsewhere(self, content: str, tags: list[str]) -> None:
        found = self.elsewhere.store(content, tags=tags)
        law(found not in {one.id for one in self.kept.values()}, "workspaces are apart")
        law(found in {one.id for one in self.elsewhere.recent(LARGEST_K)}, "what is stored is listed")

    @rule()
    def count(self) -> None:
        self.subject.settle()
        for one in self.backend.recent(LARGEST_K):
            law(one.access_count == self.kept[one.content].accesses, "searches are counted, and nothing else")
            law((one.accessed_at is None) == (one.access_count == 0), "what was accessed has a time")
            law(one.accessed_at is None or one.accessed_at >= one.created_at, "what was accessed has a time")

    # What always holds.

    @invariant()
    def the_model_is_right(self) -> None:
        entries, newest = self.backend.recent(LARGEST_K), self.newest()
        law(not self.gone & {one.id for one in entries}, "what is gone is not listed")
        law({one.id for one in entries} >= {one.id for one in newest}, "what is stored is listed")
        law(len(entries) == len(newest), "nothing else is listed")
        law([one.id for one in entries] == [one.id for one in newest], "recent entries come newest first")
        for one, known in zip(entries, newest, strict=True):
            law(one.content == known.content, "a content is kept letter by letter")
            law(one.context == known.context, "a context is kept")
            law(one.tags == known.tags, "tags are kept")
            law(one.created_at.tzinfo is not None, "moments have a zone")
            law(one.created_at == self.times.setdefault(one.id, one.created_at), "the time of storing stays")
            law(one.access_count <= known.accesses, "searches are counted, and nothing else")

    def store(self, given: list[str], context: str, tags: list[str]) -> list[str]:
        new = [content for content in given if content not in self.kept]
        for content in given:
            self.stored(content, context, tags, self.backend.store(content, context=context, tags=tags))
        return new

    def stored(self, content: str, context: str, tags: Iterable[str], found: UUID) -> None:
        known = self.kept.get(content)
        law(found not in self.gone, "what is gone does not come back")
        law(found not in {one.id for one in self.kept.values() if one is not known}, "an id is of one entry")
        if known is None:
            self.kept[content] = Kept(found, content, context, tuple(sorted(set(tags))), 0)
            return
        law(found == known.id, "a known content has its id")
        together = tuple(sorted({*known.tags, *tags}))
        self.kept[content] = known._replace(context=context or known.context, tags=together)

    def searched(self, query: str, k: int, tags: list[str]) -> list[Entry]:
        hits = self.backend.search(query, k=k, tags=tags)
        law(len(hits) <= k, "no list is longer than k")
        law(len({hit.id for hit in hits}) == len(hits), "a hit comes once")
        for hit in hits:
            known = self.kept.get(hit.content)
            law(known is not None, "what is gone is not found")
            assert known is not None
            law((hit.id, hit.context, hit.tags) == (known.id, known.context, known.tags), "a hit is an entry")
            law(hit.created_at == self.times[hit.id], "the time of storing stays")
            law({*tags} <= {*hit.tags}, "a hit has all tags")
            self.kept[hit.content] = known._replace(accesses=known.accesses + 1)
        return hits

    def pruned(self, place: int, most: int | None) -> None:
        self.subject.settle()
        entries = self.backend.recent(LARGEST_K)[::-1]
        moments = [moment for one in entries for moment in (one.created_at, one.accessed_at) if moment]
        moments = [LONG_AGO, *sorted(moments), FAR_AWAY]
        moment = moments[-1 if place < 0 and most is not None else place % len(moments)]
        expected = [one.id for one in entries if is_unused(one, moment, most)]
        law(self.backend.prune(unused_since=moment, most_accesses=most) == expected, "prune tells what its rule says")
        self.gone |= {*expected}
        self.kept = {content: one for content, one in self.kept.items() if one.id not in self.gone}

    def newest(self) -> list[Kept]:
        return list(self.kept.values())[::-1]


def is_unused(one: Entry, moment: datetime, most: int | None) -> bool:
    """Tells if `prune` deletes an entry, in other words than the backends'."""
    if most is not None and one.access_count > most:
        return False
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return one.created_at < moment and (one.accessed_at is None or one.accessed_at < moment)


def check(subject: Subject, *, examples: int = EXAMPLES, steps: int = STEPS) -> None:
    """Runs sequences of calls on a kind of backend.

    Raises:
        ContractBroken: it breaks the contract.
    """
    rules = type("Rules", (Contract,), {"subject": subject})
    run_state_machine_as_test(
        rules,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=timedelta(minutes=9),
            database=None,
            derandomize=True,
            report_multiple_bugs=False,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
