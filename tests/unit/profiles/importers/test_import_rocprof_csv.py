# ruff: noqa: E501  tables stand as the tool writes them
"""rocprof tables of its three generations: traces, statistics, what is passed over and what is broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.rocprof_csv import FORMAT
from tests.importing import read, read_anyway, written

V3 = """"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp","LDS_Block_Size","Scratch_Size","VGPR_Count","Accum_VGPR_Count","SGPR_Count","Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"
"KERNEL_DISPATCH","Agent 2",1,0,70,1,33,"__amd_rocclr_fillBufferAligned",119662,4484384343929154,4484384343935074,0,0,12,4,48,256,1,1,256,1,1
"KERNEL_DISPATCH","Agent 2",1,0,70,2,16,"Cijk_Ailk_Bljk_BBS_BH(int, float*)",119670,4484384527705139,4484384528106260,0,0,4,4,16,128,1,1,1024,1,1
"KERNEL_DISPATCH","Agent 3",1,0,70,3,16,"Cijk_Ailk_Bljk_BBS_BH(int, float*)",119696,4484384627705139,4484384628106262,0,0,16,0,32,128,1,1,1024,1,1
"""
V1 = """"Index","KernelName","gpu-id","queue-id","queue-index","pid","tid","grd","wgr","lds","scr","arch_vgpr","accum_vgpr","sgpr","wave_size","sig","obj","DispatchNs","BeginNs","EndNs","CompleteNs","DurationNs"
0,"bodyForce(Body*, float, int) [clone .kd]",0,0,0,3670615,3670615,65536,256,0,0,20,4,16,64,"0x0","0x7f7b27c04500",1591372809346673,1591372809872935,1591372836189584,1591372836215944,26316649
1,"bodyForce(Body*, float, int) [clone .kd]",0,0,2,3670615,3670615,65536,256,0,0,20,4,16,64,"0x0","0x7f7b27c04500",1591372836774261,1591372837000949,1591372863116796,1591372863132315,26115847
"""


def test_trace_of_v3(tmp_path: Path) -> None:
    found = read(FORMAT, written(tmp_path, "70_kernel_trace.csv", V3), given={"device": "mi300x"})
    (batch,) = found.batches
    assert (batch.environment.device, batch.environment.num_devices) == ("mi300x", 2)
    fill, product = batch.operators
    assert fill.timing is not None
    assert (fill.operator, fill.timing.time_s, fill.timing.statistic) == ("copy", 5920e-9, "single")
    assert product.timing is not None
    assert (product.operator, product.timing.num_samples) == ("matmul", 2)
    assert product.timing.time_s == pytest.approx(401122e-9, rel=1e-12)
    assert (product.timing.min_s, product.timing.max_s) == (401121e-9, 401123e-9)
    assert product.detail == {"grid": "1024 1 1", "block": "128 1 1"}
    assert product.row == 3


def test_results_of_v1(tmp_path: Path) -> None:
    (operator,) = read(FORMAT, written(tmp_path, "results.csv", V1)).batches[0].operators
    assert operator.name == "bodyForce(Body*, float, int)"
    assert operator.timing is not None
    assert (operator.timing.min_s, operator.timing.max_s) == (26115847e-9, 26316649e-9)
    assert operator.detail == {"grid": "65536", "block": "256"}


def test_statistics_of_v3_and_v1(tmp_path: Path) -> None:
    new = (
        '"Name","Calls","TotalDurationNs","AverageNs","Percentage","MinNs","MaxNs","StdDev"\n'
        '"NormKernel1(int, double)",1001,410964270,410553.716284,32.43,401121,421282,2773.931233\n'
        '"hipMemcpy",2,583182462,291591231,99.78,1,2,3\n"__amd_rocclr_fillBufferAligned",1,5920,5920.000000,4.671e-04,5920,5920,0.00000000e+00\n'
    )
    found = read(FORMAT, written(tmp_path, "kernel_stats.csv", new))
    norm, fill = found.batches[0].operators
    assert norm.timing is not None
    assert norm.timing.time_s == pytest.approx(410553.716284e-9, rel=1e-9)
    assert (norm.timing.statistic, norm.timing.num_samples) == ("mean", 1001)
    assert norm.timing.std_s == pytest.approx(2773.931233e-9)
    assert fill.timing is not None
    assert (fill.timing.statistic, fill.timing.std_s) == ("single", None)
    assert sum(found.skipped.values()) == 1
    old = '"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n"saxpy(int) [clone .kd]",10,261124944,26112494,100.0\n'
    (operator,) = read(FORMAT, written(tmp_path, "results.stats.csv", old)).batches[0].operators
    assert operator.timing is not None
    assert (operator.name, operator.timing.time_s) == ("saxpy(int)", 26112494.4 / 1e9)


def test_tables_without_kernels_are_refused_with_the_reason(tmp_path: Path) -> None:
    api = '"Name","Calls","TotalDurationNs","AverageNs","Percentage"\nhipMemcpy,2,583182462,291591231,99.78\n'
    with pytest.raises(DocumentInvalid, match="calls of the host"):
        read(FORMAT, written(tmp_path, "hip_stats.csv", api))
    copies = '"Kind","Direction","Source_Agent_Id","Destination_Agent_Id","Correlation_Id","Start_Timestamp","End_Timestamp"\n"MEMORY_COPY","HOST_TO_DEVICE",0,1,1,5,9\n'
    with pytest.raises(DocumentInvalid, match="without their sizes"):
        read(FORMAT, written(tmp_path, "memory_copy_trace.csv", copies))
    counters = '"Dispatch_Id","Kernel_Name","Counter_Name","Counter_Value","Start_Timestamp","End_Timestamp"\n1,k,SQ_WAVES,5,1,2\n'
    assert not FORMAT.matches(written(tmp_path, "counter_collection.csv", counters).head())


@pytest.mark.parametrize("stamps", ["9,5", "nan,5", ",5", "5,5x", "1e999,2", "5,5"])
def test_broken_rows(tmp_path: Path, stamps: str) -> None:
    text = f"Kernel_Name,Start_Timestamp,End_Timestamp\nbroken,{stamps}\ngood,1,11\n"
    found = read(FORMAT, written(tmp_path, "a.csv", text))
    assert [each.name for each in found.batches[0].operators] == ["good"]
    assert [row.where for row in found.bad_rows] == ["line 2"]


def test_cut_and_hostile_tables(tmp_path: Path) -> None:
    for kept in range(0, len(V3), 67):
        try:
            read_anyway(FORMAT, [written(tmp_path, "cut.csv", V3[:kept])])
        except DocumentInvalid:
            continue
    with pytest.raises(DocumentInvalid, match="columns"):
        read_anyway(FORMAT, [written(tmp_path, "wide.csv", "Kernel_Name," * 5000)])
