"""Tests of the number of embedding threads, also in a container."""

import os
from pathlib import Path

import pytest

from app.foundation.models.local import usable_cores

BOUND = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("inner", "outer", "cores"),
    [
        ("100000 100000", "max 100000", 1),
        ("50000 100000", "max 100000", 1),
        ("max 100000", "100000 100000", 1),
        ("6400000 100000", "max 100000", BOUND),
        ("max 100000", "max 100000", BOUND),
        ("nonsense", "", BOUND),
    ],
)
def test_a_container_uses_no_more_than_its_share(tmp_path: Path, inner: str, outer: str, cores: int) -> None:
    group = tmp_path / "groups" / "service"
    group.mkdir(parents=True)
    (group / "cpu.max").write_text(inner)
    (group.parent / "cpu.max").write_text(outer)
    membership = tmp_path / "membership"
    membership.write_text("1:name=systemd:/elsewhere\n0::/service\n")
    assert usable_cores(tmp_path / "groups", membership) == cores


def test_a_system_without_control_groups_has_the_cores_that_it_is_bound_to(tmp_path: Path) -> None:
    assert usable_cores(tmp_path, tmp_path / "nothing") == BOUND
