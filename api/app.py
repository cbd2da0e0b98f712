"""``create_app(settings)`` builds the application: it wires the parts together, and does nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from anyio import to_thread
from fastapi import Depends, FastAPI
from fastapi.responses import JSONResponse

from api.access.hosts import HostGate
from api.access.oidc.tokens import TokenVerifier
from api.envelope import Envelope
from api.http.head_requests import HeadAsGet
from api.http.openapi import describe
from api.http.problem_responses import add_handlers
from api.http.query import only_known_parameters
from api.jobs.board import JobBoard
from api.routes import (
    accuracy,
    audit,
    catalogue,
    elastic,
    emissions,
    estimates,
    fits,
    fleets,
    health,
    jobs,
    labels,
    operations,
    pages,
    plans,
    pools,
    requests,
    rl,
    scripts,
    serving,
    strategies,
    sweeps,
    towers,
    uploads,
)
from api.service import running
from api.settings import Settings
from api.telemetry.metrics import Metrics
from api.telemetry.tracing import Tracing
from planner.store import open_store
from planner.version import __version__

ROUTERS = (
    plans.router,
    operations.operation_router(),
    labels.router,
    emissions.router,
    estimates.router,
    elastic.router,
    fleets.router,
    pools.router,
    towers.router,
    rl.router,
    serving.router,
    scripts.router,
    strategies.router,
    requests.router,
    jobs.router,
    sweeps.router,
    catalogue.router,
    fits.router,
    uploads.router,
    accuracy.router,
    audit.router,
    health.router,
    pages.router,
)


def create_app(settings: Settings, board: JobBoard | None = None, tracing: Tracing | None = None) -> FastAPI:
    """The service for ``settings``; opens its database and starts its processes with the ASGI lifespan.

    ``board``: where long searches go; None = a search that takes too long is refused.  ``tracing``: who makes spans;
    None = as the settings say.
    """
    metrics = Metrics()
    # Here and not in the lifespan, so that keys that cannot be read are one error of the command.
    tokens = None if settings.oidc is None else TokenVerifier(settings.oidc)
    traces = tracing or Tracing.of(settings.tracing)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with open_store(settings.database) as store:
            async with running(settings, metrics, store, board, tokens) as service:
                app.state.service = service
                async with _agents(app, wanted=settings.agents):
                    yield
        if traces is not None:
            await to_thread.run_sync(traces.close)

    app = FastAPI(
        title="Meshwright",
        version=__version__,
        lifespan=lifespan,
        # The document is ours (api.http.openapi); pages that load scripts from elsewhere are not served.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    for router in ROUTERS:
        # A screen keeps what it shows in its address, and probes are asked as their tools like.
        checks = [] if router in (pages.router, health.router) else [Depends(only_known_parameters)]
        app.include_router(router, dependencies=checks)
    app.state.api_routes = [route for router in ROUTERS for route in router.routes]

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi_document() -> JSONResponse:
        return JSONResponse(describe(app))

    add_handlers(app)
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]
    app.add_middleware(HeadAsGet)
    app.add_middleware(HostGate, allowed=settings.allowed_hosts)
    # Added last, so outermost: what the gate refuses is counted and logged too.
    app.add_middleware(Envelope, metrics=metrics, tracing=traces)
    return app


@asynccontextmanager
async def _agents(app: FastAPI, *, wanted: bool) -> AsyncIterator[None]:
    """Agents are answered too, where that is wanted; their SDK is imported only then."""
    if not wanted:
        yield
        return
    from api.agents.http import agents_at_the_service

    async with agents_at_the_service(app):
        yield


def openapi_document() -> dict[str, Any]:
    """The OpenAPI document of this release, without starting anything."""
    return describe(create_app(Settings()))
