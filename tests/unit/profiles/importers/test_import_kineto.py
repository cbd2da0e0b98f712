"""What a PyTorch profiler trace says: real traces with values worked out from their events, and written ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.kineto import FORMAT
from profiles.importing.imported import Imported
from profiles.importing.source_file import SourceFile
from profiles.observations.records import OperatorObservation
from tests.importing import read, read_anyway, sample, written
from tests.kineto_trace import KinetoTrace

BF16 = "c10::BFloat16"


def operators(imported: Imported, operator: str) -> list[OperatorObservation]:
    return [each for batch in imported.batches for each in batch.operators if each.operator == operator]


def codes(imported: Imported) -> set[str]:
    return {flag.code for flag in imported.flags}


def of_text(folder: Path, text: str | bytes, name: str = "trace.json") -> Imported:
    return read_anyway(FORMAT, [written(folder, name, text)])


def test_shapes_of_a_real_h100_inference_trace() -> None:
    imported = read(FORMAT, sample("torch/tracelens_h100_qwen.json.gz"))
    environment = imported.batches[0].environment
    assert environment.device == "h100-sxm5-80gb"
    assert (environment.runtime_version, environment.driver_version) == ("CUDA 12.4", "CUDA 12.9")
    found = {(each.name, *sorted(each.shape.items())): each for each in operators(imported, "matmul")}
    up = found[("aten::mm", ("k", 1024), ("m", 8944), ("n", 2816))]
    assert up.timing is not None
    assert (up.timing.num_samples, up.timing.statistic, up.dtype) == (48, "median", "bf16")
    assert up.timing.time_s == pytest.approx(83.679e-6, abs=1e-12)
    assert up.timing.min_s == pytest.approx(81.472e-6)
    assert up.timing.max_s == pytest.approx(86.016e-6)
    projection = found[("aten::addmm", ("k", 1024), ("m", 8944), ("n", 1024))]
    assert projection.timing is not None
    assert projection.timing.num_samples == 72
    assert projection.timing.time_s == pytest.approx(31.456e-6)
    (attention,) = operators(imported, "attention")
    assert attention.shape == {
        "batch_size": 16, "num_heads": 16, "num_kv_heads": 16, "query_length": 559, "key_length": 559,
        "head_dim": 64, "value_head_dim": 64,
    }  # fmt: skip
    assert attention.causal is True
    assert attention.timing is not None
    assert attention.timing.num_samples == 24
    assert attention.timing.time_s == pytest.approx(113.775e-6)
    (embedding,) = operators(imported, "embedding")
    assert embedding.shape == {"vocab_size": 151936, "hidden_size": 1024, "num_tokens": 8944}
    # Kernels of the warm-up still run when the trace starts: 436 of 1,465 have no External id.
    assert sum(each.timing.num_samples or 0 for each in operators(imported, "kernel") if each.timing) == 436
    (step,) = imported.batches[0].iterations
    assert (step.iteration, step.peak_reserved_bytes) == (6, 2629828608)
    assert codes(imported) == {"single-step"}


def test_collectives_of_a_real_trace_of_one_rank() -> None:
    imported = read(FORMAT, sample("torch/hta_nccl_data.json.gz"))
    (batch,) = imported.batches
    assert (batch.environment.communication_library, batch.environment.communication_library_version) == (
        "nccl",
        "2.17.1",
    )
    assert batch.environment.num_devices == 2
    found = {(each.operation, each.size_bytes): each for each in batch.collectives}
    # 6,637,568 floats; 53,120 floats; 53 longs: element counts of the file times the width of their type.
    assert set(found) == {
        ("all_reduce", 26_550_272), ("all_reduce", 9_724_160), ("all_reduce", 8_196_000), ("all_reduce", 31_502_336),
        ("all_reduce", 26_255_360), ("broadcast", 212_480), ("broadcast", 424),
    }  # fmt: skip
    largest = found[("all_reduce", 26_550_272)]
    assert largest.timing is not None
    assert largest.timing.time_s == pytest.approx(2417.184e-6)
    assert largest.timing.min_s == pytest.approx(2160.803e-6)
    assert largest.timing.max_s == pytest.approx(2636.669e-6)
    assert (largest.dtype, largest.group_size, largest.launch, largest.num_channels) == ("fp32", 2, "in_situ", 8)
    # Eight visible devices and two ranks: nobody can tell whether both are on one node.
    assert (largest.num_nodes, largest.devices_per_node) == (None, None)
    assert found[("broadcast", 424)].dtype == "int64"
    assert {"waiting-included", "no-shapes", "host-bound"} <= codes(imported)
    assert [each.iteration for each in batch.iterations] == [5, 6]
    phases = {each.phase for each in operators(imported, "matmul")}
    assert phases == {"forward", "dgrad", "wgrad"}
    (optimizer,) = operators(imported, "optimizer")
    assert (optimizer.name, optimizer.phase) == ("SGD", "step")


def test_nodes_of_a_group_from_what_the_user_says() -> None:
    imported = read(FORMAT, sample("torch/hta_nccl_data.json.gz"), given={"devices_per_node": "1"})
    assert {(each.num_nodes, each.devices_per_node) for each in imported.batches[0].collectives} == {(2, 1)}


def test_copies_of_an_old_trace_without_base_time() -> None:
    imported = read(FORMAT, sample("torch/hta_alexnet_trace.json.gz"))
    (batch,) = imported.batches
    assert batch.environment.device == ""
    assert batch.environment.device_reported == "NVIDIA A100-PG509-200"
    assert batch.environment.captured_at == "2023-09-27T17:25Z"
    largest = max(batch.links, key=lambda each: each.size_bytes or 0)
    assert (largest.kind, largest.source, largest.target) == ("host_to_device", "host:0", "device:0")
    assert largest.size_bytes == 150_994_944
    assert largest.bandwidth_bytes_per_s == pytest.approx(150_994_944 / 34780e-6)


def test_a_real_triton_kernel_belongs_to_no_known_operator() -> None:
    imported = read(FORMAT, sample("torch/hta_triton_example.json.gz"))
    (kernel,) = operators(imported, "kernel")
    assert kernel.name == "triton_poi_fused_add_cos_sin_0"
    assert kernel.timing is not None
    assert kernel.timing.time_s == pytest.approx(1.76e-6)


def test_a_real_trace_of_the_cpu_tells_gloo_collectives_and_the_step() -> None:
    imported = read(FORMAT, sample("torch/hta_cpu_only.pt.trace.json.gz"))
    (batch,) = imported.batches
    assert {(each.operation, each.size_bytes, each.group_size) for each in batch.collectives} == {
        ("all_reduce", 321271 * 4, None), ("all_reduce", 2082411 * 4, None),
    }  # fmt: skip
    assert {"host-times", "group-unknown"} <= codes(imported)
    assert batch.operators == []
    assert batch.iterations[0].rank == 34
    assert "mojif" not in str(imported)


def test_hardware_counters_replace_kernels_so_nothing_can_be_stored() -> None:
    with pytest.raises(DocumentInvalid, match="no device kernels"):
        read(FORMAT, sample("torch/hta_cupti_counters_trace.json.gz"))


def training_trace(shapes: bool = True) -> KinetoTrace:
    """One linear layer [12, 8] x [8, 20] with its gradients, of which the weight's comes first."""
    trace = KinetoTrace()

    def call(name: str, start: float, duration: float, tid: int, dims: Any = None, args: Any = None) -> int:
        known = {"Input Dims": dims, "Input type": [BF16] * len(dims)} if shapes and dims else {}
        return trace.call(name, start, duration, tid, args={**known, **(args or {})})

    call("aten::linear", 0, 100, 1, [[3, 4, 8], [20, 8], [20]], args={"Sequence number": 5, "Fwd thread id": 0})
    forward = call("aten::addmm", 10, 50, 1, [[20], [12, 8], [8, 20]], args={"Sequence number": 5, "Fwd thread id": 0})
    trace.kernel("sm90_xmma_gemm_bf16", 200, 7, forward)
    trace.kernel("splitKreduce_kernel", 207, 1, forward)
    node = {"Sequence number": 5, "Fwd thread id": 1}
    call("autograd::engine::evaluate_function: AddmmBackward0", 300, 100, 2, args=node)
    call("AddmmBackward0", 301, 98, 2, args=node)
    weight = call("aten::mm", 310, 20, 2, [[20, 12], [12, 8]])
    data = call("aten::mm", 340, 20, 2, [[12, 20], [20, 8]])
    trace.kernel("gemm_w", 400, 3, weight)
    trace.kernel("gemm_d", 410, 5, data)
    return trace


