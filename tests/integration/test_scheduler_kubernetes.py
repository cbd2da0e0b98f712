"""The Kubernetes example: the real webhook, on stdin and on a socket, against a real service."""

from __future__ import annotations

import base64
import copy
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from ruamel.yaml import YAML

from planner.backends.checking.launchers.kubernetes_validate import KUBERNETES_RELEASE
from planner.store import open_store
from tests.board_in_memory import MemoryBoard
from tests.listening_service import listening
from tests.scheduler_examples import FOLDER, environment, run_script, small_question
from tests.validators import worker_or_skip

ADMISSION = "kubernetes/admission.py"
NOTES = "meshwright.dev"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('service') / 'plans.db'}"


@pytest.fixture(scope="module")
def address(database: str) -> Iterator[str]:
    with listening(database, MemoryBoard(database)) as found:
        yield found


def jobset(nodes: str | None = "1,2", **changes: Any) -> dict[str, Any]:
    """The example's JobSet with a small question."""
    found: dict[str, Any] = YAML(typ="safe").load((FOLDER / "kubernetes" / "jobset.yaml").read_text("utf-8"))
    notes = {f"{NOTES}/question": json.dumps(small_question(**changes))}
    found["metadata"]["annotations"] = {**notes, **({f"{NOTES}/nodes": nodes} if nodes else {})}
    return found


def workload(**changes: Any) -> dict[str, Any]:
    pod = jobset()["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": "w", "annotations": {f"{NOTES}/question": json.dumps(small_question(**changes))}},
        "spec": {"podSets": [{"name": "main", "count": 2, "template": pod}]},
    }


@pytest.fixture(scope="module")
def webhook(address: str) -> Iterator[str]:
    """The address of the started webhook."""
    process = subprocess.Popen(
        [sys.executable, str(FOLDER / ADMISSION), "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment(address),
    )  # fmt: skip
    assert process.stdout is not None
    yield f"http://{process.stdout.readline().split()[-1]}"
    process.kill()
    process.communicate()


def reviewed(thing: Any, webhook: str, **request: Any) -> dict[str, Any]:
    """The answer to one review."""
    asked = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    answer = httpx.post(webhook, json={**asked, "request": {"uid": "u-1", "object": thing, **request}}, timeout=300)
    return response_of(answer.json(), request.get("uid", "u-1"))


def response_of(answer: Any, uid: str) -> dict[str, Any]:
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert answer["response"]["uid"] == uid
    found: dict[str, Any] = answer["response"]
    return found


def patched(thing: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    """The object after the patch, as RFC 6902 applies "add"."""
    found: dict[str, Any] = copy.deepcopy(thing)
    assert response["patchType"] == "JSONPatch"
    for step in json.loads(base64.b64decode(response["patch"])):
        assert step["op"] == "add"
        *path, last = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
        place: Any = found
        for part in path:
            place = place[int(part)] if isinstance(place, list) else place[part]
        place[last] = step["value"]
    return found


def test_a_jobset_gets_nodes_a_plan_and_its_environment(webhook: str, address: str, database: str) -> None:
    asked = jobset()
    response = reviewed(asked, webhook, uid="u-jobset")
    assert response["allowed"], response
    made = patched(asked, response)
    notes, job = made["metadata"]["annotations"], made["spec"]["replicatedJobs"][0]["template"]["spec"]
    nodes = int(notes[f"{NOTES}/nodes-chosen"])
    assert nodes in {1, 2}
    assert job["parallelism"] == job["completions"] == nodes
    with open_store(database) as store:
        plan = store.get_plan(notes[f"{NOTES}/plan"])
    assert plan.chosen().world_size == nodes * 8
    assert float(notes[f"{NOTES}/step-time-s"]) == pytest.approx(plan.step_time_s, rel=1e-4)
    variables = {each["name"]: each["value"] for each in job["template"]["spec"]["containers"][0]["env"]}
    assert variables["MESHWRIGHT_PLAN"] == plan.plan_id
    assert variables["MESHWRIGHT_SERVER"] == address
    assert variables["MASTER_PORT"] == "29500"
    # What was planned already is left alone: webhooks are called again after others changed the object.
    assert "patch" not in reviewed(made, webhook)
    assert reviewed(asked, webhook, uid="u-jobset") == response


def test_without_a_choice_the_nodes_stay_as_they_are(webhook: str) -> None:
    asked = jobset(nodes=None)
    made = patched(asked, reviewed(asked, webhook, uid="u-fixed"))
    assert made["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"] == 1
    assert made["metadata"]["annotations"][f"{NOTES}/nodes-chosen"] == "1"


def test_a_workload_is_annotated_and_otherwise_left_alone(webhook: str) -> None:
    asked = workload()
    made = patched(asked, reviewed(asked, webhook, uid="u-workload"))
    assert made["metadata"]["annotations"][f"{NOTES}/nodes-chosen"] == "2"
    assert made["spec"] == asked["spec"]


def test_what_is_not_ours_passes_untouched(webhook: str) -> None:
    plain = jobset()
    del plain["metadata"]["annotations"]
    pod = {**jobset(), "apiVersion": "v1", "kind": "Pod"}
    for thing in (plain, pod, {}, None):
        response = reviewed(thing, webhook)
        assert response == {"uid": "u-1", "allowed": True}
    assert reviewed(jobset(), webhook, dryRun=True) == {"uid": "u-1", "allowed": True}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"nodes": "many"}, "no list of node counts"),
        ({"colour": "red"}, "colour"),
        ({"model": "no-such-model", "nodes": None}, "no-such-model"),
        ({"constraints": {"pins": {"pp": 64}}}, "fits on none"),
    ],
)
def test_a_question_that_cannot_be_is_refused_with_the_reason(webhook: str, change: dict[str, Any], said: str) -> None:
    if "colour" in change:
        change = {**change, "nodes": None}
    response = reviewed(jobset(**change), webhook, uid=f"u-{said[:4].strip()}")
    assert not response["allowed"], response
    assert response["status"]["code"] == 422
    assert said in response["status"]["message"]


