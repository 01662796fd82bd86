"""Plot specifications: what one shows, without how it is drawn. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

PARTS = ("layer", "hconcat", "vconcat", "concat")
DATA = frozenset({"values", "url", "name"})
SAID_BY = ("title", "description", "field", "text", "subtitle")
LONGEST = 200
"""Characters of a title; what is longer is data."""


def is_plot(document: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Whether the document is a Vega, Vega-Lite or Plotly specification, told by its content."""
    if not isinstance(document, Mapping):
        return False
    schema = str(document.get("$schema", "")).lower()
    plotly = isinstance(document.get("data"), list) and isinstance(document.get("layout"), Mapping)
    return "vega" in schema or plotly or (_draws(document) and _has_data(document.get("data")))


def _draws(document: Mapping[str, Any]) -> bool:
    marked = "mark" in document and isinstance(document.get("encoding"), Mapping)
    return marked or any(isinstance(document.get(part), list) for part in PARTS)


def _has_data(data: Any) -> bool:  # noqa: ANN401 - any JSON value
    return isinstance(data, Mapping) and bool(DATA & data.keys())


def plot_summary(document: Mapping[str, Any]) -> str:
    """Its titles, descriptions and the fields that it shows."""
    said = dict.fromkeys(_said(document))
    return "plot of " + ", ".join(said) if said else "plot"


def _said(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key in SAID_BY and isinstance(item, str) and 0 < len(item) <= LONGEST:
                yield item
            elif key not in {"datasets", "values"}:
                yield from _said(item)
    elif isinstance(value, list):
        for item in value:
            yield from _said(item)
