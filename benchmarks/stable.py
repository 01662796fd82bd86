"""Runs of 20 histories each over LoCoMo conversations through the public HTTP API, stable and not.

What a prefix cache could reuse is measured from the bytes of consecutive sections, and compared with what the answers
say.
"""

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import httpx

from app.foundation.models.tokens import MINILM, load_tokenizer
from app.storage.index.embedding import refresh_all_statistics
from app.storage.links.service import link_pending
from benchmarks.figures import Figure, percentile, report
from benchmarks.locomo import CONVERSATIONS, recall_at, store
from benchmarks.stage import service, stage

CALLS = 20
K = 10
BUDGETS = (1_000, 2_000, 4_000)
"""Tokens: an answer of 10 sources has about 1,100."""
JUDGED = 4_000
"""The budget at which the targets hold: less than four answers."""
LARGEST_K = 200
TOKENIZER = load_tokenizer(MINILM / "tokenizer.json")

Question = tuple[str, frozenset[str]]
"""Its text and the names of its evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How every call of a run is asked."""

    name: str
    budget: int
    stable: bool
    k: int = K


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One answer, measured."""

    first: bool
    """Of its run."""
    tokens: int
    shared: int
    """Tokens that lie wholly in the bytes that this section and the run's previous one begin with."""
    claimed: int
    """The same as the answer says it."""
    recall: float
    """Of the evidence, among the first 10 hits whose text stands whole in the section."""
    anywhere: float
    """Of the evidence, anywhere in the section."""
    by_place: float
    """Of the evidence, among the section's first 10 blocks."""
    milliseconds: float


def runs_of(conversation: dict[str, Any], known: set[str]) -> Iterator[list[Question]]:
    """Runs of consecutive questions; what is left over is too short for one."""
    asked = [(item["question"], frozenset(item["evidence"]) & known) for item in conversation["questions"]]
    asked = [(question, evidence) for question, evidence in asked if evidence]
    for start in range(0, len(asked) - CALLS + 1, CALLS):
        yield asked[start : start + CALLS]


async def measured_run(
    client: httpx.AsyncClient, names: dict[str, str], questions: Sequence[Question], run_id: str, setting: Setting
) -> list[Call]:
    """One run, call after call."""
    calls: list[Call] = []
    previous = ""
    for question, evidence in questions:
        asked = {"query": question, "k": setting.k, "budget_tokens": setting.budget, "run_id": run_id}
        started = time.perf_counter()
        answer = await client.post("/api/history", json={**asked, "stable": setting.stable})
        milliseconds = (time.perf_counter() - started) * 1000
        found = answer.raise_for_status().json()
        calls.append(measured(found, previous, evidence, names, first=not calls, milliseconds=milliseconds))
        previous = found["markdown"]
    return calls


def measured(
    found: dict[str, Any],
    previous: str,
    evidence: frozenset[str],
    names: dict[str, str],
    *,
    first: bool,
    milliseconds: float,
) -> Call:
    """The figures of an answer to a question with this evidence."""
    markdown = found["markdown"]
    ends = [end for _, end in TOKENIZER.encode(markdown, add_special_tokens=False).offsets]
    pairs = zip(previous, markdown, strict=False)
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    ranked = [names[hit["id"]] for hit in found["hits"] if hit["body"].strip() in markdown]
    kept = found.get("kept", [])
    placed = [names[memory] for memory in (*kept, *(hit["id"] for hit in found["hits"] if hit["id"] not in kept))]
    return Call(
        first=first,
        tokens=len(ends),
        shared=sum(end <= common for end in ends),
        claimed=found.get("reused_tokens", 0),
        recall=recall_at([K], evidence, ranked)[K],
        anywhere=len(evidence & set(placed)) / len(evidence),
        by_place=recall_at([K], evidence, placed)[K],
        milliseconds=milliseconds,
    )


