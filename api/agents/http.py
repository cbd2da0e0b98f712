"""Agents over HTTP: ``/mcp`` of the service itself, under the same keys, limits and check of hosts.

Each call of a tool is a request of the service to itself with the key that the agent sent.  Nothing is kept between two
requests of an agent, so that any replica may answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.routing import Route

from api.agents.door import door_of
from api.agents.server import planning_server

PATH = "/mcp"


@asynccontextmanager
async def agents_at_the_service(app: FastAPI) -> AsyncIterator[None]:
    """The running service answers agents for as long as this is open."""
    async with door_of(app, started=True) as door:
        # Which hosts and origins may ask is the service's own check (api.access.hosts), before any route.
        checked_before = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        server = await planning_server(door)
        manager = StreamableHTTPSessionManager(server, stateless=True, security_settings=checked_before)
        route = Route(PATH, endpoint=StreamableHTTPASGIApp(manager))
        async with manager.run():
            app.router.routes.insert(0, route)
            try:
                yield
            finally:
                app.router.routes.remove(route)
