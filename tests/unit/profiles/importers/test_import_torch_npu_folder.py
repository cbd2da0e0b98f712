# ruff: noqa: E501  tables stand as the tool writes them
"""Folders of the Ascend profiler: one rank, several ranks, msprof's own layout, and what is left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.torch_npu_folder import FORMAT
from profiles.importing.source_file import SourceFile
from tests.importing import read, read_anyway, written

KERNELS = "Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us)\n0,aclnnMm,MatMulV3,AI_CORE,1.0\t,{time}\n"
STATISTIC = "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n0,RmsNorm,AI_VECTOR_CORE,2,8,3,4,5,100\n"
STEPS = "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage\n0,3,100,20,1,21,5,125\n"


def _communication(transit_ms: float) -> str:
    times = {"Elapse Time(ms)": 50.0, "Transit Time(ms)": transit_ms, "Wait Time(ms)": 9.0}
    entry = {"Communication Time Info": times, "Communication Bandwidth Info": {}}
    return json.dumps({"step3": {"collective": {"hcom_allReduce__1_0_1@7": entry}, "p2p": {}}})


def _rank(parent: Path, rank: int, time_us: float, transit_ms: float) -> None:
    output = parent / f"host-secret_{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    written(output, "kernel_details.csv", KERNELS.format(time=time_us))
    written(output, "op_statistic.csv", STATISTIC)
    written(output, "step_trace_time.csv", STEPS)
    written(output, "communication.json", _communication(transit_ms))
    written(output, "operator_memory.csv", "Name,Size(KB)\nx,1\n")
    info = json.dumps({"rank_id": rank, "cann_version": "8.0.RC3", "torch_npu_version": "2.1.0.post8"})
    written(output.parent, f"profiler_info_{rank}.json", info)


def test_ranks_below_one_parent_are_merged(tmp_path: Path) -> None:
    _rank(tmp_path / "run", 4, 10, 2.0)
    _rank(tmp_path / "run", 5, 30, 3.0)
    found = read(FORMAT, SourceFile(tmp_path / "run"), given={"device": "ascend-910b2"})
    assert found.bad_rows == []
    (batch,) = found.batches
    assert (batch.environment.num_devices, batch.environment.device) == (2, "ascend-910b2")
    assert (batch.environment.runtime_version, batch.environment.framework_version) == ("8.0.RC3", "2.1.0.post8")
    matmul, collective = batch.operators
    assert matmul.timing is not None
    assert (matmul.operator, matmul.timing.time_s, matmul.timing.num_samples) == ("matmul", 20e-6, 2)
    assert collective.timing is not None
    assert (collective.timing.time_s, collective.detail["num_ranks_seen"]) == (3e-3, 2), "the slower rank"
    assert [(each.rank, each.iteration, each.num_devices) for each in batch.iterations] == [(4, 3, 2), (5, 3, 2)]
    assert found.skipped["summaries of kernels that are read one by one"] == 2
    assert "secret" not in repr(found)


def test_one_rank_and_its_output_folder_itself(tmp_path: Path) -> None:
    _rank(tmp_path, 0, 10, 2.0)
    rank = tmp_path / "host-secret_0_ascend_pt"
    for folder in (rank, rank / "ASCEND_PROFILER_OUTPUT"):
        found = read(FORMAT, SourceFile(folder))
        assert [each.operator for each in found.batches[0].operators] == ["matmul", "collective"]
        assert found.facts["num_ranks"] == 1


def test_msprof_is_read_where_torch_npu_is_missing(tmp_path: Path) -> None:
    output = tmp_path / "PROF_000001_2024" / "mindstudio_profiler_output"
    written(output, "op_summary_20240101.csv", "Op Name,OP Type,Task Duration(us)\nx,RmsNorm,7\n")
    written(output, "op_statistic_20240101.csv", STATISTIC)
    (operator,) = read(FORMAT, SourceFile(tmp_path)).batches[0].operators
    assert operator.timing is not None
    assert (operator.operator, operator.timing.time_s) == ("norm", 7e-6)
    _rank(tmp_path, 0, 10, 2.0)
    names = [each.name for each in read(FORMAT, SourceFile(tmp_path)).batches[0].operators]
    assert "RmsNorm" not in names, "the same kernels would be counted twice"


def test_statistics_stand_in_for_kernels(tmp_path: Path) -> None:
    written(tmp_path / "a_ascend_pt" / "ASCEND_PROFILER_OUTPUT", "op_statistic.csv", STATISTIC)
    (operator,) = read(FORMAT, SourceFile(tmp_path)).batches[0].operators
    assert operator.timing is not None
    assert (operator.timing.statistic, operator.timing.time_s) == ("mean", 4e-6)


def test_bad_rows_name_their_file(tmp_path: Path) -> None:
    _rank(tmp_path, 0, -4, 2.0)
    found = read(FORMAT, SourceFile(tmp_path))
    assert [row.where for row in found.bad_rows] == ["rank 0, kernel_details.csv:2"]


def test_other_folders_do_not_match_and_empty_ones_are_refused(tmp_path: Path) -> None:
    written(tmp_path / "logs", "step_trace_time.txt", "x")
    assert not FORMAT.matches(SourceFile(tmp_path).head())
    with pytest.raises(DocumentInvalid, match="no tables"):
        read_anyway(FORMAT, [SourceFile(tmp_path)])
    written(tmp_path / "ASCEND_PROFILER_OUTPUT", "communication.json", '{"step": {"collective": ')
    with pytest.raises(DocumentInvalid, match="JSON"):
        read_anyway(FORMAT, [SourceFile(tmp_path)])
    written(tmp_path / "ASCEND_PROFILER_OUTPUT", "communication.json", "{}")
    with pytest.raises(DocumentInvalid, match="nothing to import"):
        read_anyway(FORMAT, [SourceFile(tmp_path)])
