"""Pauses that end when a test says so."""

import asyncio


class Pauses:
    """Takes the place of `asyncio.sleep`; each pause lasts until the test ends it."""

    def __init__(self) -> None:
        self.begun = asyncio.Queue[float]()
        """The seconds of each pause that has begun."""
        self._ends = asyncio.Queue[None]()

    async def __call__(self, seconds: float) -> None:
        self.begun.put_nowait(seconds)
        await self._ends.get()

    def end(self) -> None:
        """Ends one pause."""
        self._ends.put_nowait(None)
