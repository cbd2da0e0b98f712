"""A service to send requests to, in this process: the real application, its real processes, a real database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi.testclient import TestClient

from api.app import create_app
from api.jobs.board import JobBoard
from api.settings import Settings
from tests.plan_factory import make_model

WORKLOAD = {"global_batch_size": 16, "sequence_length": 2048}
ADDRESS = "http://127.0.0.1:8642"
"""What requests say that they ask; the test client's own name is no host of the service."""
SMALL_MODEL: dict[str, Any] = make_model(4).model_dump(mode="json")


def question(**changes: Any) -> dict[str, Any]:
    """A planning question that is answered in a fraction of a second."""
    return {"model": SMALL_MODEL, "cluster": "dgx-a100-80g", "devices": 8, "workload": WORKLOAD, **changes}


@contextmanager
def service(database: str, jobs: JobBoard | None = None, **changes: Any) -> Iterator[TestClient]:
    """A client of a running service, whose searches become jobs only where a test asks for it or after two minutes.

    On a machine that does much else the default of 10 s would make a job of a question that takes a fraction of one.
    """
    given = {"solver_processes": 1, "quick_processes": 1, "synchronous_s": 120.0} | changes
    settings = Settings(database=database, **given)
    with TestClient(create_app(settings, jobs), base_url=ADDRESS, raise_server_exceptions=False) as client:
        yield client


def problem(response: Any, status: int, slug: str) -> dict[str, Any]:
    """The problem document of a refusal, which must have this status and slug."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = response.json()
    assert found["slug"] == slug
    assert found["type"].endswith(f"/{slug}")
    assert found["request_id"] == response.headers["x-request-id"]
    return found