def test_gradients_are_told_apart_by_the_forward_sizes(tmp_path: Path) -> None:
    imported = of_text(tmp_path, training_trace().text())
    found = {each.phase: each for each in operators(imported, "matmul")}
    assert found["forward"].shape == {"m": 12, "n": 20, "k": 8}
    assert found["forward"].timing is not None
    assert found["forward"].timing.time_s == pytest.approx(8e-6)
    assert found["wgrad"].shape == {"m": 20, "n": 8, "k": 12}
    assert found["dgrad"].shape == {"m": 12, "n": 8, "k": 20}
    assert found["dgrad"].timing is not None
    assert found["dgrad"].timing.time_s == pytest.approx(5e-6)


def test_gradients_without_shapes_follow_the_order_of_autograd(tmp_path: Path) -> None:
    imported = of_text(tmp_path, training_trace(shapes=False).text())
    found = {each.phase: each for each in operators(imported, "matmul")}
    assert found["dgrad"].timing is not None
    assert found["dgrad"].timing.time_s == pytest.approx(3e-6)
    assert "no-shapes" in codes(imported)


@pytest.mark.parametrize("weight_dims", [[[20, 48], [48, 8], [4], [], []], [[8, 48], [48, 20], [4], [], []]])
def test_grouped_products_have_the_sizes_of_their_forward(tmp_path: Path, weight_dims: list[list[int]]) -> None:
    """48 tokens of 4 experts; torch 2.13 writes the gradient of a transposed weight the other way round."""
    trace = KinetoTrace()
    node = {"Sequence number": 5, "Fwd thread id": 1}

    def call(start: float, tid: int, dims: Any, args: Any = None) -> int:
        known = {"Input Dims": dims, "Input type": [BF16, BF16, "int", "", ""], **(args or {})}
        return trace.call("aten::_grouped_mm", start, 20, tid, args=known)

    forward = call(0, 1, [[48, 8], [4, 8, 20], [4], [], []], node)
    trace.kernel("gemm_f", 200, 7, forward)
    trace.call("autograd::engine::evaluate_function: GroupedMmBackward0", 300, 100, 2, args=node)
    trace.call("GroupedMmBackward0", 301, 98, 2, args=node)
    trace.kernel("gemm_w", 400, 3, call(310, 2, weight_dims))
    trace.kernel("gemm_d", 410, 5, call(340, 2, [[48, 20], [4, 20, 8], [4], [], []]))
    found = {each.phase: each for each in operators(of_text(tmp_path, trace.text()), "grouped_matmul")}
    assert {phase: each.timing and each.timing.time_s for phase, each in found.items()} == {
        "forward": pytest.approx(7e-6), "wgrad": pytest.approx(3e-6), "dgrad": pytest.approx(5e-6),
    }  # fmt: skip
    for each in found.values():
        assert (each.shape, each.detail) == ({"num_groups": 4, "m": 12, "n": 20, "k": 8}, {})


