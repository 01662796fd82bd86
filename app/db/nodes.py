"""The nodes of a Citus cluster: a session that needs the rows of its workspace alone goes to the node that has them.

A node plans and runs a statement at once; the coordinator plans it too, and then sends it there. Each node knows the
places of all shards, so a node whose shard has just been moved still answers, by asking the node that has it now.
"""

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

import structlog

from app.db.pool import Pool, url_at
from app.db.wire import Wire
from app.errors import DatabaseUnavailable

LOOK_SECONDS = 1.0
"""Time after which the places of the shards are read again."""
AWAY_SECONDS = 30.0
"""Time for which a node that could not be reached is not tried again; the coordinator serves its sessions meanwhile."""
# `sources` stands for all tables, whose shards lie beside its own. A node without metadata cannot plan a statement.
PLACES = """
SELECT p.shardid, n.nodename, n.nodeport, n.groupid <> 0 AND n.metadatasynced AS serves
FROM pg_dist_shard s JOIN pg_dist_placement p USING (shardid) JOIN pg_dist_node n USING (groupid)
WHERE s.logicalrelid = 'sources'::regclass AND n.noderole = 'primary'
"""
SHARD = "SELECT get_shard_id_for_distribution_column('sources', %(workspace_id)s::bigint)"

logger = structlog.get_logger()


class Address(NamedTuple):
    """The address by which the nodes of a cluster know one of them."""

    host: str
    port: int


class _Node:
    """One node."""

    def __init__(self, pool: Pool, address: Address) -> None:
        self.pool = pool
        self.address = address
        self.away_until = 0.0
        """The moment until which it is not tried again, by `time.monotonic`."""

    async def opened(self, stack: AsyncExitStack) -> Wire | None:
        """Opens a connection until the end of `stack`; returns None if the node cannot be reached."""
        if time.monotonic() < self.away_until:
            return None
        try:
            return await stack.enter_async_context(self.pool.wire())
        except DatabaseUnavailable as error:
            self.away_until = time.monotonic() + AWAY_SECONDS
            name = f"{self.address.host}:{self.address.port}"
            logger.warning("a node cannot be reached; the coordinator asks it", node=name, reason=str(error))
            return None


class Nodes:
    """The nodes that have the rows of workspaces."""

    def __init__(self, url: str, coordinator: Pool, *, size: int, application_name: str) -> None:
        """`url` is that of the coordinator, whose sessions use the pool `coordinator`."""
        self._url = url
        self._coordinator = coordinator
        self._size = size
        self._application_name = application_name
        self._nodes: dict[Address, _Node] = {}
        self._places: dict[int, Address | None] = {}
        """The node of each shard; None for those that the coordinator serves."""
        self._shards: dict[int, int] = {}
        """The shard of each workspace that was asked for."""
        self._looked = float("-inf")

    async def close(self) -> None:
        """Closes every connection."""
        for node in self._nodes.values():
            await node.pool.close()

    @asynccontextmanager
    async def wire(self, workspace_id: int) -> AsyncIterator[Wire]:
        """Opens a connection to the node of a workspace, or to the coordinator where the node cannot be reached.

        Raises:
            DatabaseUnavailable: no connection can be had, or it was lost.
        """
        node = await self._node_of(workspace_id)
        async with AsyncExitStack() as stack:
            if node is None or (wire := await node.opened(stack)) is None:
                wire = await stack.enter_async_context(self._coordinator.wire())
            yield wire

    async def _node_of(self, workspace_id: int) -> _Node | None:
        """Returns the node of a workspace; None if the coordinator serves it."""
        is_old = time.monotonic() - self._looked > LOOK_SECONDS
        if is_old or self._shards.get(workspace_id) not in self._places:
            await self._look(workspace_id)
        address = self._places.get(self._shards.get(workspace_id, 0))
        return None if address is None else self._at(address)

    async def _look(self, workspace_id: int) -> None:
        """Reads the places of the shards, and the shard of a workspace. One Postgres has none."""
        # Others use what is known meanwhile.
        self._looked = time.monotonic()
        async with self._coordinator.wire() as wire:
            if not wire.distributed:
                return
            commands = [wire.command(PLACES, {}), wire.command(SHARD, {"workspace_id": workspace_id})]
            places, shard = await wire.exchange(commands)
            self._places = {
                shard_id: Address(host, port) if serves else None for shard_id, host, port, serves in wire.rows(places)
            }
            ((self._shards[workspace_id],),) = wire.rows(shard)

    def _at(self, address: Address) -> _Node:
        node = self._nodes.get(address)
        if node is None:
            url = url_at(self._url, *address)
            node = _Node(Pool(url, size=self._size, application_name=self._application_name), address)
            self._nodes[address] = node
        return node
