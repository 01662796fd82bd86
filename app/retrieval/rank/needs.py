"""Finds the needs in a request: the sentences that name its subject or its act. Pure.

An orchestrator's prompt has sentences that ask for nothing which is stored: who the agent is, how long the answer may
be, in which form. They draw a search away from the subject.
"""

import re

from app.text.sentences import sentences_of

LEAST_SENTENCES, MOST_NEEDS = 3, 6
"""Sentences from which a request is searched for its needs, and needs at most."""
LONGEST = 2_000
"""Characters of a request; a longer one is a text that was pasted, and is one need."""
UNIT = (
    r"(?:words?|lines?|sentences?|bullets?|bullet\ points?|paragraphs?|pages?|links?|searches|minutes|euros?|dollars)"
)
PERSONA = re.compile(
    r"(?i)^\W*(?:you are|i am|i['’]m|act as|be|keep|answer|reply|return|output|respond|format|use|stay|stick to|do not|"
    r"don['’]t|please|no|not more|at most|write in|plain|time is|the (?:reader|budget|tone))\b"
)
"""Beginnings of sentences on the persona and on the form of an answer."""
LIMIT = re.compile(
    rf"(?i)\b\d+(?: to \d+)? {UNIT}\b|^[\w ]{{0,20}}\b{UNIT}\b|\bin (?:one (?:line|sentence)|(?:two|three|four|five) "
    r"sentences)\b|\bjson\b|\b(?:at most|no more than|as a table|are enough)\b"
)
"""Limits on an answer; a sentence that has more to say than them is a need all the same."""
SHORT = 14
"""Words of a sentence that says no more than its limits."""


def needs_of(request: str) -> tuple[str, ...]:
    """Returns the sentences of a request that name what it needs; the whole request if it is short, or has none."""
    if len(request) > LONGEST:
        return (request,)
    sentences = [sentence.strip() for sentence in sentences_of(request)]
    if len(sentences) < LEAST_SENTENCES:
        return (request,)
    needs = [sentence for sentence in sentences if not _is_form(sentence)]
    return tuple(needs[:MOST_NEEDS]) or (request,)


def _is_form(sentence: str) -> bool:
    is_limit = LIMIT.search(sentence) is not None and len(sentence.split()) <= SHORT
    return is_limit or PERSONA.match(sentence) is not None
