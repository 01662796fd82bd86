"""The routes of the service's OpenAPI document, and the names of the client's methods for them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

NAMES = {
    "GET /api/runs/{run_id}": "run_story",
    "GET /api/feedback/export": "export_feedback",
    "GET /api/recalls:trends": "recall_trends",
    "DELETE /api/feedback/{feedback_id}": "undo_rating",
    "POST /api/forget": "forget",
    "PATCH /api/runs/{run_id}": "complete_run",
    "POST /api/activate": "activate",
    "POST /api/activations/{activation_id}/outcome": "note_outcome",
    "POST /api/check": "check",
    "POST /api/contexts": "build_context",
    "POST /api/contexts:compile": "compile_context",
    "POST /api/contexts:compare": "compare_contexts",
    "POST /api/cues": "store_cues",
    "POST /api/cues:learn": "learn",
    "POST /api/history": "history",
    "POST /api/imports": "import_file",
    "POST /api/links": "change_links",
    "POST /api/memories": "store",
    "POST /api/memories/{memory_id}/feedback": "rate",
    "POST /api/novelty": "novelty",
    "POST /api/observations": "observe",
    "PATCH /api/proposals/{proposal_id}": "decide_proposal",
    "POST /api/reports": "ingest_report",
    "POST /api/runs": "record_run",
    "POST /api/search": "search",
    "POST /api/sessions": "store_session",
    "POST /api/sessions/{session_id}/messages": "append_messages",
}
"""The methods that have another name than their path would give them."""
FIRST = (
    "POST /api/history",
    "POST /api/activate",
    "POST /api/check",
    "GET /api/why",
    "POST /api/search",
    "POST /api/runs",
    "PATCH /api/runs/{run_id}",
    "GET /api/runs/{run_id}",
    "POST /api/memories",
    "GET /api/memories/{memory_id}",
    "POST /api/memories/{memory_id}/feedback",
    "POST /api/cues:learn",
    "POST /api/contexts",
    "POST /api/sessions",
    "POST /api/reports",
)
"""The routes that people call, in the order in which a client lists them; all others stand under its `admin`."""
POSITIONAL = {"POST /api/activate": "plan", "GET /api/why": "subject"}
"""The argument that needs no keyword, of routes that can do without it."""
TEXTS = {
    **POSITIONAL,
    "POST /api/history": "query",
    "POST /api/search": "query",
    "POST /api/check": "plan",
}
"""The field that a method of the TypeScript client takes as a bare text."""
BY_HAND = {"POST /api/memories:bulk": "store_many"}
"""The methods that `async_client.py` has, because their requests are streams."""
REPEATABLE = {
    "PATCH /api/memories",
    "POST /api/imports",
    "POST /api/links",
    "POST /api/memories",
    "POST /api/novelty",
    "POST /api/reports",
    "POST /api/search",
    "POST /api/sessions",
}
"""The POST and PATCH routes that may be sent again when no answer came: they only read (and log), set a state, or know
a text that is stored already. A route with an Idempotency-Key is one too, and its method makes the key."""
_IDEMPOTENT = {"get", "put", "delete"}


@dataclass(frozen=True)
class Operation:
    """A route of the document."""

    method: str
    path: str
    parameters: tuple[Mapping[str, Any], ...]
    body: Mapping[str, Any] | None
    answer: Mapping[str, Any] | None
    media: str
    about: str

    @property
    def route(self) -> str:
        """The method and the path."""
        return f"{self.method.upper()} {self.path}"

    @property
    def first(self) -> bool:
        """True if its method is the client's own; the others are those of `admin`."""
        return self.route in FIRST or self.route in BY_HAND

    @property
    def repeatable(self) -> bool:
        """True if sending it twice has the effect of sending it once."""
        return self.method in _IDEMPOTENT or self.route in REPEATABLE or self.keyed

    @property
    def keyed(self) -> bool:
        """True if a key makes repeating it safe."""
        return any(one["name"] == "Idempotency-Key" for one in self.of("header"))

    def of(self, place: str) -> list[Mapping[str, Any]]:
        """Returns the parameters of the path, the query or the headers."""
        return [one for one in self.parameters if one["in"] == place and one["name"] != "X-Workspace"]


