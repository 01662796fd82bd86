"""Defines links and their relations, and decides which texts mention titles and share names. Pure.

A title names its memory if it is specific enough. This file decides that, except for two counts of the store: a title
that more than TITLE_BEARERS memories have ("Introduction"), or that more than MENTIONED texts name ("Alice", if
everybody speaks of her), is common and links nothing.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, TypeVar
from uuid import UUID

from app.foundation.text.words import BEFORE, SENTENCE_BEGINS, STOP_WORDS, content_words, names, resemblance, says
from app.foundation.values import frozen

NEXT, MENTIONS, SAME_ENTITY, SIMILAR, SAME_TASK = "next", "mentions", "same_entity", "similar", "same_task"
DERIVED_FROM, SUPERSEDES, CONTRADICTS = "derived_from", "supersedes", "contradicts"
FOUND = (MENTIONS, SAME_ENTITY, SIMILAR, SAME_TASK)
"""The relations that are found: in texts, by vectors and by the tasks of observations. The next search for links would
replace a caller's link of these relations."""
ANY_GIVEN = ""
"""Stands for the relations of callers' own words in ORDER."""
ORDER = (NEXT, DERIVED_FROM, SUPERSEDES, ANY_GIVEN, *FOUND)
"""All relations, in the order in which they are shown."""
RELATION_FORM = r"[a-z][a-z0-9_]{0,39}"
"""The form of a relation, as the table has it, too: a word or several, like `contradicts` or `part_of`."""


def impossible_relation(relation: str) -> str | None:
    """Returns the reason why no link of this relation is stored; None if one may be."""
    if relation == NEXT:
        return f"{NEXT!r} is not stored: the order of a source gives it"
    if not re.fullmatch(RELATION_FORM, relation):
        return f"{relation!r} is not a relation; take lower-case letters, digits and _, a letter first, at most 40"
    return None


def impossible_to_give(relation: str) -> str | None:
    """Returns the reason why callers cannot set this relation; None if they can."""
    if relation in FOUND:
        return f"{relation!r} cannot be given, because it is found; give a link another relation"
    return impossible_relation(relation)


class Link(NamedTuple):
    """A stored link: `from_id` mentions, is derived from, supersedes … `to_id`."""

    from_id: UUID
    to_id: UUID
    relation: str
    weight: float = 1.0
    """The link's strength, above 0 and at most 1."""


LEAST_WEIGHT = 0.001
"""The smallest weight of a link: a smaller one changes no score visibly."""


@frozen
class Linked:
    """The memory at the other end of a link."""

    relation: str
    direction: Literal["out", "in"]
    """`out` if the memory asked for is the one that mentions, supersedes … or comes before; else `in`."""
    memory_id: UUID
    title: str
    """Its title, or the beginning of its text, as a turn has no title."""
    kind: str
    weight: float
    task_type: str
    run_id: str | None
    source: str
    ordinal: int | None
    user: str
    occurred_at: datetime | None
    created_at: datetime


TASKS_COMPARED = 1_000
"""The newest observations whose tasks are compared with a new one's, besides those of exactly its task: 1,000 tasks of
12 words take 8 ms of a thread, and 19 ms for 20 new ones."""
_OF_ONE_TASK = 4
"""Observations that one is linked with by its task, the nearest and then the newest: a task that runs each day would
else link each with hundreds."""
_ANGLE, _LEAST_SHARED = 0.6, 3
"""Share of the words of two tasks that both have, and their number, from which they are two angles of one task: "LLM
inference cost optimization: batching" and "…: quantization" share 4 of 6."""
_VERSIONED = re.compile(r"\bv\.?\d+(?:\.\d+)*\b|\d+", re.IGNORECASE)
TITLE_BEARERS = 3
"""Live memories that may share a title. The rest of a text tells two people of one name apart; a title that the
sections of a hundred reports share names no subject."""
NAME_BEARERS = 4
"""If at most this many memories share a name, each pair of them is linked; a name that more of them share is not rare.
On the dev sets 4 finds as much as 8, with a third of the links."""
MENTIONED = 32
"""Texts that may name a title; HotpotQA's most famous has 9 of 994 paragraphs."""
MOST_MENTIONS = 16
"""Most titles that a text is linked to, the first ones: a table of contents is not about its titles."""
LONGEST_TITLE = 8
"""Most words of a title that names: a longer title is a sentence, which no other text repeats."""
_LONGEST_KEY = 200
"""Most characters of a title in the dictionary."""
_SHORTEST_WORD = 3
"""Least letters of a title of one word."""
_TITLELESS_KINDS = frozenset({"message"})
"""Kinds of memories whose titles are not searched for in texts: a message's title is its speaker, not its subject."""

