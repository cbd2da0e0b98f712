"""A long search over HTTP: the real server, its own worker, a job, its plan."""

from __future__ import annotations

import json
import time
from pathlib import Path

import httpx
import pytest

from api.client import Client
from tests.command_line import run_here
from tests.e2e.test_serve import serving
from tests.running_service import question


@pytest.mark.slow
def test_an_asynchronous_request_becomes_a_job_and_a_plan(tmp_path: Path) -> None:
    with serving("--jobs", "1", folder=tmp_path) as (address, _):
        begun = httpx.post(f"{address}/v1/plans", json=question(), headers={"Prefer": "respond-async"}, timeout=300)
        assert begun.status_code == 202, begun.text
        job = begun.headers["location"]
        end_s = time.monotonic() + 90
        while (record := httpx.get(f"{address}{job}", timeout=300).json())["status"] in {"queued", "running"}:
            assert time.monotonic() < end_s, record
            time.sleep(0.2)
        assert (record["status"], record["attempts"]) == ("succeeded", 1)
        plan = httpx.get(f"{address}/v1/plans/{record['result_plan_id']}", timeout=300)
        assert plan.status_code == 200, plan.text
        told = httpx.get(f"{address}{job}/events", timeout=300).text
        events = [json.loads(line.removeprefix("data:")) for line in told.splitlines() if line.startswith("data:")]
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        assert events[-1]["status"] == "succeeded"


@pytest.mark.slow
def test_the_client_and_the_command_line_follow_a_real_job(tmp_path: Path) -> None:
    with serving("--jobs", "1", folder=tmp_path) as (address, _), Client(address) as client:
        jobs: list[str] = []
        plan = client.plan(question(), as_job=True, started=jobs.append, wait_s=120)
        assert plan.status == "optimal"
        events = list(client.job_events(jobs[0]))
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert events[-1].status == "succeeded"
        watched = run_here("jobs", "watch", jobs[0], "--server", address, "-o", "json")
        assert watched.exit_code == 0, watched.stderr
        assert watched.json()["result_plan_id"] == plan.plan_id
        assert [event["seq"] for event in watched.json()["events"]] == [event.seq for event in events]