def test_rows_that_no_group_shares_evenly_are_kept(tmp_path: Path) -> None:
    trace = KinetoTrace()
    for position, rows in enumerate((49, 3)):
        dims = {"Input Dims": [[rows, 8], [4, 8, 20], [4], [], []]}
        call = trace.call("aten::_grouped_mm", 30 * position, 20, 1, args=dims)
        trace.kernel("gemm", 200 + 10 * position, 7, call)
    found = [
        (each.shape.get("m"), each.detail) for each in operators(of_text(tmp_path, trace.text()), "grouped_matmul")
    ]
    assert sorted(found, key=str) == [(12, {"rows": 49}), (None, {"rows": 3})]


def test_a_forward_inside_the_backward_pass_is_recomputation(tmp_path: Path) -> None:
    trace = KinetoTrace()
    trace.call("autograd::engine::evaluate_function: MmBackward0", 0, 100, 2)
    trace.call("MmBackward0", 1, 98, 2)
    again = trace.call("aten::mm", 10, 20, 2, args={"Input Dims": [[4, 6], [6, 8]], "Sequence number": 9})
    trace.kernel("gemm", 50, 4, again)
    (matmul,) = operators(of_text(tmp_path, trace.text()), "matmul")
    assert (matmul.phase, matmul.detail) == ("forward", {"recompute": True})


