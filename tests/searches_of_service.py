"""A service whose processes for searches stand still: what answers meanwhile searched nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from fastapi.testclient import TestClient

from api.service import Service


@contextmanager
def no_searches(client: TestClient) -> Iterator[None]:
    """Stop every process that searches for the time of the block."""
    service: Service = client.app.state.service  # type: ignore[attr-defined]  # a FastAPI, which Starlette does not say
    stopped = [child.process.pid for child in service.searches._pool._idle]
    for pid in stopped:
        os.kill(int(pid or 0), signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in stopped:
            os.kill(int(pid or 0), signal.SIGCONT)
