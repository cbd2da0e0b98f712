"""The service runs under uvicorn in this process, with the board of jobs around it."""

from __future__ import annotations

import logging
from types import FrameType

import uvicorn
from fastapi import FastAPI

from api.access.host_names import LOOPBACK_HOSTS, WILDCARD_ADDRESSES, allowed_name
from api.app import create_app
from api.http.patience import patient
from api.service import Service
from api.settings import Settings
from api.telemetry.logs import configure_logging
from api.worker.embedded import open_board
from planner.errors import DocumentInvalid
from planner.store import open_store
from planner.store.address import database_url

DRAIN_S = 20

log = logging.getLogger("meshwright.api")


def check_address(host: str, port: int, *, authentication: bool) -> None:
    """Refuse to be reachable by others without authentication.  Raises DocumentInvalid."""
    if not 0 <= port <= 65_535:
        raise DocumentInvalid(f"there is no port {port}", where="--port", hint="give a number from 0 to 65535")
    if host not in LOOPBACK_HOSTS and not authentication:
        raise DocumentInvalid(
            f"{host} can be reached by others, and nobody would have to say who they are",
            where="--host",
            hint="add --auth keys and create keys with `meshwright token create`, or stay on 127.0.0.1",
        )


def known_as(settings: Settings, host: str) -> Settings:
    """The settings with the address that is listened on among the allowed hosts.  Raises DocumentInvalid."""
    if host in WILDCARD_ADDRESSES:
        return settings
    try:
        name = allowed_name(host)
    except ValueError as error:
        raise DocumentInvalid(str(error), where="--host", hint="for example 127.0.0.1") from None
    return settings.model_copy(update={"allowed_hosts": (*settings.allowed_hosts, name)})


def serve(settings: Settings, host: str, port: int) -> None:
    """Serve until a signal says stop; running requests are finished first."""
    check_address(host, port, authentication=settings.authentication)
    settings = known_as(settings, host)
    configure_logging(settings.log_format)
    if host in WILDCARD_ADDRESSES and not settings.allowed_hosts:
        log.warning("it answers as localhost only: name what it is asked by with --allowed-host HOST")
    # What is wrong with the database is said here, in one sentence, and not in a server's log.
    open_store(settings.database).close()
    with open_board(
        database_url(settings.database),
        concurrency=settings.job_concurrency,
        log_format=settings.log_format,
        tracing=settings.tracing,
    ) as board:
        app = create_app(settings, board)
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            log_level="info",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            http=patient(settings.connections),
            timeout_keep_alive=settings.connections.keep_alive_s,
            timeout_graceful_shutdown=DRAIN_S,
            h11_max_incomplete_event_size=settings.connections.head_bytes,
        )
        _Server(config, app).run()


class _Server(uvicorn.Server):
    """Tells the application that the end was asked for: what watches jobs ends now, and does not hold up the rest."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal."""
        service: Service | None = getattr(self._app.state, "service", None)
        if service is not None:
            service.draining = True
        super().handle_exit(sig, frame)
