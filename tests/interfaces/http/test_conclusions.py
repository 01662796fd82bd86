"""What a file concludes stands beside its name, as long as the chunk that states it is live."""

import httpx

FILLING = "The rig ran for nine weeks on three stands, and each stand had its own feed, filter and gauge. " * 6
REPORT = f"""# Pump of hall four

**Verdict:** FAIL, too few hours

{FILLING}

## Seals

The outer seal of the pump is made of nitrile and swells in glycol. {FILLING}
"""


async def test_a_conclusion_is_gone_with_the_chunk_that_states_it(client: httpx.AsyncClient) -> None:
    (await client.post("/api/reports", json={"path": "hall/pump.md", "content": REPORT})).raise_for_status()
    asked = {"query": "Which seal swells in glycol?", "budget_tokens": 120, "k": 1, "min_probability": 0}
    before = (await client.post("/api/history", json=asked)).json()["markdown"]
    assert "# hall/pump.md · Verdict: FAIL, too few hours\n" in before
    memories = (await client.get("/api/memories")).json()["memories"]
    (stating,) = [memory["id"] for memory in memories if "FAIL" in memory["body"]]
    deleted = await client.patch("/api/memories", json={"ids": [stating], "state": "deleted"})
    deleted.raise_for_status()
    after = (await client.post("/api/history", json=asked)).json()["markdown"]
    assert "swells in glycol" in after
    assert "FAIL" not in after
