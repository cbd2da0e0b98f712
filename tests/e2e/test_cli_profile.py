"""``meshwright profile``: what is shown is what is stored, once; bad input stores nothing."""

from __future__ import annotations

import gzip
import pickle
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import Ran, run_here, run_process
from tests.importing import sample
from tests.nccl_text import all_reduce_text

OSU = "# OSU MPI Bandwidth Test v6.2\n# Size      Bandwidth (MB/s)\n1    1.21\n2   2.32\n4   4.85\n"


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "store")


@pytest.fixture
def nccl(tmp_path: Path) -> str:
    return write(tmp_path, "run.log", all_reduce_text())


def write(folder: Path, name: str, content: str | bytes) -> str:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def profile(*words: str) -> Ran:
    return run_here("profile", *words)


def listed(store: str, *words: str) -> Any:
    return profile("list", "--profiles", store, *words, "-o", "json").json()


def test_a_dry_run_shows_what_would_be_stored_and_stores_nothing(nccl: str, store: str) -> None:
    ran = profile("import", nccl, "--dry-run", "--profiles", store, "-o", "json")
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert not Path(store).exists()
    answer = ran.json()
    (file,) = answer["files"]
    assert (file["file"], file["format"], file["status"]) == (nccl, "nccl-tests", "would store")
    assert len(file["sha256"]) == 64
    assert file["bytes"] == len(all_reduce_text())
    assert file["error"] is None
    assert file["bad_rows"] == []
    (batch,) = file["batches"]
    assert answer["num_observations"] == batch["num_observations"] == len(batch["collectives"]) == 6
    assert (batch["operators"], batch["links"], batch["iterations"], batch["truncated"]) == ([], [], [], False)
    assert batch["environment"]["device"] == "h100-sxm5-80gb"
    first = batch["collectives"][0]
    assert (first["operation"], first["size_bytes"], first["group_size"]) == ("all_reduce", 1 << 20, 2)
    assert first["time_s"] == pytest.approx(100e-6)
    assert first["algorithm_bandwidth_bytes_per_s"] == pytest.approx((1 << 20) / 100e-6)
    assert first["bus_bandwidth_bytes_per_s"] == pytest.approx((1 << 20) / 100e-6)
    assert {"statistic", "num_samples", "min_s", "std_s", "in_place", "dtype", "row", "ok", "detail"} <= set(first)
    assert "trainer-07" not in ran.stdout


def test_rows_are_limited_and_it_is_said(nccl: str, store: str) -> None:
    ran = profile("import", nccl, "--dry-run", "--rows", "2", "--profiles", store, "-o", "json")
    (batch,) = ran.json()["files"][0]["batches"]
    assert (len(batch["collectives"]), batch["num_observations"], batch["truncated"]) == (2, 6, True)


def test_an_import_is_stored_once(nccl: str, store: str) -> None:
    first = profile("import", nccl, "--profiles", store, "-o", "json").json()
    assert [file["status"] for file in first["files"]] == ["stored"]
    again = profile("import", nccl, "--profiles", store, "-o", "json").json()
    assert [file["status"] for file in again["files"]] == ["already stored"]
    dry = profile("import", nccl, "--dry-run", "--profiles", store, "-o", "json").json()
    assert [file["status"] for file in dry["files"]] == ["already stored"]
    (row,) = listed(store)
    assert row["batch_id"] == first["files"][0]["batches"][0]["batch_id"]
    assert (row["device"], row["format"], row["counts"]) == ("h100-sxm5-80gb", "nccl-tests", {"collectives": 6})


def test_what_is_shown_is_what_the_dry_run_showed(nccl: str, store: str) -> None:
    dry = profile("import", nccl, "--dry-run", "--profiles", store, "-o", "json").json()["files"][0]["batches"][0]
    profile("import", nccl, "--profiles", store)
    (by_id,) = profile("show", dry["batch_id"][:8], "--profiles", store, "-o", "json").json()
    (by_device,) = profile("show", "h100-sxm5-80gb", "--profiles", store, "-o", "json").json()
    assert by_id == by_device
    assert by_id["collectives"] == dry["collectives"]
    assert by_id["environment"] == dry["environment"]
    assert by_id["source"]["file_name"] == "run.log"
    assert by_id["status"] == "used"


def test_people_get_tables(nccl: str, store: str) -> None:
    ran = profile("import", nccl, "--profiles", store)
    assert ran.exit_code == 0
    assert "6 collectives" in ran.stdout
    assert "1 MiB to 4 MiB" in ran.stdout
    assert "meshwright profile list" in ran.stdout
    assert "h100-sxm5-80gb" in profile("list", "--profiles", store).stdout
    shown = profile("show", "h100-sxm5-80gb", "--profiles", store)
    assert "run.log (nccl-tests, parser 1)" in shown.stdout


