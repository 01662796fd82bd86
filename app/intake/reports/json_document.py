"""Chunks JSON by its structure. Keys and values stay as they are in the file. Pure."""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from app.foundation.models.protocols import TokenCounter
from app.foundation.text.passages import cut_encoded_data, pack_pieces, says_something
from app.foundation.text.scores import FINAL_SCORE, found_date, found_score, is_number
from app.foundation.values import frozen
from app.intake.reports.chunk import (
    MOST_FIELDS,
    Chunk,
    fields_of,
    fit_heading_path,
    has_content,
    has_prose,
    is_described_by,
    is_scalar,
    is_shown,
    split_to_fit,
)

_TITLE_KEYS = ("title", "name", "task")
_TITLE_CHARACTERS = 120
_NUMBERS_SHOWN = 12
"""A longer list of numbers is shown by its count, minimum, maximum and mean."""
_WITHOUT_PROSE = 12
"""Chunks of a document without a sentence, besides its issues: the document stays retrievable and does not flood
answers."""
_ISSUE_KEYS = frozenset({"severity", "priority", "issue", "finding", "problem"})
"""An element of a list with one of these keys becomes a chunk of its own, even if it is short."""


Value = TypeVar("Value")


@frozen
class _JsonPiece:
    """A place in the document, with its rendered values."""

    heading_path: tuple[str, ...]
    pointer: str = ""
    date: datetime | None
    """The date that the document states at this place or above it."""
    score: float | None
    text: str = ""
    alone: bool = False
    """True for an element of a list that is not joined with its neighbours, because people quote it alone."""
    described: bool = False
    """True for scalars that describe the file; they are a passage of a chunk, and no chunk without other text."""

    def below(self, key: str | int) -> "_JsonPiece":
        """Returns the place of a nested value; an element of a list has no heading of its own."""
        heading_path = (*self.heading_path, key) if isinstance(key, str) else self.heading_path
        escaped = str(key).replace("~", "~0").replace("/", "~1")
        return replace(self, heading_path=heading_path, pointer=f"{self.pointer}/{escaped}")

    def stating(self, value: Mapping[str, Any]) -> "_JsonPiece":
        """Returns the place with an object's own date and `final_score`; other scores may be of a single criterion."""
        score = found_score({FINAL_SCORE: value[FINAL_SCORE]}) if FINAL_SCORE in value else self.score
        return replace(self, date=found_date(value) or self.date, score=score)


def chunk_json(document: Any, name: str, counter: TokenCounter) -> list[Chunk]:  # noqa: ANN401 - any JSON value
    """Returns the chunks of a JSON value; `name` is its title if it has none of its own.

    If the elements of a list contain sentences, each becomes a chunk; other values are packed up to the window. A
    plot's specification gives one chunk, which describes the plot. A document without sentences gives a few chunks, and
    all its issues. Scalars that describe the file are fields of all its chunks; they are a chunk only where there is
    nothing else.
    """
    facts = document if isinstance(document, Mapping) else {}
    top = next((str(facts[key]) for key in _TITLE_KEYS if _is_title(facts.get(key))), "")
    root = _JsonPiece(heading_path=(" ".join(top.split()) or name,), date=found_date(facts), score=found_score(facts))
    if _is_plot(document):
        summary = replace(root, text=_plot_summary(document))
        return list(_chunks([summary], counter))[:1]
    fields = fields_of(facts)
    pieces = list(_file_pieces(facts, root))
    if not any(has_content(piece.text) for piece in pieces if not piece.described):
        pieces = list(_pieces(document, root))
    elif len(fields) > MOST_FIELDS:
        pieces = [replace(piece, described=False) for piece in pieces]
    chunks = [replace(chunk, fields=fields) for chunk in _chunks(pieces, counter)]
    if has_prose(document) or len(chunks) <= _WITHOUT_PROSE:
        return chunks
    return _without_noise(chunks, issues={piece.pointer for piece in pieces if piece.alone})


def _without_noise(chunks: Sequence[Chunk], issues: Set[str]) -> list[Chunk]:
    """Returns the chunks of the issues, given by their pointers, and the first few of the others."""
    noise = [place for place, chunk in enumerate(chunks) if chunk.pointer not in issues]
    if len(noise) <= _WITHOUT_PROSE:
        return list(chunks)
    last, dropped = noise[_WITHOUT_PROSE - 1], set(noise[_WITHOUT_PROSE:])
    kept = [(place, chunk) for place, chunk in enumerate(chunks) if place not in dropped]
    return [replace(chunk, left_out=len(dropped)) if place == last else chunk for place, chunk in kept]


