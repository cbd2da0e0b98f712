# ruff: noqa: E501  tables stand as the tool prints them
"""``nsys stats`` in its three layouts, several reports in one text, old and new column names."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.nsys_stats import FORMAT
from tests.importing import read, read_anyway, written

HEADER = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name"
ROWS = f"""Generating SQLite file /home/someone/a.sqlite from /home/someone/a.nsys-rep
Processing [a.sqlite] with [/opt/nsight/reports/cuda_gpu_kern_sum.py]...

 ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):

{HEADER}
60.0,6000000,100,60000.0,59000.5,50000,70000,1000.5,"void foo<(int)21, 72, false>(char const*, int)"
30.0,3000000,1,3000000.0,3000000,3000000,3000000,0.0,ampere_sgemm_128x64_nn

Processing [a.sqlite] with [/opt/nsight/reports/cuda_api_sum.py]...
Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
99.0,600,3,200,200,100,300,10,cudaMalloc
"""

CONSOLE = """
[6/8] Executing 'cuda_gpu_kern_sum' stats report

 Time (%)  Total Time (ns)  Instances  Avg (ns)  Med (ns)  Min (ns)  Max (ns)  StdDev (ns)                    Name
 --------  ---------------  ---------  --------  --------  --------  --------  -----------  ----------------------------------------
     50.5        2,554,738      2,046   1,248.7   1,216.0       960     2,080        119.0  nvkernel__Z11runTest_GPUiiPiS_i_F1L162_4
     49.5        2,502,225      2,047   1,222.4   1,217.0       928     1,696         82.9  ncclDevKernel_AllReduce_Sum_bf16_RING_LL

[7/8] Executing 'cuda_gpu_mem_time_sum' stats report

 Time (%)  Total Time (ns)  Count  Avg (ns)   Med (ns)   Min (ns)  Max (ns)  StdDev (ns)           Operation
 --------  ---------------  -----  ---------  ---------  --------  --------  -----------  ----------------------------
     63.1          1166531      1  1166531.0  1166531.0   1166531   1166531          0.0  [CUDA memcpy Device-to-Host]
     36.9           682370      2   341185.0   341185.0    340609    341761        814.6  [CUDA memcpy Host-to-Device]

[8/8] Executing 'cuda_gpu_mem_size_sum' stats report

 Total (MB)  Count  Avg (MB)  Med (MB)  Min (MB)  Max (MB)  StdDev (MB)           Operation
 ----------  -----  --------  --------  --------  --------  -----------  ----------------------------
      8.389      2     4.194     4.194     4.194     4.194        0.000  [CUDA memcpy Host-to-Device]
      4.194      1     4.194     4.194     4.194     4.194        0.000  [CUDA memcpy Device-to-Host]
"""


def test_csv_with_messages_around(tmp_path: Path) -> None:
    found = read(FORMAT, written(tmp_path, "a.csv", ROWS))
    first, second = found.batches[0].operators
    assert first.name == "void foo<(int)21, 72, false>(char const*, int)"
    assert first.timing is not None
    assert (first.timing.time_s, first.timing.statistic, first.timing.num_samples) == (59000.5 / 1e9, "median", 100)
    assert (first.timing.min_s, first.timing.max_s, first.timing.std_s) == (50e-6, 70e-6, 1000.5 / 1e9)
    assert first.row == 7
    assert second.timing is not None
    assert (second.operator, second.timing.statistic, second.timing.time_s) == ("matmul", "single", 3e-3)
    assert sum(found.skipped.values()) == 1, "the call of the host"
    assert "device-unknown" in {flag.code for flag in found.flags}


def test_columns_with_ruler_and_thousands(tmp_path: Path) -> None:
    found = read(FORMAT, written(tmp_path, "log.txt", CONSOLE), given={"device": "l40s"})
    assert found.bad_rows == []
    (batch,) = found.batches
    assert batch.environment.device == "l40s"
    first, nccl = batch.operators
    assert first.timing is not None
    assert (first.timing.time_s, first.timing.num_samples) == (1216e-9, 2046)
    assert (nccl.operator, nccl.detail["operation"]) == ("collective", "all_reduce")
    to_host, to_device = batch.links
    assert (to_host.kind, to_host.source, to_host.target) == ("device_to_host", "device:0", "host:0")
    assert to_host.bandwidth_bytes_per_s == pytest.approx(4.194e6 / 1166531e-9)
    assert (to_device.size_bytes, to_device.num_samples, to_device.statistic) == (4194500, 2, "mean")
    assert to_device.bandwidth_bytes_per_s == pytest.approx(8.389e6 / 682370e-9)


def test_drawn_table(tmp_path: Path) -> None:
    text = """
