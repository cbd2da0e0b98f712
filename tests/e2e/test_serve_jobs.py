"""A long search over HTTP: the real server, its own worker, a job, its plan."""

from __future__ import annotations

import json
import time
from pathlib import Path

import httpx
import pytest

from tests.e2e.test_serve import serving
from tests.running_service import question


@pytest.mark.slow
def test_an_asynchronous_request_becomes_a_job_and_a_plan(tmp_path: Path) -> None:
    with serving("--jobs", "1", folder=tmp_path) as (address, _):
        begun = httpx.post(f"{address}/v1/plans", json=question(), headers={"Prefer": "respond-async"}, timeout=60)
        assert begun.status_code == 202, begun.text
        job = begun.headers["location"]
        end_s = time.monotonic() + 90
        while (record := httpx.get(f"{address}{job}", timeout=30).json())["status"] in {"queued", "running"}:
            assert time.monotonic() < end_s, record
            time.sleep(0.2)
        assert (record["status"], record["attempts"]) == ("succeeded", 1)
        plan = httpx.get(f"{address}/v1/plans/{record['result_plan_id']}", timeout=30)
        assert plan.status_code == 200, plan.text
        told = httpx.get(f"{address}{job}/events", timeout=60).text
        events = [json.loads(line.removeprefix("data:")) for line in told.splitlines() if line.startswith("data:")]
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        assert events[-1]["status"] == "succeeded"