@dataclass(frozen=True)
class Pages:
    """The pages of a route's answer."""

    by: str
    """`cursor`, `last` (an item's id) or `offset`."""
    key: str
    """The field that holds the items of a page (`cursor`), or an item's id (`last`)."""
    item: Mapping[str, Any]
    parameter: str
    """The parameter that asks for the next page."""


def pages_of(operation: Operation, schemas: Mapping[str, Any]) -> Pages | None:
    """Returns how a route's pages follow each other; None if its answer is whole."""
    asked = {one["name"] for one in operation.of("query")}
    answer = operation.answer or {}
    if "cursor" in asked:
        page = schemas[answer["$ref"].rpartition("/")[2]]["properties"]
        items = next(name for name, schema in page.items() if schema.get("type") == "array")
        return Pages("cursor", items, page[items]["items"], "cursor")
    if operation.method != "get" or answer.get("type") != "array":
        return None
    if "before" in asked:
        fields = schemas[answer["items"]["$ref"].rpartition("/")[2]]["properties"]
        last = "id" if "id" in fields else f"{singular(operation.path.rpartition('/')[2])}_id"
        return Pages("last", last, answer["items"], "before")
    return Pages("offset", "", answer["items"], "offset") if "offset" in asked else None


def operations_of(document: Mapping[str, Any]) -> list[Operation]:
    """Returns the routes, those that people call first."""
    places = {route: place for place, route in enumerate(FIRST)}
    return sorted(_operations_of(document), key=lambda one: places.get(one.route, len(FIRST)))


def _operations_of(document: Mapping[str, Any]) -> Iterator[Operation]:
    for path, methods in document["paths"].items():
        for method, found in methods.items():
            body = found.get("requestBody", {}).get("content", {})
            answers = [answer for status, answer in found["responses"].items() if status.startswith("2")]
            contents: Mapping[str, Any] = answers[0].get("content", {})
            media = next(iter(contents), "")
            yield Operation(
                method=method,
                path=path,
                parameters=tuple(found.get("parameters", ())),
                body=next(iter(body.values()))["schema"] if body else None,
                answer=contents[media]["schema"] if media else None,
                media=media,
                about=found.get("description") or found.get("summary", ""),
            )


def name_of(operation: Operation) -> str:
    """Returns the name of a route's method.

    `GET /api/cues` is `cues`, `GET /api/cues/{id}` is `cue`, and with `/links` after it `cue_links`; `POST` adds, `PUT`
    saves, `PATCH` changes; `POST /api/keys/{id}/rotate` is `rotate_key`, `POST /api/cues:merge` `merge_cues`.
    """
    route = operation.route
    if route in NAMES or route in BY_HAND:
        return NAMES.get(route) or BY_HAND[route]
    path, _, verb = operation.path.partition(":")
    segments = [part.replace("-", "_") for part in path.removeprefix("/api").strip("/").split("/")]
    words = [
        singular(part) if following.startswith("{") else part
        for part, following in zip(segments, [*segments[1:], ""], strict=True)
        if not part.startswith("{")
    ]
    if verb:
        return "_".join([verb.replace("-", "_"), *words])
    if operation.method == "get":
        return "_".join(words)
    if operation.method == "post" and not segments[-1].startswith("{") and len(words) > 1:
        return "_".join([words[-1], *words[:-1]])
    done = {"post": "add", "put": "save", "patch": "change", "delete": "delete"}[operation.method]
    return "_".join([done, *words])


def singular(word: str) -> str:
    """Returns the singular of a resource's name."""
    return f"{word[:-3]}y" if word.endswith("ies") else word.removesuffix("s")
