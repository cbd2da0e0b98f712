"""What the pages draw, over HTTP: the step, the map, the inputs, fits, scaled what-ifs, pasted configurations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.command_line import run_here
from tests.nccl_text import all_reduce_text
from tests.running_service import question, service

DEVICE = "h100-sxm5-80gb"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with service(f"sqlite:///{tmp_path_factory.mktemp('pictures') / 'plans.db'}") as found:
        yield found


@pytest.fixture(scope="module")
def plan(client: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = client.post("/v1/plans", json=question(constraints={"pins": {"pp": 2}})).json()
    return found


def test_the_step_and_the_map_belong_to_the_plan(client: TestClient, plan: dict[str, Any]) -> None:
    path = f"/v1/plans/{plan['plan_id']}"
    step, mesh = client.get(f"{path}/step"), client.get(f"{path}/mesh")
    assert step.json()["num_ranks"] == plan["strategy"]["pp"] == 2
    assert step.json()["memory_limit_bytes"] == plan["memory_limit_bytes"]
    assert mesh.json()["world_size"] == 8
    assert {axis["axis"] for axis in mesh.json()["axes"]} >= {"tp", "dp_cp", "pp"}
    assert client.get(f"{path}/step", headers={"If-None-Match": step.headers["etag"]}).status_code == 304


def test_the_report_is_a_file_to_keep(client: TestClient, plan: dict[str, Any], tmp_path: Path) -> None:
    sent = client.get(f"/v1/plans/{plan['plan_id']}/report")
    assert sent.headers["content-type"] == "text/html; charset=utf-8"
    assert sent.headers["content-disposition"] == f'attachment; filename="plan-{plan["plan_id"][:12]}.html"'
    stored, page = tmp_path / "plan.json", tmp_path / "plan.html"
    document = {key: value for key, value in plan.items() if key not in ("plan_id", "problem_id")}
    stored.write_text(json.dumps(document))
    assert run_here("explain", str(stored), "--html", str(page)).exit_code == 0
    assert page.read_text() == sent.text


def test_without_a_profile_a_plan_leans_on_datasheets(client: TestClient, plan: dict[str, Any]) -> None:
    leaning = client.get(f"/v1/plans/{plan['plan_id']}/leaning?rows=4").json()
    assert leaning["time_by_input"] == {"datasheet": pytest.approx(1.0)}
    assert len(leaning["lookups"]) == 4
    assert leaning["num_lookups"] > 4
    assert leaning["measure_next"][0]["sigma_gain"] > 0
    assert leaning["commands"][0].startswith("meshwright profile measure")


def test_an_estimate_under_another_input(client: TestClient) -> None:
    # Long enough that devices and links, not launches, decide the time.
    workload = {"global_batch_size": 16, "sequence_length": 8192}
    asked = question(workload=workload, strategy={"tp": 8, "micro_batch_size": 16})

    def seconds(**scale: float) -> Any:
        return client.post("/v1/estimates", json={**asked, "scale": scale}).json()["plan"]["step_time_s"]

    assert seconds(scale_up_bandwidth=0.5) > seconds() > seconds(scale_up_bandwidth=2.0)
    assert seconds(compute_rate=2.0) < seconds()
    refused = client.post("/v1/estimates", json={**asked, "scale": {"luck": 2.0}})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"].startswith("/scale")


def test_fits_of_a_device_are_those_of_the_command_line(client: TestClient, tmp_path: Path) -> None:
    path = f"/v1/devices/{DEVICE}/fits"
    missing = client.get(path)
    assert missing.status_code == 422
    assert missing.json()["slug"] == "profile-missing"
    log = tmp_path / "all_reduce_perf.log"
    log.write_text(all_reduce_text())
    assert run_here("profile", "import", str(log)).exit_code == 0
    found = client.get(path).json()
    told = run_here("profile", "fits", DEVICE, "-o", "json").json()
    assert found == {key: value for key, value in told.items() if key != "figures"}
    assert found["collectives"][0]["operation"] == "all_reduce"
    assert client.get("/v1/devices/no-such-device/fits").status_code == 404
    assert client.get(f"/v1/profiles/{found['profile_id'][:12]}/fits").json() == found


def test_what_is_typed_is_read(client: TestClient) -> None:
    found = client.post("/v1/strategies:read", json={"text": "tp=4, mbs=2\nrecompute=full"}).json()
    assert found["kind"] == "assignments"
    assert found["strategy"] == {"tp": 4, "micro_batch_size": 2, "recompute": "full"}
    assert found["pins"] == "tp=4,micro_batch_size=2,recompute=full"
    wrong = client.post("/v1/strategies:read", json={"text": "tpp=4"}).json()
    assert wrong["status"] == 422
    assert "tpp" in wrong["detail"]


def test_a_pasted_megatron_script_is_read(client: TestClient) -> None:
    script = """
    torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --num-layers 32 --hidden-size 4096 \\
      --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 \\
      --global-batch-size 512 --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --bf16 \\
      --vocab-size 50257 --tokenizer-type NullTokenizer
    """
    found = client.post("/v1/strategies:read", json={"text": script}).json()
    assert found["kind"] == "megatron_script", found
    assert (found["strategy"]["tp"], found["strategy"]["pp"], found["num_devices"]) == (4, 2, 32)
    assert found["workload"]["global_batch_size"] == 512
    assert found["model"]["hidden_size"] == 4096


def test_a_script_that_recomputes_activations_is_read_and_asked_about(client: TestClient, plan: dict[str, Any]) -> None:
    script = """--num-layers 4 --hidden-size 1024 --num-attention-heads 16 --vocab-size 32000 --seq-length 2048
      --max-position-embeddings 2048 --tensor-model-parallel-size 2 --micro-batch-size 1 --recompute-activations"""
    read = client.post("/v1/strategies:read", json={"text": script})
    assert read.status_code == 200, read.text
    strategy = read.json()["strategy"]
    assert (strategy["recompute"], strategy["recompute_modules"]) == ("selective", "attention_core")
    estimate = client.post("/v1/estimates", json=question(strategy=strategy))
    assert estimate.status_code == 200, "an estimate takes the fields as they were read"
    answer = client.get(f"/v1/plans/{plan['plan_id']}/explanation", params={"why_not": read.json()["pins"]})
    assert answer.status_code == 200, answer.text
    assert answer.json()["pins"]["recompute"] == "selective"
    wrong = client.post("/v1/strategies:read", json={"text": script + " --recompute-method uniform"})
    assert wrong.status_code == 422
    assert [each["pointer"] for each in wrong.json()["errors"]] == ["/text/--recompute-method"]