def test_no_accelerators_and_no_json_are_refused(webhook: str) -> None:
    bare = jobset()
    del bare["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert "no accelerators" in reviewed(bare, webhook)["status"]["message"]
    text = jobset()
    text["metadata"]["annotations"][f"{NOTES}/question"] = "{"
    assert "no JSON" in reviewed(text, webhook)["status"]["message"]


def test_one_review_on_stdin(address: str) -> None:
    given = json.dumps({"request": {"uid": "u-stdin", "object": jobset()}})
    ran = run_script(ADMISSION, address=address, given=given)
    assert ran.returncode == 0, ran.stderr
    assert response_of(json.loads(ran.stdout), "u-stdin")["allowed"]


def test_a_planner_that_is_away_holds_nothing_up() -> None:
    given = json.dumps({"request": {"uid": "u-3", "object": jobset()}})
    ran = run_script(ADMISSION, address="http://127.0.0.1:9", given=given)
    assert ran.returncode == 0, ran.stderr
    response = response_of(json.loads(ran.stdout), "u-3")
    assert response["allowed"]
    assert "patch" not in response
    assert "not planned" in response["warnings"][0]


def test_what_is_no_review_is_refused(webhook: str) -> None:
    assert httpx.get(f"{webhook}/healthz").status_code == 200
    assert httpx.get(f"{webhook}/other").status_code == 404
    for body in (b"{", b"[" * 100_000, b"[]", b""):
        assert httpx.post(webhook, content=body).status_code == 400
    url = httpx.URL(webhook)
    with socket.create_connection((url.host, url.port or 0)) as raw:
        raw.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n")
        assert b" 413 " in raw.recv(200)


def test_kubernetes_takes_the_webhooks_objects() -> None:
    text = Path(FOLDER / "kubernetes" / "webhook.yaml").read_text(encoding="utf-8")
    with worker_or_skip("kubernetes-validate") as worker:
        verdict = worker.ask(
            {"manifests": {"webhook.yaml": text}, "kubernetes": KUBERNETES_RELEASE, "most_devices": {}}
        )
    assert verdict.accepted, verdict.message
