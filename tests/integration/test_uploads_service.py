"""Topologies and logs over HTTP: a cluster that can be planned, measurements that are kept, refusals that help."""

from __future__ import annotations

import gzip
import pickle
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from api.access.api_keys import new_key
from api.app import openapi_document
from api.client import Client
from api.uploads.received import PREFIX
from api.wire.uploads import MOST_FILES
from planner.store import open_store
from profiles.catalogue import load_cluster
from profiles.complete_cluster import complete_cluster
from profiles.errors import NotFound
from profiles.importing.read_sources import read_sources
from profiles.merge_topologies import merge_topologies
from profiles.observation_store.store import ObservationStore
from tests.listening_service import listening
from tests.running_service import SMALL_MODEL, WORKLOAD, service
from tests.uploads import ALL_REDUCE, SAMPLES, SLURM, TOPO_M, upload, uploaded

REPOSITORY = Path(__file__).parents[2]
COMPLETE, IMPORT = "/v1/clusters:complete", "/v1/profiles:import"
H100 = "h100-sxm5-80gb"
FOUR = "topo/stelline_esc8000a_topo_m.txt"
UNKNOWN = upload("notes.txt", "shopping: bread, butter\n")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    database = f"sqlite:///{tmp_path_factory.mktemp('uploads') / 'plans.db'}"
    with service(database, profile_limit_bytes=2 << 20) as found:
        yield found


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Measurements of a test's own, and nothing left of its files."""
    monkeypatch.setenv("MESHWRIGHT_PROFILES", str(tmp_path / "profiles"))
    held = tmp_path / "held"
    held.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(held))
    yield
    assert list(held.glob(f"{PREFIX}*")) == [], "files of a request outlive its answer"


def findings(answer: Any) -> dict[str, str]:
    """Pointer -> detail and hint, of a refusal."""
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    return {each["pointer"]: f"{each['detail']} | {each.get('hint')}" for each in answer.json()["errors"]}


def stored_batches() -> int:
    return len(ObservationStore.open().states())


def test_a_cluster_of_two_files_is_the_command_lines_and_is_planned(client: TestClient) -> None:
    files = [SAMPLES / SLURM, SAMPLES / TOPO_M]
    topologies = [each.imported.topology for each in read_sources(files) if each.imported and each.imported.topology]
    cluster, notes = complete_cluster(
        merge_topologies(topologies), base=load_cluster("dgx-h200"), device=None, name="lab"
    )
    answer = client.post(
        COMPLETE, json={"files": [uploaded(SLURM), uploaded(TOPO_M)], "base": "dgx-h200", "name": "lab"}
    )
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["cluster"] == cluster.model_dump(mode="json")
    assert len(found["notes"]) == len(notes)
    assert "num_nodes: 96, from the topology" in found["notes"]
    assert not [note for note in found["notes"] if "--" in note], "flags are the command line's words"
    assert [(each["format"], each["positions"]) for each in found["files"]] == [
        ("slurm-topology-conf", [0]),
        ("nvidia-smi-topo", [1]),
    ]
    assert [each["topology"] for each in found["files"]] == [
        "96 nodes, 3 network levels",
        "a node of 8 devices, 8 NICs a node",
    ]
    asked = {"model": SMALL_MODEL, "cluster": found["cluster"], "devices": 8, "workload": WORKLOAD}
    planned = client.post("/v1/plans", json=asked)
    assert planned.status_code == 200, planned.text
    assert stored_batches() == 0


def test_a_stored_cluster_is_a_base_too(client: TestClient) -> None:
    document = client.get("/v1/clusters/dgx-h200").json()["document"]
    client.put("/v1/clusters/ours", json={**document, "name": "ours"}, headers={"if-none-match": "*"})
    answer = client.post(COMPLETE, json={"files": [uploaded(TOPO_M)], "base": "ours"})
    assert answer.status_code == 200, answer.text


def test_a_log_beside_topologies_is_named_as_unused(client: TestClient) -> None:
    answer = client.post(COMPLETE, json={"files": [uploaded(TOPO_M), uploaded(ALL_REDUCE)], "base": "dgx-h200"})
    assert "aws_p5_batch_allreduce_mpirun_tagged.txt: shows no topology, not used" in answer.json()["notes"]


