"""A chunk with its heading path, cut to fit, and the fields by which its file describes itself. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any

from app.foundation.models.protocols import TokenCounter
from app.foundation.text import scores
from app.foundation.text.passages import leads_in, says_something, split_prose
from app.foundation.text.prose import SENTENCE_END
from app.foundation.text.words import NEGATION, content_words
from app.foundation.values import frozen
from app.intake.cases.extract import FIELDS, ISSUES, VERDICTS, Facts
from app.intake.cases.judgement import key_of, text_of

HEADING_SEPARATOR = " › "
MAX_TOKENS = 254
"""Tokens of a chunk at most: the model's window of 256 without the two tokens that frame a sequence."""
LEAST_ROOM = 64
"""Least tokens that a long heading path leaves to the text."""


@frozen
class Chunk:
    """A piece of a report file, at most the model's window long, its heading path included."""

    heading_path: tuple[str, ...]
    """File title › heading › heading; never empty."""
    text: str
    pointer: str = ""
    """RFC 6901 pointer of the JSON value it was made from; "" for Markdown and for a whole document."""
    occurred_at: datetime | None = None
    final_score: float | None = None
    """The evaluator's score, 0 to 10."""
    left_out: int = 0
    """Number of chunks after this one that were dropped from the document."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """The scalars by which its file describes itself, by key."""

    @property
    def title(self) -> str:
        """The heading path in one line; it precedes the text when the chunk is embedded or shown."""
        return HEADING_SEPARATOR.join(self.heading_path)


_PART_CHARACTERS = 160
"""Longest part of a heading path, in characters; of a longer heading, the beginning tells the subject."""


def fit_heading_path(heading_path: Sequence[str], counter: TokenCounter) -> tuple[tuple[str, ...], int]:
    """Returns the heading path, and the tokens that it leaves to the text: cuts long parts, then drops middle ones."""
    room = MAX_TOKENS - LEAST_ROOM
    parts = [part if len(part) <= _PART_CHARACTERS else part[:_PART_CHARACTERS].rstrip() + "…" for part in heading_path]
    while (used := counter.count(HEADING_SEPARATOR.join(parts))) > room and len(parts) > 1:
        del parts[1 if len(parts) > 2 else 0]  # noqa: PLR2004 - the file's title goes last but one
    while used > room:
        parts = [parts[0][: len(parts[0]) // 2]]
        used = counter.count(parts[0])
    return tuple(parts), MAX_TOKENS - used


def split_to_fit(pieces: Sequence[str], counter: TokenCounter, room: int) -> list[str]:
    """Returns the pieces; those of more than `room` tokens are split as prose."""
    return [
        part
        for piece, count in zip(pieces, counter.count_many(pieces), strict=True)
        for part in ([piece] if count <= room else split_prose(piece, room, counter))
    ]


_EMPTY = frozenset({"null", "n/a", "tbd", "todo"})
_SPEAKING_WORDS = 4
"""A heading of at least this many words besides stop words states something by itself; so does one with a number, like
"P0: no actors", or a negation."""
_NUMBERING = re.compile(r"^\d[\d.)]*\s")


def has_content(text: str) -> bool:
    """Tells if a chunk's text states anything besides dates, headings without a body and empty values."""
    return any(_states(line) for line in text.splitlines())


def _states(line: str) -> bool:
    said = line.strip(scores.MARKS)
    if leads_in(line) or said.endswith(":"):
        return _speaks(_NUMBERING.sub("", said))
    dated = scores.DATE_LINE.match(line)
    if scores.written_moment(dated["value"] if dated else said):
        return False
    value = said.partition(": ")[2].strip(scores.MARKS) or said
    return says_something(value) and value.lower() not in _EMPTY


def _speaks(heading: str) -> bool:
    is_specific = any(map(str.isdigit, heading)) or NEGATION.search(heading) is not None
    return is_specific or len(content_words(heading)) >= _SPEAKING_WORDS


_CASE_KEYS = (*FIELDS["case"], "client", "customer", "project", "incident", "experiment", "subject")
"""Keys of the case, the best first."""
_VERDICT_KEYS = FIELDS["verdict"][:-2]
_STATUS_KEYS = FIELDS["verdict"][-2:]
"""Keys whose value may be a verdict, or anything else."""
_TEXT_KEYS = re.compile(
    r"p\d|(?:\w+_)?(?:issue|problem|finding|summary|comment|note|remark|reason|lesson|action|trend|cause|feedback|text|"
    r"detail|description|message|reasoning|rationale|justification|recommendation|question|answer)s?|"
    r"severity|priority|next(?:_\w+)?|why|how|fix|fixed|\w*assessment"
)
"""Keys whose values are texts, however short."""
_PROSE_WORDS = 6
"""A string of at least this many words counts as prose."""
_SENTENCE_WORDS = 3
"""Least words of a sentence; "Acme Ltd." is none."""
_NAMING_WORDS = 8
"""Most words of a value that names the case or states the verdict; a longer one is prose."""
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""A letter of a script that puts no blanks between words; two of them count as a word."""
MOST_FIELDS = 24
"""Most scalars that describe a file; more are data, and stay in the text."""
VALUE_CHARACTERS = 200
"""Most characters of a scalar; a longer one is a text."""
_META = re.compile(r"^(?:meta|metadata|header|info)\.")
"""The object of a file's fields, which count as those of the file."""


