"""Plans and the cues that apply to them, labelled by hand: how they are read and stored."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from app.interfaces.http.cues import CueInput
from app.recall.cues.cue import NewCue
from app.recall.cues.keep import MOST_AT_ONCE
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from benchmarks.stage import rows_of, workspace_of

SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
NEAR, EVERYDAY, UNRELATED = "near misses", "everyday", "unrelated"
"""Roles of plans that deserve silence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A plan, and the groups of cues that apply to it."""

    plan: str
    groups: frozenset[str]
    project: str
    role: str = ""
    """Why it deserves silence; empty if a cue applies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """The lasting cues, the group and the project of each, and the plans. Cues of one group teach the same lesson."""

    cues: Sequence[NewCue]
    groups: Sequence[str]
    projects: Sequence[str]
    cases: Sequence[Case]


def labelled(folder: Path) -> Labelled:
    """Returns a labelled set of either format."""
    return _lessons(folder) if (folder / "gold.jsonl").exists() else _cues(folder)


def _lessons(folder: Path) -> Labelled:
    """Reads a set of sessions, of lessons in them, and of plans; the lessons are cues in the words of their turns."""
    sessions = {row["id"]: row for row in rows_of(folder / "sessions.jsonl")}
    gold = {row["id"]: row for row in rows_of(folder / "gold.jsonl")}

    def group(name: str) -> str:
        return group(gold[name]["same_as"]) if "same_as" in gold[name] else name

    return Labelled(
        cues=[_stated(row, sessions[row["session"]]["messages"][row["message"]]["text"]) for row in gold.values()],
        groups=[f"{name} (superseded)" if row.get("superseded_by") else group(name) for name, row in gold.items()],
        projects=[sessions[row["session"]]["project"] for row in gold.values()],
        cases=[
            Case(
                plan=row["plan"],
                groups=frozenset(map(group, row["fires"])),
                project=row["project"] or "",
                role=""
                if row["fires"]
                else next(role for role in (NEAR, EVERYDAY, UNRELATED) if role[:9] in row["about"]),
            )
            for row in rows_of(folder / "plans.jsonl")
        ],
    )


def _stated(row: Mapping[str, Any], text: str) -> NewCue:
    said = [part.strip() for part in SENTENCE.split(text) if part.strip()]
    lesson = [part for part in said if any(_holds(part, group) for group in row["lesson"])] or said
    trigger = next((part for part in said if _holds(part, row["trigger"][0])), row["trigger"][0][0])
    return NewCue(kind=row["kind"], trigger=trigger[:300], lesson=" ".join(lesson)[:900])


def _holds(text: str, phrases: Sequence[str]) -> bool:
    return any(phrase.lower() in text.lower() for phrase in phrases)


def _cues(folder: Path) -> Labelled:
    """Reads labelled cues of one project, and the plans that fire them or only look as if they did."""
    rows = list(rows_of(folder / "cues.jsonl"))
    groups = [row.get("group") or f"#{place}" for place, row in enumerate(rows)]
    kept = [place for place, row in enumerate(rows) if row["type"] != "none" and row["scope"] in {"project", "general"}]
    return Labelled(
        cues=[_cue(rows[place]) for place in kept],
        groups=[groups[place] for place in kept],
        projects=[folder.name] * len(kept),
        cases=[
            Case(plan=plan, groups=frozenset(fired), project=folder.name, role=role)
            for case in rows_of(folder / "activation.jsonl")
            if case["cue"] in kept
            for name, role, fired in (("fires", "", {groups[case["cue"]]}), ("near_misses", NEAR, ()))
            for plan in case[name]
        ],
    )


def _cue(row: Mapping[str, Any]) -> NewCue:
    evidence = [{"session": row["session"], "message": row["message"], "quote": row["quote"]}]
    given = {name: row[name] for name in ("trigger", "lesson", "consequence", "scope")}
    return msgspec.convert({"kind": row["type"], "evidence": evidence, **given}, CueInput).cue()


def real_logs(folder: Path) -> Mapping[str, Labelled]:
    """Returns the lessons and plans of real session logs, each project by itself."""
    lessons, plans = (list(rows_of(folder / f"{name}.jsonl")) for name in ("lessons", "plans"))
    return {project: _of_project(project, lessons, plans) for project in sorted({row["project"] for row in plans})}


def _of_project(project: str, lessons: Sequence[Mapping[str, Any]], plans: Sequence[Mapping[str, Any]]) -> Labelled:
    own = [row for row in lessons if row["project"] == project]
    roles = {"everyday": EVERYDAY, "near miss": NEAR, "does it right": NEAR}
    return Labelled(
        cues=[NewCue(kind=row["kind"], trigger=row["when"], lesson=row["lesson"]) for row in own],
        groups=[f"{project} {place}" for place in range(len(own))],
        projects=[project] * len(own),
        cases=[
            Case(
                plan=row["plan"],
                groups=frozenset(f"{project} {place}" for place in row["fires"]),
                project=project,
                role="" if row["fires"] else roles[row["sort"]],
            )
            for row in plans
            if row["project"] == project
        ],
    )


def requests(folder: Path) -> list[Case]:
    """Returns the requests of a set that has nothing to do with any cue: all of them deserve silence."""
    files = sorted(folder.glob("*/questions.jsonl"))
    return [
        Case(plan=row["query"], groups=frozenset(), project=file.parent.name, role=UNRELATED)
        for file in files
        for row in rows_of(file)
    ]


async def filled(services: Services, name: str, cues: Sequence[NewCue]) -> tuple[Workspace, list[str]]:
    """Stores cues in a workspace; returns it, and their ids."""
    workspace = await workspace_of(services, name)
    ids: list[str] = []
    for first in range(0, len(cues), MOST_AT_ONCE):
        ids += map(str, (await services.cues.add(workspace, cues[first : first + MOST_AT_ONCE])).ids)
    return workspace, ids
