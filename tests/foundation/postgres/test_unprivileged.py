"""Tests of the rights that a command keeps when root runs it as another account."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.errors import ConfigurationError
from app.foundation.postgres.cluster import as_account

NOBODY = 65534
STATUS = ["/bin/cat", "/proc/self/status"]

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or sys.platform != "linux",
    reason="only root changes its account, and only Linux has capabilities",
)


def status(needed: Path, command: list[str] = STATUS) -> dict[str, list[str]]:
    done = subprocess.run(as_account(NOBODY, NOBODY, [needed], command), capture_output=True, text=True, check=True)
    return {name: value.split() for name, _, value in (line.partition(":") for line in done.stdout.splitlines())}


def test_account_and_groups_are_the_others_alone() -> None:
    found = status(Path("/"))
    assert found["Uid"] == found["Gid"] == [str(NOBODY)] * 4
    assert found["Groups"] == []


def test_no_capability_is_left_where_none_is_needed() -> None:
    assert int(status(Path("/"))["CapEff"][0], 16) == 0


def test_only_reading_is_left_where_a_folder_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    assert int(status(tmp_path)["CapEff"][0], 16) == 1 << 2


def test_a_program_that_others_may_not_run(tmp_path: Path) -> None:
    program = tmp_path / "cat"
    program.write_bytes(Path("/bin/cat").read_bytes())
    program.chmod(0o700)
    assert int(status(tmp_path, [str(program), STATUS[1]])["CapEff"][0], 16) == 1 << 1


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(ConfigurationError, match="/not/there is out of reach of account 65534"):
        as_account(NOBODY, NOBODY, [Path("/not/there")], STATUS)
