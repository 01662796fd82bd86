"""Exports of judgements as training data: their rows over HTTP, as `datasets` loads them for TRL's trainers."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

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


async def make_samples(client: httpx.AsyncClient, count: int, output: str = OUTPUT, task: str = "Supplements") -> str:
    request = {"task": task, "output": output, "samples": count, "issues": ["SOM without a method"]}
    state = await post(client, "/api/observations?wait=true", request)
    assert state["samples"] == count
    return str(state["memory_id"])


async def rate(client: httpx.AsyncClient, memory_id: str, rating: int, **fields: Any) -> None:
    await post(client, f"/api/memories/{memory_id}/feedback", {"rating": rating, **fields})


async def test_pairs_are_of_one_output_and_load_as_a_preference_dataset(
    client: httpx.AsyncClient, tmp_path: Path
) -> None:
    memory_id = await make_samples(client, 4)
    for sample, ratings in enumerate(((1,), (-1,), (1,), ())):
        for rating in ratings:
            await rate(client, memory_id, rating, sample=sample)
    samples = await get(client, f"/api/memories/{memory_id}/samples")
    loaded = await load(client, "dpo", tmp_path)
    assert set(loaded.column_names) == {"prompt", "chosen", "rejected"}
    assert loaded.num_rows == 2  # the first and the third, each better than the second; the fourth is not rated
    for row, better in zip(loaded, (samples[0], samples[2]), strict=True):
        assert [(message["role"], "Supplements" in message["content"]) for message in row["prompt"]] == [("user", True)]
        for name, sample in (("chosen", better), ("rejected", samples[1])):
            (message,) = row[name]
            assert message["role"] == "assistant"
            beginning = f"Title: {sample['title']}\nNarrative: {sample['narrative']}\nFacts: ["
            assert message["content"].startswith(beginning)
            assert "wiggum" not in message["content"]


async def test_labelled_compressions_load_as_an_unpaired_preference_dataset(
    client: httpx.AsyncClient, tmp_path: Path
) -> None:
    first = await make_samples(client, 2)
    second = await make_samples(client, 1, "The audit of 2026 covers 40 cities and finds 340 billion rubles.", "Audit")
    await rate(client, first, 1, sample=0)
    await rate(client, first, -1, sample=1)
    await rate(client, second, -1)
    loaded = await load(client, "kto", tmp_path)
    assert set(loaded.column_names) == {"prompt", "completion", "label"}
    assert loaded.features["label"].dtype == "bool"
    assert sorted((row["label"], "Task: Audit" in row["prompt"][0]["content"]) for row in loaded) == [
        (False, False),
        (False, True),
        (True, False),
    ]
    assert {(row["prompt"][0]["role"], row["completion"][0]["role"]) for row in loaded} == {("user", "assistant")}


async def test_two_outputs_of_one_task_make_no_pair(client: httpx.AsyncClient) -> None:
    assert await export(client, "kto") == ([], "nothing to label: rate an observation first")
    other = OUTPUT.replace("221", "340").replace("Evalar", "Solgar") + "\nDemand fell by 4 % in 2026.\n"
    for output, rating in ((OUTPUT, 1), (other, -1)):
        await rate(client, await make_samples(client, 1, output), rating)
    rows, note = await export(client, "dpo")
    assert (rows, note.startswith("nothing to pair: ask for several samples of an output")) == ([], True)
    assert sorted(row["label"] for row in (await export(client, "kto"))[0]) == [False, True]


async def test_equal_and_undone_ratings_make_no_pair_and_no_label(client: httpx.AsyncClient) -> None:
    memory_id = await make_samples(client, 2)
    for rating in (1, -1):
        await rate(client, memory_id, rating, sample=0)
    undone = await post(client, f"/api/memories/{memory_id}/feedback", {"rating": -1, "sample": 1})
    await client.delete(f"/api/feedback/{undone['rating']['feedback_id']}")
    assert (await export(client, "dpo"))[0] == []
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


def test_one_output_gives_at_most_six_pairs_and_only_of_its_own_samples() -> None:
    ids = [UUID(int=place) for place in range(2)]
    rated = [
        RatedCompression(memory_id=ids[place], sampled=True, prompt="p", reply=f"{place}{quality}", quality=quality)
        for place in range(2)
        for quality in (-1, 3, 0, 1)
    ]
    pairs = list(pairs_of(rated))
    assert len(pairs) == 12
    assert all(pair.chosen[0].content[0] == pair.rejected[0].content[0] for pair in pairs)
    assert sum(row.label for row in label_by_quality(rated)) == 4
