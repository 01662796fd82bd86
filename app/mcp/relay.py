"""A server that passes every request on to another one: for clients that start a process and cannot speak HTTP."""

from typing import Any

from mcp.client import Client
from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
)

from app.mcp.server import Context
from app.settings import VERSION


def relay_of(client: Client) -> Server[Any]:
    """Returns a server that answers with what a connected client's server answers."""
    relay = _Relay(client)
    return Server(
        "priors",
        version=VERSION,
        title="Priors",
        instructions=client.instructions,
        on_list_tools=relay.list_tools,
        on_call_tool=relay.call_tool,
        on_list_resources=relay.list_resources,
        on_list_resource_templates=relay.list_templates,
        on_read_resource=relay.read_resource,
        on_list_prompts=relay.list_prompts,
        on_get_prompt=relay.get_prompt,
    )


class _Relay:
    """Passes requests on; the errors of the other server are raised as they are."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def list_tools(self, _context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        """Lists the tools."""
        return await self._client.list_tools()

    async def call_tool(self, _context: Context, params: CallToolRequestParams) -> CallToolResult:
        """Calls a tool."""
        return await self._client.call_tool(params.name, params.arguments)

    async def list_resources(self, _context: Context, _params: PaginatedRequestParams | None) -> ListResourcesResult:
        """Lists resources."""
        return await self._client.list_resources()

    async def list_templates(
        self, _context: Context, _params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        """Lists the forms of the resources' addresses."""
        return await self._client.list_resource_templates()

    async def read_resource(self, _context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """Reads a resource."""
        return await self._client.read_resource(params.uri)

    async def list_prompts(self, _context: Context, _params: PaginatedRequestParams | None) -> ListPromptsResult:
        """Lists prompts."""
        return await self._client.list_prompts()

    async def get_prompt(self, _context: Context, params: GetPromptRequestParams) -> GetPromptResult:
        """Makes a prompt."""
        return await self._client.get_prompt(params.name, params.arguments)
