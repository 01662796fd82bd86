"""Tells which issues of several versions are the same one: by meaning and by words. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.models.protocols import Matrix
from app.text.words import content_words

WORDS = 0.2
"""Share of the common words in the likeness of two issues; the rest is the cosine of their titles."""
ALIKE, AGAIN = 0.34, 0.56
"""Likeness from which a statement is an issue of the version before, and one that was not named there."""


class Statement(NamedTuple):
    """An issue as one judgement states it."""

    version: int
    """The place of its version among the case's."""
    title: str
    seen: frozenset[int] = frozenset()
    """The versions that it names itself: an issue of one of them is told again rather than anew."""


def likeness(statements: Sequence[Statement], vectors: Matrix | None) -> Matrix:
    """Returns how alike every two statements are, 0 to 1, by their titles' vectors of unit length and by words.

    Without vectors words alone tell.
    """
    words = [content_words(statement.title) for statement in statements]
    common = np.array(
        [[len(one & other) / max(1, len(one | other)) for other in words] for one in words], dtype=np.float32
    ).reshape(len(words), len(words))
    meaning = common if vectors is None else np.clip(vectors @ vectors.T, 0, 1)
    return (1 - WORDS) * meaning + WORDS * common


def grouped(statements: Sequence[Statement], vectors: Matrix | None) -> list[int]:
    """Returns the number of each statement's issue; the statements come in the order of their versions.

    Two statements of one version are two issues, unless their words are the same. Of several issues that a statement
    may be, it is the one that it is most like, and each issue takes the statement that is most like it.
    """
    found = likeness(statements, vectors)
    issues: list[list[int]] = []
    number = [-1] * len(statements)
    before = -1
    for version in sorted({statement.version for statement in statements}):
        new = _each_once([at for at, statement in enumerate(statements) if statement.version == version], statements)
        latest = {number[at] for at, statement in enumerate(statements) if statement.version == before}
        pairs = [
            (float(found[np.ix_(issue, places)].max()), at, places) for at, issue in enumerate(issues) for places in new
        ]
        for value, issue, places in sorted(pairs, key=lambda pair: -pair[0]):
            is_free = number[places[0]] < 0 and not any(statements[at].version == version for at in issues[issue])
            again = issue in latest or any(statements[at].version in statements[places[0]].seen for at in issues[issue])
            if is_free and value >= (ALIKE if again else AGAIN):
                _join(places, issue, issues, number)
        for places in new:
            if number[places[0]] < 0:
                issues.append([])
                _join(places, len(issues) - 1, issues, number)
        before = version
    return number


def _join(places: Sequence[int], issue: int, issues: Sequence[list[int]], number: list[int]) -> None:
    issues[issue].extend(places)
    for at in places:
        number[at] = issue


def _each_once(places: Sequence[int], statements: Sequence[Statement]) -> list[list[int]]:
    """Returns the statements of a version, those with the same words together."""
    same: dict[frozenset[str] | str, list[int]] = {}
    for at in places:
        title = statements[at].title
        same.setdefault(content_words(title) or title, []).append(at)
    return list(same.values())
