"""A toy market-research pipeline, ten versions with Priors and without: `python -m examples.pipeline`, or `make demo`.

Director, Scout, Researcher and Judge are scripts without a model: each acts on the words of the text that it is given.
The command prints a table and writes a chart. Nothing in it depends on time: each write waits for what follows from it,
and the service that it starts works nothing off beside that.
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from uuid import uuid4

from priors_client import Client, PriorsError

from examples.pipeline.chart import chart, table
from examples.pipeline.memory import Nothing, Priors
from examples.pipeline.play import Version, play

SEEDS = (1, 2, 3)
CHART = Path("docs/images/demo.svg")
READY_SECONDS = 300
"""Longest wait for the service; the first start unpacks Postgres and the model."""


def main() -> None:
    """Plays both arms, prints the table and writes the chart."""
    options = _options()
    without = [play(Nothing(), seed) for seed in SEEDS]
    with nullcontext(options.url) if options.url else _service() as url:
        given = [_with_priors(url, options.key, seed) for seed in SEEDS]
    print(table(without, given))
    read = sum(version.read for played in given for version in played) / sum(map(len, given))
    print(f"\n{read:,.0f} of the tokens with Priors are what it returned; the cost of the agents' own work is assumed.")
    options.chart.write_text(chart(without, given))
    print(f"The chart is in {options.chart}.")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m examples.pipeline", description="A pipeline with and without Priors."
    )
    parser.add_argument(
        "--url", default="", help="a service to use; without it one is started, and its data thrown away"
    )
    parser.add_argument("--key", default=os.environ.get("PRIORS_API_KEY", ""), help="the key of that service")
    parser.add_argument("--chart", type=Path, default=CHART, help=f"where the chart is written; {CHART}")
    return parser.parse_args()


def _with_priors(url: str, key: str, seed: int) -> list[Version]:
    """Plays a seed in a workspace of its own."""
    with Client(url, key=key, workspace=f"demo-{uuid4().hex[:8]}", timeout=120) as priors:
        return play(Priors(priors), seed)


@contextmanager
def _service() -> Iterator[str]:
    """Runs a service on an empty store, and yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="priors-demo-") as folder:
        own = {"PRIORS_DATA_DIR": folder, "PRIORS_PORT": str(port), "PRIORS_API_KEY": "", "PRIORS_DATABASE_URL": ""}
        quiet = {"PRIORS_EXAMPLES": "false", "PRIORS_EMBEDDED_WORKER": "false", "PRIORS_LOG_LEVEL": "error"}
        command = [str(Path(sys.executable).with_name("priors")), "run", "--stop-with-parent"]
        environment = {**os.environ, **own, **quiet}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)  # noqa: S603 - its own
        try:
            _wait(process, url := f"http://127.0.0.1:{port}")
            yield url
        finally:
            process.terminate()
            process.wait()


def _wait(process: subprocess.Popen[bytes], url: str) -> None:
    print("Starting a service ...", file=sys.stderr)
    with Client(url, retries=0) as priors:
        for _ in range(READY_SECONDS):
            if process.poll() is not None:
                sys.exit("the service ended before it was ready")
            try:
                if priors.admin.ready().ready:
                    return
            except PriorsError:
                pass  # it does not listen yet
            time.sleep(1)
    sys.exit(f"the service is not ready after {READY_SECONDS} seconds")


if __name__ == "__main__":
    main()
