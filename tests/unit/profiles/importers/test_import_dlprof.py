# ruff: noqa: E501  tables stand as the tool writes them
"""DLProf: reports with a title above the header, the database made of views, and what is broken in them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.dlprof import FORMAT
from tests.importing import read, read_anyway, written

KERNELS = """Kernel Report
Kernel Name,Op ID,Num Calls,Uses TC,Total GPU Time (ns),Avg GPU Time (ns),Min GPU Time (ns),Max GPU Time (ns)
"volta_h884gemm_64x128_ldg8_nn",a,4,yes,8000,2000,1000,3000
"void softmax_warp_forward<float, int>",b,1,no,500,500,500,500
"""


def _database(path: Path, *statements: str) -> None:
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def test_kernel_report(tmp_path: Path) -> None:
    found = read(FORMAT, written(tmp_path, "dlprof_kernel.csv", KERNELS), given={"device": "v100-sxm2-32gb"})
    product, softmax = found.batches[0].operators
    assert product.timing is not None
    assert (product.operator, product.timing.time_s, product.timing.num_samples) == ("matmul", 2e-6, 4)
    assert (product.timing.min_s, product.timing.max_s, product.timing.statistic) == (1e-6, 3e-6, "mean")
    assert product.row == 3
    assert softmax.timing is not None
    assert (softmax.operator, softmax.name, softmax.timing.statistic) == (
        "softmax",
        "void softmax_warp_forward<float, int>",
        "single",
    )


def test_total_with_count_where_there_is_no_mean(tmp_path: Path) -> None:
    text = (
        "Tensor Core Report\nOp ID,Op Name,Op Type,Uses TC,Total GPU Time (ns),TC GPU Time (ns),Total Kernel Count,TC Kernel Names\n"
        '"1","node","MatMul",yes,6000,12063,3,"a, b"\n'
    )
    (operator,) = read(FORMAT, written(tmp_path, "dlprof_tensor_core.csv", text)).batches[0].operators
    assert operator.timing is not None
    assert (operator.name, operator.timing.time_s) == ("node", 2e-6)


def test_reports_without_times_are_refused(tmp_path: Path) -> None:
    text = "Summary Report\nName,Value,Unit\nWall Clock,5,ns\n"
    with pytest.raises(DocumentInvalid, match="no mean GPU time"):
        read(FORMAT, written(tmp_path, "dlprof_summary.csv", text))


def test_database_of_views(tmp_path: Path) -> None:
    path = tmp_path / "dlprof_dldb.sqlite"
    _database(
        path,
        "CREATE TABLE kernels (aggr_id, kernel_name, kernel_duration, grid, block)",
        "INSERT INTO kernels VALUES (1, 'ampere_sgemm', 1000, '1,1,1', '2,2,2'), (1, 'ampere_sgemm', 3000, '1,1,1', '2,2,2'), "
        "(2, 'ampere_sgemm', 9000, '1,1,1', '2,2,2'), (1, NULL, 5, '', ''), (1, 'x', -5, '', '')",
        "CREATE VIEW view_iteration_kernels AS SELECT * FROM kernels",
        "CREATE TABLE view_iterations_profiled (aggr_id, iter_value, duration)",
        "INSERT INTO view_iterations_profiled VALUES (1, 7, 5000000)",
        "CREATE TABLE view_gpu_devices (gpu_name)",
        "INSERT INTO view_gpu_devices VALUES ('A100-SXM4-40GB'), ('A100-SXM4-40GB')",
    )
    found = read(FORMAT, written(tmp_path, "copy.sqlite", path.read_bytes()))
    (batch,) = found.batches
    assert batch.environment.device == "a100-sxm4-40gb"
    (operator,) = batch.operators
    assert operator.timing is not None
    assert (operator.operator, operator.timing.time_s, operator.timing.num_samples) == ("matmul", 2e-6, 2)
    assert batch.iterations[0].timing is not None
    assert (batch.iterations[0].iteration, batch.iterations[0].timing.time_s) == (7, 5e-3)
    assert found.bad_rows[0].what.startswith("2 kernels")


@pytest.mark.parametrize(
    "row", ["k,a,4,yes,nan,nan,1,1", "k,a,0,yes,1,1,1,1", "k,a,2,yes,1,-1,1,1", ",a,2,yes,1,1,1,1", "k,a"]
)
def test_broken_rows(tmp_path: Path, row: str) -> None:
    found = read(FORMAT, written(tmp_path, "a.csv", KERNELS + row + "\n"))
    assert len(found.batches[0].operators) == 2
    assert [bad.where for bad in found.bad_rows] == ["line 5"]


def test_hostile_files(tmp_path: Path) -> None:
    for kept in range(0, len(KERNELS), 31):
        try:
            read_anyway(FORMAT, [written(tmp_path, "cut.csv", KERNELS[:kept])])
        except DocumentInvalid:
            continue
    path = tmp_path / "a.sqlite"
    _database(path, "CREATE TABLE view_op_nodes (x)")
    with pytest.raises(DocumentInvalid, match="nothing to import"):
        read_anyway(FORMAT, [written(tmp_path, "b.sqlite", path.read_bytes())])
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "c.sqlite", path.read_bytes()[:700])])
