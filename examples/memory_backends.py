"""An agent that learns, on three memory backends. Run it as `python examples/memory_backends.py [URL]`.

Without the URL of a service it keeps what it learns in its own memory. It needs no model and no key.
"""

import sys
from datetime import UTC, datetime

from priors_client import Client, InMemory, MemoryBackend, NotAccepted, Remote


def work(memory: MemoryBackend) -> None:
    """Learns, recalls and forgets; it does not know which backend it was given."""
    begun = datetime.now(UTC)
    memory.store("The tariff of zone 3 is 41 roubles.", context="read on the price page", tags=["tariff"])
    memory.store("The beam drifts by two millimetres at night.", context="run 7 measured it", tags=["beam"])
    memory.store("The beam drifts by two millimetres at night.", tags=["night"])
    try:
        memory.store("  ")
    except NotAccepted as error:
        print(f"not stored: {error}")
    for entry in memory.search("why does the beam drift?", k=1):
        print(f"found: {entry.content} ({entry.context}; {', '.join(entry.tags)})")
    for entry in memory.by_tag("tariff"):
        print(f"tagged: {entry.content}")
    forgotten = memory.prune(unused_since=begun)
    print(f"{len(forgotten)} forgotten, {len(memory.recent())} kept")


def main() -> None:
    """Works on the service of the command line, or in memory."""
    if len(sys.argv) == 1:
        work(InMemory())
        return
    with Client(sys.argv[1], workspace="example-backends") as client:
        work(Remote(client))


if __name__ == "__main__":
    main()
