"""Tells an answer to a question why as sentences and lines. Pure."""

from collections.abc import Iterator, Sequence

from app.cues.cue import ACTIVE, NEGATIVE_RESULT, Cue, Evidence
from app.cues.why.backlinks import Touch
from app.cues.why.threads import Thread, choice_of, moment_of

NOT_STATED = "not stated"
SESSIONS_NAMED = 5
"""Most sessions that one sentence names."""


def sentence(asked: str, found: Sequence[Thread], others: Sequence[Cue], touches: Sequence[Touch]) -> str:
    """Returns the answer in short: the outcome of the latest thread, or that nothing says why."""
    if found:
        latest = found[0]
        more = f" {_count(len(found) - 1, 'more thread')} on it." if len(found) > 1 else ""
        return f"{latest.subject.rstrip('.:?')}: {latest.outcome}. {_reasons(latest.decisions)}{more}"
    unknown = f"Not known: no decision on “{asked}” is stored."
    if touches:
        sessions = list(dict.fromkeys(touch.session for touch in touches))
        named = ", ".join(sessions[:SESSIONS_NAMED]) + (" …" if len(sessions) > SESSIONS_NAMED else "")
        unknown += f" It was shaped in {_count(len(sessions), 'session')} ({named}), which state none."
    if others:
        unknown += f" {_count(len(others), 'cue')} of another kind {'is' if len(others) == 1 else 'are'} close to it."
    return unknown


def _reasons(decisions: Sequence[Cue]) -> str:
    stated = next((reason for cue in reversed(decisions) if (reason := _text(cue, "reasoning"))), "")
    return f"Because: {stated.rstrip('.')}." if stated else "The reasoning is not stated."


def lines(asked: str, answer: str, found: Sequence[Thread], others: Sequence[Cue], touches: Sequence[Touch]) -> str:
    """Returns the whole answer as Markdown."""
    parts = [f"# Why: {asked}", answer]
    for thread in found:
        days = f"{thread.begins:%Y-%m-%d} to {thread.ends:%Y-%m-%d}"
        parts.append(f"## {thread.subject}\n\n{_count(len(thread.decisions), 'decision')}, {days}")
        parts += ["\n".join(_decision(cue)) for cue in thread.decisions]
        parts += ["\n".join(_around(cue)) for cue in thread.around]
    if others:
        parts += ["## Around it", *("\n".join(_around(cue)) for cue in others)]
    if touches:
        parts += ["## Sessions that shaped it", "\n".join(_touch(touch) for touch in touches)]
    return "\n\n".join(parts)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _decision(cue: Cue) -> Iterator[str]:
    held = "" if cue.state == ACTIVE else f" ({cue.state})"
    yield f"- **Decided {moment_of(cue):%Y-%m-%d}{held}:** {choice_of(cue)}"
    yield f"  - Alternatives: {_listed(cue.details.get('alternatives'))}"
    yield f"  - Reasoning: {_text(cue, 'reasoning') or NOT_STATED}"
    yield from _turns(cue.evidence, cue.quote)


def _around(cue: Cue) -> Iterator[str]:
    if cue.kind == NEGATIVE_RESULT:
        yield f"- **Tried and failed:** {_text(cue, 'attempted') or cue.trigger}"
        yield f"  - Because: {_text(cue, 'failure_reason') or NOT_STATED}"
        if _text(cue, "led_to"):
            yield f"  - Led to: {_text(cue, 'led_to')}"
    else:
        yield f"- **{cue.kind.replace('_', ' ').capitalize()}:** {cue.lesson}"
    yield from _turns(cue.evidence, cue.quote)


def _turns(evidence: Sequence[Evidence], quote: str) -> Iterator[str]:
    for item in evidence:
        day = "" if item.at is None else f", {item.at:%Y-%m-%d}"
        words = item.quote or quote
        yield f"  - {_place(item)}{day}" + (f": “{words}”" if words else "")


def _place(item: Evidence) -> str:
    """Returns the place of a text: a message of a session, or a section of a file."""
    if item.path:
        return f"{item.path}, {item.section}" if item.section else item.path
    turn = "" if item.ordinal is None else f", message {item.ordinal}"
    return (f"session {item.session}" if item.session else "said") + turn


def _touch(touch: Touch) -> str:
    what = f"{touch.path}:{touch.symbol}" if touch.symbol else touch.path
    return f"- {touch.at:%Y-%m-%d} session {touch.session}, message {touch.ordinal}: {touch.action} {what}"


def _text(cue: Cue, field: str) -> str:
    value = str(cue.details.get(field) or "").strip()
    return "" if value == NOT_STATED else value


def _listed(value: object) -> str:
    texts = [str(item) for item in value] if isinstance(value, list | tuple) else [str(value)] if value else []
    return "; ".join(texts) or "none stated"