def test_kernels_join_by_correlation_where_they_have_no_external_id(tmp_path: Path) -> None:
    trace = KinetoTrace()
    trace.call("aten::mm", 10, 20, args={"Input Dims": [[4, 6], [6, 8]], "Input type": ["c10::Half", "c10::Half"]})
    launch = {"ph": "X", "cat": "cuda_runtime", "name": "hipLaunchKernel", "pid": 9, "tid": 1, "ts": 15, "dur": 2}
    trace.events.append({**launch, "args": {"correlation": 77}})
    trace.kernel("Cijk_Ailk_Bljk_HHS_BH_MT128x128", 50, 4, None, {"correlation": 77})
    document = trace.document()
    document["deviceProperties"] = [{"id": 0, "name": "AMD Instinct MI300X"}]
    document["hip_runtime_version"] = 60342134
    del document["cuda_runtime_version"]
    imported = of_text(tmp_path, json.dumps(document))
    (matmul,) = operators(imported, "matmul")
    assert (matmul.shape, matmul.dtype) == ({"m": 4, "n": 8, "k": 6}, "fp16")
    environment = imported.batches[0].environment
    assert (environment.device, environment.runtime_version) == ("mi300x", "HIP 6.3.42134")
    assert environment.communication_library == "rccl"


def test_the_first_rocm_traces_name_the_device_by_the_process(tmp_path: Path) -> None:
    trace = KinetoTrace(world_size=2)
    trace.call("hipLaunchKernel", 0, 1, cat="cuda_runtime")
    trace.collective("allreduce", 10, 5, (64, 64))
    copy = {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Host -> Device)", "pid": 3, "tid": 0, "ts": 20}
    trace.events.append({**copy, "dur": 4, "args": {"bytes": 4000}})
    trace.events.append({**copy, "dur": 4, "name": "Memcpy ? (? -> ?)", "args": {"bytes": 4000}})
    imported = of_text(tmp_path, trace.text())
    (link,) = imported.batches[0].links
    assert (link.source, link.target) == ("host:0", "device:3")
    assert link.bandwidth_bytes_per_s == pytest.approx(1e9)
    assert imported.skipped == {"copies of unknown direction": 1}
    # The grid of a HIP launch may count threads.
    assert imported.batches[0].collectives[0].num_channels is None


