"""Whatever the OpenAPI document allows or forbids: no server error, and every answer as the document says.

``benchmarks/http_cases.py`` sends ten thousand; here are a few of each operation.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from api.app import openapi_document
from planner.store import open_store
from tests.board_in_memory import MemoryBoard
from tests.plan_factory import make_plan
from tests.running_service import service
from tests.sampling import examples
from tests.schema_cases import operations, send

OPERATIONS = operations(openapi_document())
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


@pytest.mark.parametrize("label", OPERATIONS)
def test_generated_requests_get_a_described_answer(client: TestClient, label: str) -> None:
    assert send(client, OPERATIONS[label], EXAMPLES) > 0