def test_everything_that_is_wrong_is_said_at_once(client: TestClient) -> None:
    files = [uploaded(SLURM), UNKNOWN, upload("report.nsys-rep", b"\0\1")]
    answer = client.post(
        COMPLETE, json={"files": files, "base": "dgx-h20", "device": "h1000", "format": None, "facts": {}}
    )
    found = findings(answer)
    assert answer.status_code == 422
    assert set(found) == {"/base", "/device", "/files/1", "/files/2"}
    assert "did you mean 'dgx-h200'?" in found["/base"]
    assert "nsys export" in found["/files/2"]


@pytest.mark.parametrize(
    ("body", "pointer", "words"),
    [
        ({"files": [uploaded(SLURM)]}, "/device", "no file names the device"),
        ({"files": [uploaded(SLURM)], "device": H100}, "/base", "name a cluster to complete it from: base NAME"),
        ({"files": [uploaded(ALL_REDUCE)], "base": "dgx-h200"}, "/files", "none of the files describes a topology"),
        (
            {"files": [uploaded("nccl-xml/aws_p4de-24xl-topo.xml")], "base": "dgx-h200"},
            "/base",
            "choose a base of a100",
        ),
        ({"files": [uploaded(FOUR), uploaded(TOPO_M)], "base": "dgx-h200"}, "/files", "nodes of 4 devices"),
        ({"files": [uploaded(SLURM)], "format": "slurm-topology-con"}, "/format", "did you mean"),
        ({"files": [uploaded(SLURM)], "base": "../../etc"}, "/base", "pattern"),
        ({"files": []}, "/files", "at least 1 item"),
        ({"files": [uploaded(SLURM)] * (MOST_FILES + 1)}, "/files", f"at most {MOST_FILES} items"),
        ({"files": [{"name": "x", "content_base64": "e o="}]}, "/files/0/content_base64", "is not base64"),
        ({"files": [{"name": "a\nb", "content_base64": ""}]}, "/files/0/name", "pattern"),
        ({"files": [{"name": "", "content_base64": ""}]}, "/files/0/name", "pattern"),
    ],
)
def test_a_refusal_points_at_what_repairs_it(
    client: TestClient, body: dict[str, Any], pointer: str, words: str
) -> None:
    found = findings(client.post(COMPLETE, json=body))
    assert pointer in found, found
    assert words in found[pointer]


def test_logs_are_tried_stored_once_and_used(client: TestClient) -> None:
    body = {"files": [uploaded(ALL_REDUCE)], "facts": {"device": H100}}
    tried = client.post(IMPORT, json={**body, "dry_run": True}).json()
    assert [(each["status"], each["counts"]) for each in tried["files"]] == [("would store", {"collectives": 64})]
    assert tried["devices"] == [{"device": H100, "in_catalogue": True, "profile_id": None, "num_points": 0}]
    assert stored_batches() == 0
    assert client.get(f"/v1/devices/{H100}/fits").status_code == 422
    stored = client.post(IMPORT, json=body).json()
    assert [each["status"] for each in stored["files"]] == ["stored"]
    fits = client.get(f"/v1/devices/{H100}/fits").json()
    assert stored["devices"][0]["profile_id"] == fits["profile_id"]
    assert stored["devices"][0]["num_points"] == fits["num_points"] > 0
    again = client.post(IMPORT, json=body).json()
    assert [each["status"] for each in again["files"]] == ["already stored"]
    assert stored_batches() == 1


def test_one_refused_file_stores_nothing_unless_told_to_keep_going(client: TestClient) -> None:
    lines = (SAMPLES / ALL_REDUCE).read_text().splitlines()
    row = next(number for number, line in enumerate(lines) if " 1048576 " in line)
    lines[row] = lines[row].replace(lines[row].split("float")[1].split()[2], "nan")
    body = {"files": [uploaded(ALL_REDUCE), UNKNOWN, upload("bad row allreduce.txt", "\n".join(lines))]}
    tried = client.post(IMPORT, json={**body, "dry_run": True})
    assert tried.status_code == 200
    assert [each["status"] for each in tried.json()["files"]] == ["would store", "not recognised", "refused"]
    refused = findings(client.post(IMPORT, json=body))
    assert set(refused) == {"/files/1", "/files/2"}
    assert f"line {row + 1}" in refused["/files/2"]
    assert stored_batches() == 0
    kept = client.post(IMPORT, json={**body, "keep_going": True}).json()
    assert [each["status"] for each in kept["files"]] == ["stored", "not recognised", "stored"]
    assert kept["files"][2]["num_bad_rows"] == 1
    assert kept["files"][1]["findings"][0]["pointer"] == "/files/1"
    assert stored_batches() == 2
    assert kept["devices"] == [{"device": "", "in_catalogue": False, "profile_id": None, "num_points": 0}]
    assert set(findings(client.post(IMPORT, json={"files": [UNKNOWN], "keep_going": True}))) == {"/files/0"}


