"""A session of the OpenAI Agents SDK without a model: two processes go on with one conversation that Priors keeps.

Run it beside `priors run`: `python examples/openai_agents_session.py --url http://127.0.0.1:8000`. With a model, the
session is an argument of the SDK's runner: `Runner.run(agent, "hello", session=session)`.
"""

import argparse
import asyncio

from priors_client import AsyncClient
from priors_client.openai_agents import PriorsSession


async def talk(url: str, workspace: str) -> None:
    """Adds turns by one client, and reads and takes them back by another."""
    async with AsyncClient(url, workspace=workspace) as first, AsyncClient(url, workspace=workspace) as second:
        await PriorsSession("demo", first).clear_session()
        await PriorsSession("demo", first).add_items(
            [
                {"role": "user", "content": "The beam drifts at night."},
                {"role": "assistant", "content": "Then calibrate it before noon."},
                {"role": "user", "content": "Never mind."},
            ]
        )
        session = PriorsSession("demo", second)
        print("taken back:", await session.pop_item())
        for item in await session.get_items(2):
            print("kept:", item)
        print((await second.history("when to calibrate the beam")).markdown)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--workspace", default="agents-example")
    asked = parser.parse_args()
    asyncio.run(talk(asked.url, asked.workspace))


if __name__ == "__main__":
    main()
