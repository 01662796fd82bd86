"""Limits of a key's use, as numbers and over HTTP."""

from dataclasses import replace
from typing import Any, cast

import httpx
import pytest

from app.errors import ConfigurationError
from app.interfaces.http import admission
from app.interfaces.http.admission import Limits
from app.interfaces.http.serving.application import create_app, in_frame
from app.settings import from_environment
from app.storage.tenants.keys import EVERYTHING, READ, Key
from app.wiring import Services

ONE, OTHER = [Key(name=name, scopes=frozenset({READ}), workspaces=None) for name in ("one", "other")]


def test_a_key_has_a_minutes_requests_and_gets_them_back_evenly() -> None:
    counted = Limits(6)
    assert [counted.wait(ONE, 0.0) for _ in range(7)] == [0, 0, 0, 0, 0, 0, 10]
    assert counted.wait(OTHER, 0.0) == 0
    assert [counted.wait(ONE, now) for now in (4.0, 10.0, 10.0)] == [6, 0, 10]
    assert [counted.wait(ONE, 10_000.0) for _ in range(7)].count(0) == 6


def test_a_keys_own_limits_go_before_the_settings() -> None:
    counted = Limits(1)
    more = replace(ONE, requests_per_minute=3)
    assert [counted.wait(more, 0.0) for _ in range(4)] == [0, 0, 0, 20]
    none = replace(OTHER, requests_per_minute=0)
    assert {counted.wait(none, 0.0) for _ in range(9)} == {0}
    # What was left under another limit does not exceed the new one.
    assert [counted.wait(replace(more, requests_per_minute=1), 10_000.0) for _ in range(2)] == [0, 60]


def test_what_was_used_without_a_limit_is_not_owed_under_a_new_one() -> None:
    counted = Limits(0)
    for _ in range(100):
        assert counted.wait(replace(ONE, requests_per_minute=0), 0.0) == 0
    assert counted.wait(replace(ONE, requests_per_minute=60), 0.0) == 0


def test_without_a_key_or_a_limit_nothing_is_counted() -> None:
    assert {Limits(1).wait(EVERYTHING, 0.0) for _ in range(2)} == {0}
    assert {Limits(0).wait(ONE, 0.0) for _ in range(2)} == {0}


def test_many_callers_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "MOST_COUNTED", 2)
    counted = Limits(1)
    keys = [replace(ONE, name=str(number)) for number in range(3)]
    assert [counted.wait(key, 0.0) for key in (*keys, keys[0], keys[2])] == [0, 0, 0, 0, 60]


async def test_a_key_that_has_used_up_its_limit_is_told_when_to_come_again(services: Services) -> None:
    settings = replace(services.settings, api_key="first", admin_key="second", key_requests=2)
    app = create_app(settings, services=replace(services, settings=settings))
    transport = httpx.ASGITransport(cast("Any", in_frame(app)))
    async with app.lifespan(), httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:

        async def asked(key: str) -> httpx.Response:
            return await client.get("/api/keys", headers={"authorization": f"Bearer {key}"})

        answers = [await asked("first") for _ in range(3)]
        assert [answer.status_code for answer in answers][-1] == 429
        assert answers[0].status_code == 403
        problem = answers[-1].json()
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 3_600
        assert (problem["title"], "try again in" in problem["detail"]) == ("Too Many Requests", True)
        assert (await asked("second")).status_code == 200
        assert (await client.get("/health")).status_code == 200
        assert (await asked("wrong")).status_code == 401


def test_a_limit_below_nothing_is_named() -> None:
    with pytest.raises(ConfigurationError, match="PRIORS_KEY_REQUESTS"):
        from_environment({"PRIORS_KEY_REQUESTS": "-1"})
