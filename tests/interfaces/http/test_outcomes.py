"""Outcomes of runs, over HTTP: of a stored run, of one that is not stored yet, and what became of them."""

import httpx
import pytest

from tests.interfaces.http.calls import OUTPUT, get, patch, post

ASK = "/api/observations?wait=true"


async def test_a_stored_run_is_remembered_by_its_name_alone(client: httpx.AsyncClient) -> None:
    run = {
        "run_id": "r1",
        "task": "Market of food supplements",
        "output": OUTPUT,
        "final_score": 8.5,
        "verdict": "PASS",
    }
    await post(client, "/api/runs", run)
    made = await post(client, ASK, {"run_id": "r1", "tags": ["market"]})
    assert made["outcome"] == "stored"
    memory = await get(client, f"/api/memories/{made['memory_id']}")
    assert (memory["run_id"], memory["final_score"], memory["tags"]) == ("r1", 8.5, ["market"])
    assert (memory["observation"]["task"], memory["observation"]["verdict"]) == (run["task"], "PASS")
    assert "221 billion rubles" in memory["body"]
    assert (await post(client, ASK, {"run_id": "r1"}))["observation_id"] == made["observation_id"]


@pytest.mark.parametrize("outcome", [{}, {"output": ""}, {"run_id": "unknown"}, {"run_id": "without output"}])
async def test_without_any_output_the_way_to_give_one_is_told(
    client: httpx.AsyncClient, outcome: dict[str, str]
) -> None:
    await post(client, "/api/runs", {"run_id": "without output", "task": "t"})
    answer = await client.post("/api/observations", json=outcome)
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert error == {
        "field": "output",
        "message": "is missing: send it, or the run_id of a stored run that has an output",
    }


async def test_the_run_of_an_outcome_is_stored_with_it(client: httpx.AsyncClient) -> None:
    outcome = {
        "run_id": "r1", "task": "Market of food supplements", "output": OUTPUT, "final_score": 6.5, "verdict": "FAIL",
        "issues": ["No method"], "queries": ["food supplements 2025"], "occurred_at": "2026-03-01T00:00:00Z",
    }  # fmt: skip
    made = await post(client, ASK, outcome)
    story = await get(client, "/api/runs/r1")
    run = story["run"]
    assert story["stored"]
    assert {name: run[name] for name in outcome if name in run} == {
        name: value for name, value in outcome.items() if name in run
    }
    assert (run["lines"], run["bytes"]) == (OUTPUT.count("\n"), len(OUTPUT.encode()))
    assert run["finished_at"] == outcome["occurred_at"]
    assert story["observation"]["observation_id"] == made["observation_id"]
    assert [found["run_id"] for found in (await get(client, "/api/runs"))["runs"]] == ["r1"]


async def test_an_outcome_adds_to_its_stored_run_what_the_run_lacks(client: httpx.AsyncClient) -> None:
    await post(client, "/api/runs", {"run_id": "r1", "task": "Market", "agent": "scout", "final_score": 8.0})
    other = "The second part compares marketplaces in three regions. Two of them grew by 12 % in 2025."
    for outcome in ({"task": "Market", "output": OUTPUT}, {"task": "Regions", "output": other, "final_score": 3.0}):
        await post(client, ASK, {"run_id": "r1", **outcome})
    run = (await get(client, "/api/runs/r1"))["run"]
    assert (run["task"], run["agent"], run["output"], run["final_score"]) == ("Market", "scout", OUTPUT, 8.0)


async def test_a_superseded_observation_says_so_and_names_the_one_in_its_place(client: httpx.AsyncClient) -> None:
    first = await post(client, ASK, {"run_id": "r1", "task": "Actors", "output": OUTPUT, "final_score": 5.0})
    nearly = OUTPUT.replace("after the second round", "after a second round")
    second = await post(client, ASK, {"run_id": "r2", "task": "Actors", "output": nearly, "final_score": 9.0})
    assert second["outcome"] == "stored"
    shown = await get(client, f"/api/observations/{first['observation_id']}")
    assert shown["outcome"] == "superseded"
    assert second["memory_id"] in shown["reason"]
    assert (await get(client, "/api/runs/r1"))["observation"] == shown
    await patch(client, "/api/memories", {"state": "live", "ids": [first["memory_id"]]})
    assert (await get(client, f"/api/observations/{first['observation_id']}"))["outcome"] == "stored"


async def test_the_facts_of_a_short_output_do_not_repeat_its_narrative(client: httpx.AsyncClient) -> None:
    output = "The scout verified 12 producers. Three lost their licence in March 2025. The list has two rounds."
    made = await post(client, ASK, {"task": "Actors", "output": output})
    memory = await get(client, f"/api/memories/{made['memory_id']}")
    for sentence in output.removesuffix(".").split(". "):
        assert memory["body"].count(sentence) == 1


async def test_a_given_body_stands_above_the_facts_that_it_lacks(client: httpx.AsyncClient) -> None:
    facts = ["Evalar leads with 17 %", "Pharmacies sell 58 %"]
    memory = {"kind": "observation", "title": "Market", "body": "The market grew. Evalar leads with 17 %.",
              "observation": {"task": "Market", "facts": facts}}  # fmt: skip
    (memory_id,) = (await post(client, "/api/memories", memory))["ids"]
    stored = await get(client, f"/api/memories/{memory_id}")
    assert stored["body"] == "The market grew. Evalar leads with 17 %.\n- Pharmacies sell 58 %"
    assert stored["observation"]["facts"] == facts
    again = await post(client, "/api/memories", {**memory, "body": stored["body"]})
    assert (again["ids"], again["unchanged"]) == ([memory_id], 1)
    hits = (await post(client, "/api/search", {"query": "pharmacies"}))["hits"]
    assert [hit["id"] for hit in hits] == [memory_id]
