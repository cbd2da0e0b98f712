"""A PyTorch execution trace: without times nothing, with the times of a linked trace its operators."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.pytorch_execution_trace import FORMAT
from tests.importing import read, read_anyway, sample, written


def host(identity: int, name: str, parent: int, shapes: Any, kinds: list[str], **attributes: Any) -> dict[str, Any]:
    """A node of schema 1.0.2 and later."""
    listed = [{"name": key, "type": "", "value": value} for key, value in {"tid": 1, "scope": 0, **attributes}.items()]
    return {
        "id": identity, "name": name, "ctrl_deps": parent, "attrs": listed, "outputs": {},
        "inputs": {"values": [], "shapes": shapes, "types": kinds},
    }  # fmt: skip


def device(identity: int, name: str, parent: int, duration: Any) -> dict[str, Any]:
    """A node that chakra_trace_link adds."""
    return {"id": identity, "name": name, "ctrl_deps": parent, "cat": "kernel", "ph": "X", "inclusive_dur": duration,
            "exclusive_dur": duration, "ts": 1, "stream": 7, "attrs": [], "inputs": {}, "outputs": {}}  # fmt: skip


def trace(nodes: list[dict[str, Any]], schema: str = "1.1.0-chakra.0.0.4") -> str:
    return json.dumps({"schema": schema, "pid": 7, "time": "2024", "start_ts": 1, "nodes": nodes, "finish_ts": 2})


MATMUL = host(3, "aten::mm", 2, [[12, 8], [8, 20]], ["Tensor(c10::Half)", "Tensor(c10::Half)"])


def test_the_real_trace_of_schema_1_0_1_has_no_times() -> None:
    with pytest.raises(DocumentInvalid, match="38 nodes and shapes of 14 different operator calls, but no time"):
        read(FORMAT, sample("torch/hta_simple_add_et.json.gz"))


def test_the_real_trace_in_an_archive_has_no_times() -> None:
    with pytest.raises(DocumentInvalid, match="263 nodes and shapes of 13 different operator calls, but no time"):
        read(FORMAT, sample("chakra/chakra_1.0.2-chakra.0.0.4.tgz"))


def test_a_linked_trace_gives_operators_with_shapes(tmp_path: Path) -> None:
    nodes = [MATMUL, device(4, "Cijk_gemm", 3, 7.5), device(5, "splitK", 3, 0.5)]
    (batch,) = read(FORMAT, written(tmp_path, "et.json", trace(nodes)), given={"device": "mi300x"}).batches
    (matmul,) = batch.operators
    assert (matmul.operator, matmul.dtype, matmul.shape) == ("matmul", "fp16", {"m": 12, "n": 20, "k": 8})
    assert matmul.timing is not None
    assert matmul.timing.time_s == pytest.approx(8e-6)
    assert batch.environment.device == "mi300x"


def test_collectives_of_schema_1_1_stand_in_attributes(tmp_path: Path) -> None:
    call = host(3, "record_param_comms", 2, [[[64]]], ["GenericList[Tensor(float)]"], collective_name="allreduce",
                dtype="Float", in_msg_nelems=64, out_msg_nelems=64, pg_size=8, pg_name="3")  # fmt: skip
    nodes = [call, device(4, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 3, 40)]
    imported = read(FORMAT, written(tmp_path, "et.json", trace(nodes, "1.1.1-chakra.0.0.4")))
    (found,) = imported.batches[0].collectives
    assert (found.operation, found.size_bytes, found.group_size, found.dtype) == ("all_reduce", 256, 8, "fp32")
    assert "waiting-included" in {flag.code for flag in imported.flags}


def test_collectives_before_1_1_stand_in_the_input_values(tmp_path: Path) -> None:
    """The values of a real record_param_comms: tensors, sequence, group, rank, name, splits, ranks."""
    call = host(
        3,
        "record_param_comms",
        2,
        [[[1000]], [], [], [], [], [], [], []],
        ["GenericList[Tensor(float)]", "Int", "Int", "Int", "String", "GenericList[]", "GenericList[]", "Int"],
    )
    call["inputs"]["values"] = [[[14, 15, 0, 1000, 4, "cuda:0"]], 12, 82149104, 0, "all_gather", [], [], 4]
    nodes = [call, device(4, "ncclKernel_AllGather_RING_LL_Sum_int8_t", 3, 40)]
    (found,) = read(FORMAT, written(tmp_path, "et.json", trace(nodes))).batches[0].collectives
    assert (found.operation, found.size_bytes, found.group_size) == ("all_gather", 4 * 1000 * 4, 4)


def test_flat_nodes_of_schema_1_0_1(tmp_path: Path) -> None:
    flat = {"id": 3, "name": "aten::mm", "parent": 2, "inputs": [], "input_shapes": [[2, 3], [3, 4]],
            "input_types": ["Tensor(float)", "Tensor(float)"], "seq_id": -1, "scope": 0, "tid": 1}  # fmt: skip
    kernel = {**flat, "id": 4, "name": "sgemm", "parent": 3, "cat": "kernel", "dur": 6}
    (batch,) = read(FORMAT, written(tmp_path, "et.json", trace([flat, kernel], "1.0.1"))).batches
    assert batch.operators[0].shape == {"m": 2, "n": 4, "k": 3}


def test_numbers_that_are_none_are_repaired(tmp_path: Path) -> None:
    text = trace([MATMUL, device(4, "gemm", 3, 7)]).replace('"values": []', '"values": [inf, -inf, nan]')
    (batch,) = read(FORMAT, written(tmp_path, "et.json", text)).batches
    assert len(batch.operators) == 1


def test_broken_nodes_are_bad_rows(tmp_path: Path) -> None:
    nodes = [MATMUL, device(4, "gemm", 3, 7), device(5, "gemm", 3, -7), {"id": "x"}, device(6, "gemm", 3, "long")]
    imported = read(FORMAT, written(tmp_path, "et.json", trace(nodes)))
    assert [each.where for each in imported.bad_rows] == ["nodes/2", "nodes/3", "nodes/4"]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (trace([MATMUL])[:150], "breaks off at byte 150"),
        ('{"schema": "1.1.0", "pid": 1, "nodes": {}}', "nodes are missing"),
        ('{"schema": "1.1.0", "pid": 1, "nodes": [}', "not valid JSON"),
        ("[" * 100_000, "nested too deeply|breaks off"),
        ("", "empty"),
    ],
)
def test_hostile_content_is_one_clear_error(tmp_path: Path, content: str, what: str) -> None:
    with pytest.raises(DocumentInvalid, match=what):
        read_anyway(FORMAT, [written(tmp_path, "et.json", content)])


def test_other_json_is_not_taken(tmp_path: Path) -> None:
    for text in ('{"schema": "http://x", "nodes": []}', '{"nodes": [], "pid": 3}', "[]"):
        assert not FORMAT.matches(written(tmp_path, "other.json", text).head())
