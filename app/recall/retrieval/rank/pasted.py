"""Tells what a request asks from the text that is pasted beside it: a log, code, a document. Pure."""

import re
from collections.abc import Iterator, Sequence

from app.foundation.text.prose import FENCE, ITEM, sentences_in, speech_of
from app.foundation.text.words import SPEAKS, content_words
from app.recall.retrieval.rank.asking import LONGEST

LEAST_PASTED = 600
"""Characters of pasted text from which on it is no part of what a request asks: a short excerpt says what is meant."""
_READ = 100_000
"""Characters that are read of a request, half of them at its end: its question stands at one end in nearly all."""
_MOST_LINES = 12
"""Lines of a paragraph; one of more is a list or a log."""
_MOST_QUESTIONS = 3
"""Paragraphs between the first and the last that may ask; more are a document's own."""
_LEAST_ASKING = 0.3
"""Share of a paragraph's sentences that ask for something, if the paragraph does."""
_SHORT = 80
"""Characters of a paragraph at an end that may be what is asked, in keywords."""
_DATA = re.compile(r"""^\s*"[^"\n]*"\s*:[^\n]*$|^\s*["'\]}),][^\n]*[\]}),:{\[]\s*$|^[^\n]*[{\[;]\s*$""", re.MULTILINE)
"""A line of code or data, besides those that no person says (`speech_of`)."""
_QUESTION = re.compile(r"[?？]\W*$")
_VERBS = (
    "add adapt advise analy[sz]e answer ask assemble assess assign build bring calculate change check choose "
    "clean collect compare compile compose compute configure continue convert correct create cut debug decide "
    "define delete deploy describe design draft draw drop edit estimate evaluate explain extend fetch fill filter "
    "find fix forecast format gather get give grade handle help implement introduce investigate judge launch list "
    "look lower make mark merge migrate move name normali[sz]e order pick plan port prepare produce propose "
    "publish put raise rate reduce refactor register release remove rename repair replace replay reply report "
    "rerun research review revise rewrite run say schedule score screen search see select send set show shrink "
    "specify start summari[sz]e tell test translate tune turn update upgrade use verify write"
)
_QUESTION_WORDS = "why what how when where who which bitte warum wieso wie wo cómo pourquoi comment почему как что где"
_ASKERS = (
    r"(?:can|could|would|will|should) (?:you|we|i)|i(?:['’]m| am| need| want| would|['’]d)"
    r"|we (?:need|want|are|have|plan)|you(?:['’]re| are)|act as|as an?|your (?:role|task|job)|role|task"
)
_REQUEST = re.compile(
    rf"(?i)^[\s\"'“(¿¡-]*(?:please\b[ ,]*)?(?:{_ASKERS}|{'|'.join(f'{_VERBS} {_QUESTION_WORDS}'.split())})\b"
    r"|^(?:为什么|怎么|如何|请)"
)
"""The beginning of a sentence that asks for something, or that says who is asked."""
_FAULT = re.compile(
    r"(?i)error\b|exception\b|\b(?:fail(?:ed|ure|s)?|fatal|panic\w*|denied|refused|cannot|can['’]t|not found|undefined|"
    r"timed? ?out|assert\w*|invalid|missing|unable)\b"
)
_STAMP = re.compile(r"^\W*(?:\d[\d:.,TZ/+-]*\s+)+")
_NUMBERS = re.compile(r"\d+")
_MOST_FAULTS, _LONGEST_FAULT = 3, 200
_LEAST_WORDS = 2
_VAGUE = content_words(
    "error errors exception fail fails failed failing failure fix wrong mean means meaning log logs output problem "
    "issue issues happen happens happened happening explain look help see check debug trace traceback stack code text "
    "message below above following here there why please get got getting make work works working run again now still "
    "paste pasted result command file line want need know tell show"
)
"""Words that do not tell what a request is about: `why does this fail?` is about the log beside it."""


def need_of(request: str) -> str:
    """Returns what a request asks for, without the text that is pasted beside it.

    Where its own words do not tell what it is about, the last faults that the pasted text reports follow.
    """
    if len(request) <= LEAST_PASTED:
        return request
    read = request if len(request) <= _READ else f"{request[: _READ // 2]}\n\n{request[-_READ // 2 :]}"
    own = list(_own_words(read))
    said = "\n\n".join(own)
    if len(request) <= LONGEST and len(request) - len(said) < LEAST_PASTED:
        return request
    need = said if len(said) <= LEAST_PASTED else _asked_in(own)
    words = content_words(need) - _VAGUE
    if len(words) >= _LEAST_WORDS:
        return need
    faults = _faults_of(read, need)
    return "\n".join([need, *faults]).strip() if words or faults else request[:LONGEST]


def _own_words(text: str) -> Iterator[str]:
    """Yields the words of each paragraph that are not pasted; of a long one its first and last line, if they ask."""
    for lines in _paragraphs(text):
        if len(lines) <= _MOST_LINES and sum(map(len, lines)) <= LONGEST:
            spoken = speech_of(_DATA.sub("", "\n".join(lines))).text
            if SPEAKS.search(spoken):
                yield spoken
        else:
            yield from (line for line in (lines[0], lines[-1]) if len(line) <= LONGEST and _asks(speech_of(line).text))


def _paragraphs(text: str) -> Iterator[list[str]]:
    """Yields the lines of each paragraph outside fences."""
    lines: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark = FENCE.match(line) if line[:4].lstrip()[:1] in {"`", "~"} else None
        if fence:
            fence = "" if mark and mark["mark"].startswith(fence) and not mark["tag"] else fence
        elif mark or not line.strip():
            fence = mark["mark"] if mark else ""
            if lines:
                yield lines
            lines = []
        else:
            lines.append(line)
    if lines:
        yield lines


def _asked_in(paragraphs: Sequence[str]) -> str:
    """Returns the paragraphs that ask for something: the first and the last, or a few between them.

    Without any it returns the beginnings of the first and the last.
    """
    ends = list(dict.fromkeys((paragraphs[0], paragraphs[-1])))
    asked = [part for part in ends if len(part) <= _SHORT or _asks(part, least=0)]
    if not any(map(_asks, ends)):
        between = [part for part in paragraphs[1:-1] if _asks(part)]
        if len(between) > _MOST_QUESTIONS:
            between = [part for part in between if _QUESTION.search(part)]
        asked += between if len(between) <= _MOST_QUESTIONS else []
    return "\n\n".join(asked or [part[: LONGEST // 2] for part in ends])


def _asks(paragraph: str, *, least: float = _LEAST_ASKING) -> bool:
    """Tells if a sentence of a paragraph, and at least this share of them, asks for something."""
    if ITEM.match(paragraph):
        return False
    sentences = sentences_in(paragraph)
    asking = sum(bool(_QUESTION.search(sentence) or _REQUEST.match(sentence)) for sentence in sentences)
    return asking > 0 and asking >= least * len(sentences)


def _faults_of(text: str, need: str) -> list[str]:
    """Returns the last faults that a pasted text reports, each once whatever its numbers are."""
    lines = (line for line in map(_bare_line, text.splitlines()) if _FAULT.search(line) and line not in need)
    found = {_NUMBERS.sub("0", line): line for line in lines}
    return list(found.values())[-_MOST_FAULTS:]


def _bare_line(line: str) -> str:
    return _STAMP.sub("", line[: 2 * _LONGEST_FAULT]).strip()[:_LONGEST_FAULT]