def test_dropping_keeps_everything_and_can_be_undone(nccl: str, store: str) -> None:
    profile("import", nccl, "--profiles", store)
    batch_id = listed(store)[0]["batch_id"]
    assert profile("drop", batch_id[:6], "--reason", "cold", "--profiles", store).exit_code == 0
    assert listed(store) == []
    assert [row["status"] for row in listed(store, "--all")] == ["withdrawn"]
    assert profile("drop", batch_id, "--undo", "--profiles", store, "-o", "json").json()["changed"]
    assert [row["status"] for row in listed(store)] == ["used"]


def test_the_same_thing_measured_differently_is_shown(tmp_path: Path, store: str) -> None:
    slow = all_reduce_text().replace("100.0", "300.0").replace("10.49", " 3.50")
    files = [write(tmp_path, "a.log", all_reduce_text()), write(tmp_path, "b.log", slow)]
    assert profile("import", *files, "--profiles", store).exit_code == 0
    found = profile("conflicts", "--profiles", store, "-o", "json").json()
    assert {(each["key"]["size_bytes"], round(each["ratio"], 3)) for each in found} == {(1 << 20, 3.0)}
    assert [round(by["fastest_s"] * 1e6) for by in found[0]["batches"]] == [100, 300]
    assert profile("conflicts", "--threshold", "2.5", "--profiles", store, "-o", "json").json() == []
    assert "3.00x" in profile("conflicts", "--profiles", store).stdout
    assert profile("conflicts", "--threshold", "nan", "--profiles", store).exit_code == 2


def test_bad_rows_store_nothing_without_keep_going(tmp_path: Path, store: str) -> None:
    file = write(tmp_path, "osu.txt", OSU + "8  nan\n16  -5\n")
    ran = profile("import", file, "--profiles", store, "-o", "json")
    assert ran.exit_code == 2
    assert ran.stdout == ""
    assert ran.error()["what"].startswith("2 rows cannot be used\n  line 6:")
    assert not Path(store).exists()
    going = profile("import", file, "--keep-going", "--profiles", store, "-o", "json")
    assert going.exit_code == 2
    (answer,) = going.json()["files"]
    assert answer["status"] == "stored"
    assert [row["where"] for row in answer["bad_rows"]] == ["line 6", "line 7"]
    assert [row["counts"] for row in listed(store)] == [{"links": 3}]


def test_one_refused_file_stops_the_others_unless_told_otherwise(tmp_path: Path, nccl: str, store: str) -> None:
    unknown = write(tmp_path, "notes.txt", "nothing\n")
    refused = profile("import", nccl, unknown, "--profiles", store, "-o", "json")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "1 of 2 files cannot be imported; nothing is stored" in refused.error()["what"]
    assert unknown in refused.error()["what"]
    assert not Path(store).exists()
    dry = profile("import", nccl, unknown, "--dry-run", "--profiles", store, "-o", "json")
    assert dry.exit_code == 2
    assert [file["status"] for file in dry.json()["files"]] == ["would store", "refused"]
    assert dry.json()["files"][1]["error"]["slug"] == "document-invalid"
    going = profile("import", nccl, unknown, "--keep-going", "--profiles", store, "-o", "json")
    assert going.exit_code == 2
    assert [file["status"] for file in going.json()["files"]] == ["stored", "refused"]
    assert len(listed(store)) == 1


def test_facts_and_the_device_are_taken_from_the_command_line(tmp_path: Path, store: str) -> None:
    file = write(tmp_path, "osu.txt", OSU)
    words = ("import", file, "--device", "h200-sxm-141gb", "--set", "colour=red", "--profiles", store, "-o", "json")
    (answer,) = profile(*words).json()["files"]
    assert answer["batches"][0]["environment"]["device"] == "h200-sxm-141gb"
    assert [flag["code"] for flag in answer["flags"] if "colour" in flag["what"]] == ["option-not-used"]
    (shown,) = profile("show", "h200-sxm-141gb", "--profiles", store, "-o", "json").json()
    assert shown["given"] == {"device": "h200-sxm-141gb", "colour": "red"}


@pytest.mark.parametrize(
    ("words", "exit_code", "said"),
    [
        (["import"], 2, "Missing argument"),
        (["import", "absent.log"], 3, "no such file"),
        (["import", "x", "--format", "nccl-test"], 3, "did you mean 'nccl-tests'"),
        (["import", "x", "--set", "colour"], 2, "not NAME=VALUE"),
        (["import", "x", "--set", "a=1", "--set", "a=2"], 2, "given twice"),
        (["import", "x", "--device", " "], 2, "empty"),
        (["import", "x", "--rows", "0"], 2, "--rows"),
        (["import", "aiconfigurator"], 2, "which system?"),
        (["import", "x", "--system", "h100_sxm"], 2, "imported alone"),
        (["import", "x", "--base", "dgx-h100"], 2, "--cluster-out"),
        (["import", "x", "--profiles", "s3://bucket"], 2, "not a folder on this machine"),
        (["show", "nothing"], 3, "no batch and no measured device"),
        (["drop", "nothing"], 3, "no batch"),
    ],
)
def test_bad_usage(words: list[str], exit_code: int, said: str) -> None:
    ran = profile(*words)
    assert ran.exit_code == exit_code
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""


