"""Reading what language models really send. Pure."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from app.observations.observation import MOST_FACTS, MOST_SENTENCES, TITLE_CHARACTERS, in_one_line, shortened
from app.observations.sentences import sentences_of

FACT_CHARACTERS = 400
LARGEST_REPLY = 100_000
"""Characters; a longer reply is a model that has lost its way, and its beginning is as good."""

REASONING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
REASONING_END = re.compile(r"\A.*</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
FENCE = re.compile(r"^[ \t]*```[^\n]*$", re.MULTILINE)
FIELD = re.compile(
    r"^[ \t>#*_\-]{0,8}(?P<name>title|narrative|summary|facts|key facts)[ \t*_]{0,4}[:：][*_]{0,2}[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)+)"')
SINGLE_QUOTED = re.compile(r"(?:(?<=[\[,(])|^)\s*'((?:[^'\\\n]|\\.|'(?=\w))+)'\s*(?=[,\])]|$)", re.MULTILINE)
BULLET = re.compile(r"^[ \t]*(?:[-*•–+]|\d{1,2}[.)])[ \t]+(.+)$", re.MULTILINE)
MARKS = "*_`\"'“”„«» \t"
NAMES = {"summary": "narrative", "key facts": "facts"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The fields of a reply; what is missing is empty."""

    title: str
    narrative: str
    facts: tuple[str, ...]


def parsed_reply(text: str) -> Reply:
    """The three fields, wherever and however the model put them."""
    fields = _from_object(_without_reasoning(text[:LARGEST_REPLY]))
    facts = dict.fromkeys(fact for item in facts_of(fields.get("facts", "")) if (fact := _plain(item, FACT_CHARACTERS)))
    return Reply(
        title=_plain(fields.get("title", ""), TITLE_CHARACTERS),
        narrative=_narrative(fields.get("narrative", "")),
        facts=tuple(facts)[:MOST_FACTS],
    )


def _without_reasoning(text: str) -> str:
    """A model's thoughts are left out, also those whose beginning the endpoint has already taken away."""
    visible = REASONING_END.sub("", REASONING.sub("", text))
    return FENCE.sub("", visible)


def _from_object(text: str) -> Mapping[str, Any]:
    """The fields of a JSON object, should the whole reply be one; of lines otherwise."""
    start, end = text.find("{"), text.rfind("}")
    if start >= 0 and not FIELD.search(text):
        try:
            found = json.loads(text[start : end + 1])
        except (ValueError, RecursionError):
            return _from_lines(text)
        if isinstance(found, dict):
            return {NAMES.get(str(key).lower(), str(key).lower()): value for key, value in found.items()}
    return _from_lines(text)


def _from_lines(text: str) -> Mapping[str, str]:
    """Each field from its name to the next; of two with one name the first that says something."""
    marks = list(FIELD.finditer(text))
    fields: dict[str, str] = {}
    for place, mark in enumerate(marks):
        name = NAMES.get(mark["name"].lower(), mark["name"].lower())
        end = marks[place + 1].start() if place + 1 < len(marks) else len(text)
        value = text[mark.end() : end].strip()
        if value and not fields.get(name):
            fields[name] = value
    return fields


def facts_of(value: Any) -> Iterable[str]:  # noqa: ANN401 - any JSON value
    """The facts of a list, a JSON array as text, or whatever a model wrote in its place."""
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    if not isinstance(value, str):
        return [_as_text(value)]
    start, end = value.find("["), value.rfind("]")
    if start >= 0:
        try:
            loaded = json.loads(value[start : end + 1])
        except (ValueError, RecursionError):
            loaded = None
        if isinstance(loaded, list):
            return [_as_text(item) for item in loaded]
    return _broken(value)


def _broken(value: str) -> list[str]:
    """A list that is not JSON: its quoted strings, its bullets, or else its lines."""
    for pattern in (BULLET, QUOTED, SINGLE_QUOTED):
        found = pattern.findall(value)
        if found:
            return [item.rstrip(",").replace('\\"', '"') for item in found]
    return [line for line in value.strip("[] \n").splitlines() if line.strip(" ,[]")]


def _as_text(item: Any) -> str:  # noqa: ANN401 - any JSON value
    if isinstance(item, dict):
        return "; ".join(f"{key}: {value}" for key, value in item.items())
    return item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)


def _plain(text: Any, limit: int) -> str:  # noqa: ANN401 - any JSON value
    return shortened(in_one_line(str(text)).strip(MARKS + ",").strip(), limit)


def _narrative(text: Any) -> str:  # noqa: ANN401 - any JSON value
    sentences = sentences_of(in_one_line(str(text)).strip(MARKS))
    return " ".join(sentences[:MOST_SENTENCES]).strip()
