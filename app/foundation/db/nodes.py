"""The nodes of a Citus cluster: a session that needs the rows of its workspace alone goes to the node that has them.

A node plans and runs a statement at once; the coordinator plans it too, and then sends it there. Each node knows the
places of all shards, so a node whose shard has just been moved still answers, by asking the node that has it now.
"""

import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

import structlog

from app.errors import ConnectionsInUse, DatabaseUnavailable
from app.foundation.db.pool import Pool, url_at
from app.foundation.db.wire import Wire

LOOK_SECONDS = 1.0
"""Time after which the places of the shards are read again."""
AWAY_SECONDS = 30.0
"""Time for which a node that cannot serve is not tried again; the coordinator serves its workspaces meanwhile."""
UNPREPARED = (
    "its database lacks the role of the service or the settings that `priors store distribute` makes: run it again"
)
"""The trouble of a node whose connections lack the role of the service, or are not told of the distribution."""
# `sources` stands for all tables, whose shards lie beside its own. A node without metadata cannot plan a statement.
_PLACES = """
SELECT p.shardid, n.nodename, n.nodeport, n.groupid <> 0 AND n.metadatasynced AS serves
FROM pg_dist_shard s JOIN pg_dist_placement p USING (shardid) JOIN pg_dist_node n USING (groupid)
WHERE s.logicalrelid = 'sources'::regclass AND n.noderole = 'primary'
"""
_SHARD = "SELECT get_shard_id_for_distribution_column('sources', %(workspace_id)s::bigint)"

logger = structlog.get_logger()


class _NodeAddress(NamedTuple):
    """The address by which the nodes of a cluster know one of them."""

    host: str
    port: int


class _ClusterNode:
    """One node."""

    def __init__(self, pool: Pool, address: _NodeAddress) -> None:
        self.pool = pool
        self.name = f"{address.host}:{address.port}"
        self.trouble = ""
        """The reason why it is not asked; "" if it is."""
        self._away_until = 0.0
        """The moment until which it is not tried again, by `time.monotonic`."""

    async def open_connection(self, stack: AsyncExitStack) -> Wire | None:
        """Opens a connection until the end of `stack`; returns None if the node cannot serve.

        Raises:
            ConnectionsInUse: the node serves as many sessions as it may.
        """
        if self._is_away():
            return None
        try:
            async with AsyncExitStack() as opened:
                wire = await opened.enter_async_context(self.pool.wire())
                if wire.secured and wire.distributed:
                    await stack.enter_async_context(opened.pop_all())
                    self._note("")
                    return wire
                # A connection reads the settings once, when it is opened.
                wire.close()
            self._note(UNPREPARED)
        except ConnectionsInUse:
            # Those before this one in the queue may have found meanwhile that the node is away.
            if self._is_away():
                return None
            raise
        except DatabaseUnavailable as error:
            self._note(str(error))
        self._away_until = time.monotonic() + AWAY_SECONDS
        return None

    def _is_away(self) -> bool:
        return time.monotonic() < self._away_until

    def _note(self, trouble: str) -> None:
        """Notes why it is not asked; "" if it is."""
        if trouble != self.trouble:
            self.trouble = trouble
            if trouble:
                logger.warning(
                    "a node is not asked; the coordinator serves its workspaces", node=self.name, reason=trouble
                )
            else:
                logger.info("a node is asked again", node=self.name)


class Nodes:
    """The nodes that have the rows of workspaces."""

    def __init__(self, url: str, coordinator: Pool, *, size: int, application_name: str) -> None:
        """`url` is that of the coordinator, whose sessions use the pool `coordinator`."""
        self._url = url
        self._coordinator = coordinator
        self._size = size
        self._application_name = application_name
        self._nodes: dict[_NodeAddress, _ClusterNode] = {}
        self._places: dict[int, _NodeAddress | None] = {}
        """The node of each shard; None for those that the coordinator serves."""
        self._shards: dict[int, int] = {}
        """The shard of each workspace that was asked for."""
        self._looked = float("-inf")

    async def close(self) -> None:
        """Closes every connection."""
        await self._leave(list(self._nodes))

    def coordinator_reasons(self) -> list[str]:
        """Returns the nodes that the coordinator stands in for, each with the reason."""
        return [f"the node {node.name} is not asked: {node.trouble}" for node in self._nodes.values() if node.trouble]

    async def check(self) -> list[str]:
        """Tries each node; returns those that are not asked, with the reasons.

        Raises:
            DatabaseUnavailable: the coordinator does not answer.
        """
        await self._look(0)
        for address in sorted(filter(None, set(self._places.values()))):
            async with AsyncExitStack() as stack:
                await self._at(address).open_connection(stack)
        return self.coordinator_reasons()

    @asynccontextmanager
    async def wire(self, workspace_id: int) -> AsyncIterator[Wire]:
        """Opens a connection to the node of a workspace, or to the coordinator if the node cannot serve.

        Raises:
            DatabaseUnavailable: no connection can be had, or it was lost.
        """
        node = await self._node_of(workspace_id)
        async with AsyncExitStack() as stack:
            if node is None or (wire := await node.open_connection(stack)) is None:
                wire = await stack.enter_async_context(self._coordinator.wire())
            yield wire

    async def _node_of(self, workspace_id: int) -> _ClusterNode | None:
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
            commands = [wire.command(_PLACES, {}), wire.command(_SHARD, {"workspace_id": workspace_id})]
            places, shard = await wire.exchange(commands)
            self._places = {
                shard_id: _NodeAddress(host, port) if serves else None
                for shard_id, host, port, serves in wire.rows(places)
            }
            ((self._shards[workspace_id],),) = wire.rows(shard)
        await self._leave(set(self._nodes).difference(self._places.values()))

    async def _leave(self, addresses: Iterable[_NodeAddress]) -> None:
        """Closes the connections to these nodes."""
        for node in [self._nodes.pop(address) for address in addresses]:
            await node.pool.close()

    def _at(self, address: _NodeAddress) -> _ClusterNode:
        node = self._nodes.get(address)
        if node is None:
            url = url_at(self._url, *address)
            node = _ClusterNode(Pool(url, size=self._size, application_name=self._application_name), address)
            self._nodes[address] = node
        return node
