"""The parts of a score add up to it, for each preset and weight; a run says what it used of what it was given."""

from typing import Any

import httpx
import pytest

from app.storage.recalls.parts import ScoreParts, parts_of
from app.wiring import Services
from tests.interfaces.http.calls import embed, get, post

NOTES = (
    ("Valves", "The valve of line four sticks in winter, because its seal is too hard.", 9.0),
    ("Seals", "Soft seals of the valve hold in winter and leak in summer.", 4.0),
    ("Pumps", "The pump of line four was drained before the winter.", None),
)


def _sum(parts: dict[str, Any]) -> float:
    return float(sum(parts.values()))


async def _stored(client: httpx.AsyncClient, services: Services) -> list[str]:
    ids = []
    for title, body, score in NOTES:
        note = {"kind": "note", "title": title, "body": body, "final_score": score}
        ids.append((await post(client, "/api/memories", note))["ids"][0])
    await post(client, f"/api/memories/{ids[0]}/feedback", {"rating": -1})
    await embed(client, services)
    return ids


@pytest.mark.parametrize("preset", ["default", "classic", "ranks"])
@pytest.mark.parametrize("weights", [None, {"relevance": 0.2, "quality": 0.8}, {"relevance": 1, "quality": 0}])
async def test_the_parts_of_a_hit_add_up(
    client: httpx.AsyncClient, services: Services, preset: str, weights: dict[str, float] | None
) -> None:
    await _stored(client, services)
    asked = {"query": "valve of line four in winter", "preset": preset, "weights": weights, "agent": "researcher"}
    found = await post(client, "/api/search", asked)
    assert found["hits"]
    for hit in found["hits"]:
        assert _sum(hit["parts"]) == pytest.approx(hit["score"])
        quality = 0.3 if weights is None else weights["quality"]
        told = hit["parts"].get("quality", 0) + hit["parts"].get("unscored", 0)
        assert told == pytest.approx(quality * hit["explain"]["qual_weight"])
    logged = await get(client, f"/api/recalls/{found['recall_id']}")
    for hit, before in zip(logged["hits"], found["hits"], strict=True):
        assert _sum(hit["parts"]) == pytest.approx(hit["score"])
        assert hit["parts"] == pytest.approx(before["parts"], abs=1e-4)


def test_an_unknown_score_has_one_part() -> None:
    assert parts_of(0.7, {}) == ScoreParts(other=0.7)
    assert parts_of(0.4, {"state": 0.4}) == ScoreParts(state=0.4)


async def test_a_run_says_what_it_used(client: httpx.AsyncClient, services: Services) -> None:
    ids = await _stored(client, services)
    for run, output in (("quoting", f"As known: **{NOTES[0][1]}**"), ("silent", "")):
        await post(client, "/api/runs", {"run_id": run, "task": "winter", **({"output": output} if output else {})})
        await post(client, "/api/history", {"query": "valve of line four in winter", "run_id": run})
    given = {one["id"]: one for one in (await get(client, "/api/runs/quoting"))["given"]}
    assert given[ids[0]]["used"] == "used"
    assert {one["used"] for memory_id, one in given.items() if memory_id != ids[0]} <= {"not known"}
    silent = (await get(client, "/api/runs/silent"))["given"]
    assert {one["used"] for one in silent} == {"not known"}
    for one in silent:
        assert _sum(one["parts"]) == pytest.approx(one["score"], abs=1e-5)


async def test_an_output_uses_only_whole_words_of_long_memories(client: httpx.AsyncClient, services: Services) -> None:
    bodies = ("valve", "Drain each pump of line four", "Soft seals leak in the summer")
    notes = [{"kind": "note", "body": body} for body in bodies]
    ids = [(await post(client, "/api/memories", note))["ids"][0] for note in notes]
    await embed(client, services)
    output = "Some valves are stiff: drain each pump of line fourteen. Soft seals leak -- in the summer."
    await post(client, "/api/runs", {"run_id": "r", "task": "winter", "output": output})
    for body in bodies:
        await post(client, "/api/history", {"query": body, "run_id": "r"})
    used = {one["id"]: one["used"] for one in (await get(client, "/api/runs/r"))["given"]}
    assert [used[one] for one in ids] == ["not known", "not known", "used"]


@pytest.mark.parametrize("stable", [False, True])
async def test_a_run_has_the_passages_that_its_history_showed(
    client: httpx.AsyncClient, services: Services, *, stable: bool
) -> None:
    body = "The valve of line four sticks in winter.\n\nCakes need eggs.\n\nThe valve of line four leaks in summer."
    await post(client, "/api/memories", {"kind": "note", "title": "Lines", "body": body})
    await embed(client, services)
    asked = {"query": "valve of line four", "run_id": "r", "stable": stable}
    history = await post(client, "/api/history", asked)
    (given,) = (await get(client, "/api/runs/r"))["given"]
    assert given["shown"]
    passages = given["shown"].replace("…", "").split("\n\n")
    assert all(passage in history["markdown"] for passage in passages)
    assert all(passage in body for passage in passages)
    await post(client, "/api/search", {"query": "valve of line four", "run_id": "searched"})
    assert [one["shown"] for one in (await get(client, "/api/runs/searched"))["given"]] == [None]