def test_hostile_files_are_refused_and_the_service_lives(client: TestClient) -> None:
    bomb = gzip.compress(b"\0" * (300 << 20), 9)
    files = {
        "bomb.gz": bomb,
        "cut.gz": gzip.compress(b"x" * 1000)[:-9],
        "model.bin": pickle.dumps({"a": 1}),
        "tables.parquet": b"PAR1" + b"\xff" * 64 + b"PAR1",
        "trace.sqlite": b"SQLite format 3\0" + b"\xff" * 4096,
        "archive.tar": (b"../../../tmp/x".ljust(257, b"\0") + b"ustar").ljust(2048, b"\0"),
        "deep.json": b"[" * 100_000,
        "empty.txt": b"",
    }
    answer = client.post(IMPORT, json={"files": [upload(name, content) for name, content in files.items()]})
    found = findings(answer)
    assert answer.status_code == 422
    assert set(found) == {f"/files/{number}" for number in range(len(files))}
    assert "pickle" in found["/files/2"]
    assert PREFIX not in answer.text, "where files lie on the server is nobody's business"
    assert stored_batches() == 0
    assert client.post(COMPLETE, json={"files": [uploaded(TOPO_M)], "base": "dgx-h200"}).status_code == 200


@pytest.mark.parametrize("path", [COMPLETE, IMPORT])
def test_the_documents_examples_are_answered(client: TestClient, path: str) -> None:
    body = openapi_document()["paths"][path]["post"]["requestBody"]["content"]["application/json"]["example"]
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    assert {each["status"] for each in answer.json()["files"]} <= {"read", "would store"}


def test_a_body_above_the_limit_is_not_read(client: TestClient) -> None:
    answer = client.post(IMPORT, json={"files": [upload("x", b"x" * (2 << 20))]})
    assert (answer.status_code, answer.json()["slug"]) == (413, "body-too-large")


def test_reading_ends_when_its_time_does(tmp_path: Path) -> None:
    endless = gzip.compress((SAMPLES / ALL_REDUCE).read_bytes() * 3000)
    with service(f"sqlite:///{tmp_path / 'plans.db'}", quick_s=0.01) as impatient:
        found = findings(impatient.post(IMPORT, json={"files": [upload("endless.gz", endless)]}))
        assert "takes longer than 0.01 s" in found["/files"]
        assert impatient.get("/v1/clusters").status_code == 200
    assert stored_batches() == 0


def test_who_may(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'plans.db'}"
    keys = {}
    with open_store(database) as store:
        for scope in ("read", "plan", "admin"):
            keys[scope], record = new_key(scope, scope, None)
            store.service().add_api_key(record)
    body = {"files": [uploaded(TOPO_M)]}
    with service(database, authentication=True) as closed:
        status = {
            (path, scope): closed.post(
                path, json={**body, **more}, headers={"authorization": f"Bearer {key}"}
            ).status_code
            for path, more in ((COMPLETE, {"base": "dgx-h200"}), (IMPORT, {"dry_run": True}))
            for scope, key in keys.items()
        }
        assert closed.post(IMPORT, json=body).status_code == 401
    assert status == {
        **{(COMPLETE, "read"): 403, (COMPLETE, "plan"): 200, (COMPLETE, "admin"): 200},
        **{(IMPORT, "read"): 403, (IMPORT, "plan"): 403, (IMPORT, "admin"): 200},
    }


@pytest.mark.parametrize(
    ("page", "printed"),
    [
        ("cluster-from-topology.md", "num_nodes: 96, from the topology"),
        ("import-benchmark-logs.md", "'nccl-tests', {'collectives': 64}, 'stored'"),
    ],
)
def test_the_pages_say_what_runs(
    page: str, printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (REPOSITORY / "docs" / "how-to" / page).read_text(encoding="utf-8")
    block = re.search(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert block is not None
    monkeypatch.chdir(REPOSITORY)
    with listening(f"sqlite:///{tmp_path / 'plans.db'}") as address:
        exec(block[1].replace("http://127.0.0.1:8642", address), {})
    assert printed in capsys.readouterr().out


def test_the_client_names_a_file_that_is_not_there(tmp_path: Path) -> None:
    with Client("http://127.0.0.1:9") as client, pytest.raises(NotFound, match="no such file"):
        client.uploads.complete_cluster([tmp_path / "none.txt"])
