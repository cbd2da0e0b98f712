"""A service on a real socket, in this process: the real application behind the real server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from api.app import create_app
from api.jobs.board import JobBoard
from api.settings import Settings

START_S = 300.0


@contextmanager
def listening(
    database: str, jobs: JobBoard | None = None, *, port: int | None = None, **changes: object
) -> Iterator[str]:
    """The address of a running service; ``port`` takes a certain one."""
    settings = Settings.model_validate(
        {"database": database, "solver_processes": 1, "quick_processes": 1, "job_concurrency": 0, **changes}
    )
    with socket.socket() as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(("127.0.0.1", port or 0))
        config = uvicorn.Config(
            create_app(settings, jobs), log_level="warning", lifespan="on", timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [door]}, daemon=True)
        thread.start()
        started = threading.Event()
        while not server.started and thread.is_alive():
            started.wait(0.02)
        if not thread.is_alive():
            raise RuntimeError("the service did not start")
        try:
            yield f"http://127.0.0.1:{door.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(START_S)
