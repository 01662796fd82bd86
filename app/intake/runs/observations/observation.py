"""The values of a finished run's outcome and its compressed form; parses the language model's reply. Pure."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct, structs

from app.foundation.text.prose import FENCE, ITEM, sentences_of
from app.foundation.text.words import in_one_line
from app.foundation.values import frozen
from app.intake.runs.run import ByteCount, LineCount, NewRun, Output, Run, RunId, Task, Text, Texts
from app.storage.memories.memory import Name, Score, Tags

TITLE_CHARACTERS = 80
FEWEST_FACTS, MOST_FACTS = 3, 5
MOST_SENTENCES = 3
"""Most sentences of a narrative."""
_MOST_ISSUES, _ISSUE_CHARACTERS = 50, 400
"""Most issues, and most characters of an issue: together a tenth of the limit of a memory's text."""
LLM, EXTRACTIVE = "llm", "extractive"


class Outcome(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A finished run, with the fields that are compressed."""

    output: Annotated[Output, Meta(description="may be left out with the `run_id` of a stored run that has one")] = ""
    task: Task = ""
    task_type: Name = ""
    queries: Texts = ()
    lines: LineCount | None = None
    bytes: ByteCount | None = None
    output_path: Text | None = None
    run_id: RunId | None = None
    final_score: Score | None = None
    verdict: Name = ""
    issues: Texts = ()
    """The evaluator's issues, word for word."""
    tags: Tags = ()
    language: Name | None = None
    occurred_at: datetime | None = None


@frozen
class Compressed:
    """The compressed form of an outcome."""

    title: str
    narrative: str
    facts: tuple[str, ...]
    compressor: str
    """LLM, EXTRACTIVE or GIVEN."""
    model: str | None = None
    prompt: str | None = None
    fallback: str = ""
    """The reason why the language model's reply was rejected; empty if it was accepted or no model was called."""

    @property
    def body(self) -> str:
        """The text that is stored and indexed: the narrative above the facts."""
        return "\n".join(part for part in (self.narrative, *(f"- {fact}" for fact in self.facts)) if part)


_SHARED = tuple(name for name in Outcome.__struct_fields__ if name in NewRun.__struct_fields__)
"""The fields that an outcome and its run both have."""


def nonempty_fields(outcome: Outcome) -> dict[str, Any]:
    """Returns the fields of an outcome that are not empty."""
    fields = structs.asdict(outcome)
    return {name: value for name, value in fields.items() if value not in (None, "", ())}


def complete_from_run(outcome: Outcome, run: Run) -> Outcome:
    """Returns the outcome with its run's values for what it leaves out, except the issues, which may still change."""
    known = {name: getattr(run, name) for name in _SHARED if name != "issues"}
    return Outcome(**{**known, "occurred_at": run.finished_at, **nonempty_fields(outcome)})


def finished_run(outcome: Outcome) -> NewRun:
    """Returns the run of an outcome that names it."""
    shared = {name: value for name, value in nonempty_fields(outcome).items() if name in _SHARED}
    return NewRun(**shared, finished_at=outcome.occurred_at)


def missing(told: NewRun, run: Run) -> NewRun:
    """Returns the fields that a stored run lacks."""
    stored = {name for name in NewRun.__struct_fields__ if getattr(run, name) not in (None, "", (), {})}
    return structs.replace(told, **dict.fromkeys(stored - {"run_id"}))


def as_judged(request: Outcome, run: Run) -> Outcome:
    """Returns the request with its run's judgement: the run's score and verdict first, and its issues in addition."""
    return structs.replace(
        request,
        final_score=request.final_score if run.final_score is None else run.final_score,
        verdict=run.verdict or request.verdict,
        issues=tuple(dict.fromkeys((*request.issues, *run.issues))),
    )


def issue_facts(issues: Sequence[str], evaluator: str) -> tuple[str, ...]:
    """Returns the evaluator's issues as marked facts, each once; after _MOST_ISSUES, only the number of the others."""
    found = list(dict.fromkeys(cut_line(issue, _ISSUE_CHARACTERS) for issue in issues if issue.strip()))
    rest = [f"and {len(found) - _MOST_ISSUES:,} more"] if len(found) > _MOST_ISSUES else []
    return tuple(f"[{evaluator}] {issue}" for issue in (*found[:_MOST_ISSUES], *rest))


def is_issue_fact(fact: str, evaluator: str) -> bool:
    """Tells whether a fact is one of the evaluator's issues."""
    return fact.startswith(f"[{evaluator}] ")


def cut_line(text: str, limit: int) -> str:
    """Returns `text` in one line of at most `limit` characters, cut at a word."""
    line = in_one_line(text)
    if len(line) <= limit:
        return line
    cut = line[: limit - 1]
    at_word = cut.rsplit(" ", 1)[0] if " " in cut[limit // 2 :] else cut
    return f"{at_word.rstrip(' ,;:.-')}…"


_FACT_CHARACTERS = 400
_LARGEST_REPLY = 100_000
"""Most characters of a reply that are read: a model that writes more repeats itself."""

_REASONING = re.compile(r"^[ \t]*<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE | re.MULTILINE)
_FIELD = re.compile(
    r"^[ \t>]{0,8}(?P<item>(?:[-*•]|\d{1,2}[.)])[ \t]+)?(?P<mark>#{1,6}[ \t]*[*_]{0,3}|[*_]{1,3})?"
    r"(?P<name>title|narrative|summary|key facts|facts)[ \t*_]{0,4}"
    r"(?:[:：][*_]{0,3}[ \t]*|(?(mark)[ \t#]*$|(?!)))",
    re.IGNORECASE | re.MULTILINE,
)
_REASONING_END = re.compile(
    r"</(?:think|thinking|reasoning)>[ \t]*(?:\n|(?=[{`])|(?=[#*_\d.) ]{0,8}(?:title|narrative|summary|facts)\b))",
    re.IGNORECASE,
)
_ALIASES = {"narrative": "summary", "facts": "key facts"}
"""Other names of fields; a field's own name takes precedence."""

_ARRAY = re.compile(r"(?:\A|^)[ \t]*(?P<array>\[)(?=\s*[\"“„«'‘{])", re.MULTILINE)
_DECODER = json.JSONDecoder(strict=False)
_QUOTES = {'"': '"', "“": '”“"', "„": '”“"', "«": "»", "'": "'", "‘": "’'"}
"""Closing quotes by the opening quote."""
_MARKS = "*_`\"'“”„«» \t"
_UNSTORABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
"""Control characters and halves of a surrogate pair: JSON can escape them, but Postgres cannot store all of them."""


@frozen
class Reply:
    """The fields of a reply; a missing field is empty."""

    title: str
    narrative: str
    facts: tuple[str, ...]


def parsed_reply(text: str) -> Reply:
    """Returns the three fields of a reply, which may be JSON or lines of text."""
    fields = _fields(_without_reasoning(text[:_LARGEST_REPLY].replace("\r\n", "\n")))
    facts = (_plain(item, _FACT_CHARACTERS) for item in facts_of(fields.get("facts") or ""))
    return Reply(
        title=_plain(_as_text(fields.get("title")), TITLE_CHARACTERS),
        narrative=_narrative(_as_text(fields.get("narrative"))),
        facts=tuple(dict.fromkeys(fact for fact in facts if fact))[:MOST_FACTS],
    )


def storable(text: str) -> str:
    """Returns `text` without the characters that cannot be stored or shown."""
    return _UNSTORABLE.sub("", text)


def _without_reasoning(text: str) -> str:
    """Returns the text without the model's reasoning, even if the opening mark of the reasoning is missing.

    A text that only mentions the marks has no narrative after the last of them.
    """
    visible = FENCE.sub("", _REASONING.sub("", text))
    ends = list(_REASONING_END.finditer(visible))
    rest = visible[ends[-1].end() :] if ends else ""
    return rest if _fields(rest).get("narrative") else visible


def _fields(text: str) -> Mapping[str, Any]:
    """Returns the fields of the reply if it is a JSON object, else the fields of its lines."""
    found = _from_object(text) or _from_lines(text)
    return {name: found.get(name) or found.get(_ALIASES.get(name, "")) for name in ("title", "narrative", "facts")}


def _from_object(text: str) -> Mapping[str, Any] | None:
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or _FIELD.search(text):
        return None
    try:
        found = _DECODER.decode(text[start : end + 1])
    except (ValueError, RecursionError):
        return None
    return {str(key).lower(): value for key, value in found.items()} if isinstance(found, dict) else None


def _from_lines(text: str) -> Mapping[str, str]:
    """Returns the text of each field, up to the next field; of two fields of one name, the first that is not empty."""
    marks = list(_FIELD.finditer(text))
    # If the fields are not items of a list, an item that looks like a field is a fact.
    marks = [mark for mark in marks if not mark["item"] or marks[0]["item"]]
    fields: dict[str, str] = {}
    for place, mark in enumerate(marks):
        end = marks[place + 1].start() if place + 1 < len(marks) else len(text)
        value = text[mark.end() : end].strip()
        if value:
            fields.setdefault(mark["name"].lower(), value)
    return fields


def facts_of(value: Any) -> Iterable[str]:  # noqa: ANN401 - any JSON value
    """Returns the facts of a list, of a JSON array as text, or of lines of text."""
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    if not isinstance(value, str):
        return [_as_text(value)]
    text = FENCE.sub("", value).strip()
    array = _ARRAY.search(text)
    if array is not None:
        return _array(text[array.start("array") :])
    if text and text[0] in _QUOTES and text.rstrip(" ,")[-1] in _QUOTES[text[0]]:
        return _strings(text)
    return _bullets(text) or _lines(text)


def _array(text: str) -> list[str]:
    """Returns the items of the array that begins the text, even if it is not valid JSON."""
    try:
        loaded, _ = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return _strings(text[1:].lstrip())
    return [_as_text(item) for item in loaded]


def _strings(text: str) -> list[str]:
    """Returns the quoted strings between commas or line breaks, which may contain quotes; drops a truncated one."""
    closing = re.escape(_QUOTES.get(text[:1], '"'))
    opening = re.escape("".join(_QUOTES))
    between = rf"[{closing}][ \t]*(?:,[ \t]*(?://[^\n]*)?\n?|\n)[ \t]*[{opening}]"
    *items, last = re.split(between, text[1:])
    end = re.search(rf"[{closing}]\s*,?\s*(?:\]|\Z)", last)
    if end is not None or not items:
        items.append(last if end is None else last[: end.start()])
    return [_unescape(item) for item in items]


def _unescape(item: str) -> str:
    try:
        return str(_DECODER.decode('"' + re.sub(r'(?<!\\)"', r"\"", item) + '"'))
    except ValueError:
        return item.replace('\\"', '"')


def _bullets(text: str) -> list[str]:
    """Returns the items of a list; a line right after an item belongs to it."""
    items: list[list[str]] = []
    is_open = False
    for line in text.splitlines():
        found = ITEM.match(line)
        if found:
            items.append([line[found.end() :]])
        elif is_open and line.strip():
            items[-1].append(line.strip())
        is_open = bool(line.strip()) and bool(items)
    return [" ".join(item).rstrip(",") for item in items]


def _lines(text: str) -> list[str]:
    within = text[1:-1]
    is_list = text[:1] == "[" and text[-1:] == "]" and "]" not in within
    return [line for line in (within if is_list else text).splitlines() if line.strip(" ,[]")]


def _as_text(item: Any) -> str:  # noqa: ANN401 - any JSON value
    match item:
        case None:
            return ""
        case str():
            return item
        case dict():
            return "; ".join(f"{key}: {value}" for key, value in item.items())
        case list():
            return " ".join(_as_text(part) for part in item)
    return json.dumps(item, ensure_ascii=False)


def _plain(text: str, limit: int) -> str:
    return cut_line(in_one_line(storable(text)).strip(_MARKS + ",").strip(), limit)


def _narrative(text: str) -> str:
    sentences = sentences_of(in_one_line(storable(text)).strip(_MARKS))
    return " ".join(sentences[:MOST_SENTENCES]).strip()
