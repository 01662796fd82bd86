"""Runs a computation in a process of its own, so that what it imports and holds ends with it."""

import asyncio
import sys
from asyncio.subprocess import PIPE

from app.errors import Unavailable
from app.settings import child_environment


async def run_child(module: str, sent: bytes, what: str, *, seconds: float, **environment: str) -> bytes:
    """Returns the answer of a module that reads its input to the end; `what` it computes is named where it fails.

    Raises:
        Unavailable: it takes longer than `seconds`, or ends without an answer.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", module), stdin=PIPE, stdout=PIPE, env={**child_environment(), **environment}
    )
    try:
        async with asyncio.timeout(seconds):
            answer, _ = await process.communicate(sent)
    except TimeoutError as error:
        raise Unavailable(f"{what} took longer than {seconds:g} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise Unavailable(f"the process that computes {what} ended with {process.returncode}; its log says why")
    return answer