_TYPES = frozenset(
    """abstract agenda analysis appendix article assessment attachment background brief changelog chapter checklist
    comparison conclusion decision digest discussion document documentation draft essay evaluation example feedback
    finding guide handbook history index interview introduction issue journal judgement judgment lesson list log
    manual memo memory message method methodology minutes note notebook observation outcome outline overview page paper
    plan playbook post postmortem presentation problem procedure proposal question readme recap record reference report
    research result retrospective review roadmap scorecard section source spec specification statement status study
    summary survey table task template test thesis transcript tutorial update verdict version
    отчёт отчет обзор анализ исследование статья документ заметка заметки сводка итоги вывод выводы введение заключение
    список раздел глава оценка план bericht übersicht analyse studie umfrage artikel dokument notiz notizen
    zusammenfassung einleitung fazit ergebnis ergebnisse liste abschnitt kapitel bewertung rapport étude enquête revue
    aperçu résumé évaluation sommaire informe estudio encuesta artículo documento nota resumen introducción conclusión
    evaluación sección 报告 调查 综述 分析 研究 摘要""".split()  # noqa: SIM905 - a hundred quoted words cannot be read
)
"""Words that say the type of a document or of its part: alone they name no subject ("the Survey")."""
_SAME_ENDINGS = 2
"""Titles that end in one word from which it says their type, as "… runbook" does in a workspace of runbooks."""

WORD = re.compile(r"\w+")
_BRACKETS = re.compile(r"\s*\([^()]*\)\s*$")

T = TypeVar("T")


class Mention(NamedTuple):
    """A place where a text may name something."""

    at: int
    """The position of its first word among the words of the text."""
    words: int
    key: str


def title_key(title: str, kind: str) -> str | None:
    """Returns a title as the dictionary has it: words in lower case, without brackets at the end.

    Returns None if the title cannot name one memory: it has only stop words, digits and _TYPES, is a single word of
    fewer than _SHORTEST_WORD letters, has more than LONGEST_TITLE words, or is the speaker of a message.
    """
    if kind in _TITLELESS_KINDS:
        return None
    words = WORD.findall(without_brackets(title).casefold())
    if not 1 <= len(words) <= LONGEST_TITLE or (len(words) == 1 and len(words[0]) < _SHORTEST_WORD):
        return None
    key = " ".join(words)
    return key if len(key) <= _LONGEST_KEY and content_words(key) and not _says_a_type(key) else None


def _says_a_type(name: str) -> bool:
    """Returns True if a name consists of words for types of documents."""
    words = (word for word in WORD.findall(name.casefold()) if word not in STOP_WORDS and not word.isdigit())
    return all(word in _TYPES or word.removesuffix("s") in _TYPES for word in words)


def without_brackets(title: str) -> str:
    """Returns a title as texts write it: "Big Stone Gap (film)" is called Big Stone Gap."""
    return _BRACKETS.sub("", title)


def possible_mentions(text: str) -> Iterator[Mention]:
    """Yields every run of words in the text that may be a title, longest first at each place.

    A title is written like a name: it begins with a capital, a digit, or a character of a script without capitals. A
    single word at the beginning of a sentence does not count, because every word there has a capital.
    """
    found = list(WORD.finditer(text))
    words = [match.group().casefold() for match in found]
    for at, match in enumerate(found):
        if not _begins_a_name(match.group()):
            continue
        shortest = 2 if SENTENCE_BEGINS.search(text[max(0, match.start() - BEFORE) : match.start()]) else 1
        for count in range(min(LONGEST_TITLE, len(words) - at), shortest - 1, -1):
            yield Mention(at, count, " ".join(words[at : at + count]))


def mentioned_titles(possible: Sequence[Mention], known: Mapping[str, Collection[T]], *, own: str | None) -> list[T]:
    """Returns the titles that the text names, in its order, at most MOST_MENTIONS; at each place the longest one.

    `known` has the memories of each title; `own` is the title of the text's own memory.
    """
    named: dict[T, None] = {}
    behind = 0
    for mention in possible:
        if mention.at < behind or mention.key not in known:
            continue
        behind = mention.at + mention.words
        if mention.key != own:
            named |= dict.fromkeys(known[mention.key])
    return list(named)[:MOST_MENTIONS]


def _begins_a_name(word: str) -> bool:
    first = word[0]
    return first.isupper() or first.isdigit() or first.lower() == first.upper()


class LinkText(NamedTuple):
    """The text by which a memory is linked."""

    memory_id: UUID
    kind: str
    title: str
    body: str
    """The beginning of the body."""
    language: str
    asked: int = 0
    """The number of times that it had been queued when it was read."""


class Mentions(NamedTuple):
    """The titles and names that a text mentions."""

    own: str | None
    """The dictionary's form of the memory's own title; None if this title names nothing."""
    possible: Sequence[Mention]
    names: Sequence[str] = ()


class Task(NamedTuple):
    """An observation's task."""

    memory_id: UUID
    task: str


