# ruff: noqa: E501  tables stand as the tool writes them
"""Tables of the Ascend profiler: quirks of quoting, optional columns, steps, memory, broken rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.msprof_csv import FORMAT
from profiles.importers.msprof_csv.shapes import product_shape, tensor_shapes
from tests.importing import read, read_anyway, written

KERNELS = (
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),"
    "Block Num,Mix Block Num,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats,Context ID\n"
    '1,0,4294967295,1,1,aclnnMatmul_MatMulV2,MatMulV2,dynamic,AI_CORE,100.0\t,30.5,0,1,0,NO,"""4096,1024;1024,512""",DT_BF16;DT_BF16,ND;ND,"""4096,512""",DT_BF16,ND,N/A\n'
    '1,0,4294967295,2,1,aclnnMatmul_MatMulV2,MatMulV2,dynamic,AI_CORE,200.0\t,32.5,0,1,0,NO,"""4096,1024;1024,512""",DT_BF16;DT_BF16,ND;ND,"""4096,512""",DT_BF16,ND,N/A\n'
    '1,0,4294967295,3,2,aclnnFlashAttentionScore,FlashAttentionScore,dynamic,MIX_AIC,500.0\t,10.0,0,2,0,NO,"""[1,3,16]""",FLOAT16,ND,"""[1,4,16]""",FLOAT16,ND,N/A\n'
    "1,0,4294967295,4,2,hcom_allReduce__501_0,hcom_allReduce_,dynamic,HCCL,700.0\t,5.0,0,1,0,NO,N/A,N/A,N/A,N/A,N/A,N/A,N/A\n"
    "1,0,4294967295,5,2,event,EVENT,dynamic,EVENT_WAIT,700.0\t,0,0,1,0,NO,N/A,N/A,N/A,N/A,N/A,N/A,N/A\n"
)
STEPS = (
    "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
    "Communication(Not Overlapped and Exclude Receive),Preparing\n"
    "0,1,85704.02,3873.52,630.54,4504.06,21471.45,111048.99,0,3873.52,0.67\n"
    "0,2,100,50,5,55,10,150,10,50,0.67\n"
)


def test_kernels_are_grouped_by_type_and_shape(tmp_path: Path) -> None:
    found = read(FORMAT, written(tmp_path, "kernel_details.csv", KERNELS), given={"device": "ascend-910b3"})
    assert found.bad_rows == []
    (batch,) = found.batches
    assert batch.environment.device == "ascend-910b3"
    matmul, attention, collective = batch.operators
    assert (matmul.operator, matmul.name, matmul.dtype) == ("matmul", "MatMulV2", "bf16")
    assert matmul.shape == {"m": 4096, "n": 512, "k": 1024}
    assert matmul.timing is not None
    assert (matmul.timing.time_s, matmul.timing.num_samples, matmul.timing.statistic) == (31.5e-6, 2, "median")
    assert matmul.detail["input_shapes"] == "4096,1024;1024,512"
    assert (attention.operator, attention.dtype, attention.shape) == ("attention", "fp16", {})
    assert (collective.operator, collective.detail["operation"]) == ("collective", "all_reduce")
    assert found.skipped == {"kernels without a duration": 1}
    assert "waiting-included" in {flag.code for flag in found.flags}


def test_older_columns_and_op_summary(tmp_path: Path) -> None:
    old = (
        "Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim,cube_utilization(%)\n"
        "0,0,1,7,aclnnGroupedMatmulV5_GroupedMatmul,GroupedMatmul,dynamic,MIX_AIC,10,1000,100,1,81\n"
    )
    (operator,) = read(FORMAT, written(tmp_path, "a.csv", old)).batches[0].operators
    assert operator.operator == "grouped_matmul"
    assert operator.timing is not None
    assert (operator.timing.time_s, operator.timing.statistic) == (1e-3, "single")
    summary = (
        "Device_id,Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us),Block Dim,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats\n"
        '0,100,1,2,kernel_a,RmsNorm,static,AI_VECTOR_CORE,0.0,12.5,0.1,1,YES,"[1,2]","F16","ND","[1,2]","F16","ND"\n'
    )
    (operator,) = read(FORMAT, written(tmp_path, "b.csv", summary)).batches[0].operators
    assert (operator.operator, operator.dtype, operator.detail["core"]) == ("norm", "fp16", "AI_VECTOR_CORE")
    assert operator.timing is not None
    assert operator.timing.time_s == 12.5e-6


def test_statistic_gives_means(tmp_path: Path) -> None:
    text = (
        "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n"
        "0,GroupedMatmul,MIX_AIC,8,8000,900,1000,1100,50\n0,RmsNorm,AI_VECTOR_CORE,20,1200,40,60,90,7\n"
    )
    grouped, norm = read(FORMAT, written(tmp_path, "op_statistic_1.csv", text)).batches[0].operators
    assert grouped.timing is not None
    assert (grouped.operator, grouped.timing.time_s, grouped.timing.statistic) == ("grouped_matmul", 1e-3, "mean")
    assert (grouped.timing.min_s, grouped.timing.max_s, grouped.timing.num_samples) == (900e-6, 1100e-6, 8)
    assert norm.operator == "norm"


def test_framework_operators_have_shapes(tmp_path: Path) -> None:
    text = (
        "Name,Input Shapes,Call Stack,Host Self Duration(us),Host Total Duration(us),Device Self Duration(us),Device Total Duration(us),Device Self Duration With AICore(us),Device Total Duration With AICore(us)\n"
        'aten::mm,"8,4;4,2",/home/me/train.py(3): main,40,100,10,10,0,10\n'
        'aten::mm,"8,4;4,2",,40,100,30,30,0,10\n'
        "aten::linear,,,40,100,0,1200,0,1200\n"
        "aten::add,8;8,,40,100,2.5,2.5,0,0\n"
    )
    found = read(FORMAT, written(tmp_path, "operator_details.csv", text))
    product, addition = found.batches[0].operators
    assert (product.operator, product.shape) == ("matmul", {"m": 8, "n": 2, "k": 4})
    assert product.timing is not None
    assert (product.timing.time_s, product.timing.num_samples) == (20e-6, 2)
    assert addition.operator == "elementwise"
    assert found.skipped == {"operators that launch no kernel themselves": 1}
    assert "train.py" not in repr(found)


def test_steps_take_all_their_parts(tmp_path: Path) -> None:
    found = read(FORMAT, written(tmp_path, "step_trace_time.csv", STEPS))
    first, second = found.batches[0].iterations
    assert first.timing is not None
    assert second.timing is not None
    assert first.timing.time_s == pytest.approx(0.11104899, rel=1e-12)
    assert (first.iteration, first.detail["bubble_s"], first.detail["exposed_communication_s"]) == (1, 0.0, 3873.52e-6)
    assert second.timing.time_s == pytest.approx(160e-6), "the bubble belongs to the step"


def test_a_recording_without_steps_is_refused(tmp_path: Path) -> None:
    text = (
        "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage\n0,,1,2,3,4,5,6\n"
    )
    with pytest.raises(DocumentInvalid, match="not divided into steps"):
        read_anyway(FORMAT, [written(tmp_path, "step_trace_time.csv", text)])


def test_rows_of_a_cluster_name_their_rank(tmp_path: Path) -> None:
    text = (
        "Step,Type,Index,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,Preparing\n"
        '1,rank,7,10,20,1,21,30,60,0.0,1\n1,stage,"(0, 7)",10,20,1,21,30,60,0.0,1\n'
    )
    found = read(FORMAT, written(tmp_path, "cluster_step_trace_time.csv", text))
    (iteration,) = found.batches[0].iterations
    assert iteration.rank == 7
    assert iteration.timing is not None
    assert iteration.timing.time_s == pytest.approx(60e-6)


def test_memory_peaks_by_component(tmp_path: Path) -> None:
    text = (
        "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Stream Ptr,Device Type\n"
        "PTA,100\t,10.5,20,1,0,NPU:0\nPTA,200\t,8,32,1,0,NPU:0\nAPP,200\t,,64,,,NPU:0\n"
    )
    allocator, process = read(FORMAT, written(tmp_path, "memory_record.csv", text)).batches[0].iterations
    assert (allocator.peak_allocated_bytes, allocator.peak_reserved_bytes) == (11010048, 32 << 20)
    assert allocator.detail == {"component": "PTA"}
    assert (process.peak_allocated_bytes, process.peak_reserved_bytes) == (None, 64 << 20)


@pytest.mark.parametrize("cell", ["nan", "-3", "1e999", "12abc", "", "inf", "1_000"])
def test_broken_durations_are_bad_rows(tmp_path: Path, cell: str) -> None:
    text = "Device_id,Name,Type,Accelerator Core,Duration(us)\n" + f"0,k,MatMul,AI_CORE,{cell}\n0,k,MatMul,AI_CORE,5\n"
    found = read(FORMAT, written(tmp_path, "a.csv", text))
    assert [row.where for row in found.bad_rows] == ["line 2"]
    assert found.num_observations == 1


def test_hostile_tables(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "a.csv", "a,b\n1,2\n")])
    with pytest.raises(DocumentInvalid, match="columns"):
        read_anyway(FORMAT, [written(tmp_path, "wide.csv", "Name," * 5000)])
    for kept in range(0, len(KERNELS), 211):
        try:
            read_anyway(FORMAT, [written(tmp_path, "cut.csv", KERNELS[:kept])])
        except DocumentInvalid:
            continue


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"""[2,4096]"""', [[2, 4096]]),
        ('"2;4096"', [[2], [4096]]),
        ("8,4;;2", [[8, 4], [], [2]]),
        ("N/A", None),
        ("", None),
        ("8,x", None),
        ("-1,4", None),
    ],
)
def test_shape_texts(text: str, expected: list[list[int]] | None) -> None:
    assert tensor_shapes(text) == expected


def test_products_need_plain_formats() -> None:
    assert product_shape("136,5120;320,48,16,16", "136,768", "ND;FRACTAL_NZ", "ND") == {"m": 136, "n": 768, "k": 5120}
    assert product_shape("5120,136;5120,768", "136,768", "ND;ND", "ND") == {"m": 136, "n": 768, "k": 5120}
    assert product_shape("8,16,16;1,1", "8,16", "FRACTAL_NZ;ND", "ND") == {}
    assert product_shape("3,5;5,7", "4,7", "ND;ND", "ND") == {}


def test_gradients_are_backward_and_types_that_say_nothing_are_not_names(tmp_path: Path) -> None:
    text = (
        "Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim\n"
        "0,aclnnFlashAttentionScore_Src,Compute,N/A,10.0,280.0,0.01,16\n"
        "0,aclnnFlashAttentionScoreGrad_Src,Compute,N/A,20.0,310.0,0.01,16\n"
        "0,aclnnRmsNormGrad_1,RmsNormGrad,AI_VECTOR_CORE,30.0,5.0,0.01,16\n"
    )
    forward, backward, norm = read(FORMAT, written(tmp_path, "kernel_details.csv", text)).batches[0].operators
    assert [each.operator for each in (forward, backward, norm)] == ["attention", "attention", "norm"]
    assert [each.phase for each in (forward, backward, norm)] == ["unknown", "backward", "backward"]
    assert forward.timing is not None
    assert forward.timing.time_s == pytest.approx(280e-6)
