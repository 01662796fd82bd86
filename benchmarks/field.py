"""Small inputs on which users of neighbouring projects stumbled, each judged right or with its faults named.

The inputs are those of `field-dev`; its `case.md` files say what right looks like and name the reports behind them.
Each case uses the doors that a user has: the command `priors`, its hooks as processes, and the HTTP routes.
"""

import asyncio
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import httpx

from benchmarks.figures import Figure, report
from benchmarks.stage import SHARED_DATA, service, stage

INPUTS = SHARED_DATA / "field-dev"
_SECONDS = 300.0
_SETTLED_SECONDS = 60.0
_AT_ONCE = 8
_DUE = re.compile(r'^priors_jobs\{state="due"\} (\S+)$', re.MULTILINE)
_WAITING = re.compile(r"^priors_embeddings_waiting (\S+)$", re.MULTILINE)
Faults = Iterator[str]


class Store:
    """One workspace of a running service, reached by the doors of its users."""

    def __init__(self, address: str, workspace: str, home: Path) -> None:
        headers = {"X-Workspace": workspace}
        self.http = httpx.Client(base_url=address, headers=headers, timeout=_SECONDS)
        self.workspace = workspace
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PRIORS_")}
        self._environment = {**kept, "PRIORS_URL": address, "XDG_STATE_HOME": str(home)}
        self._home = home

    def priors(self, *words: str, event: Mapping[str, Any] | None = None) -> "subprocess.CompletedProcess[str]":
        """Returns what a command printed; an event goes to its standard input."""
        given = "" if event is None else json.dumps(event)
        with self.started(*words) as process:
            output, errors = process.communicate(given, timeout=_SECONDS)
        return subprocess.CompletedProcess(words, process.returncode, output, errors)

    def started(self, *words: str) -> "subprocess.Popen[str]":
        """Starts a command in this workspace, in the folder of its user."""
        return subprocess.Popen(
            [str(Path(sys.executable).with_name("priors")), *words, "-w", self.workspace],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self._home,
            env=self._environment,
        )

    def ingest(self, *paths: Path) -> "subprocess.CompletedProcess[str]":
        """Takes files in by the command line, and waits until their cues and vectors are stored."""
        done = self.priors("ingest", *map(str, paths))
        self.settle()
        return done

    def hook(self, event: str, **more: Any) -> str:  # noqa: ANN401 - the fields of any event
        """Returns what an event of a coding program is told, or why it is told nothing."""
        done = self.priors("hook", event={"hook_event_name": event, "cwd": str(self._home), **more})
        if not done.stdout.strip():
            return done.stderr.strip()
        told: str = json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]
        return told

    def get(self, path: str) -> Any:  # noqa: ANN401 - the answer of any route
        """Returns the answer of a route; None for one that is not there."""
        answer = self.http.get(path)
        return answer.json() if answer.status_code == httpx.codes.OK else None

    def post(self, path: str, body: object) -> Any:  # noqa: ANN401 - the answer of any route
        """Returns the answer of a route; raises if it refuses."""
        return self.http.post(path, json=body).raise_for_status().json()

    def note(self, body: str, **more: Any) -> None:  # noqa: ANN401 - fields of a memory
        """Stores a note with its vector."""
        self.post("/api/memories?wait=true", {"kind": "note", "body": body, **more})

    def history(self, query: str, **more: Any) -> str:  # noqa: ANN401 - fields of a query
        """Returns the history for a request."""
        markdown: str = self.post("/api/history", {"query": query, **more})["markdown"]
        return markdown

    def titles(self, query: str, **more: Any) -> list[str]:  # noqa: ANN401 - fields of a query
        """Returns the titles of the hits."""
        return [hit["title"] for hit in self.post("/api/search", {"query": query, "k": 7, **more})["hits"]]

    def before_acting(self, plan: str) -> str:
        """Returns the lessons for a plan."""
        markdown: str = self.post("/api/activate", {"plan": plan})["markdown"]
        return markdown

    def session(self, session_id: str) -> Any:  # noqa: ANN401 - the answer of a route
        """Returns a session; None if it is not stored."""
        return self.get(f"/api/sessions/{session_id}")

    def settle(self) -> None:
        """Waits until no memory waits for a vector and no job is due, seen twice in a row."""
        until, quiet = time.monotonic() + _SETTLED_SECONDS, 0
        while quiet < 2 and time.monotonic() < until:
            time.sleep(0.5)
            figures = self.http.get("/metrics").text
            counts = [float(found[1]) for found in (_DUE.search(figures), _WAITING.search(figures)) if found]
            quiet = quiet + 1 if not any(counts) else 0


