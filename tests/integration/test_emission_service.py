"""Launch files over HTTP say where the job runs, as ``meshwright emit`` does with its flags."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.client import Client
from planner.backends.launch.settings import LaunchSettings
from tests.board_in_memory import MemoryBoard
from tests.command_line import run_here
from tests.listening_service import listening
from tests.running_service import problem, question, service
from tests.searches_of_service import no_searches

PLACE: dict[str, Any] = {
    "hosts": ["rack1-n[01-02]", "rack2-n07"],
    "switches": 2,
    "topology_label": "example.com/rack",
    "image": "registry.example.com/team/train:1.2",
    "namespace": "research",
    "files_claim": "launch-files",
    "env": ["NCCL_IB_HCA=mlx5", "NOTE=two words"],
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('service') / 'plans.db'}"


@pytest.fixture(scope="module")
def address(database: str) -> Iterator[str]:
    with listening(database, MemoryBoard(database)) as found:
        yield found


@pytest.fixture(scope="module")
def plan(address: str) -> str:
    with Client(address) as client:
        return client.plan(question(constraints={"backends": ["megatron"]})).plan_id


@pytest.mark.parametrize(
    ("launcher", "left_out"), [("kubernetes", "switches"), ("volcano", "switches"), ("slurm", "hosts")]
)
def test_the_files_are_those_of_the_command(
    address: str, database: str, plan: str, launcher: str, left_out: str, tmp_path: Path
) -> None:
    place = {name: value for name, value in PLACE.items() if name != left_out}
    flags = [word for each in place["env"] for word in ("--env", each)]
    flags += [
        word for name in set(place) - {"hosts", "env"} for word in (f"--{name.replace('_', '-')}", str(place[name]))
    ]
    if "hosts" in place:
        hosts = tmp_path / "hosts"
        hosts.write_text("\n".join(place["hosts"]), encoding="utf-8")
        flags += ["--hosts", str(hosts)]
        place["hosts"] = ("rack1-n01", "rack1-n02", "rack2-n07")
    out = ("--out", str(tmp_path / "here"), "--database", database)
    ran = run_here("emit", plan, "--launcher", launcher, *flags, *out)
    assert ran.exit_code == 0, ran.stderr
    with Client(address) as client:
        settings, folder = LaunchSettings(**{**place, "env": tuple(place["env"])}), tmp_path / "there"
        client.write_emission(plan, folder, launcher=launcher, settings=settings)
    here, there = (
        {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / where).iterdir() if path.is_file()}
        for where in ("here", "there")
    )
    assert here == there
    assert any("NCCL_IB_HCA" in text and "two words" in text for text in there.values())
    assert any("registry.example.com" in text or "--switches" in text for text in there.values())


def test_hosts_may_be_lists_and_the_form_may_be_asked_for(tmp_path: Path) -> None:
    with service(f"sqlite:///{tmp_path / 'plans.db'}") as client:
        plan_id = client.post("/v1/plans", json=question()).json()["plan_id"]
        path = f"/v1/plans/{plan_id}/emissions"
        whole = client.get(path, params={"launcher": "kubernetes", **PLACE}).json()
        assert whole["manifest"]["launch"]["hosts"] == ["rack1-n01", "rack1-n02", "rack2-n07"]
        archive = client.get(path, params={"launcher": "kubernetes", "format": "zip", **PLACE})
        assert archive.headers["content-type"] == "application/zip"
        with zipfile.ZipFile(io.BytesIO(archive.content)) as opened:
            assert {name: opened.read(name).decode() for name in whole["files"]} == whole["files"]
        plain = client.get(path, params={"format": "json"}, headers={"accept": "application/zip"})
        assert plain.headers["content-type"] == "application/json"
        assert plain.json()["manifest"].get("launch") in (None, {}), "another answer than with settings"
        posted = client.post(path, json={"launcher": "kubernetes", **PLACE})
        assert posted.json() == whole
        for name, value in (
            ("image", "UPPER"),
            ("namespace", "no_underscores"),
            ("hosts", "a b;c"),
            ("switches", "0"),
            ("topology_label", "-"),
            ("env", "RANK=3"),
            ("env", "no equals sign"),
            ("format", "tar"),
        ):
            refused = client.get(path, params={name: value})
            assert refused.status_code == 422, name
            assert [each["pointer"].split("/")[0] for each in refused.json()["errors"]] == [name]


def test_a_plans_own_files_need_no_search(tmp_path: Path) -> None:
    with service(f"sqlite:///{tmp_path / 'plans.db'}") as client:
        made = client.post("/v1/plans", json=question()).json()
        address = f"/v1/plans/{made['plan_id']}/emissions"
        with no_searches(client):
            found = client.get(address).json()
            named = client.get(address, params={"backend": f"{made['backend']}=={made['release']}"}).json()
    assert named == found
    assert (found["plan_id"], found["asked_plan_id"]) == (made["plan_id"], made["plan_id"])
    assert (found["backend"], found["release"]) == (made["backend"], made["release"])
    assert (found["slower_by"], found["difference"]) == (0.0, None)
    assert (found["manifest"]["plan_id"], found["step_time_s"]) == (made["plan_id"], made["step_time_s"])


def test_another_backend_is_planned_stored_and_told_apart(tmp_path: Path) -> None:
    with service(f"sqlite:///{tmp_path / 'plans.db'}") as client:
        asked = question(constraints={"backends": ["megatron"]})
        made = client.post("/v1/plans", json=asked).json()
        address = f"/v1/plans/{made['plan_id']}/emissions"
        # Reading plans nothing.
        wanted = {"backend": "torchtitan"}
        assert problem(client.get(address, params=wanted), 404, "not-found")["errors"][0]["pointer"] == "backend"
        assert client.get("/v1/plans", params=wanted).json()["plans"] == []
        there = client.post(address, json=wanted)
        assert there.status_code == 200, there.text
        found = there.json()
        (stored,) = client.get("/v1/plans", params=wanted).json()["plans"]
        own = client.post("/v1/plans", json=question(constraints={"backends": ["torchtitan"]})).json()
        with no_searches(client):
            assert client.get(address, params=wanted).json() == found
            assert client.post(address, json=wanted).json() == found
            # As requests of earlier releases say it.
            assert client.post(address, json={"target": "torchtitan", "version": own["release"]}).json() == found
            assert client.get(f"{address}/torchtitan", params={"version": own["release"]}).json() == found
            assert client.get(address, params={"target": "torchtitan"}).json() == found
            archive = client.get(address, params={**wanted, "format": "zip"})
    assert found["plan_id"] == stored["plan_id"] == own["plan_id"] == found["manifest"]["plan_id"]
    assert (found["backend"], found["asked_plan_id"]) == ("torchtitan", made["plan_id"])
    assert found["slower_by"] == pytest.approx(own["step_time_s"] / made["step_time_s"] - 1)
    assert (found["difference"]["a"], found["difference"]["b"]) == (made["plan_id"], own["plan_id"])
    assert own["plan_id"][:12] in archive.headers["content-disposition"]
    with zipfile.ZipFile(io.BytesIO(archive.content)) as opened:
        assert set(opened.namelist()) == {*found["files"], "manifest.json"}


def test_a_backend_that_cannot_is_refused(tmp_path: Path) -> None:
    with service(f"sqlite:///{tmp_path / 'plans.db'}") as client:
        made = client.post("/v1/plans", json=question(constraints={"backends": ["native"]})).json()
        address = f"/v1/plans/{made['plan_id']}/emissions"
        refused = problem(client.post(address, json={"backend": "mindspeed"}), 422, "backend-refused")
        (finding,) = refused["errors"]
        assert (finding["pointer"], finding["hint"]) == ("/backend", "choose another backend")
        assert "trains on devices of Huawei" in refused["detail"]
        # The reason names the back-end once.
        assert "mindspeed can run no plan of this problem" in refused["detail"]
        assert "MindSpeed" not in refused["detail"]
        without_files = problem(client.post(address, json={"backend": "nanotron"}), 404, "not-found")
        assert "megatron" in without_files["errors"][0]["hint"]
        nearly = problem(client.post(address, json={"backend": "torchtitn"}), 404, "not-found")
        assert nearly["errors"][0]["hint"] == "did you mean 'torchtitan'?"
        launcher = problem(client.post(address, json={"launcher": "bash"}), 422, "document-invalid")
        assert launcher["errors"][0]["pointer"] == "/launcher"


def test_a_long_search_there_is_a_job_that_the_client_waits_for(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'plans.db'}"
    large: dict[str, Any] = {"model": "llama-3.1-405b", "cluster": "dgx-h100", "devices": 512}
    large["workload"] = {"global_batch_size": 1024, "sequence_length": 2048}
    # A budget in which no search of that size ends.
    with listening(database, MemoryBoard(database), synchronous_s=0.001) as address, Client(address) as client:
        made = client.plan({**large, "constraints": {"backends": ["megatron"]}})
        started: list[str] = []
        found = client.emission(made.plan_id, "megatron-bridge", launcher="slurm", started=started.append)
        (job,) = started
        assert client.get_job(job).result_plan_id == found.plan_id
        assert client.get_plan(found.plan_id).backend == found.backend == "megatron-bridge"
        assert found.difference is not None
        assert client.emission_zip(made.plan_id, "megatron-bridge", launcher="slurm")
        assert [each.plan_id for each in client.list_plans(backend="megatron-bridge")] == [found.plan_id]
