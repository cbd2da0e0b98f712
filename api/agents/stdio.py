"""One agent on standard input and output; logs go to standard error."""

from __future__ import annotations

from mcp.server.stdio import stdio_server

from api.agents.door import Door
from api.agents.server import planning_server


async def answer_on_stdio(door: Door) -> None:
    """Answer until the agent closes its end."""
    server = await planning_server(door)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