def _input(number: str) -> Path:
    return next(INPUTS.glob(f"{number}-*"))


def _spoken(session: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - the answer of a route
    """Returns role and text of each spoken turn; nothing for a session that is not stored."""
    if session is None:
        return []
    return [(turn["role"], turn["text"]) for turn in session["messages"] if turn["text"].strip()]


CASES: dict[str, Callable[[Store], Faults]] = {}


def _case(number: str) -> Callable[[Callable[[Store], Faults]], Callable[[Store], Faults]]:
    def register(judge: Callable[[Store], Faults]) -> Callable[[Store], Faults]:
        CASES[number] = judge
        return judge

    return register


@_case("01")
def _front_matter_that_yaml_refuses(store: Store) -> Faults:
    done = store.ingest(_input("01"))
    scores = {
        version["version"]: version["score"]
        for case in store.get("/api/cases") or []
        for version in store.get(f"/api/cases/{case['case']}")["versions"]
    }
    if scores != {"v4": 6.8, "v5": 8.1} and "YAML" not in done.stdout + done.stderr:
        yield f"the judgements are {scores}, and nothing names the front matter"
    told = store.history("What does the reseller take of the starter plan?")
    if "22 percent" not in told:
        yield "the history does not answer"
    if "---\n" in told or "verdict: revise" in told:
        yield "the front matter is shown as a report's text"


@_case("04")
def _json_with_nan_and_records(store: Store) -> Faults:
    done = store.ingest(_input("04"))
    judged = [store.get(f"/api/cases/{case['case']}") for case in store.get("/api/cases") or []]
    scores = [version["score"] for case in judged for version in case["versions"]]
    if scores != [7.4] and "NaN" not in done.stderr:
        yield f"the judgement has the scores {scores}, and nothing names NaN"
    if scores == [7.4] and not any("STOI" in issue["title"] for case in judged for issue in case["issues"]):
        yield "the judgement's issue is lost"
    bodies = [memory["body"] for memory in store.get("/api/memories?limit=50")["memories"]]
    if not any("hum filter" in body for body in bodies) and "results.jsonl" not in done.stdout + done.stderr:
        yield "the records of results.jsonl are neither stored nor named"


@_case("06")
def _files_of_other_suffixes(store: Store) -> Faults:
    done = store.ingest(_input("06"))
    said = done.stdout + done.stderr
    paths = {source["uri"] for source in store.get("/api/sources?limit=50")["sources"]}
    for path in _input("06").iterdir():
        is_stored = any(uri.endswith(path.name) for uri in paths)
        if not is_stored and path.suffix not in said:
            yield f"{path.name} is neither stored nor named"
    for name in ("kiln.markdown", "glaze.txt", "samples.csv"):
        text = (_input("06") / name).read_text(encoding="utf-8")
        answer = store.http.post("/api/reports", json={"path": f"kiln/{name}", "content": text})
        if answer.is_error and ".md" not in answer.text:
            yield f"the refusal of {name} does not name the suffixes that are taken"


@_case("07")
def _composed_and_decomposed_letters(store: Store) -> Faults:
    store.ingest(_input("07"))
    for text in (
        "chaudière café",
        "Müller",
        "학점인정",
        "Bäckerei Prüfung",
        "payment gateway",
        "first retry",
        "4000 ms",
    ):
        found = {}
        for form in ("NFC", "NFD"):
            hits = store.post("/api/search", {"query": unicodedata.normalize(form, text), "k": 3})["hits"]
            best = max((hit["explain"]["lexical"] or 0.0 for hit in hits), default=0.0)
            found[form] = (hits[0]["id"] if hits else None, round(best, 4))
            if best <= 0:
                yield f"no word of {text!r} in {form} is matched"
        if found["NFC"] != found["NFD"]:
            yield f"{text!r} finds {found['NFC']} composed and {found['NFD']} decomposed"


@_case("09")
def _typed_while_the_agent_works(store: Store) -> Faults:
    store.ingest(_input("09") / "session.jsonl")
    session = store.session("0a9e7b10-0000-4000-8000-000000000009")
    said = [text for role, text in _spoken(session) if role == "user"]
    for part in ("don't write to the orders table", "use the staging database"):
        if sum(part in text for text in said) != 1:
            yield f"{part!r} is said {sum(part in text for text in said)} times by the user"
        if not any(part in cue["lesson"] or part in cue["quote"] for cue in session["cues"]):
            yield f"{part!r} is no cue"
    if any("task-notification" in text or "background" in text.lower() for text in said):
        yield "a program's notice is a turn of the user"


@_case("10")
def _a_subagent_is_no_person(store: Store) -> Faults:
    store.ingest(_input("10") / "projects")
    cues = store.get("/api/cues?limit=50")["cues"]
    trusted = [cue["lesson"] for cue in cues if cue["trust"] == "person"]
    if any("legacy" in lesson or "one sentence" in lesson for lesson in trusted):
        yield f"an agent's prompt has a person's trust: {trusted}"
    if "legacy" in store.before_acting("Edit legacy/report.py and run the tests"):
        yield "an agent's prompt is told"
    if len(_spoken(store.session("0b100000-0000-4000-8000-000000000010"))) != 2:
        yield "the main session has other turns than its own two"


@_case("11")
def _newer_rollouts_of_codex(store: Store) -> Faults:
    store.ingest(_input("11"))
    for number, (name, count) in enumerate({"a": 4, "b": 4, "c": 4, "d": 4}.items()):
        session = store.session(f"0c11000{number}-0000-4000-8000-000000000011")
        if session is None:
            yield f"{name} is not stored"
            continue
        if len(_spoken(session)) != count:
            yield f"{name} has {len(_spoken(session))} spoken turns instead of {count}"
        if not any("stable" in cue["lesson"] for cue in session["cues"]):
            yield f"the correction in {name} is no cue"
        if name == "b" and not any(item["path"] == "app/release.py" for item in session["artifacts"]):
            yield "the changed file of b is no artifact"


@_case("12")
def _sessions_of_gemini(store: Store) -> Faults:
    store.ingest(_input("12"))
    for number in range(2):
        session = store.session(f"0d12000{number}-0000-4000-8000-000000000012")
        if session is None:
            yield f"session {number} is not stored"
            continue
        if len(_spoken(session)) != 4:
            yield f"session {number} has {len(_spoken(session))} spoken turns"
        if not any("queue images" in cue["lesson"] for cue in session["cues"]):
            yield f"the correction of session {number} is no cue"
        if not any(item["path"].endswith("upload.py") for item in session["artifacts"]):
            yield f"the file of session {number} is no artifact"
    if any(source["uri"].endswith((".json", ".jsonl")) for source in store.get("/api/sources?limit=50")["sources"]):
        yield "JSON stands in the store as a report"


@_case("13")
def _export_of_claude_ai(store: Store) -> Faults:
    done = store.ingest(_input("13") / "conversations.json")
    sessions = store.get("/api/sessions")["sessions"]
    if len(sessions) != 2 and "claude.ai" not in done.stdout + done.stderr:
        yield f"{len(sessions)} sessions are stored, and nothing names the format"
    if any(source["uri"].endswith((".json", ".jsonl")) for source in store.get("/api/sources?limit=50")["sources"]):
        yield "JSON stands in the store as a report"
    if "families" not in store.history("May we give the number of dogs in the donors' letter?"):
        yield "the history does not answer"


_FIRST_DAY, _DAYS, _NOW = date(2026, 5, 30), 20, "2026-06-18T10:00:00Z"
_ASKED_DAYS = {
    "What did we work on yesterday?": ["2026-06-17"],
    "stand-up on 2 June": ["2026-06-02"],
    "stand-up of 2026-06-11": ["2026-06-11"],
    "what happened on Monday": ["2026-06-15"],
    "Was haben wir gestern gemacht?": ["2026-06-17"],
    "Что мы делали вчера?": ["2026-06-17"],
    "昨天做了什么": ["2026-06-17"],
}


@_case("18")
def _times_in_questions_and_filters(store: Store) -> Faults:
    topics = ("the crane", "the barge", "the sluice gate", "the lock keeper", "the dredger")
    for number in range(_DAYS):
        day = str(_FIRST_DAY + timedelta(days=number))
        body = f"Stand-up: work on {topics[number % 5]} went on, crew of {3 + number}."
        store.note(body, occurred_at=f"{day}T15:00:00Z", title=day)
    store.settle()
    for query, (day, *_) in _ASKED_DAYS.items():
        if (found := store.titles(query, now=_NOW))[:1] != [day]:
            yield f"{query!r} begins with {found[:3]} instead of {day}"
    last_week = store.titles("what did we do last week", now=_NOW)
    if not last_week or not all("2026-06-08" <= day <= "2026-06-14" for day in last_week):
        yield f"last week is {last_week}"
    before = store.titles("work before 1 June", now=_NOW)
    if not before or not all(day < "2026-06-01" for day in before):
        yield f"before 1 June is {before}"
    yield from _edges_of_filters(store)


def _edges_of_filters(store: Store) -> Faults:
    whole_day = store.http.post(
        "/api/search", json={"query": "work", "filters": {"since": "2026-06-16", "until": "2026-06-16"}}
    )
    days = [hit["title"] for hit in whole_day.json()["hits"]] if whole_day.is_success else ["2026-06-16"]
    if days != ["2026-06-16"]:
        yield f"a date alone as `until` gives {days}"
    turned = {"since": "2026-06-17T00:00:00Z", "until": "2026-06-16T00:00:00Z"}
    answer = store.http.post("/api/search", json={"query": "work", "filters": turned})
    if answer.is_success and answer.json()["hits"]:
        yield "`since` later than `until` finds something"
    printed = store.priors("search", "stand-up work", "--since", "2026-06-16", "--until", "2026-06-16", "--limit", "5")
    if printed.returncode == 0 and "2026-06-16" not in printed.stdout:
        yield f"the command finds nothing of the day: {printed.stdout}"


_QUESTION = "Why does the nightly import of the price list fail?"
_LOG_WORDS = (
    "GET",
    "/healthz",
    "200",
    "OK",
    "worker",
    "pid",
    "reconnect",
    "kafka",
    "offset",
    "commit",
    "WARN",
    "retry",
)


def _pasted_log(size: int) -> str:
    chance, lines, length = random.Random(3), list[str](), 0
    while length < size:
        words = " ".join(chance.choice(_LOG_WORDS) for _ in range(3))
        lines.append(
            f"2026-06-18T03:{chance.randrange(60):02}:{chance.randrange(60):02}Z id={chance.randrange(10**7)} {words}"
        )
        length += len(lines[-1]) + 1
    return "\n".join(lines)


@_case("19")
def _a_question_beside_a_pasted_log(store: Store) -> Faults:
    store.note("The nightly import of the price list fails when a supplier sends a decimal comma; convert it before the"
               " parser.", title="Price list import")  # fmt: skip
    store.note("The warehouse scanner loses its wifi behind shelf 14.", title="Scanner")
    store.note("Invoices are numbered by the year and a counter.", title="Invoices")
    for number in range(60):
        body = f"Pod web-{number} restarted at minute {number} after the liveness probe on /healthz timed out."
        store.note(body, title=f"Pod {number}")
    store.settle()
    for size in (2_000, 8_000, 60_000, 400_000):
        paste = _pasted_log(size)
        asked = {
            "first": f"{_QUESTION}\n\n```\n{paste}\n```",
            "last": f"```\n{paste}\n```\n\n{_QUESTION}",
            "in the middle": f"{paste[: size // 2]}\n\n{_QUESTION}\n\n{paste[size // 2 :]}",
        }
        for place, text in asked.items():
            answer = store.http.post("/api/history", json={"query": text, "budget_tokens": 800})
            if answer.is_success and "decimal comma" not in answer.json()["markdown"]:
                yield f"with {size} characters and the question {place} it is not answered"
            if answer.is_error and size < 100_000:
                yield f"{size} characters with the question {place} are refused: {answer.text[:120]}"
    for size in (60_000, 2_000_000):
        told = store.hook("UserPromptSubmit", session_id=f"s{size}", prompt=f"{_QUESTION}\n\n{_pasted_log(size)}")
        if "decimal comma" not in told:
            yield f"the hook does not answer beside {size} characters: {told[:120]}"


_SHORT_NOTES = (
    "The ETL job must run before 6 am, or the mart is empty.",
    "/etc/hosts on db1 is written by Ansible: edit the role, not the file.",
    "p99 on gpu 3 is high because of the fan curve.",
    "CI is red since the tox pin; use tox 4.",
    "S3 sync needs --size-only on the NAS.",
    "登录页面的修复必须先改会话密钥。",
    "The VAT of IE is 23.",
    "DB url of QA is in env.qa.",
    "The API v2 key is per org.",
    "src/app.py must not import the ORM.",
)
_REAL_PROMPTS = (
    "Run the ETL job now", "/etc/hosts has the wrong ip for db1, fix it", "fix the p99 on gpu 3", "why is CI red?",
    "S3 sync to the NAS", "修复登录", "VAT of IE?", "set the DB url of QA", "API v2 key",
    "/src/app.py: add an ORM call", "use tox 4 or 3?", "ETL", "gpu 3", "p99?",
)  # fmt: skip
_SMALL_TALK = ("ok", "thanks!", "yes, go on", "/clear", "/compact keep the plan", "hi")


@_case("20")
def _short_prompts_and_paths(store: Store) -> Faults:
    for note in _SHORT_NOTES:
        store.note(note)
    store.settle()
    for number, prompt in enumerate((*_REAL_PROMPTS, *_SMALL_TALK)):
        told = store.hook("UserPromptSubmit", session_id=f"c20-{number}", prompt=prompt)
        if bool(told) != (prompt in _REAL_PROMPTS):
            yield f"{prompt!r} is told {told[:60]!r}"


@_case("21")
def _after_compaction(store: Store) -> Faults:
    lesson = "Never drop a column in the same release that stops writing it."
    wish = "Write commit messages in the imperative."
    column = "drop a database column in a migration"
    store.post(
        "/api/cues",
        [
            {"kind": "correction", "trigger": column, "lesson": lesson, "trust": "person", "consequence": 0.9},
            {"kind": "preference", "trigger": "writing commit messages", "lesson": wish, "trust": "person"},
        ],
    )
    store.settle()
    command = "alembic revision -m 'drop column legacy_id' && psql -c 'alter table orders drop column legacy_id'"
    act = {"tool_name": "Bash", "tool_input": {"command": command, "description": f"Drop the column: {column}"}}

    def hooked(event: str, **more: Any) -> str:  # noqa: ANN401 - the fields of any event
        told = store.hook(event, session_id="c21", **more)
        # What is told is logged by a process that nobody waits for.
        time.sleep(1)
        return told

    for source in ("startup", "compact", "clear"):
        if wish not in hooked("SessionStart", source=source):
            yield f"{source} does not tell what stands"
        if lesson not in hooked("PreToolUse", **act):
            yield f"the act is not told its lesson after {source}"
        if hooked("PreToolUse", **act):
            yield f"the act is told its lesson twice after {source}"
    for event, more in {"SubagentStart": {"agent_type": "Explore"}, "PreCompact": {"trigger": "auto"}}.items():
        if "answers" in hooked(event, **more):
            yield f"{event} is refused"


def _ledger_turns() -> list[dict[str, str]]:
    found = []
    for number in range(8):
        asked = f"Never write to the table ledger_{number} directly: always go through the outbox."
        said = f"Understood, ledger_{number} is written through the outbox."
        found.append({"role": "user", "text": asked, "at": f"2026-07-01T10:{number:02}:00Z"})
        found.append({"role": "assistant", "text": said, "at": f"2026-07-01T10:{number:02}:30Z"})
    return found


@_case("23")
def _one_session_sent_at_once(store: Store) -> Faults:
    turns = _ledger_turns()
    status = Counter[int]()

    def send(number: int) -> None:
        for size in (2 * number + 2, 16, 4):
            body = {"id": "s23", "messages": turns[:size]}
            status[store.http.post("/api/sessions?wait=true", json=body).status_code] += 1

    def push(_: int) -> None:
        for place in range(0, 16, 2):
            body = {"messages": [{**turns[place], "id": str(place)}, {**turns[place + 1], "id": str(place + 1)}]}
            status[store.http.post("/api/sessions/s23b/messages", json=body).status_code] += 1

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        list(threads.map(send, range(_AT_ONCE)))
        store.settle()
        lessons = Counter(cue["lesson"] for cue in store.get("/api/cues?limit=100")["cues"])
        list(threads.map(push, range(4)))
    if any(code > httpx.codes.CONFLICT for code in status):
        yield f"answers: {dict(status)}"
    for name in ("s23", "s23b"):
        said = [turn["text"] for turn in store.session(name)["messages"]]
        if said != [turn["text"] for turn in turns]:
            yield f"{name} has {len(said)} turns, or another order"
    yield from (f"{lesson!r} is stored {count} times" for lesson, count in lessons.items() if count > 1)
    yield from _two_ingestions_at_once(store)


def _two_ingestions_at_once(store: Store) -> Faults:
    with tempfile.TemporaryDirectory() as folder:
        for number in range(40):
            text = f"# Report {number}\n\nDate: 2026-07-{number % 28 + 1:02}\n\nPump {number} ran {number * 7} hours.\n"
            Path(folder, f"r{number}.md").write_text(text, encoding="utf-8")
        with ThreadPoolExecutor(2) as threads:
            done = list(threads.map(lambda _: store.priors("ingest", folder), range(2)))
    yield from (f"an ingestion beside another one fails: {one.stderr[-200:]}" for one in done if one.returncode)
    chunks = store.get("/api/memories?kind=chunk&limit=100")["memories"]
    if len(chunks) != 40:
        yield f"{len(chunks)} chunks of 40 reports"


_WORD = "Marlowquint"
_TABLES = (
    "memories?limit=100", "memories?state=deleted", "memories?state=superseded", "sessions", "cues?limit=100",
    "cues?state=retired&limit=100", "runs", "runs/r24", "recalls", "contexts", "sources", "cases", "feedback/export",
    "ingestions", "audit", "proposals", "graph?limit=100",
)  # fmt: skip


@_case("24")
def _forget_everything_about_a_subject(store: Store) -> Faults:
    with tempfile.TemporaryDirectory() as folder:
        text = f"# Interview notes\n\nDate: 2026-05-05\n\n{_WORD} lives in Leith and asked for a refund of 80 pounds.\n"
        Path(folder, "people.md").write_text(text, encoding="utf-8")
        store.ingest(Path(folder))
    store.note(f"{_WORD} prefers calls after six.", title=f"About {_WORD}")
    said = [
        {"role": "user", "text": f"Never write to {_WORD} by e-mail, always call."},
        {"role": "assistant", "text": "Noted."},
    ]
    store.post("/api/sessions?wait=true", {"id": "s24", "messages": said})
    output = f"{_WORD} gets the refund of 80 pounds and a call on Tuesday."
    run = {"run_id": "r24", "task": f"Answer the complaint of {_WORD}", "output": output, "remember": True}
    store.post("/api/runs?wait=true", {**run, "final_score": 8})
    store.history(f"What do we know about {_WORD}?", run_id="r24b")
    store.post("/api/contexts", {"observation": f"{_WORD} writes again about the refund"})
    store.post("/api/activate", {"plan": f"Write an e-mail to {_WORD}", "run_id": "r24b"})
    memory = store.get("/api/memories?limit=1")["memories"][0]["id"]
    store.post(f"/api/memories/{memory}/feedback", {"rating": 1, "comment": f"right about {_WORD}"})
    listed = store.priors("forget", _WORD)
    if "note" not in listed.stdout or "message" not in listed.stdout:
        yield f"`forget` lists nothing: {listed.stdout}{listed.stderr}"
    if not _traces(store):
        yield "nothing was stored that could be forgotten"
    done = store.priors("forget", _WORD, "--yes")
    if done.returncode:
        yield f"`forget --yes` fails: {done.stderr}"
    store.settle()
    yield from (f"it stands in {place}" for place in _traces(store))
    if "backup" not in done.stdout.lower():
        yield "what stays in backups is not said"


def _traces(store: Store) -> list[str]:
    """Returns the routes whose answers hold the word, and the tables of a dump that do."""
    found = [path for path in _TABLES if _WORD.lower() in store.http.get(f"/api/{path}").text.lower()]
    hits = store.post("/api/search", {"query": f"What do we know about {_WORD}?"})["hits"]
    found += ["search"] if _WORD.lower() in json.dumps(hits).lower() else []
    dump = store.http.get("/api/workspace/dump")
    return found + (["dump"] if dump.is_success and _WORD.lower() in dump.text.lower() else [])


@_case("27")
def _logs_that_compaction_emptied(store: Store) -> Faults:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log.jsonl")
        for name, count in {"1-whole": 6, "2-blanked": 8, "3-compacted": 9, "1-whole.jsonl": 9}.items():
            shutil.copy(_input("27") / f"{name.removesuffix('.jsonl')}.jsonl", log)
            store.ingest(log)
            sessions = store.get("/api/sessions")["sessions"]
            if len(sessions) != 1:
                yield f"after {name} there are {len(sessions)} sessions"
            session = store.session(sessions[0]["id"])
            said = [text for _, text in _spoken(session)]
            if len(said) != count or len(set(said)) != count:
                yield f"after {name} there are {len(said)} turns instead of {count}"
            if any("being continued" in text for text in said):
                yield f"after {name} the summary is a turn"
            for part in ("old index", "search_live"):
                if not any(part in cue["lesson"] for cue in session["cues"]):
                    yield f"after {name} the cue on {part} is gone"


def judged(address: str, numbers: Sequence[str] = ()) -> dict[str, list[str]]:
    """Returns the faults of each case, in workspaces of their own."""
    found = {}
    for number in numbers or sorted(CASES):
        with tempfile.TemporaryDirectory() as home:
            store = Store(address, f"field-{number}-{os.getpid()}", Path(home))
            found[number] = _faults_of(number, store)
            store.http.close()
    return found


def _faults_of(number: str, store: Store) -> list[str]:
    """Returns the faults of a case; what no door answers is a fault as well."""
    found: list[str] = []
    try:
        found.extend(CASES[number](store))
    except (httpx.HTTPError, LookupError, TypeError, ValueError) as error:
        found.append(f"the case ends with {type(error).__name__}: {error}")
    return found


async def measure(numbers: Sequence[str]) -> list[Figure]:
    """Judges the cases on a service of their own, and prints their faults."""
    async with stage() as services:
        with service(services.settings) as (address, _):
            found = await asyncio.to_thread(judged, address, numbers)
    for number, faults in found.items():
        for fault in faults:
            print(f"{number}: {fault}")
    right = sum(not faults for faults in found.values())
    figures = [
        Figure(name=f"case {number}, right", value=float(not faults), at_least=1) for number, faults in found.items()
    ]
    return [*figures, Figure(name="cases that are right", value=right, at_least=len(found))]


def main(arguments: Sequence[str] | None = None) -> None:
    """Judges the cases that the command line names, or all of them."""
    numbers = sys.argv[1:] if arguments is None else arguments
    if not INPUTS.is_dir():
        print(f"the inputs are not at {INPUTS}")
        return
    report("field", asyncio.run(measure(numbers)))


if __name__ == "__main__":
    main()
