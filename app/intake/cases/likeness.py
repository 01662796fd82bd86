"""Tells which issues of several versions are the same one: by meaning and by words. Pure."""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from app.foundation.models.protocols import Matrix
from app.foundation.text.words import content_words

WORDS = 0.2
"""Share of the common words in the likeness of two issues; the rest is the cosine of their titles."""
ALIKE, AGAIN = 0.34, 0.56
"""Likeness from which a statement is an issue of the version before, and one that was not named there."""
_WHOLE = 0.05
"""Taken off the cosine of whole statements: those of one case share its subject. Pairs of three report trees that are
one issue reach 0.41 and more where their titles do not, others 0.37."""
_CODE = re.compile(r"\b[A-Z]{1,4}-\d{1,4}\b")
"""The number that a report gives a finding: M-1 is not M-2."""


class IssueStatement(NamedTuple):
    """An issue as one judgement states it."""

    version: int
    """The place of its version among the case's."""
    title: str
    seen: frozenset[int] = frozenset()
    """The versions that it names itself: an issue of one of them is told again rather than anew."""
    again: bool = False
    """True where it speaks of an issue of any earlier version, as one that is resolved or back does."""


def _likeness(statements: Sequence[IssueStatement], *vectors: Matrix) -> Matrix:
    """Returns how alike every two statements are, 0 to 1, by their vectors of unit length and by words of their titles.

    There may be vectors of titles, and of whole statements: the greater likeness counts. Without any, words alone tell.
    """
    common = _common([content_words(statement.title) for statement in statements])
    meaning = common
    for place, form in enumerate(vectors):
        cosines: Matrix = np.clip(form @ form.T, 0, 1)
        meaning = np.maximum(meaning, cosines - _WHOLE) if place else cosines
    codes = [frozenset(_CODE.findall(statement.title)) for statement in statements]
    has_code = np.array([bool(found) for found in codes], dtype=bool)
    meaning = np.where(np.outer(has_code, has_code) & (_common(codes) == 0), 0, meaning)
    return (1 - WORDS) * meaning + WORDS * common


def _common(words: Sequence[frozenset[str]]) -> Matrix:
    """Returns the share of words that every two have in common."""
    columns = {word: column for column, word in enumerate(frozenset[str]().union(*words))}
    has = np.zeros((len(words), len(columns)), dtype=np.float32)
    for row, own in enumerate(words):
        has[row, [columns[word] for word in own]] = 1
    both, sizes = has @ has.T, has.sum(axis=1)
    common: Matrix = both / np.maximum(1, sizes[:, None] + sizes - both)
    return common


def group_statements(statements: Sequence[IssueStatement], *vectors: Matrix) -> list[int]:
    """Returns the number of each statement's issue; the statements come in the order of their versions.

    Two statements of one version are two issues, unless their words are the same. Of several issues that a statement
    may be, it is the one that it is most like, and each issue takes the statement that is most like it.
    """
    found = _likeness(statements, *vectors)
    # The likeness of each issue, in the order of their numbers, to every statement; and the versions that have it.
    issues, versions = np.empty_like(found), list[set[int]]()
    number = [-1] * len(statements)
    latest: set[int] = set()
    for version, group in groupby(range(len(statements)), key=lambda at: statements[at].version):
        new, taken = _each_once(list(group), statements), set[int]()
        for value, issue, places in _alike(issues[: len(versions)], new):
            is_free = number[places[0]] < 0 and issue not in taken
            said = statements[places[0]]
            again = said.again or issue in latest or not versions[issue].isdisjoint(said.seen)
            if is_free and value >= (ALIKE if again else AGAIN):
                issues[issue] = np.maximum(issues[issue], found[places].max(axis=0))
                versions[issue].add(version)
                taken.add(issue)
                _number(places, issue, number)
        for places in new:
            if number[places[0]] < 0:
                taken.add(len(versions))
                _number(places, len(versions), number)
                issues[len(versions)] = found[places].max(axis=0)
                versions.append({version})
        latest = taken
    return number


def _alike(issues: Matrix, new: Sequence[Sequence[int]]) -> list[tuple[float, int, Sequence[int]]]:
    """Returns the likeness of issues and new statements, an issue's number and the statements, the most alike first."""
    values = np.array([issues[:, places].max(axis=1) for places in new]).T
    pairs = ((float(values[at, column]), int(at), new[column]) for at, column in np.argwhere(values >= ALIKE))
    return sorted(pairs, key=lambda pair: -pair[0])


def _number(places: Sequence[int], issue: int, number: list[int]) -> None:
    for at in places:
        number[at] = issue


def _each_once(places: Sequence[int], statements: Sequence[IssueStatement]) -> list[list[int]]:
    """Returns the statements of a version, those with the same words together."""
    same: dict[frozenset[str] | str, list[int]] = {}
    for at in places:
        title = statements[at].title
        same.setdefault(content_words(title) or title, []).append(at)
    return list(same.values())
