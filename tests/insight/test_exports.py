"""Exports of judgements as training data: their rows over HTTP, as `datasets` loads them for TRL's trainers."""

import json
from pathlib import Path
from typing import Any

import datasets
import httpx

from app.insight.exports import RatedCompression, label_by_quality, pairs_of
from tests.interfaces.http.calls import OUTPUT, get, post

UNKNOWN = "left out 2 rated compressions whose output is not stored"
REPLACED = "left out 1 rated compression whose output was replaced by another"


async def export(client: httpx.AsyncClient, trainer: str) -> tuple[list[dict[str, Any]], str]:
    """Returns the rows for a trainer, and the note that comes with them."""
    answer = await client.get("/api/feedback/export", params={"format": trainer})
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()], answer.headers.get("X-Priors-Note", "")


async def load(client: httpx.AsyncClient, trainer: str, folder: Path) -> datasets.Dataset:
    """Loads the export for a trainer as its user does."""
    file = folder / f"{trainer}.jsonl"
    file.write_bytes((await client.get("/api/feedback/export", params={"format": trainer})).content)
    return datasets.load_dataset("json", data_files=str(file), split="train", cache_dir=str(folder / "cache"))


async def observe(client: httpx.AsyncClient, output: str = OUTPUT, task: str = "Supplements") -> str:
    request = {"task": task, "output": output, "issues": ["SOM without a method"]}
    state = await post(client, "/api/observations?wait=true", request)
    assert state["outcome"] == "stored"
    return str(state["memory_id"])


async def rate(client: httpx.AsyncClient, memory_id: str, rating: int, **fields: Any) -> None:
    await post(client, f"/api/memories/{memory_id}/feedback", {"rating": rating, **fields})


OTHER = OUTPUT.replace("221", "340").replace("Evalar", "Solgar") + "\nDemand fell by 4 % in 2026.\n"
AUDIT = "The audit of 2026 covers 40 cities and finds 340 billion rubles."


async def test_pairs_are_of_one_task_and_load_as_a_preference_dataset(
    client: httpx.AsyncClient, tmp_path: Path
) -> None:
    better, worse, other = [
        await observe(client, output, task)
        for output, task in ((OUTPUT, "Supplements"), (OTHER, "Supplements"), (AUDIT, "Audit"))
    ]
    for memory_id, rating in ((better, 1), (worse, -1), (other, -1)):
        await rate(client, memory_id, rating)
    loaded = await load(client, "dpo", tmp_path)
    assert set(loaded.column_names) == {"prompt", "chosen", "rejected"}
    (row,) = loaded
    assert [(message["role"], "Supplements" in message["content"]) for message in row["prompt"]] == [("user", True)]
    for name, memory_id in (("chosen", better), ("rejected", worse)):
        (message,) = row[name]
        stored = await get(client, f"/api/memories/{memory_id}")
        assert message["role"] == "assistant"
        assert message["content"].startswith(f"Title: {stored['title']}\nNarrative: ")
        assert "wiggum" not in message["content"]


async def test_labelled_compressions_load_as_an_unpaired_preference_dataset(
    client: httpx.AsyncClient, tmp_path: Path
) -> None:
    await rate(client, await observe(client), 1)
    await rate(client, await observe(client, AUDIT, "Audit"), -1)
    loaded = await load(client, "kto", tmp_path)
    assert set(loaded.column_names) == {"prompt", "completion", "label"}
    assert loaded.features["label"].dtype == "bool"
    assert sorted((row["label"], "Task: Audit" in row["prompt"][0]["content"]) for row in loaded) == [
        (False, True),
        (True, False),
    ]
    assert {(row["prompt"][0]["role"], row["completion"][0]["role"]) for row in loaded} == {("user", "assistant")}


async def test_equal_and_undone_ratings_make_no_pair_and_no_label(client: httpx.AsyncClient) -> None:
    assert await export(client, "kto") == ([], "nothing to label: rate an observation first")
    one, other = await observe(client), await observe(client, OTHER)
    for rating in (1, -1):
        await rate(client, one, rating)
    undone = await post(client, f"/api/memories/{other}/feedback", {"rating": -1})
    await client.delete(f"/api/feedback/{undone['rating']['feedback_id']}")
    rows, note = await export(client, "dpo")
    assert (rows, note.startswith("nothing to pair: rate an observation up")) == ([], True)
    rows, note = await export(client, "kto")
    assert (rows, "left out 1 rated compression whose ratings cancel out" in note) == ([], True)


async def test_no_label_is_given_to_what_has_no_output(client: httpx.AsyncClient) -> None:
    for place, (body, rating) in enumerate({"It grew by 7 %.": 1, "It fell by 3 %.": -1}.items()):
        detail = {"task": "Market", "narrative": body}
        memory = {"kind": "observation", "title": "T", "run_id": f"r{place}", "observation": detail}
        (memory_id,) = (await post(client, "/api/memories", memory))["ids"]
        await rate(client, memory_id, rating)
    rows, note = await export(client, "kto")
    assert (rows, UNKNOWN in note) == ([], True)
    for place in range(2):
        await post(client, "/api/runs", {"run_id": f"r{place}", "output": f"The market report number {place}."})
    rows, note = await export(client, "kto")
    prompts = sorted(row["prompt"][0]["content"].partition("report number ")[2][:1] for row in rows)
    assert (prompts, note) == (["0", "1"], "")
    await post(client, "/api/runs", {"run_id": "r0", "output": "Another market, which was quiet."})
    rows, note = await export(client, "kto")
    assert (len(rows), note) == (1, REPLACED)


async def test_a_label_has_the_prompt_of_the_output_that_was_rated(client: httpx.AsyncClient) -> None:
    outputs = ("Gamma used 5 GB on 1 May 2026 with 2 nodes.", "Delta crashed 17 times on 2 June 2026 in Oslo.")
    for output, rating in zip(outputs, (1, -1), strict=True):
        run = {"run_id": "r1", "task": "Compare", "output": output, "remember": True}
        made = (await post(client, "/api/runs?wait=true", run))["observation"]
        await rate(client, made["memory_id"], rating)
    rows, _ = await export(client, "kto")
    assert len(rows) == 2
    for row in rows:
        for part in ("prompt", "completion"):
            text = row[part][0]["content"]
            assert ("Gamma" in text, "Delta" in text) == (row["label"], not row["label"])


async def test_an_unknown_format_is_named(client: httpx.AsyncClient) -> None:
    answer = await client.get("/api/feedback/export?format=orpo")
    assert (answer.status_code, "format" in answer.text) == (400, True)


def test_each_observation_stands_in_one_pair_of_its_task() -> None:
    rated = [
        RatedCompression(task=task, prompt="p", reply=f"{task}{quality}", quality=quality)
        for task in ("a", "b", "")
        for quality in (-1, 3, 0, 1, -2, -3)
    ]
    pairs = [(pair["chosen"][0]["content"], pair["rejected"][0]["content"]) for pair in pairs_of(rated)]
    assert pairs == [("a3", "a-3"), ("a1", "a-2"), ("b3", "b-3"), ("b1", "b-2")]
    assert sum(row["label"] for row in label_by_quality(rated)) == 6
