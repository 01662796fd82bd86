"""A question for what was recorded in a period is answered from that period, newest first."""

from collections.abc import AsyncIterator
from datetime import date, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio

from tests.conftest import WITHOUT_TLS

pytestmark = pytest.mark.meaning

NOW = "2026-06-18T10:00:00Z"
TOPICS = ("the crane", "the barge", "the sluice gate", "the lock keeper", "the dredger")
DAYS = [date(2026, 5, 30) + timedelta(days=n) for n in range(20)]


async def post(client: httpx.AsyncClient, path: str, **body: Any) -> Any:
    answer = await client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stand_ups(server: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client in a workspace with a note of each day, for tests that only read."""
    headers = {"X-Workspace": f"stand-ups-{uuid4().hex[:12]}"}
    async with httpx.AsyncClient(base_url=server, headers=headers, timeout=60, verify=WITHOUT_TLS) as client:
        for n, day in enumerate(DAYS):
            body = f"Stand-up: work on {TOPICS[n % 5]} went on, crew of {3 + n}."
            moment = f"{day}T15:00:00Z"
            await post(client, "/api/memories?wait=true", kind="note", title=str(day), body=body, occurred_at=moment)
        yield client


async def days_of(client: httpx.AsyncClient, query: str, **more: Any) -> list[str]:
    found = await post(client, "/api/search", query=query, k=9, now=NOW, **more)
    return [hit["title"] for hit in found["hits"]]


def days(first: int, last: int, month: int = 6) -> list[str]:
    """Returns days of a month, newest first."""
    return [f"2026-{month:02}-{day:02}" for day in range(last, first - 1, -1)]


async def test_the_records_of_the_time_that_is_asked_for_are_found(stand_ups: httpx.AsyncClient) -> None:
    for query, expected in (
        ("What did we work on yesterday?", days(17, 17)),
        ("what did we do last week", days(8, 14)),
        ("work of the past 3 days", days(15, 17)),
        ("what happened on Monday", days(15, 15)),
        ("what is new since Monday", days(15, 17)),
        ("Was haben wir gestern gemacht?", days(17, 17)),
        ("Что мы делали вчера?", days(17, 17)),
        ("昨天做了什么", days(17, 17)),
        ("work before 1 June", days(30, 31, month=5)),
        ("日期：2026-06-11", days(11, 11)),
        ("What was done on the 12th?", days(12, 12)),
        ("What was done on 12/06/2026?", days(12, 12)),
        ("What happened in March?", []),
    ):
        assert await days_of(stand_ups, query) == expected, query
    assert (await days_of(stand_ups, "What was decided in Q2?"))[:3] == days(16, 18)
    for query, first in (("stand-up on 2 June", days(2, 2)), ("stand-up of 2026-06-11", days(11, 11))):
        assert (await days_of(stand_ups, query))[:1] == first, query
    crane = await days_of(stand_ups, "What did we decide about the crane last week?")
    assert set(crane[:2]) == {"2026-06-09", "2026-06-14"}
    assert set(crane) <= set(days(8, 14))
    narrowed = {"since": "2026-06-10T00:00:00Z", "until": "2026-06-12T00:00:00Z"}
    assert await days_of(stand_ups, "what did we do last week", filters=narrowed) == days(10, 11)
    assert await days_of(stand_ups, "what did we do yesterday", filters=narrowed) == []


@pytest.mark.parametrize("stable", [False, True])
async def test_a_history_says_of_which_time_nothing_is_stored(stand_ups: httpx.AsyncClient, *, stable: bool) -> None:
    more = {"stable": True, "run_id": "a run"} if stable else {}

    async def history(query: str) -> Any:
        return await post(stand_ups, "/api/history", query=query, k=2, now=NOW, **more)

    found = await history("What did we do in April?")
    assert found["period"] == "1 to 30 April 2026"
    if not stable:
        assert found["markdown"].endswith("Nothing from 1 to 30 April 2026.\n")
        assert 0 < found["tokens"] <= 30
        assert (await history("What did we decide about printers last week?"))["markdown"].endswith(
            "Nothing from 8 to 14 June 2026.\n"
        )
    found = await history("What did we do last week?")
    assert [hit["title"] for hit in found["hits"]] == days(13, 14)
    assert found["markdown"].index("2026-06-14") < found["markdown"].index("2026-06-13")


async def test_of_each_session_its_last_words_come_first(client: httpx.AsyncClient) -> None:
    for number in (1, 2):
        moment = f"2026-06-1{number}T10:0{{}}:00Z"
        texts = ["Please mend the importer.", f"The importer {number} reads decimal commas now. " * 4, "thanks a lot"]
        turns = [
            {"role": role, "text": text, "at": moment.format(place)}
            for place, (role, text) in enumerate(zip(("user", "assistant", "user"), texts, strict=True))
        ]
        answer = await client.post("/api/sessions?wait=true", json={"id": f"s{number}", "messages": turns})
        assert answer.status_code in {200, 201}, answer.text
    found = await post(client, "/api/search", query="What did we do last week?", k=2, now=NOW)
    assert [hit["body"][:14] for hit in found["hits"]] == ["The importer 2", "The importer 1"]