async def measure(files: Sequence[Path], most_runs: int | None, settings: Sequence[Setting]) -> dict[str, list[Call]]:
    """The calls of every setting: each run is asked in all of them in turn, so that drift falls on all."""
    calls: dict[str, list[Call]] = {setting.name: [] for setting in settings}
    async with stage() as services:
        with service(services.settings) as (address, _):
            for file in files:
                conversation = json.loads(file.read_text())
                async with httpx.AsyncClient(
                    base_url=address, headers={"X-Workspace": file.stem}, timeout=600
                ) as client:
                    names = await store(client, conversation)
                    await refresh_all_statistics(services.database, across=services.database.across)
                    await link_pending(services.database, across=services.database.across)
                    for number, questions in enumerate(list(runs_of(conversation, set(names.values())))[:most_runs]):
                        for setting in settings:
                            run_id = f"{number}, {setting.name}"
                            calls[setting.name] += await measured_run(client, names, questions, run_id, setting)
    return calls


def settings_for(budgets: Sequence[int]) -> list[Setting]:
    """Every budget with and without `stable`, and the largest filled with hits of one query alone."""
    both = [
        Setting(name=f"{budget:,} tokens, {'stable' if stable else 'alone'}", budget=budget, stable=stable)
        for budget in budgets
        for stable in (False, True)
    ]
    filled = [
        Setting(name=f"{budget:,} tokens, alone and filled", budget=budget, stable=False, k=LARGEST_K)
        for budget in budgets
    ]
    return both + filled


def _figures(budgets: Sequence[int], calls: dict[str, list[Call]]) -> list[Figure]:
    figures = []
    for budget in budgets:
        alone, stable, filled = (
            calls[f"{budget:,} tokens, {name}"] for name in ("alone", "stable", "alone and filled")
        )
        judged = budget == JUDGED
        loss = _mean(alone, "recall") - _mean(stable, "recall")
        excess = max(call.claimed - call.shared for call in stable)
        pairs = (("alone", alone), ("stable", stable), ("alone and filled", filled))
        of_all = [
            figure for name, made in pairs for figure in _of_setting(f"{budget:,} tokens, {name}", made, judged=judged)
        ]
        slower = percentile([c.milliseconds for c in stable], 50) / percentile([c.milliseconds for c in alone], 50)
        figures += [
            *of_all,
            Figure(name=f"{budget:,} tokens: recall@10 lost", value=loss, at_most=0.02 if judged else None),
            Figure(name=f"{budget:,} tokens: claimed beyond what the bytes share, at most", value=excess, at_most=0),
            Figure(name=f"{budget:,} tokens: p50 stable ÷ alone", value=slower),
        ]
    return figures


def _of_setting(name: str, calls: Sequence[Call], *, judged: bool) -> list[Figure]:
    later = [call for call in calls if not call.first]
    tokens, shared, claimed = (sum(getattr(call, part) for call in later) for part in ("tokens", "shared", "claimed"))
    stable = name.endswith("stable")
    return [
        Figure(name=f"{name}: tokens reused", value=shared / tokens, at_least=0.6 if judged and stable else None),
        *([Figure(name=f"{name}: the same as the answers say", value=claimed / tokens)] if stable else []),
        Figure(name=f"{name}: recall@10 of {len(calls)} questions", value=_mean(calls, "recall")),
        Figure(name=f"{name}: evidence anywhere in the section", value=_mean(calls, "anywhere")),
        Figure(name=f"{name}: evidence in the first 10 blocks", value=_mean(calls, "by_place")),
        Figure(name=f"{name}: tokens a call", value=tokens / len(later)),
        Figure(name=f"{name}: of them new", value=(tokens - shared) / len(later)),
    ]


def _mean(calls: Sequence[Call], part: str) -> float:
    return float(statistics.mean(getattr(call, part) for call in calls))


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measure and report; nothing where the data is absent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conversations", type=int, help="only so many")
    parser.add_argument("--runs", type=int, help="of each, only so many")
    parser.add_argument("--budget", type=int, action="append", help="tokens; can be given again")
    given = parser.parse_args(arguments)
    files = sorted(CONVERSATIONS.glob("*.json"))[: given.conversations]
    if not files:
        print(f"LoCoMo is not at {CONVERSATIONS}; it is left out", file=sys.stderr)
        return []
    budgets = given.budget or BUDGETS
    figures = _figures(budgets, asyncio.run(measure(files, given.runs, settings_for(budgets))))
    report("stable", figures)
    return figures


if __name__ == "__main__":
    main()
