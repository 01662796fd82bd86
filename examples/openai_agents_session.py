"""A session of the OpenAI Agents SDK without a model: the SDK keeps its items, and Priors finds what was said.

Run it beside `priors run`: `python examples/openai_agents_session.py --url http://127.0.0.1:8000`. With a model, the
session is an argument of the SDK's runner: `Runner.run(agent, "hello", session=session)`.
"""

import argparse
import asyncio

from agents import SQLiteSession
from priors_client import AsyncClient
from priors_client.openai_agents import PriorsSession


async def talk(url: str, workspace: str) -> None:
    """Adds what is said, takes the last of it back, and asks for a history."""
    async with AsyncClient(url, workspace=workspace) as client:
        session = PriorsSession(SQLiteSession("demo"), client)
        await session.clear_session()
        await session.add_items(
            [
                {"role": "user", "content": "The beam drifts at night."},
                {"role": "assistant", "content": "Then calibrate it before noon."},
                {"role": "user", "content": "Never mind."},
            ]
        )
        print("taken back:", await session.pop_item())
        for item in await session.get_items(2):
            print("kept:", item)
        print((await client.history("when to calibrate the beam")).markdown)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--workspace", default="agents-example")
    asked = parser.parse_args()
    asyncio.run(talk(asked.url, asked.workspace))


if __name__ == "__main__":
    main()
