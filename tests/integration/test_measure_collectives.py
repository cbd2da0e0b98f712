"""Collectives on four real ranks (gloo) that count as two nodes: every group shape, alone and with all siblings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="measuring needs the extra meshwright[torch]")

from profiles.importers.meshwright_measure import FORMAT
from profiles.importing.imported import Imported
from profiles.importing.source_file import SourceFile
from tests.importing import read
from tests.rank_launch import cpu_environment, launched, torchrun
from tests.warm_python.interpreters import NATIVE, WarmPythons

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
WORKER = ROOT / "tests" / "measure_ranks_worker.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, warm_pythons: WarmPythons) -> Path:
    folder = tmp_path_factory.mktemp("ranks")
    environment = cpu_environment()
    python = warm_pythons.python(NATIVE, environment).executable
    done = launched([*torchrun(python, 4), str(WORKER), str(folder)], environment, cwd=ROOT, timeout_s=240)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


@pytest.fixture(scope="module")
def measured(folder: Path) -> Imported:
    return read(FORMAT, SourceFile(folder / "first.json"))


def test_rank_0_speaks_for_all(folder: Path) -> None:
    assert sorted(path.name for path in folder.glob("first.*")) == [
        "first.json",
        "first.none.1",
        "first.none.2",
        "first.none.3",
    ]


def test_maxima_and_decisions_are_the_same_on_every_rank(folder: Path) -> None:
    agreed = [json.loads((folder / f"agreed.{rank}").read_text()) for rank in range(4)]
    assert agreed == [{"maxima": [3.0, 0.0, 5.0], "decided": 40.0}] * 4


def test_every_group_shape_is_measured_alone_and_with_its_siblings(measured: Imported) -> None:
    rows = measured.batches[0].collectives
    shapes = {
        (
            row.group_size,
            row.stride,
            row.num_nodes,
            row.devices_per_node,
            row.detail["placement"],
            row.concurrent_groups,
        )
        for row in rows
        if row.operation == "all_gather"
    }
    assert shapes == {
        (4, 1, 2, 2, "several_per_node", 1),
        (2, 1, 1, 2, "contiguous", 1),
        (2, 1, 1, 2, "contiguous", 2),
        (2, 2, 2, 1, "one_per_node", 1),
        (2, 2, 2, 1, "one_per_node", 2),
    }


def test_every_operation_size_and_dtype_has_a_time(measured: Imported) -> None:
    rows = measured.batches[0].collectives
    assert all(row.ok and row.timing is not None and 0 < row.timing.time_s < 60 for row in rows)
    assert {row.operation for row in rows} == {
        *("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv"),
    }
    assert {row.size_bytes for row in rows} == {4096, 65536}
    assert {row.dtype for row in rows if row.operation == "all_reduce"} == {"bf16", "fp32"}
    assert {row.dtype for row in rows if row.operation == "broadcast"} == {"bf16"}
    assert {row.detail["variant"] for row in rows if row.operation == "all_to_all"} == {"even", "skewed"}
    assert {row.group_size for row in rows if row.operation == "send_recv"} == {2}
    assert {row.size_bytes for row in rows if row.launch == "blocking"} == {4096}


def test_the_environment_counts_ranks_and_nodes(measured: Imported) -> None:
    environment = measured.batches[0].environment
    assert (environment.num_devices, environment.num_nodes, environment.devices_per_node) == (4, 2, 2)
    assert environment.communication_library == "gloo"


def test_both_slowdowns_are_measured(measured: Imported) -> None:
    rows = measured.batches[0].operators
    operations = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv")
    names = {name for operation in operations for name in (f"matmul_under_{operation}", f"{operation}_under_matmul")}
    assert {row.name for row in rows} == names
    assert {row.operator for row in rows} == {"other"}
    assert {row.detail["placement"] for row in rows} == {"contiguous", "one_per_node"}
    for row in rows:
        assert row.ok
        assert float(row.detail["alone_s"]) > 0
        assert float(row.detail["slowdown"]) > 0


def test_a_second_run_takes_the_collectives_from_the_journal(folder: Path, measured: Imported) -> None:
    second = read(FORMAT, SourceFile(folder / "second.json"))
    assert second.facts["num_resumed"] == measured.facts["num_cases"] == len(measured.batches[0].collectives)
    assert second.batches[0].collectives == measured.batches[0].collectives