def has_prose(value: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Tells if a JSON value has a string of at least _PROSE_WORDS words."""
    match value:
        case str():
            return _word_count(value) >= _PROSE_WORDS
        case dict():
            return any(map(has_prose, value.values()))
        case list():
            return any(map(has_prose, value))
    return False


def _word_count(text: str) -> int:
    return max(len(text.split()), len(_UNSPACED.findall(text)) // 2)


def _is_text_key(key: object) -> bool:
    """Tells by its key if a string is a text, however short."""
    name = key_of(key)
    return _TEXT_KEYS.fullmatch(name) is not None or ISSUES.fullmatch(name) is not None


def is_scalar(key: object, value: Any) -> bool:  # noqa: ANN401 - any JSON or YAML value
    """Tells if a value is a number, a date, an identifier or a few words that are no sentence, or states nothing."""
    if not isinstance(value, str):
        return not value or not isinstance(value, Mapping | list)
    name, words = key_of(key), _word_count(value)
    ends = words >= _SENTENCE_WORDS and name not in _CASE_KEYS and SENTENCE_END.search(f"{value.strip()} ")
    most = _NAMING_WORDS if name in {*_CASE_KEYS, *_VERDICT_KEYS} else _PROSE_WORDS - 1
    is_text = _is_text_key(key) or words > most or ends or len(value) > VALUE_CHARACTERS
    return not is_text or not has_content(f"{key}: {value}")


def is_shown(key: object, value: Any) -> bool:  # noqa: ANN401 - any JSON or YAML value
    """Tells if a scalar is the case, the version, the verdict, the date or the score of its file."""
    name = key_of(key)
    if name in scores.DATE_KEYS:
        return scores.moment_of(value) is not None
    if str(key) in {scores.FINAL_SCORE, *scores.SCORE_KEYS}:
        return scores.found_score({str(key): value}) is not None
    if name in FIELDS["version"]:
        return bool(scores.version_of(text_of(value, VALUE_CHARACTERS)))
    is_verdict = name in _STATUS_KEYS and VERDICTS.fullmatch(text_of(value, VALUE_CHARACTERS)) is not None
    return is_verdict or name in {*_VERDICT_KEYS, *FIELDS["passed"], *_CASE_KEYS}


def fields_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the scalars of a file's object, and of nested objects of scalars alone (`scores.evidence`)."""
    own = {str(key): value for key, value in document.items() if is_scalar(key, value)}
    nested = {
        f"{key}.{inner}": value
        for key, item in document.items()
        if is_described_by(key, item)
        for inner, value in item.items()
    }
    return own | nested


def is_described_by(key: object, value: Any) -> bool:  # noqa: ANN401 - any JSON or YAML value
    """Tells if a value is an object of scalars alone, and no list of issues by severity."""
    if not isinstance(value, Mapping) or not value or not all(is_scalar(*item) for item in value.items()):
        return False
    return not (_is_text_key(key) and any(isinstance(item, str) for item in value.values()))


def metadata_of_scalars(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the metadata that the scalars of a file give: `case`, `version`, `verdict`, and all of them by key."""
    if not fields:
        return {}
    facts = Facts()
    facts.take({_META.sub("", key): value for key, value in fields.items()})
    case = next((text for key in _CASE_KEYS if (text := text_of(facts.values.get(key), VALUE_CHARACTERS))), "")
    passed = {True: "passed", False: "not passed", None: ""}[facts.passed]
    named = {
        "case": case,
        "version": scores.version_of(facts.version) or next(scores.versions_in(case), ""),
        "verdict": facts.text("verdict").strip("*_ ") or passed,
    }
    shown = fields if len(fields) <= MOST_FIELDS else {key: item for key, item in fields.items() if is_shown(key, item)}
    values = {key[:VALUE_CHARACTERS]: text_of(_plain(value), VALUE_CHARACTERS) for key, value in shown.items()}
    return {key: value for key, value in named.items() if value} | {
        "fields": {key: value for key, value in values.items() if value}
    }


def _plain(value: Any) -> Any:  # noqa: ANN401 - any JSON or YAML value
    return str(value).lower() if isinstance(value, bool) else value
