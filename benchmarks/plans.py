"""Plans and the cues that apply to them, labelled by hand: how they are read and stored."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from app.api.cues import CueInput
from app.cues.cue import NewCue
from app.cues.keep import MOST_AT_ONCE, add_cues
from app.memories.remember import Door
from app.wiring import Services
from app.workspaces.workspace import Workspace
from benchmarks.stage import workspace_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A plan, and the cue that applies to it or only looks as if it did."""

    plan: str
    group: str
    fires: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """The lasting cues, the group of each, and the plans."""

    cues: Sequence[NewCue]
    groups: Sequence[str]
    cases: Sequence[Case]


def labelled(folder: Path) -> Labelled:
    """Returns the labelled data; cues of one group teach the same lesson."""
    rows = [json.loads(line) for line in (folder / "cues.jsonl").read_text().splitlines()]
    groups = [row.get("group") or f"#{place}" for place, row in enumerate(rows)]
    kept = [place for place, row in enumerate(rows) if row["type"] != "none" and row["scope"] != "task"]
    cases = [json.loads(line) for line in (folder / "activation.jsonl").read_text().splitlines()]
    return Labelled(
        cues=[_cue(rows[place]) for place in kept],
        groups=[groups[place] for place in kept],
        cases=[
            Case(plan=plan, group=groups[case["cue"]], fires=name == "fires")
            for case in cases
            for name in ("fires", "near_misses")
            for plan in case[name]
        ],
    )


def _cue(row: Mapping[str, Any]) -> NewCue:
    evidence = [{"session": row["session"], "message": row["message"], "quote": row["quote"]}]
    given = {name: row[name] for name in ("trigger", "lesson", "consequence", "scope")}
    return msgspec.convert({"kind": row["type"], "evidence": evidence, **given}, CueInput).cue()


def with_others(data: Labelled, others: Sequence[Labelled]) -> Labelled:
    """Returns a set of plans with the cues of other sets beside its own."""
    cues = [cue for other in others for cue in other.cues]
    return replace(data, cues=[*data.cues, *cues], groups=[*data.groups, *(f"other {at}" for at in range(len(cues)))])


async def filled(services: Services, name: str, cues: Sequence[NewCue]) -> tuple[Workspace, list[str]]:
    """Stores cues in a workspace; returns it, and their ids."""
    workspace = await workspace_of(services, name)
    door = Door(services.database, services.counter, workspace, provider=services.provider)
    ids: list[str] = []
    for first in range(0, len(cues), MOST_AT_ONCE):
        ids += map(str, (await add_cues(door, cues[first : first + MOST_AT_ONCE])).ids)
    return workspace, ids
