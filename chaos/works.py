"""The kinds of work: each is a sequence of requests that may be repeated, and a comparison with what is stored."""

import shutil
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import httpx
import msgspec

Found = dict[str, Any]
Parameter = str | int | list[str]

PAGE = 200
BULK = 40
FILES = 8


class Request(msgspec.Struct, frozen=True):
    """One step of a work: what is sent, and what a store must hold once it is acknowledged."""

    path: str
    body: Any
    expected: tuple[str, ...]
    """What `Work.stored` returns for it."""
    headers: dict[str, str] = {}
    method: str = "POST"


class Command(msgspec.Struct, frozen=True):
    """One step of a work that is a command of Priors, and what a store must hold once it has ended well."""

    words: tuple[str, ...]
    expected: tuple[str, ...]


Step = Request | Command


class Store:
    """One workspace, asked over HTTP."""

    def __init__(self, client: httpx.Client, workspace: str) -> None:
        self.client, self.workspace = client, workspace

    def get(self, path: str, **parameters: Parameter) -> Any:  # noqa: ANN401 - the JSON of an answer
        """Returns an answer's JSON.

        Raises:
            httpx.HTTPError: the service did not answer, or refused.
        """
        return self.client.get(path, params=parameters).raise_for_status().json()

    def pages(self, path: str, items: str, **parameters: Parameter) -> Iterator[Found]:
        """Yields the items of all pages of a list."""
        cursor: dict[str, str] = {}
        while True:
            page = self.get(path, limit=PAGE, **parameters, **cursor)
            yield from page[items]
            if page["next"] is None:
                return
            cursor = {"cursor": page["next"]}

    def unfinished(self) -> list[str]:
        """Names the jobs that this workspace still waits for."""
        status = self.get("/api/status")
        return [f"{name}: {status[name]}" for name in ("waiting", "pending_links") if status[name]]


class Work(ABC):
    """A sequence of steps, each with names of its own, and how to find what they have stored."""

    name: ClassVar[str]

    def prepare(self, store: Store) -> None:
        """Stores what the steps need. The fault strikes later."""
        del store

    def end(self) -> None:
        """Takes away what the work has made outside the store."""
        return

    @abstractmethod
    def step(self, number: int) -> Step:
        """Returns a request or a command; the same for the same number."""

    @abstractmethod
    def stored(self, store: Store) -> Counter[str]:
        """Counts what is stored, under the names in a step's `expected`."""

    def unfinished(self, store: Store, done: list[Step]) -> list[str]:
        """Names what background jobs still owe to acknowledged requests."""
        del done
        return store.unfinished()


def _note(number: int) -> str:
    return f"Lesson {number}: the scout verifies the licence of producer {number} before it counts it."


class Notes(Work):
    """Memories, one a request."""

    name = "single memories"

    def step(self, number: int) -> Step:
        return Request("/api/memories", {"kind": "note", "body": _note(number)}, (_note(number),))

    def stored(self, store: Store) -> Counter[str]:
        return Counter(memory["body"] for memory in store.pages("/api/memories", "memories"))


class Bulk(Notes):
    """Memories in bulk."""

    name = "bulk intake"

    def step(self, number: int) -> Step:
        bodies = tuple(_note(number * BULK + place) for place in range(BULK))
        lines = b"\n".join(msgspec.json.encode({"kind": "note", "body": body}) for body in bodies)
        return Request("/api/memories:bulk", lines, bodies, {"content-type": "application/x-ndjson"})


def _report(number: int) -> tuple[str, str]:
    """Returns the path and the text of a report."""
    sections = "".join(f"\n\n## Finding {part}\n\n{_note(number)} Part {part}." for part in range(6))
    return f"runs/{number}/report.md", f"# Report {number}{sections}\n"


class Reports(Work):
    """The content of reports."""

    name = "reports"
    _chunks = 0
    """Memories of each report, learnt from one that nothing disturbs."""

    def prepare(self, store: Store) -> None:
        store.client.post("/api/reports", json=self._body(-1)).raise_for_status()
        self._chunks = next(store.pages("/api/sources", "sources"))["memories"]

    def step(self, number: int) -> Step:
        return Request("/api/reports", self._body(number), (self._expected(number),))

    def stored(self, store: Store) -> Counter[str]:
        found = (f"{source['title']}: {source['memories']}" for source in store.pages("/api/sources", "sources"))
        return Counter(found) - Counter([self._expected(-1)])

    def _body(self, number: int) -> dict[str, str]:
        path, content = _report(number)
        return {"path": path, "content": content}

    def _expected(self, number: int) -> str:
        return f"{_report(number)[0]}: {self._chunks}"


