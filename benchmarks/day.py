"""A simulated day of a team: prompts and calls of tools in 20 sessions, answered by `priors hook`.

How many lessons are told at the act that they are about, how many for nothing, and what all of it costs in tokens. The
project, its lessons and its acts are invented (`day.jsonl`); an act names the lessons that are due then.
"""

import asyncio
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.foundation.models.tokens import BundledTokenCounter
from app.recall.cues.cue import CONSEQUENCES, NewCue
from benchmarks.figures import Figure, report
from benchmarks.hooks import answered
from benchmarks.plans import filled
from benchmarks.stage import service, stage

DAY = Path(__file__).with_name("day.jsonl")
START = {"hook_event_name": "SessionStart", "source": "startup"}
MOST_FOR_NOTHING, MOST_TOKENS = 2, 3_500
LEAST_RIGHT = 0.9
"""Share of the lessons that are due: 20 of 22 in the first draft of such a day."""


def event_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the event of a prompt, a command or an edit."""
    if "prompt" in row:
        return {"hook_event_name": "UserPromptSubmit", "prompt": row["prompt"]}
    tool, names = ("Bash", ["command"]) if "command" in row else ("Edit", ["file_path", "new_string"])
    return {
        "hook_event_name": "PreToolUse",
        "tool_name": tool,
        "tool_input": {name: row[name] for name in names},
    }


def figures_of(
    address: str, workspace: str, lessons: Mapping[str, str], rows: Sequence[Mapping[str, Any]]
) -> list[Figure]:
    """Returns the figures of a day; `lessons` are the texts by their names."""
    command = [str(Path(sys.executable).with_name("priors")), "hook", "--url", address, "--workspace", workspace]
    counter, tokens = BundledTokenCounter(), 0
    due, known = defaultdict[int, set[str]](set), defaultdict[int, set[str]](set)
    right, wrong = set[tuple[int, str]](), list[tuple[str, str]]()
    for row in rows:
        due[row["session"]] |= {*row["due"]}
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            session = row["session"]
            for event in [event_of(row)] if session in known else [START, event_of(row)]:
                text = answered(command, event, session, Path(folder)).told
                tokens += counter.count(text)
                told = {name for name, lesson in lessons.items() if lesson in text}
                known[session] |= told
                if event is not START:
                    wrong += [(name, str(event)) for name in sorted(told - due[session])]
            right |= {(session, name) for name in known[session].intersection(row["due"])}
    for name, text in wrong:
        print(f"for nothing: {name} at {text}")
    for number, names in due.items():
        for name in sorted(name for name in names if (number, name) not in right):
            print(f"not told: {name} in session {number}")
    whole = sum(map(len, due.values()))
    return [
        Figure(name=f"lessons told at the right moment, of {whole}", value=len(right), at_least=LEAST_RIGHT * whole),
        Figure(name="told for nothing", value=len(wrong), at_most=MOST_FOR_NOTHING),
        Figure(name="tokens told", value=tokens, at_most=MOST_TOKENS),
    ]


async def measured() -> list[Figure]:
    """Returns the figures of the day in a store that holds its lessons alone."""
    rows = [json.loads(line) for line in DAY.read_text(encoding="utf-8").splitlines()]
    lessons = [row for row in rows if "lesson" in row]
    cues = [
        NewCue(
            kind=row["kind"],
            trigger=row["trigger"],
            lesson=row["lesson"],
            consequence=CONSEQUENCES[row["consequence"]],
        )
        for row in lessons
    ]
    async with stage() as services:
        workspace, _ = await filled(services, "day", cues)
        texts = {row["name"]: row["lesson"] for row in lessons}
        with service(replace(services.settings, embedded_worker=False)) as (address, _):
            acts = [row for row in rows if "session" in row]
            return await asyncio.to_thread(figures_of, address, workspace.name, texts, acts)


def main() -> list[Figure]:
    """Measures and reports."""
    figures = asyncio.run(measured())
    report("day", figures)
    return figures


if __name__ == "__main__":
    main()