+----------+-----------------+-----------+----------+----------+----------+----------+-------------+--------------------+
| Time (%) | Total Time (ns) | Instances | Avg (ns) | Med (ns) | Min (ns) | Max (ns) | StdDev (ns) |        Name        |
+----------+-----------------+-----------+----------+----------+----------+----------+-------------+--------------------+
|     30.0 |      11,294,113 |       144 | 78,431.3 | 58,352.5 |   27,072 |  112,065 |    30,989.7 | rms_norm_f32<int>  |
+----------+-----------------+-----------+----------+----------+----------+----------+-------------+--------------------+
"""
    (operator,) = read(FORMAT, written(tmp_path, "a.txt", text)).batches[0].operators
    assert (operator.operator, operator.name) == ("norm", "rms_norm_f32<int>")
    assert operator.timing is not None
    assert operator.timing.time_s == 58352.5 / 1e9


def test_columns_of_2020_have_no_units_and_no_median(tmp_path: Path) -> None:
    text = """CUDA Kernel Statistics:

 Time(%)  Total Time (ns)  Instances    Average     Minimum    Maximum                Name
 -------  ---------------  ---------  -----------  ---------  ---------  ---------------------------
    50.4       67,362,653         15  4,490,843.5  4,469,005  4,518,252  void VectorOperation<Add<float>, float>(int, Add<float>)
"""
    (operator,) = read(FORMAT, written(tmp_path, "a.txt", text)).batches[0].operators
    assert operator.name == "void VectorOperation<Add<float>, float>(int, Add<float>)"
    assert operator.timing is not None
    assert (operator.timing.time_s, operator.timing.statistic) == (4490843.5 / 1e9, "mean")


def test_other_time_units_are_taken_from_the_header(tmp_path: Path) -> None:
    text = HEADER.replace("(ns)", "(us)") + "\n100,70,10,7,6,5,8,1,kernel\n"
    (operator,) = read(FORMAT, written(tmp_path, "a.csv", text)).batches[0].operators
    assert operator.timing is not None
    assert (operator.timing.time_s, operator.timing.max_s) == (6e-6, 8e-6)


def test_an_unknown_unit_is_refused(tmp_path: Path) -> None:
    text = HEADER.replace("(ns)", "(fortnights)") + "\n100,70,10,7,6,5,8,1,kernel\n"
    with pytest.raises(DocumentInvalid, match="unit 'fortnights'"):
        read_anyway(FORMAT, [written(tmp_path, "a.csv", text)])


def test_ranges_kernels_in_ranges_and_projections(tmp_path: Path) -> None:
    text = """NVTX Range,Style,PID,TID,NVTX Inst,Kern Inst,Total Time (ns),Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Kernel Name
:mlp forward,PushPop,1,1,1,40,1000000,25000,24000,1,30000,2,ampere_bf16_s16816gemm_bf16_tn

Range,Style,Total Proj Time (ns),Total Range Time (ns),Range Instances,Proj Avg (ns),Proj Med (ns),Proj Min (ns),Proj Max (ns),Proj StdDev (ns),Total GPU Ops
:experts,PushPop,8896479830,2783511309,1104,8058405.6,7655927.5,5340900,15946508,1762691.8,25392

 Time (%)  Total Time (ns)  Instances   Avg (ns)     Med (ns)    Min (ns)   Max (ns)   StdDev (ns)   Style          Range
 --------  ---------------  ---------  -----------  -----------  ---------  ---------  -----------  -------  ---------------
     50.0        358526875          1  358526875.0  358526875.0  358526875  358526875          0.0  PushPop  :my backward