def _is_title(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value.strip()) <= _TITLE_CHARACTERS


def _pieces(value: Any, place: _JsonPiece) -> Iterator[_JsonPiece]:  # noqa: ANN401 - any JSON value
    """Yields the values in their order: scalars of an object together, nested values under their own heading path."""
    match value:
        case dict():
            yield from _object_pieces(value, place.stating(value))
        case list() if _is_series(value):
            yield replace(place, text=_shown_value(value))
        case list():
            for number, item in enumerate(value):
                yield from _element_pieces(item, place, number)
        case _:
            yield replace(place, text=_shown_value(value))


def _file_pieces(document: Mapping[str, Any], root: _JsonPiece) -> Iterator[_JsonPiece]:
    """Yields the texts of a file's object, then the scalars that no source line shows, then the other values."""
    flat = {key: item for key, item in document.items() if _is_flat(item) and item != root.heading_path[-1]}
    texts = {key: item for key, item in flat.items() if not is_scalar(key, item)}
    scalars = {key: item for key, item in flat.items() if key not in texts and not is_shown(key, item)}
    if texts:
        yield replace(root, text=_values(texts))
    if scalars:
        yield replace(root, text=_values(scalars), described=True)
    objects = {key: item for key, item in document.items() if is_described_by(key, item)}
    for key, item in objects.items():
        yield from (replace(piece, described=True) for piece in _pieces(item, root.below(key)))
    for key, item in document.items():
        if key not in objects and not _is_flat(item):
            yield from _pieces(item, root.below(key))


def _values(value: Mapping[str, Any]) -> str:
    return "\n".join(f"{key}: {_shown_value(item)}" for key, item in value.items())


def _object_pieces(value: Mapping[str, Any], place: _JsonPiece) -> Iterator[_JsonPiece]:
    flat = {key: item for key, item in value.items() if _is_flat(item)}
    told = {key: item for key, item in flat.items() if item != place.heading_path[-1]}
    if told:
        yield replace(place, text=_values(told))
    for key, item in value.items():
        if key not in flat:
            yield from _pieces(item, place.below(key))


def _element_pieces(item: Any, place: _JsonPiece, number: int) -> Iterator[_JsonPiece]:  # noqa: ANN401 - any JSON value
    own = place.below(number)
    if isinstance(item, dict) and (has_prose(item) or _ISSUE_KEYS & item.keys()):
        yield replace(own.stating(item), text="\n".join(_lines(item, "")), alone=True)
    elif isinstance(item, dict) and all(_is_flat(part) for part in item.values()):
        row = ", ".join(f"{key}: {_shown_value(part)}" for key, part in item.items())
        yield replace(place.stating(item), text=row)
    elif isinstance(item, str) and has_prose(item):
        yield replace(own, text=_shown_value(item), alone=True)
    else:
        yield from _pieces(item, own)


