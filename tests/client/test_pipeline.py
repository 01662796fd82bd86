"""The toy pipeline of the examples: ten rounds on a real service, better because of what the service remembers."""

import asyncio
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from priors_client import Client


async def test_ten_rounds_improve_by_memory_ratings_and_cues(
    repository: Path, server: str, workspace_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    example: dict[str, Callable[..., Any]] = runpy.run_path(str(repository / "examples" / "pipeline.py"))

    def play() -> tuple[list[float], float]:
        with Client(server, workspace=workspace_name) as priors, Client(server, workspace=f"{workspace_name}-2") as new:
            scores = example["play"](priors)
            return scores, example["run"](new, 9)

    scores, without = await asyncio.to_thread(play)
    told = capsys.readouterr().out
    assert scores[0] < 2, told
    assert min(scores[6:]) > 8, told
    assert without < 2, "a new workspace knows nothing in the last round, too"
    assert told.count("## Round") == 11
    assert "Take market figures from retail audits." in told
