"""Ratings over HTTP: what they change, and that none is lost or counted twice."""

import asyncio
import json

import httpx
import pytest

from tests.interfaces.http.calls import get, post

LESSON = "The scout must verify every producer in the state register before the director accepts the list of actors."


async def test_a_rating_changes_the_very_next_recall(client: httpx.AsyncClient) -> None:
    bodies = ["Scouts check the register of producers first.", "Scouts check the register of importers first."]
    ids = [(await post(client, "/api/memories?wait=true", {"kind": "note", "body": body}))["ids"][0] for body in bodies]
    asked = {"query": "scouts check the register first", "k": 2}
    before = [hit["id"] for hit in (await post(client, "/api/search", asked))["hits"]]
    assert set(before) == set(ids)
    for _ in range(3):
        rated = await post(client, f"/api/memories/{before[0]}/feedback", {"rating": -1, "comment": "misleading"})
    assert rated["quality"] == -3
    hits = (await post(client, "/api/search", asked))["hits"]
    assert [hit["id"] for hit in hits] == before[::-1]
    assert hits[1]["explain"]["q_adjust"] == pytest.approx(0.55)


async def test_a_hundred_ratings_at_once_lose_nothing(client: httpx.AsyncClient) -> None:
    (memory_id,) = (await post(client, "/api/memories", {"kind": "note", "body": "A disputed lesson."}))["ids"]
    ratings = [1] * 60 + [-1] * 40

    async def rate(rating: int) -> None:
        status = 503
        while status == 503:  # a slow server has no connection for ten seconds, and asks for another attempt
            status = (await client.post(f"/api/memories/{memory_id}/feedback", json={"rating": rating})).status_code
        assert status == 200

    await asyncio.gather(*map(rate, ratings))
    log = await get(client, f"/api/memories/{memory_id}/feedback")
    assert len(log) == 100
    quality = 0
    for entry in log:
        quality = max(-3, min(3, quality + entry["rating"]))
    assert (await get(client, f"/api/memories/{memory_id}"))["quality"] == quality


async def test_a_rating_can_be_undone_and_retried(client: httpx.AsyncClient) -> None:
    (memory_id,) = (await post(client, "/api/memories", {"kind": "note", "body": "A lesson."}))["ids"]
    path = f"/api/memories/{memory_id}/feedback"
    first = await post(client, path, {"rating": 1}, **{"Idempotency-Key": "k1"})
    again = await post(client, path, {"rating": 1}, **{"Idempotency-Key": "k1"})
    assert (first["rating"]["feedback_id"], again["quality"]) == (again["rating"]["feedback_id"], 1)
    await post(client, path, {"rating": 1})
    for _ in range(2):
        undone = (await client.delete(f"/api/feedback/{first['rating']['feedback_id']}")).json()
        assert undone["quality"] == 1
    log = await get(client, path)
    assert [entry["undone_at"] is not None for entry in log] == [True, False]
    exported = (await client.get("/api/feedback/export")).text.splitlines()
    assert [json.loads(line)["rating"] for line in exported] == [1]


async def test_a_key_stands_for_one_rating(client: httpx.AsyncClient) -> None:
    (memory_id,) = (await post(client, "/api/memories", {"kind": "note", "body": LESSON}))["ids"]
    path, headers = f"/api/memories/{memory_id}/feedback", {"Idempotency-Key": "k1"}
    for _ in range(2):
        assert (await client.post(path, json={"rating": 1}, headers=headers)).json()["quality"] == 1
    for changed in ({"rating": -1}, {"rating": 1, "comment": "c"}, {"rating": 1, "run_id": "r2"}):
        other = await client.post(path, json=changed, headers=headers)
        assert (other.status_code, "Idempotency-Key" in other.text) == (400, True)
    named = await client.post(path, json={"rating": 1, "run_id": "a\x01b"})
    assert (named.status_code, "control character" in named.text) == (400, True)
