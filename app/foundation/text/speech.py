"""Tells what a person or an agent said in a turn from what a program inserted and what was pasted. Pure."""

import re
from typing import NamedTuple

from app.foundation.text.markdown import ITEM
from app.foundation.text.sentences import SENTENCE_END

_INSERTED = (
    "system-reminder", "local-command-stdout", "local-command-stderr", "local-command-caveat", "bash-stdout",
    "bash-stderr", "ide_opened_file", "ide_selection", "ide_diagnostics", "user-prompt-submit-hook",
    "task-notification", "command-message", "command-contents", "environment_context", "user_instructions",
    "permissions", "turn_aborted", "INSTRUCTIONS",
)  # fmt: skip
"""Tags of what programs put into a user's message: nobody said it."""
_COMMANDS = re.compile(
    r"<(command-name|command-args|bash-input)>(?:(?!<(?:command-name|command-args|bash-input)>).){0,5000}?</\1>",
    re.DOTALL,
)
"""Commands that a user typed for the program, not for the agent."""
_NOTICE = re.compile(
    r"^(?:\[Request (?:was )?(?:interrupted|cancelled)[^\]\n]*\]?|Caveat: The messages below.*)", re.MULTILINE
)
"""A program's notice: an interruption, or a caveat on the messages that follow."""
_CONTINUED = re.compile(r"\s*This session is being continued from a previous conversation")
"""The beginning of a summary that a program wrote to continue a session."""
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_QUOTED = re.compile(r"^\s*>(?!\s*$)")
"""A line that quotes an earlier message or a document."""
_CITED = re.compile(r"[\"“„«]([^\"“”„«»\n]{30,2000})[\"”“»]")
_FEWEST_CITED = 7
"""Words in quotation marks from which on they are somebody else's."""
HEADING = re.compile(r"^\s{0,3}#{1,6}\s+\S|^\*\*[^*\n]{1,60}\*\*:?\s*$")
"""A heading: a person who talks writes none, so that a document follows."""
_PASTED = re.compile(
    r"^\s*(?:[❯$%»→✓✗✔×]|\w+@[\w.-]+[:~]|at\s+\S+\s*\(|File \"|Traceback|(?:\w+\.)*\w*(?:Error|Exception)\b\s*[:(]|"
    r"\d+\s*\||[-+*#|]{3,}|npm |error(?:\[\w+\])?:|warning:|note:|help:|= note|-->|\[\d|\{|\}|<\/?\w+|\||\^+|"
    r"\d{2,4}[-/]\d\d[-/]\d\d[T ,]|\[?\d\d:\d\d:\d\d|\S+\.\w+:\d+(?::\d+)?:?\s|\S+:\d+:\d+|"
    r"select\s(?=.*[;=(*]).*\sfrom\s|insert into\s|create table\s|update\s+[\w.]+\s+set\s|"
    r"delete from\s+[\w.]+\s*(?:where\b|;)|(?:from|where)\s+[\w.]+\s*(?:[=<>;]|in\s*\(|is\s(?:not\s)?null|like\s')|"
    r"(?-i:SELECT|FROM|WHERE|UPDATE)\s.*[;=(])",
    re.IGNORECASE,
)
"""A line of a terminal, a log, a stack, a table, a query or a data file."""
_MESSAGE = re.compile(
    r"(?:Uncaught\s+)?(?:\b\w*(?:Error|Exception|ERR!)\s*[:\]]|\[eslint\]|\bERROR in\b|\bnpm (?:warn|error)\b).*"
)
"""A program's message, up to the end of its line."""
_SYNTAX = re.compile(r"[{}\[\]<>=;|\\/_$]")
_MOST_SYNTAX = 0.12
"""Share of such characters in a line from which on it is no speech."""
_SHORT = 25
"""Characters of a line that is always taken for speech if it is not _PASTED: `make it bun` is no code."""
_STOP = re.compile(r";\s+|(?<!\s)\s+[-–—]\s+")
"""A break between statements of one sentence. A run of blanks is tried from its beginning only: else its time would
grow with the square of its length."""
_WORD = re.compile(r"\w")


class Speech(NamedTuple):
    """A turn's own words, and how much else stands in it."""

    text: str
    pasted: float
    """Share of the turn's characters that were pasted or inserted, 0 to 1."""


def speech_of(turn: str) -> Speech:
    """Separates a turn's own words from what a program inserted, and from quotes, logs, documents and code."""
    kept, in_document = list[str](), False
    for line in COMMENT.sub("\n", _FENCE.sub("\n", without_inserted(turn))).split("\n"):
        # A document ends where a paragraph begins in lower case: a person goes on.
        in_document = HEADING.match(line) is not None or (in_document and not line[:1].islower())
        if not in_document and not _QUOTED.match(line) and not _is_pasted(line):
            kept.append(_MESSAGE.sub("", line))
    text = _CITED.sub(_without_citations, "\n".join(kept)).strip()
    length = len(turn.strip())
    return Speech(text=text, pasted=1 - len(text) / length if length else 0.0)


def _without_citations(match: re.Match[str]) -> str:
    return "…" if len(match[1].split()) >= _FEWEST_CITED else match[0]


def without_inserted(text: str) -> str:
    """Returns a turn without what a program put into it: reminders, notices, commands and summaries."""
    return "" if _CONTINUED.match(text) else _NOTICE.sub("", _COMMANDS.sub("", without_tags(text)))


def without_tags(text: str) -> str:
    """Returns a text without the elements that _INSERTED names; one that is not closed stays."""
    for tag in _INSERTED if "</" in text else ():
        begin, end = f"<{tag}>", f"</{tag}>"
        kept, place = list[str](), 0
        while (start := text.find(begin, place)) >= 0 and (stop := text.find(end, start)) >= 0:
            kept.append(text[place:start])
            place = stop + len(end)
        text = "".join([*kept, text[place:]])
    return text


def _is_pasted(line: str) -> bool:
    if _PASTED.match(line):
        return True
    return len(line) > _SHORT and len(_SYNTAX.findall(line)) / len(line) > _MOST_SYNTAX


def sentences_in(text: str) -> list[str]:
    """Splits a text into its sentences and lines, each verbatim, without list marks."""
    lines = (ITEM.sub("", line) for line in text.split("\n"))
    parts = (ITEM.sub("", part).strip() for line in lines for part in SENTENCE_END.split(line))
    return [part for part in parts if part]


def statements_in(text: str) -> list[str]:
    """Splits a text into its sentences and their statements, each verbatim; those without a word are left out."""
    parts = (part.strip() for sentence in sentences_in(text) for part in _STOP.split(sentence))
    return [part for part in parts if _WORD.search(part)]