def _is_flat(value: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Tells whether a value fits on the line of its key."""
    if isinstance(value, list):
        return all(not isinstance(item, dict | list) and not has_prose(item) for item in value)
    return not isinstance(value, dict) or not value


def _lines(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, item in value.items():
        if _is_flat(item):
            yield f"{indent}{key}: {_shown_value(item)}"
            continue
        yield f"{indent}{key}:"
        if isinstance(item, dict):
            yield from _lines(item, indent + "  ")
            continue
        for part in item:
            yield from _lines(part, indent + "  ") if isinstance(part, dict) else (f"{indent}- {_shown_value(part)}",)


def _shown_value(value: Any) -> str:  # noqa: ANN401 - any JSON value
    match value:
        case None | bool():
            return json.dumps(value)
        case str():
            return cut_encoded_data(value)
        case list():
            return _shown_list(value)
        case dict():
            return json.dumps(value, ensure_ascii=False)
    return str(value)


def _is_series(values: Sequence[Any]) -> bool:
    """Tells whether these are only numbers, and more than are shown one by one."""
    return len(values) > _NUMBERS_SHOWN and all(map(is_number, values))


def _shown_list(values: Sequence[Any]) -> str:
    if _is_series(values):
        mean = sum(values) / len(values)
        return f"{len(values)} numbers from {min(values)} to {max(values)}, mean {mean:.6g}"
    return ", ".join(_shown_value(value) for value in values)


def _chunks(pieces: Sequence[_JsonPiece], counter: TokenCounter) -> Iterator[Chunk]:
    counts = counter.count_many([piece.text for piece in pieces])
    group: list[_JsonPiece] = []
    room = used = 0
    for piece, count in zip(pieces, counts, strict=True):
        labelled = count + (counter.count(_label(piece, group[0])) if group else 0)
        joins = group and not piece.alone and not group[-1].alone and _is_related(piece, group[0])
        if group and not (joins and used + labelled <= room):
            yield from _chunk(group, counter)
            group = []
        if not group:
            room, used = fit_heading_path(piece.heading_path, counter)[1], 0
            labelled = count
        group.append(piece)
        used += labelled
    if group:
        yield from _chunk(group, counter)


def _is_related(piece: _JsonPiece, first: _JsonPiece) -> bool:
    """Tells whether a piece is below or beside the first piece of the chunk."""
    return (
        piece.heading_path[: len(first.heading_path)] == first.heading_path
        or piece.heading_path[:-1] == first.heading_path[:-1]
    )


def _label(piece: _JsonPiece, first: _JsonPiece) -> str:
    """Returns the keys that lead from the chunk's heading path to this piece."""
    return ".".join(piece.heading_path[len(first.heading_path) :] or piece.heading_path[-1:]) + ":\n"


def _chunk(group: Sequence[_JsonPiece], counter: TokenCounter) -> Iterator[Chunk]:
    if all(piece.described for piece in group):
        return
    first = group[0]
    text = first.text
    for before, piece in itertools.pairwise(group):
        label = _label(piece, first) if piece.heading_path != before.heading_path else ""
        text += ("\n" if piece.described == before.described else "\n\n") + label + piece.text
    heading_path, room = fit_heading_path(first.heading_path, counter)
    parts = [text] if counter.count(text) <= room else _cut(text, room, counter)
    for part in parts:
        if says_something(part):
            yield Chunk(
                heading_path=heading_path,
                text=part,
                pointer=first.pointer,
                occurred_at=_common({piece.date for piece in group}),
                final_score=_common({piece.score for piece in group}),
            )


def _common(values: Set[Value]) -> Value | None:
    """Returns the value that all pieces of a chunk share; None if they differ."""
    return next(iter(values)) if len(values) == 1 else None


def _cut(text: str, room: int, counter: TokenCounter) -> list[str]:
    """Packs lines; splits a line that does not fit like prose."""
    lines = split_to_fit(text.split("\n"), counter, room)
    return list(pack_pieces(lines, counter.count_many(lines), room, "\n"))


_PLOT_PARTS = ("layer", "hconcat", "vconcat", "concat")
_PLOT_DATA = frozenset({"values", "url", "name"})
_PLOT_LABELS = ("title", "description", "field", "text", "subtitle")
_LABEL_CHARACTERS = 200
"""Longest title, in characters; a longer text is data."""


def _is_plot(document: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Tells by its content whether the document is a Vega, Vega-Lite or Plotly specification."""
    if not isinstance(document, Mapping):
        return False
    schema = str(document.get("$schema", "")).lower()
    plotly = isinstance(document.get("data"), list) and isinstance(document.get("layout"), Mapping)
    return "vega" in schema or plotly or (_is_drawn(document) and _has_data(document.get("data")))


def _is_drawn(document: Mapping[str, Any]) -> bool:
    marked = "mark" in document and isinstance(document.get("encoding"), Mapping)
    return marked or any(isinstance(document.get(part), list) for part in _PLOT_PARTS)


def _has_data(data: Any) -> bool:  # noqa: ANN401 - any JSON value
    return isinstance(data, Mapping) and bool(_PLOT_DATA & data.keys())


def _plot_summary(document: Mapping[str, Any]) -> str:
    """Returns the titles, descriptions and field names of a plot."""
    said = dict.fromkeys(_chart_labels(document))
    return "plot of " + ", ".join(said) if said else "plot"


def _chart_labels(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key in _PLOT_LABELS and isinstance(item, str) and 0 < len(item) <= _LABEL_CHARACTERS:
                yield item
            elif key not in {"datasets", "values"}:
                yield from _chart_labels(item)
    elif isinstance(value, list):
        for item in value:
            yield from _chart_labels(item)