def test_spelling_of_the_first_kineto_versions(tmp_path: Path) -> None:
    """PyTorch 1.8: a list, capital categories, ``external id`` on kernels, ``Input dims``."""
    operator = {
        "ph": "X", "cat": "Operator", "name": "aten::mm", "pid": 1, "tid": "2", "ts": 1616161616161616, "dur": 50,
        "args": {"Device": 1, "External id": 4, "Input dims": [[2, 3], [3, 5]], "Input type": ["float", "float"]},
    }  # fmt: skip
    kernel = {
        "ph": "X", "cat": "Kernel", "name": "sgemm", "pid": 0, "tid": "stream 7", "ts": 1616161616161700, "dur": 9,
        "args": {"device": 0, "external id": 4, "correlation": 4},
    }  # fmt: skip
    imported = read(FORMAT, written(tmp_path, "old.json", json.dumps([operator, kernel])))
    (matmul,) = operators(imported, "matmul")
    assert matmul.shape == {"m": 2, "n": 5, "k": 3}
    assert matmul.timing is not None
    assert matmul.timing.time_s == pytest.approx(9e-6)


def test_the_profiler_before_kineto(tmp_path: Path) -> None:
    events = [
        {"name": "aten::mm", "ph": "X", "ts": 10.5, "dur": 20.25, "tid": 1, "pid": "CPU functions", "args": {}},
        {"name": "aten::view", "ph": "X", "ts": 40.5, "dur": 2.0, "tid": 1, "pid": "CPU functions", "args": {}},
    ]
    imported = read(FORMAT, written(tmp_path, "legacy.json", json.dumps(events)))
    (matmul,) = [each for batch in imported.batches for each in batch.operators]
    assert matmul.timing is not None
    assert matmul.timing.time_s == pytest.approx(20.25e-6)


def test_bare_backslashes_and_nan_are_repaired(tmp_path: Path) -> None:
    text = training_trace().text().replace("sm90_xmma_gemm_bf16", 'C:\\kernels\\gemm \\"quoted\\"')
    text = text.replace('"numSms": 132', '"numSms": nan')
    imported = of_text(tmp_path, text)
    assert "json-repaired" in codes(imported)
    assert len(operators(imported, "matmul")) == 3