class Sessions(Work):
    """Sessions, out of which the worker makes cues."""

    name = "sessions and their cues"
    _TURNS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("user", "Add the migration for table {}."),
        ("assistant", "I drop the column deprecated_{} in one step."),
        ("user", "No, never drop a column in the release that stops using it: first deploy the code for table {}."),
        ("assistant", "Understood. I split it into two releases for table {}."),
    )

    def step(self, number: int) -> Step:
        messages = [{"role": role, "text": text.format(number)} for role, text in self._TURNS]
        name = f"session-{number}"
        return Request("/api/sessions", {"id": name, "messages": messages}, (f"{name}: {len(messages)} turns",))

    def stored(self, store: Store) -> Counter[str]:
        return Counter(
            f"{session['id']}: {session['turns']} turns" for session in store.pages("/api/sessions", "sessions")
        )


class Merges(Work):
    """Pairs of cues that say the same, and requests to tend all cues, which merge each pair."""

    name = "merges of cues"

    def step(self, number: int) -> Step:
        if number % 2:
            return Request("/api/cues:tend", {}, ())
        pair = [f"{verb} the licence of producer {number}." for verb in ("Verify", "Check")]
        cues = [
            {
                "kind": "preference",
                "trigger": f"Producer {number} is counted.",
                "lesson": lesson,
                "evidence": [f"{lesson[:-1]}, please."],
            }
            for lesson in pair
        ]
        return Request("/api/cues", cues, tuple(pair))

    def stored(self, store: Store) -> Counter[str]:
        return Counter(cue["lesson"] for cue in self._cues(store))

    def unfinished(self, store: Store, done: list[Step]) -> list[str]:
        """Names the jobs; then tends the cues once more, because some links may have come after the last request."""
        if owed := store.unfinished():
            return owed
        store.client.post("/api/cues:tend").raise_for_status()
        proofs = {cue["lesson"]: len(cue["evidence"]) for cue in self._cues(store) if cue["state"] == "active"}
        return [
            f"{step.expected} has {found} turns of evidence in active cues"
            for step in done
            if (found := [proofs[lesson] for lesson in step.expected if lesson in proofs]) != [2] and step.expected
        ]

    def _cues(self, store: Store) -> Iterator[Found]:
        return store.pages("/api/cues", "cues", state=["active", "superseded"])


class Runs(Work):
    """Judged runs, which the worker compresses to observations."""

    name = "runs and their observations"

    def step(self, number: int) -> Step:
        body = {
            "run_id": f"run-{number}",
            "task": f"Find the producers of town {number}",
            "output": f"The scout verified {number} producers of town {number}. Three had lost their licence in 2025.",
            "final_score": 6.5,
            "verdict": "revise",
            "remember": True,
        }
        return Request("/api/runs", body, (f"run-{number}",))

    def stored(self, store: Store) -> Counter[str]:
        return Counter(run["run_id"] for run in store.pages("/api/runs", "runs"))

    def unfinished(self, store: Store, done: list[Step]) -> list[str]:
        owed = []
        for step in done:
            (run,) = step.expected
            made = len(store.get(f"/api/runs/{run}")["observations"])
            if made != 1:
                owed.append(f"{run} has {made} observations")
        return owed or store.unfinished()


class Ratings(Work):
    """Ratings of one memory."""

    name = "ratings"
    _memory = ""

    def prepare(self, store: Store) -> None:
        answer = store.client.post("/api/memories", json={"kind": "note", "body": _note(0)})
        (self._memory,) = answer.raise_for_status().json()["ids"]

    def step(self, number: int) -> Step:
        name = f"rating {number}"
        body = {"rating": 1 if number % 3 else -1, "comment": name, "reviewer": f"reviewer {number}"}
        return Request(f"/api/memories/{self._memory}/feedback", body, (name,), {"idempotency-key": name})

    def stored(self, store: Store) -> Counter[str]:
        ratings = store.get(f"/api/memories/{self._memory}/feedback")
        return Counter(rating["comment"] for rating in ratings)


class Ingestion(Reports):
    """Folders of reports, taken in by the command."""

    name = "ingestion of folders"

    def prepare(self, store: Store) -> None:
        super().prepare(store)
        self._workspace = store.workspace
        self._folder = Path(tempfile.mkdtemp(prefix="priors-chaos-reports-"))

    def end(self) -> None:
        shutil.rmtree(self._folder)

    def step(self, number: int) -> Step:
        places = range(number * FILES, (number + 1) * FILES)
        for path, content in map(_report, places):
            written = self._folder / path
            written.parent.mkdir(parents=True, exist_ok=True)
            written.write_text(content)
        words = ("ingest", "--workspace", self._workspace, str(self._folder))
        return Command(words, tuple(map(self._expected, places)))


class Move(Notes):
    """Moves of the whole store to another embedding model."""

    name = "moves to another model"

    def prepare(self, store: Store) -> None:
        self._workspace = store.workspace
        for number in range(BULK):
            store.client.post("/api/memories", json={"kind": "note", "body": _note(number)}).raise_for_status()

    def step(self, number: int) -> Step:
        bodies = tuple(_note(place) for place in range(BULK)) if number == 0 else ()
        return Command(("store", "reembed", "--model", f"{self._workspace}-{number % 2}"), bodies)


WORKS: dict[str, type[Work]] = {
    work.name: work for work in (Notes, Bulk, Reports, Sessions, Merges, Runs, Ratings, Ingestion, Move)
}
