"""Whatever the OpenAPI document allows or forbids: no server error, and every answer as the document says.

``benchmarks/http_cases.py`` sends ten thousand; here are a few of each operation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from fastapi.testclient import TestClient

from api.app import openapi_document
from planner.store import open_store
from tests.board_in_memory import MemoryBoard
from tests.command_line import REPOSITORY
from tests.plan_factory import make_plan
from tests.running_service import service
from tests.sampling import examples
from tests.schema_cases import operations, send

OPENAPI = REPOSITORY / "tests" / "golden" / "openapi.json"
# Names from the file, so that collection builds no service; tests/golden/test_openapi.py says that it is the document.
LABELS = [
    f"{method.upper()} {path}"
    for path, methods in json.loads(OPENAPI.read_text(encoding="utf-8"))["paths"].items()
    for method in methods
]
EXAMPLES = examples(8, 4)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    database = f"sqlite:///{tmp_path_factory.mktemp('schema') / 'plans.db'}"
    limits = {"synchronous_s": 2, "quick_s": 5, "most_devices": 64}
    with open_store(database) as store:
        plan_id = store.save_plan(make_plan(), 0.1)
        # Short words that generated paths hit.
        for label in ("0z", "z", "Z"):
            store.label_plan(label, plan_id)
    with service(database, MemoryBoard(database, paused=True), **limits) as found:
        yield found


@cache
def described() -> dict[str, Any]:
    return operations(openapi_document())


@pytest.mark.parametrize("label", LABELS)
def test_generated_requests_get_a_described_answer(client: TestClient, label: str) -> None:
    assert send(client, described()[label], EXAMPLES) > 0
