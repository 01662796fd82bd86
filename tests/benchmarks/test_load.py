"""Clients at once: their answers are counted, and what one has stored is found."""

import pytest

from benchmarks.load import Seen, growth, loaded


@pytest.mark.test_all("benchmarks")
async def test_clients_get_answers(server: str) -> None:
    seen = Seen()
    while not seen.wrong and not {"search", "remember", "read"} <= seen.times.keys():
        await loaded(server, seen, clients=2, seconds=0.5)
    assert not seen.wrong


def test_memory_that_grows_is_told() -> None:
    assert growth([90, 100, 100, 100, 150, 150]) == 1.5
    assert growth([100.0]) == 1.0