def of_one_task(new: Collection[UUID], tasks: Sequence[Task]) -> list[Link]:
    """Returns links between new observations and those of the same task or another angle of it.

    `tasks` has those of all that are compared, the newest first. Versions and numbers in a task do not count.
    """
    words = {item.memory_id: content_words(_VERSIONED.sub(" ", item.task)) for item in tasks}
    links: dict[tuple[UUID, UUID], Link] = {}
    for memory_id in (item.memory_id for item in tasks if item.memory_id in new):
        near = [
            (_share_of_words(words[memory_id], words[item.memory_id]), item.memory_id)
            for item in tasks
            if item.memory_id != memory_id
        ]
        # Sorted is stable: of those that are equally near the newest come first.
        for weight, other in sorted(near, key=lambda pair: -pair[0])[:_OF_ONE_TASK]:
            if weight:
                pair = (max(memory_id, other), min(memory_id, other))
                links[pair] = Link(*pair, SAME_TASK, weight)
    return list(links.values())


def _share_of_words(one: frozenset[str], other: frozenset[str]) -> float:
    """Returns the share of words that two tasks have in common; 0 where they are not one."""
    share = resemblance(one, other)
    return share if share == 1 or (share >= _ANGLE and len(one & other) >= _LEAST_SHARED) else 0.0


class Others(NamedTuple):
    """The relations of other texts to a batch."""

    naming: Mapping[UUID, Mentions]
    """Texts that may name a title of the batch."""
    sharing: Collection[Link]
    common: Collection[Link]
    """Links by names that have become common."""
    tasks: Collection[Link] = ()


def read(batch: Sequence[LinkText]) -> Mapping[UUID, Mentions]:
    """Reads the titles, possible mentions and names in the texts of a batch."""
    return {item.memory_id: _read(item)._replace(names=_names(item)) for item in batch}


def _names(item: LinkText) -> Sequence[str]:
    return [name for name in names(_spoken(item), item.language) if not _says_a_type(name)]


def _read(item: LinkText) -> Mentions:
    return Mentions(own=title_key(item.title, item.kind), possible=list(possible_mentions(item.body)))


def _spoken(item: LinkText) -> str:
    """Returns the part of a memory that may contain names: the text without a message's title, which is its speaker."""
    return item.body if item.kind == "message" else f"{item.title}\n{item.body}"


def compare_batch(
    named: Mapping[str, Sequence[UUID]], shared: Mapping[str, Sequence[UUID]], texts: Mapping[UUID, LinkText]
) -> Others:
    """Compares a batch with other texts that have its words in any spelling.

    `named` has the texts with the words of each title of the batch, `shared` those with the words of each name.
    """
    having = _having(shared, texts)
    rare = {link for ids in having.values() if len(ids) <= NAME_BEARERS for link in _pairs(ids)}
    return Others(naming=_naming(named, texts), sharing=rare, common=set(_common(having, rare, texts)))


def _naming(named: Mapping[str, Sequence[UUID]], texts: Mapping[UUID, LinkText]) -> Mapping[UUID, Mentions]:
    """Returns the texts that may name one of these titles."""
    found: dict[UUID, Mentions] = {}
    for key, ids in named.items():
        for memory_id in (ident for ident in ids if ident in texts and ident not in found):
            reading = _read(texts[memory_id])
            if any(mention.key == key for mention in reading.possible):
                found[memory_id] = reading
    return found


def _having(shared: Mapping[str, Sequence[UUID]], texts: Mapping[UUID, LinkText]) -> Mapping[str, Sequence[UUID]]:
    """Returns, for each name, the memories that have it, oldest first: all if they are many, else those it may link."""
    found: dict[str, Sequence[UUID]] = {}
    for name, ids in shared.items():
        saying = [texts[ident] for ident in sorted(ids) if ident in texts and says(_spoken(texts[ident]), name)]
        if len(saying) <= NAME_BEARERS:
            saying = [] if _ends_titles(name, saying) else [item for item in saying if _bears(item, name)]
        found[name] = [item.memory_id for item in saying]
    return found


def _ends_titles(name: str, items: Iterable[LinkText]) -> bool:
    """Returns True if several titles end in the name."""
    ending = f" {name.casefold()}"
    return len({title for item in items if (title := item.title.casefold()).endswith(ending)}) >= _SAME_ENDINGS


def _bears(item: LinkText, name: str) -> bool:
    """Returns True if a memory has a name in this spelling, and never in lower case like a common word."""
    text, common = _spoken(item), name.lower()
    return says(text, name) and (common == name or not says(text, common))


def _pairs(ids: Sequence[UUID]) -> Iterable[Link]:
    """Returns a link for each pair of memories, from the newer one, which has the greater id, to the older."""
    return (Link(newer, older, SAME_ENTITY) for place, newer in enumerate(ids) for older in ids[:place])


def _common(
    having: Mapping[str, Sequence[UUID]], rare: Collection[Link], texts: Mapping[UUID, LinkText]
) -> Iterable[Link]:
    """Yields the pairs that a name linked while it was still rare, unless they share another name."""
    for name, ids in having.items():
        if len(ids) > NAME_BEARERS:
            yield from (link for link in _pairs(ids) if link not in rare and not _share_another(link, name, texts))


def _share_another(link: Link, name: str, texts: Mapping[UUID, LinkText]) -> bool:
    one, other = texts[link.from_id], texts[link.to_id]
    return any(_bears(other, found) for found in _names(one) if found != name)
