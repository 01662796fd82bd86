"""The demonstration: scripts on a real service, better by what the service returns, and by nothing else."""

import asyncio
from collections.abc import Sequence
from statistics import fmean
from uuid import uuid4
from xml.etree import ElementTree as ET

import pytest
from priors_client import Client

from examples.pipeline.agents import Work
from examples.pipeline.chart import chart, table
from examples.pipeline.judge import Judgement
from examples.pipeline.memory import Nothing, Priors
from examples.pipeline.play import Version, play
from examples.pipeline.world import CHOICES, OTHER_WORK, Choice

SEED, VERSIONS = 1, 7


class Misled(Nothing):
    """A memory that says the same, whatever it is asked."""

    def __init__(self, text: str) -> None:
        self.text = text

    def history(self, work: Work, agent: str, question: str, kinds: Sequence[str] = ()) -> str:  # noqa: ARG002 - as Priors
        return self.text


class Emptied(Priors):
    """A service whose workspace is empty again in each version."""

    def __init__(self, server: str) -> None:
        self.server = server
        super().__init__(self._new(), noted=())

    def _new(self) -> Client:
        return Client(self.server, workspace=f"test-{uuid4().hex[:12]}", timeout=60)

    def end(self, work: Work, judgement: Judgement) -> None:
        super().end(work, judgement)
        self._priors.close()
        super().__init__(self._new(), noted=())


def played(server: str) -> list[Version]:
    """Plays with a workspace of its own."""
    with Client(server, workspace=f"test-{uuid4().hex[:12]}", timeout=60) as priors:
        return play(Priors(priors), SEED, VERSIONS)


@pytest.mark.test_all("benchmarks")
async def test_a_pipeline_with_priors_ends_better_each_time_alike(server: str) -> None:
    first, again = await asyncio.to_thread(played, server), await asyncio.to_thread(played, server)
    without = play(Nothing(), SEED, VERSIONS)
    assert [version.score for version in again] == [version.score for version in first]
    assert min(version.score for version in first[-3:]) > 9
    assert max(version.score for version in without[-3:]) < 6
    assert sum(version.repeats for version in first[-3:]) < sum(version.repeats for version in without[-3:])


async def test_an_empty_service_gains_nothing(server: str) -> None:
    empty = await asyncio.to_thread(lambda: play(Emptied(server), SEED, 3))
    assert [version.score for version in empty] == [version.score for version in play(Nothing(), SEED, 3)]


def wrong(choice: Choice) -> str:
    """Returns an option that is not right."""
    return next(option for option in choice.options if option != choice.right)


@pytest.mark.parametrize(
    "text",
    [
        " ".join(f"Take {wrong(choice)}." for choice in CHOICES),
        " ".join(f"{choice.right} cannot be used; take {wrong(choice)}." for choice in CHOICES),
    ],
)
def test_answers_that_mislead_lower_the_score(text: str) -> None:
    misled = play(Misled(text), SEED, VERSIONS)
    assert fmean(v.score for v in misled) < fmean(v.score for v in play(Nothing(), SEED, VERSIONS))


def test_answers_about_something_else_change_nothing() -> None:
    assert play(Misled(OTHER_WORK[1]), SEED, VERSIONS) == play(Nothing(), SEED, VERSIONS)


def test_the_chart_and_the_table_show_both_arms() -> None:
    without, given = [play(Nothing(), SEED)], [play(Misled("Take retail audits."), SEED)]
    drawn = ET.fromstring(chart(without, given))  # noqa: S314 - made here
    assert len(drawn.findall("{http://www.w3.org/2000/svg}polyline")) == 2 * (5 + 2 * 2)
    assert table(without, given).splitlines()[2].startswith("| v1 | 2.0 | 4.5 |")
