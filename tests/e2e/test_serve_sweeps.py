"""A sweep outlives the processes that work on it: kill -9 of the service and of its worker, on both databases."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.test_serve import serving

ASKED: dict[str, Any] = {
    "models": ["llama-3.2-1b", "llama-3.1-70b"],
    "clusters": ["dgx-h100", "dgx-a100-80g"],
    "device_counts": [4, 16],
    "sequence_lengths": [2048],
    "global_batch_sizes": [64, 128],
    "top_k": 0,
    "constraints": {"backends": ["megatron"]},
}
PLANNED, INFEASIBLE = 12, 4
"""With Megatron-LM the larger model does not fit on four devices."""


def seen(address: str, sweep_id: str) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{address}/v1/sweeps/{sweep_id}", timeout=300).json()
    return found


def until(address: str, sweep_id: str, wanted: str, least: int, timeout_s: float = 400) -> dict[str, Any]:
    end_s = time.monotonic() + timeout_s
    while (found := seen(address, sweep_id))["progress"][wanted] < least:
        assert time.monotonic() < end_s, found["progress"]
        time.sleep(0.1)
    return found


@pytest.mark.slow
def test_nothing_is_lost_when_the_service_is_killed_again_and_again(database_url: str, tmp_path: Path) -> None:
    with serving("--jobs", "0", folder=tmp_path, database=database_url) as (address, process):
        response = httpx.post(f"{address}/v1/sweeps", json=ASKED, timeout=300)
        assert response.status_code == 202, response.text
        sweep_id = response.json()["sweep_id"]
        # The promise is made; whether any cell is a job already is nobody's business.
        process.kill()
    with serving("--jobs", "1", folder=tmp_path, database=database_url) as (address, process):
        before = until(address, sweep_id, "planned", 2)
        process.kill()
    with serving("--jobs", "1", folder=tmp_path, database=database_url) as (address, process):
        after = until(address, sweep_id, "planned", PLANNED)
        after = until(address, sweep_id, "infeasible", INFEASIBLE)
        jobs = httpx.get(f"{address}/v1/jobs", params={"limit": 500}, timeout=300).json()["jobs"]
    assert after["status"] == "finished"
    known = {cell["problem_id"]: cell["plan_id"] for cell in before["cells"] if cell["plan_id"]}
    plans = {cell["problem_id"]: cell["plan_id"] for cell in after["cells"]}
    assert known.items() <= plans.items()
    assert len(jobs) == len({job["problem_id"] for job in jobs}) == PLANNED + INFEASIBLE, "one job a cell, none twice"
