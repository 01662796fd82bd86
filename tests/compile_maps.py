"""Compiles what maps need, once, before the tests start services that would each compile it at the same time."""

import asyncio

from app.insight.map.worker import LayoutWorker
from tests.conftest import COMPILED


async def main() -> None:
    """Compiles it, unless that has been done."""
    worker = LayoutWorker(COMPILED)
    await worker.prepare()
    await worker.close()


if __name__ == "__main__":
    asyncio.run(main())
