"""A server that passes every request on to another one: for clients that start a process and cannot speak HTTP."""

from typing import Any

from mcp.client import Client
from mcp.server.lowlevel import Server

from app.settings import VERSION


def relay_of(client: Client) -> Server[Any]:
    """Returns a server that answers with what a connected client's server answers, errors included."""
    return Server(
        "priors",
        version=VERSION,
        title="Priors",
        instructions=client.instructions,
        on_list_tools=lambda _context, _params: client.list_tools(),
        on_call_tool=lambda _context, params: client.call_tool(params.name, params.arguments),
        on_list_resources=lambda _context, _params: client.list_resources(),
        on_list_resource_templates=lambda _context, _params: client.list_resource_templates(),
        on_read_resource=lambda _context, params: client.read_resource(params.uri),
        on_list_prompts=lambda _context, _params: client.list_prompts(),
        on_get_prompt=lambda _context, params: client.get_prompt(params.name, params.arguments),
    )
