"""A launch script over HTTP: what it says, the prediction of its run, and why a plan is not that run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from api.access.api_keys import new_key
from planner.store import open_store
from tests.command_line import run_here
from tests.listening_service import listening
from tests.running_service import problem, question, service

MODEL = """--num-layers 4 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 \\
    --max-position-embeddings 2048 --vocab-size 32000 --bf16 --swiglu --disable-bias-linear"""
SCRIPT = f"""#!/bin/bash
TP=${{TP:-1}}
PP=${{1:-2}}
NODES=1
source conf.sh
if [ -n "$SAVE" ]; then EXTRA="--recompute-activations"; fi
torchrun --nproc_per_node 8 --nnodes $NODES pretrain_gpt.py {MODEL} $EXTRA $MORE --lr 1e-4 --use-nccl-ub \\
    --micro-batch-size 1 --global-batch-size 64 --use-distributed-optimizer \\
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP
"""
ON = {"cluster": "dgx-a100-80g"}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('service') / 'plans.db'}"


@pytest.fixture(scope="module")
def client(database: str) -> Iterator[TestClient]:
    with service(database) as found:
        yield found


def read(client: TestClient, **asked: Any) -> Any:
    response = client.post("/v1/scripts:read", json={"text": SCRIPT, **asked})
    assert response.status_code == 200, response.text
    return response.json()


def refused(client: TestClient, **asked: Any) -> list[Any]:
    """Findings of a request that is refused as 422."""
    response = client.post("/v1/scripts:read", json={"text": SCRIPT, **asked})
    found: list[Any] = problem(response, 422, "document-invalid")["errors"]
    return found


def test_what_a_script_says(client: TestClient) -> None:
    found = read(client, name="train.sh", variables={"NODES": "4"})
    assert (found["model"]["name"], found["model"]["layer_runs"][0]["count"], found["devices"]) == ("train", 4, 8)
    assert (found["strategy"]["tp"], found["strategy"]["pp"], found["strategy"]["sp"]) == (1, 2, False)
    assert found["workload"]["global_batch_size"] == 64
    assert found["backend"] == "megatron"
    assert found["arguments"]["not_modelled"] == ["--use-nccl-ub"]
    assert "--lr 1e-4" in found["arguments"]["no_influence"]
    assert {each["name"] for each in found["taken_as_unset"]} >= {"TP", "$1", "SAVE"}
    assert found["set_by_script"] == ["NODES"]
    (place,) = found["undecided"]
    assert place == {
        "line": 5,
        "what": "source conf.sh",
        "say": "the file beside the script, or variables for what it sets",
    }
    assert (found["estimate"], found["why_not"]) == (None, None)
    assert client.post("/v1/strategies:read", json={"text": SCRIPT}).json()["pins"] == found["pins"]


def test_what_is_said_beside_the_script(client: TestClient) -> None:
    said = {"variables": {"TP": "2", "SAVE": "1"}, "arguments": ["4"], "vocab_size": 5000}
    found = read(client, **said, files={"conf.sh": "MORE='--untie-embeddings-and-output-weights'"})
    assert (found["strategy"]["tp"], found["strategy"]["pp"]) == (2, 4)
    assert (found["strategy"]["recompute"], found["strategy"]["recompute_modules"]) == ("selective", "attention_core")
    assert found["model"]["vocab_size"] == 5120, "padded to a multiple of 128 tp"
    assert found["model"]["tie_embeddings"] is False
    assert read(client)["model"]["tie_embeddings"] is True


def test_the_run_is_predicted_as_the_command_line_does(client: TestClient, tmp_path: Path) -> None:
    file = tmp_path / "script.sh"
    file.write_text(SCRIPT, encoding="utf-8")
    here = run_here("estimate", "--from", str(file), "--cluster", ON["cluster"], "--set", "SAVE=1", "-o", "json", "-q")
    told = here.json()
    found = read(client, **ON, profile="auto", variables={"SAVE": "1"})["estimate"]
    assert found["step_time_s"] == told["step_time_s"]
    assert found["strategy"] == told["strategy"]
    longer = read(client, **ON, workload={"global_batch_size": 128})["estimate"]
    assert longer["problem"]["workload"]["global_batch_size"] == 128
    assert longer["step_time_s"] > found["step_time_s"]


def test_why_a_plan_is_not_the_run(client: TestClient) -> None:
    model = read(client)["model"]
    plan = client.post("/v1/plans", json=question(model=model)).json()
    found = read(client, plan=plan["plan_id"][:12], variables={"SAVE": "1"})
    assert found["why_not"]["plan_id"] == plan["plan_id"]
    assert found["why_not"]["other"]["strategy"]["recompute"] == "selective"
    assert any(each["field"] == "pp" and each["b"] == 2 for each in found["why_not"]["strategy"])
    assert found["held_to"] == ["global_batch_size 16 of the plan's question, not the script's 64"]
    deeper = SCRIPT.replace("--num-layers 4", "--num-layers 8")
    (finding,) = refused(client, text=deeper, plan=plan["plan_id"])
    assert finding["pointer"] == "/text"
    assert "another model" in finding["detail"]
    missing = client.post("/v1/scripts:read", json={"text": SCRIPT, "plan": "ffffffff"})
    problem(missing, 404, "not-found")


@pytest.mark.parametrize(
    ("asked", "pointer"),
    [
        ({"text": "echo nothing"}, "/text/--vocab-size"),
        ({"text": "if true; then"}, "/text"),
        ({"text": ""}, "/text"),
        ({"text": "x" * 100_001}, "/text"),
        ({"text": SCRIPT.replace("--vocab-size 32000", "")}, "/text/--vocab-size"),
        ({"variables": {"NOWHERE": "1"}}, "/variables"),
        ({"variables": {"1A": "1"}}, "/variables/1A"),
        ({"vocab_size": 0}, "/vocab_size"),
        ({"name": "a/b"}, "/name"),
        ({**ON, "devices": 12}, "/devices"),
        ({**ON, "arguments": ["3"]}, "/text"),
        ({**ON, "workload": {"sequence_length": "long"}}, "/workload/sequence_length"),
    ],
)
def test_what_cannot_be_read_is_one_finding_at_its_place(
    client: TestClient, asked: dict[str, Any], pointer: str
) -> None:
    found = refused(client, **asked)
    assert found[0]["pointer"] == pointer
    assert not any("--set" in f"{each['detail']} {each.get('hint')}" for each in found)


TITAN = "[model]\nflavor = '8B'\n[training]\nlocal_batch_size = 1\nseq_len = 2048\n[compile]\nenable = true\n"
DEEPSPEED = '{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3}}'
BRIDGE = "from megatron.bridge.recipes.llama import llama3_8b_pretrain_config\ncfg = llama3_8b_pretrain_config()\n"
NAMED = "torchrun --nproc_per_node=8 -m torchtitan.train --job.config_file confs/a.toml\n"
"""A launch that names its configuration file."""


@pytest.mark.parametrize(
    ("asked", "backend"),
    [
        ({"name": "a.toml", "text": TITAN}, "torchtitan==0.2.2"),
        ({"name": "ds.json", "text": DEEPSPEED, "model": "llama-3.1-8b"}, "deepspeed"),
        ({"name": "a.py", "text": BRIDGE}, "megatron-bridge"),
        ({"name": "run.sh", "text": NAMED, "files": {"confs/a.toml": TITAN}}, "torchtitan==0.2.2"),
    ],
)
def test_files_of_other_back_ends_are_read(client: TestClient, asked: dict[str, Any], backend: str) -> None:
    found = read(client, devices=8, **asked)
    assert found["backend"] == backend
    assert sum(each["count"] for each in found["model"]["layer_runs"]) == 32
    assert found["devices"] == 8


@pytest.mark.parametrize(
    ("asked", "pointer", "hint"),
    [
        ({"name": "ds.json", "text": DEEPSPEED}, "/text", "model: "),
        ({"name": "a.toml", "text": TITAN}, "/text", "devices"),
        ({"name": "a.toml", "text": TITAN, "devices": 8, "vocab_size": 9}, "/vocab_size", "leave it out"),
        ({"name": "a.toml", "text": TITAN, "devices": 8, "variables": {"A": "1"}}, "/variables", "leave it out"),
        ({"name": "a.py", "text": BRIDGE, "model": "llama-3.1-8b"}, "/model", "model and text"),
        ({"name": "a.py", "text": BRIDGE + "cfg.train.global_batch_size = x()\n"}, "/text", "arguments: train.global"),
        ({"name": "run.sh", "text": NAMED}, "/text", "files"),
        ({"name": "run.sh", "text": NAMED, "files": {"confs/a.toml": "["}}, "/files/confs~1a.toml", ""),
    ],
)
def test_an_error_of_a_file_names_the_part_of_the_request(
    client: TestClient, asked: dict[str, Any], pointer: str, hint: str
) -> None:
    found, *_ = refused(client, **asked)
    assert found["pointer"] == pointer
    assert hint in (found.get("hint") or "")
    assert "--" not in f"{found['detail']} {found.get('hint')}"


def test_why_a_plan_is_not_the_run_of_a_job_file(client: TestClient) -> None:
    asked = question(model="llama-3.1-8b", workload={"global_batch_size": 8, "sequence_length": 2048})
    plan = client.post("/v1/plans", json=asked).json()
    found = read(client, name="ds.json", text=DEEPSPEED, model="llama-3.1-8b", plan=plan["plan_id"])
    assert found["backend"] == "deepspeed"
    assert found["why_not"]["pins"]["zero_stage"] == 3


def test_a_key_that_may_read_sends_scripts_and_one_that_may_plan_has_them_estimated(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'plans.db'}"
    keys = {scope: new_key(scope, scope, 1) for scope in ("read", "plan")}
    with open_store(database) as store:
        for _, record in keys.values():
            store.service().add_api_key(record)
    limits: dict[str, Any] = {"most_layers": 4, "most_devices": 16}
    with service(database, authentication=True, **limits) as guarded:

        def status(scope: str, **asked: Any) -> int:
            headers = {"authorization": f"Bearer {keys[scope][0]}"}
            return guarded.post("/v1/scripts:read", json={"text": SCRIPT, **asked}, headers=headers).status_code

        assert guarded.post("/v1/scripts:read", json={"text": SCRIPT}).status_code == 401
        assert (status("read"), status("read", **ON), status("plan", **ON)) == (200, 403, 200)
        deeper = SCRIPT.replace("--num-layers 4", "--num-layers 8")
        assert (status("plan", text=deeper), status("plan", **ON, devices=32)) == (422, 422)


def test_a_script_that_recomputes_activations_over_a_service(database: str, tmp_path: Path) -> None:
    file = tmp_path / "train.sh"
    file.write_text(SCRIPT, encoding="utf-8")
    words = ("estimate", "--from", str(file), "--cluster", ON["cluster"], "--set", "SAVE=1", "-o", "json", "-q")
    with open_store(database), listening(database) as address:
        there = run_here(*words, "--server", address)
    assert there.exit_code == 0, there.stderr
    here = run_here(*words).json()
    assert there.json()["strategy"] == here["strategy"]
    assert there.json()["script"] == here["script"]


def test_a_plan_of_a_service_is_asked_about_with_a_script_of_this_machine(database: str, tmp_path: Path) -> None:
    file = tmp_path / "train.sh"
    file.write_text(SCRIPT, encoding="utf-8")
    said = ("--set", "SAVE=1", "-o", "json", "-q")
    with open_store(database), listening(database) as address:
        planned = run_here("plan", "--from", str(file), "--cluster", ON["cluster"], "--server", address, *said)
        assert planned.exit_code == 0, planned.stderr
        plan_id = planned.json()["plan_id"]
        asked = run_here("explain", plan_id, "--why-not", str(file), "--server", address, *said)
    assert asked.exit_code == 0, asked.stderr
    yours = planned.json()["compared"]["yours"]
    assert asked.json()["other"]["step_time_s"] == yours["step_time_s"] > planned.json()["step_time_s"]