def test_a_truncated_trace_is_refused_with_the_byte(tmp_path: Path) -> None:
    text = training_trace().text()
    half = text[: len(text) // 2]
    with pytest.raises(DocumentInvalid, match=f"breaks off at byte {len(half):,}") as caught:
        of_text(tmp_path, half)
    assert f"byte {len(half)}" in str(caught.value.where)


def test_traces_one_after_the_other_are_separate(tmp_path: Path) -> None:
    imported = of_text(tmp_path, training_trace().text() + "\n" + training_trace().text())
    assert imported.facts["num_traces"] == 2
    assert {each.timing.num_samples for each in operators(imported, "matmul") if each.timing} == {2}


def test_events_without_a_time_are_bad_rows(tmp_path: Path) -> None:
    trace = training_trace()
    trace.kernel("negative", 500, -3, None)
    trace.kernel("text", 500, 3, None)
    trace.events[-1]["ts"] = "soon"
    trace.events.append({"ph": "X", "cat": "kernel", "name": "x", "args": [1]})
    imported = of_text(tmp_path, trace.text())
    count = len(trace.events)
    assert {each.where for each in imported.bad_rows} == {f"traceEvents/{count - offset}" for offset in (1, 2, 3)}
    assert not operators(imported, "kernel")


def test_operators_on_a_machine_with_devices_but_without_kernels_are_not_times(tmp_path: Path) -> None:
    trace = KinetoTrace()
    trace.call("aten::mm", 10, 20, args={"Input Dims": [[4, 6], [6, 8]]})
    with pytest.raises(DocumentInvalid, match="no device kernels"):
        of_text(tmp_path, trace.text())
    file = written(tmp_path, "trace.json", trace.text())
    (matmul,) = operators(read(FORMAT, file, given={"device": "cpu"}), "matmul")
    assert matmul.timing is not None
    assert matmul.timing.time_s == pytest.approx(20e-6)


def test_linear_on_the_cpu_is_counted_once(tmp_path: Path) -> None:
    trace = KinetoTrace(num_devices=0)
    trace.call("aten::linear", 0, 30, args={"Input Dims": [[4, 6], [8, 6]], "Input type": ["float", "float"]})
    trace.call("aten::addmm", 5, 20, args={"Input Dims": [[8], [4, 6], [6, 8]], "Input type": ["float"] * 3})
    (matmul,) = operators(of_text(tmp_path, trace.text()), "matmul")
    assert (matmul.name, matmul.shape) == ("aten::addmm", {"m": 4, "n": 8, "k": 6})


def test_fused_optimizer_says_how_many_parameters(tmp_path: Path) -> None:
    trace = KinetoTrace()
    trace.call("Optimizer.step#AdamW.step", 0, 100, cat="user_annotation")
    fused = trace.call("aten::_fused_adamw_", 10, 50, args={"Input Dims": [[[4, 6], [8]], [[4, 6], [8]]]})
    trace.kernel("multi_tensor_apply_kernel", 60, 11, fused)
    (step,) = operators(of_text(tmp_path, trace.text()), "optimizer")
    assert (step.name, step.shape, step.phase) == ("AdamW", {"num_elements": 32}, "step")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "empty"),
        ("{}", "no events"),
        ('{"schemaVersion": 1, "traceEvents": []}', "no events"),
        ('{"schemaVersion": 1, "traceEvents": null}', "not a readable trace"),
        ('{"schemaVersion": 1, "traceEvents": [{"ph": "X", "args": ' + "[" * 5000, "too deeply|breaks off"),
        ("5", "not a readable trace"),
        ('{"traceEvents": [{"ph": "X"}], }', "not a readable trace"),
        ('{"traceEvents": [{"ph": "X", "cat": "kernel", "ts": 1e999, "dur": 1}]}', "no usable event"),
    ],
)
def test_hostile_content_is_one_clear_error(tmp_path: Path, content: str, what: str) -> None:
    with pytest.raises(DocumentInvalid, match=what):
        of_text(tmp_path, content)


def test_pieces_of_a_real_trace_never_raise_anything_else(tmp_path: Path) -> None:
    text = gzip.decompress(sample("torch/hta_triton_example.json.gz").path.read_bytes())
    lines = text.split(b"\n")
    refused = 0
    for position in range(0, len(lines), 37):
        for broken in (b"\n".join(lines[:position]), b"\n".join(lines[:position] + lines[position + 3 :])):
            try:
                of_text(tmp_path, broken)
            except DocumentInvalid:
                refused += 1
    assert refused > 0


def test_other_traces_are_not_taken(tmp_path: Path) -> None:
    jax = '{"displayTimeUnit": "ns", "metadata": {}, "traceEvents": [{"ph": "M", "args": {"name": "/device:TPU:0"}}]}'
    chrome = '[{"cat": "toplevel", "name": "x", "ph": "X", "ts": 1, "dur": 2, "pid": 1, "tid": 1, "args": {}}]'
    prose = 'A Kineto trace has "schemaVersion" and "deviceProperties".'
    for text in (jax, chrome, prose):
        assert not FORMAT.matches(SourceFile(written(tmp_path, "other.json", text).path).head())


def test_host_calls_of_a_device_that_is_not_read_are_no_operator_times(tmp_path: Path) -> None:
    text = """{"schemaVersion": 1, "distributedInfo": {"rank": 0}, "traceEvents": [
        {"ph": "X", "cat": "mtia_ccp_events", "name": "x", "pid": 1, "tid": 1, "ts": 1, "dur": 2, "args": {}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 2,
         "args": {"External id": 3}}]}"""
    with pytest.raises(DocumentInvalid, match="no device kernels"):
        read_anyway(FORMAT, [written(tmp_path, "mtia.json", text)])