"""
    kernel, projected, host = read(FORMAT, written(tmp_path, "a.csv", text)).batches[0].operators
    assert (kernel.operator, kernel.detail["nvtx_range"], kernel.phase) == ("matmul", "mlp forward", "forward")
    assert projected.timing is not None
    assert (projected.operator, projected.name, projected.timing.time_s) == ("module", "experts", 7655927.5 / 1e9)
    assert projected.detail["clock"] == "device"
    assert (host.name, host.detail["clock"], host.phase) == ("my backward", "host", "backward")


def test_the_trace_of_single_activities(tmp_path: Path) -> None:
    text = (
        "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),"
        "Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name\n"
        "1134711990,661398,123,,,,,,,,,,4.194,6337.593,Pinned,Device,NVIDIA L40S (0),1,,13,[CUDA memcpy Host-to-Device]\n"
        '1136125733,7072,128,4096,1,1,256,1,1,16,0.000,0.000,,,,,NVIDIA L40S (0),1,,13,"saxpy(float, float *)"\n'
        '1136125799,7074,129,4096,1,1,256,1,1,16,0.000,0.000,,,,,NVIDIA L40S (0),1,,13,"saxpy(float, float *)"\n'
    )
    (batch,) = read(FORMAT, written(tmp_path, "a.csv", text)).batches
    assert (batch.environment.device, batch.environment.device_reported) == ("l40s", "NVIDIA L40S")
    assert batch.operators[0].timing is not None
    assert (batch.operators[0].timing.time_s, batch.operators[0].timing.num_samples) == (7073e-9, 2)
    assert batch.links[0].bandwidth_bytes_per_s == pytest.approx(4.194e6 / 661398e-9)


def test_grid_and_block_go_to_detail(tmp_path: Path) -> None:
    text = (
        HEADER.replace("Name", "GridXYZ,BlockXYZ,Name") + '\n50,500,2,250,250,240,260,1," 896    1    1"," 32 1 1",k\n'
    )
    (operator,) = read(FORMAT, written(tmp_path, "a.csv", text)).batches[0].operators
    assert operator.detail == {"grid": "896 1 1", "block": "32 1 1"}


@pytest.mark.parametrize(
    "row",
    [
        "60.0,6000000,0,60000.0,59000,50000,70000,1000.5,k",
        "60.0,6000000,ten,60000.0,59000,50000,70000,1000.5,k",
        "60.0,nan,10,nan,nan,50000,70000,1000.5,k",
        "60.0,100,10,-5,-5,50000,70000,1000.5,k",
        "60.0,0,10,0,0,0,0,0,k",
        "60.0,6000000,10",
        "60.0,6000000,10,60000.0,59000,50000,70000,1000.5,",
    ],
)
def test_broken_rows_are_reported_and_never_stored(tmp_path: Path, row: str) -> None:
    file = written(tmp_path, "a.csv", f"{HEADER}\n{row}\n1,10,1,10,10,10,10,0,good\n")
    found = read(FORMAT, file)
    assert [each.name for each in found.batches[0].operators] == ["good"]
    assert [bad.where for bad in found.bad_rows] == ["line 2"]
    with pytest.raises(DocumentInvalid, match="nothing to import"):
        read_anyway(FORMAT, [written(tmp_path, "b.csv", f"{HEADER}\n{row}\n")])


def test_half_a_file_and_no_file(tmp_path: Path) -> None:
    for kept in range(10, len(CONSOLE), 97):
        try:
            read_anyway(FORMAT, [written(tmp_path, f"{kept}.txt", CONSOLE[:kept])])
        except DocumentInvalid:
            continue
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "none.txt", "hello\n")])


def test_a_text_that_only_mentions_the_tool_does_not_match(tmp_path: Path) -> None:
    prose = "run nsys stats; it prints Time (%), Total Time (ns), Instances, and more columns with a Name\n"
    assert not FORMAT.matches(written(tmp_path, "a.md", prose).head())


def test_rows_that_a_document_has_shifted_keep_their_names(tmp_path: Path) -> None:
    text = """
 Time (%)  Total Time (ns)  Instances  Avg (ns)  Min (ns)  Max (ns)  Name
 --------  ---------------  ---------  --------  --------  --------  ----
     12.1       1,351,200          1  1351200   1351200   1351200   matrixMulKernel
"""
    (found,) = read(FORMAT, written(tmp_path, "a.txt", text)).batches[0].operators
    assert found.name == "matrixMulKernel"
    assert found.timing is not None
    assert found.timing.time_s == pytest.approx(1.3512e-3)