BILLION_LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "lol"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">'
    '<!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;">]><system version="1"><cpu numaid="0">&d;</cpu></system>'
)
READS_A_FILE = (
    '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>'
    '<system version="1"><cpu numaid="0" arch="x86_64">&b;</cpu></system>'
)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bomb.log.gz", gzip.compress(all_reduce_text().encode() + b" " * (200 << 20), 9)),
        ("cut.log.gz", gzip.compress(all_reduce_text().encode())[:-100]),
        ("pickle.log", pickle.dumps({"a": 1})),
        ("wide.csv", b"name," + b",".join(b"c%d" % column for column in range(1_000_000)) + b"\n1,2\n"),
        ("unknown.bin", bytes(range(256)) * 100),
        ("empty.txt", b""),
        ("laughs.xml", BILLION_LAUGHS.encode()),
        ("reads.xml", READS_A_FILE.encode()),
        ("deep.json", b"[" * 100_000),
        ("half.json", b'{"traceEvents": [{"ph": "X", "name": "k", "ts": NaN'),
    ],
)
def test_hostile_files_are_one_clear_error(tmp_path: Path, store: str, name: str, content: bytes) -> None:
    file = write(tmp_path, name, content)
    ran = profile("import", file, "--profiles", store, "-o", "json")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.error()["where"].startswith(file)
    assert ran.error()["hint"]
    assert "root:" not in ran.stderr
    assert not Path(store).exists()


def test_real_files_of_several_tools_in_a_fresh_process(tmp_path: Path) -> None:
    files = ["nccl-tests/oci_h100_16gpu_allreduce.txt", "osu/cscs_osu_bw_v6.2.txt", "topo/stas_topo_h100_nv18_full.txt"]
    paths = [str(sample(file).path) for file in files]
    store = str(tmp_path / "store")
    ran = run_process("profile", "import", *paths, "--profiles", store, "-o", "json")
    assert ran.exit_code == 0, ran.stderr
    formats = [file["format"] for file in ran.json()["files"]]
    assert formats == ["nccl-tests", "osu", "nvidia-smi-topo"]
    assert ran.json()["num_observations"] == 33
    assert ran.json()["files"][2]["topology"]["node"]["num_devices"] == 8
    again = run_process("profile", "import", *paths, environment={"MESHWRIGHT_PROFILES": store})
    assert again.stdout.count("already stored") == 3


def test_a_topology_becomes_a_cluster_that_plan_reads(tmp_path: Path, store: str) -> None:
    file, out = str(sample("topo/stas_topo_h100_nv18_full.txt").path), tmp_path / "ours.yaml"
    words = ("import", file, "--cluster-out", str(out), "--base", "dgx-h100", "--profiles", store, "-o", "json")
    dry = profile(*words, "--dry-run")
    assert dry.exit_code == 0, dry.stderr
    assert not out.exists()
    done = profile(*words)
    assert done.exit_code == 0, done.stderr
    assert done.json()["cluster"] == dry.json()["cluster"]
    assert done.json()["cluster"]["notes"]
    shown = run_here("clusters", "show", str(out), "-o", "json").json()
    assert (shown["name"], shown["pools"][0]["devices_per_node"]) == ("ours", 8)


def test_a_cluster_needs_a_topology(nccl: str, tmp_path: Path, store: str) -> None:
    out = tmp_path / "ours.yaml"
    ran = profile("import", nccl, "--cluster-out", str(out), "--base", "dgx-h100", "--profiles", store)
    assert ran.exit_code == 2
    assert "none of the files describes a topology" in ran.stderr
    assert not out.exists()
    assert not Path(store).exists()


@pytest.mark.slow
def test_the_installed_tables_of_a_system(store: str) -> None:
    try:
        release = version("aiconfigurator-core")
    except PackageNotFoundError:
        pytest.skip("aiconfigurator-core is not installed")
    ran = profile("import", "aiconfigurator", "--system", "a100_sxm", "--profiles", store, "-o", "json")
    assert ran.exit_code == 0, ran.stderr
    answer = ran.json()
    assert answer["num_observations"] > 100_000
    assert {file["status"] for file in answer["files"]} == {"stored"}
    assert all(file["file"].startswith("a100_sxm/") for file in answer["files"])
    assert {file["tool_version"] for file in answer["files"]} == {release}
    stored = listed(store)
    assert {row["device"] for row in stored} == {"a100-sxm4-80gb"}
    assert sum(row["num_observations"] for row in stored) == answer["num_observations"]
    unknown = profile("import", "aiconfigurator", "--system", "a100", "--profiles", store)
    assert unknown.exit_code == 3
    assert "a100_sxm" in unknown.stderr


def test_formats_are_listed() -> None:
    rows = profile("formats", "-o", "json").json()
    assert {"nccl-tests", "kineto", "nccl-debug"} <= {row["format"] for row in rows}
    assert rows[-1]["format"] == "nccl-debug"
    assert all(row["title"] and row["takes"] in ("file", "files", "folder") for row in rows)
    assert "nccl-tests" in profile("formats").stdout
