"""Limits of a key's use, as numbers and over HTTP."""

from dataclasses import replace
from typing import Any, cast

import httpx
import pytest

from app.api.serving.application import create_app, framed
from app.errors import ConfigurationError
from app.keys import limits
from app.keys.key import EVERYTHING, READ, TOKEN, Key, KeyLimits
from app.keys.limits import Limits
from app.settings import from_environment
from app.wiring import Services

ONE, OTHER = [Key(name=name, scopes=frozenset({READ}), workspaces=None) for name in ("one", "other")]


def test_a_key_has_a_minutes_requests_and_gets_them_back_evenly() -> None:
    counted = Limits(requests=6, bytes_=0)
    assert [counted.wait(ONE, 0.0) for _ in range(7)] == [0, 0, 0, 0, 0, 0, 10]
    assert counted.wait(OTHER, 0.0) == counted.wait(replace(ONE, kind=TOKEN), 0.0) == 0
    assert [counted.wait(ONE, now) for now in (4.0, 10.0, 10.0)] == [6, 0, 10]
    assert [counted.wait(ONE, 10_000.0) for _ in range(7)].count(0) == 6


def test_bytes_beyond_the_limit_are_owed() -> None:
    counted = Limits(requests=0, bytes_=600)
    assert counted.wait(ONE, 0.0) == 0
    counted.charge(ONE, 400)
    assert counted.wait(ONE, 0.0) == 0
    counted.charge(ONE, 500)
    assert [counted.wait(ONE, now) for now in (0.0, 29.0, 30.0)] == [30, 1, 0]
    counted.charge(OTHER, 9_999)
    assert counted.wait(OTHER, 0.0) == 0


def test_a_keys_own_limits_go_before_the_settings() -> None:
    counted = Limits(requests=1, bytes_=0)
    more = replace(ONE, limits=KeyLimits(requests_per_minute=3))
    assert [counted.wait(more, 0.0) for _ in range(4)] == [0, 0, 0, 20]
    none = replace(OTHER, limits=KeyLimits(requests_per_minute=0))
    assert {counted.wait(none, 0.0) for _ in range(9)} == {0}
    heavy = replace(OTHER, limits=KeyLimits(requests_per_minute=0, bytes_per_minute=60))
    assert counted.wait(heavy, 0.0) == 0
    counted.charge(heavy, 90)
    assert counted.wait(heavy, 0.0) == 30
    # What was left under another limit does not exceed the new one.
    assert [counted.wait(replace(more, limits=KeyLimits(requests_per_minute=1)), 10_000.0) for _ in range(2)] == [0, 60]


@pytest.mark.parametrize("unit", ["requests_per_minute", "bytes_per_minute"])
def test_what_was_used_without_a_limit_is_not_owed_under_a_new_one(unit: str) -> None:
    counted = Limits(requests=0, bytes_=0)
    unlimited = KeyLimits(requests_per_minute=10**6, bytes_per_minute=10**6)
    for _ in range(100):
        assert counted.wait(replace(ONE, limits=replace(unlimited, **{unit: 0})), 0.0) == 0
        counted.charge(ONE, 1_000)
    assert counted.wait(replace(ONE, limits=replace(unlimited, **{unit: 60})), 0.0) == 0


def test_without_a_key_or_a_limit_nothing_is_counted() -> None:
    assert {Limits(requests=1, bytes_=1).wait(EVERYTHING, 0.0) for _ in range(2)} == {0}
    none = Limits(requests=0, bytes_=0)
    none.charge(ONE, 10**12)
    assert {none.wait(ONE, 0.0) for _ in range(2)} == {0}


def test_many_callers_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_COUNTED", 2)
    counted = Limits(requests=1, bytes_=0)
    keys = [replace(ONE, name=str(number)) for number in range(3)]
    assert [counted.wait(key, 0.0) for key in (*keys, keys[0], keys[2])] == [0, 0, 0, 0, 60]


@pytest.mark.parametrize(("setting", "value"), [("key_requests", 2), ("key_bytes", 10)])
async def test_a_key_that_has_used_up_its_limit_is_told_when_to_come_again(
    services: Services, setting: str, value: int
) -> None:
    given: Any = {"api_key": "first", "admin_key": "second", setting: value}
    settings = replace(services.settings, **given)
    app = create_app(settings, services=replace(services, settings=settings))
    transport = httpx.ASGITransport(cast("Any", framed(app)))
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


@pytest.mark.parametrize("name", ["PRIORS_KEY_REQUESTS", "PRIORS_KEY_BYTES"])
def test_a_limit_below_nothing_is_named(name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        from_environment({name: "-1"})
