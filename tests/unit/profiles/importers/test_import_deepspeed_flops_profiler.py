"""DeepSpeed's flops profiler: summary and modules of two generations, cut and broken text."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.deepspeed_flops_profiler import FORMAT
from tests.importing import read, read_anyway, written

SUMMARY = """-------------------------- DeepSpeed Flops Profiler --------------------------
Profile Summary at step 10:
Notations:
fwd latency (forward propagation latency), bwd latency (backward propagation latency),

world size:                                                   8
data parallel size:                                           4
model parallel size:                                          2
batch size per GPU:                                           80
fwd latency:                                                  76.67 ms
bwd latency:                                                  108.02 ms
fwd FLOPS per GPU = fwd flops per GPU / fwd latency:          81.9 TFLOPS
step latency:                                                 34.09 us
iter latency:                                                 184.73 ms
"""
OLD = """BertModel(
  335.15 M, 99.68% Params, 3092.96 GMACs, 98.50% MACs, 34.29 ms, 44.89% latency, 180.4 TFLOPS,
  (embeddings): BertEmbeddings(...)
  (encoder): BertEncoder(
    302.31 M, 89.91% Params, 3092.88 GMACs, 98.50% MACs, 33.45 ms, 43.79% latency, 184.93 TFLOPS,
    (query): Linear(1.05 M, 0.31% Params, 10.74 GMACs, 0.34% MACs, 182.39 us, 0.24% latency, 117.74 TFLOPS,...)
    (norm): FusedLayerNorm(2.05 k, 0.00% Params, 0 MACs, 0.00% MACs, 44.11 us, 0.06% latency, 0.0 FLOPS, ...)
  )
  (pooler): BertPooler(...)
)
"""
NEW = """ResNet(
  11.69 M = 100% Params, 29.03 GMACs = 100% MACs, 80.71 ms = 100% latency, 720.81 GFLOPS
  (conv1): Conv2d(9.41 K = 0.08% Params, 1.89 GMACs = 6.5% MACs, 1.5 ms = 1.86% latency, 2.52 TFLOPS, 3, 64)
)
"""


def test_summary_and_older_modules(tmp_path: Path) -> None:
    imported = read(FORMAT, written(tmp_path, "profile.txt", SUMMARY + OLD))
    (batch,) = imported.batches
    assert (batch.environment.num_devices, imported.bad_rows) == (8, [])
    (step,) = batch.iterations
    assert step.timing is not None
    assert step.timing.time_s == pytest.approx(184.73e-3)
    assert (step.iteration, step.strategy, step.micro_batch_size) == (10, {"dp": 4, "model_parallel": 2}, 80)
    found = {(each.name, each.phase): each for each in batch.operators}
    times = {key: each.timing.time_s for key, each in found.items() if each.timing}
    assert times == {
        ("model", "forward"): pytest.approx(76.67e-3),
        ("model", "backward"): pytest.approx(108.02e-3),
        ("model", "step"): pytest.approx(34.09e-6),
        ("BertModel", "forward"): pytest.approx(34.29e-3),
        ("BertModel.encoder", "forward"): pytest.approx(33.45e-3),
        ("BertModel.encoder.query", "forward"): pytest.approx(182.39e-6),
        ("BertModel.encoder.norm", "forward"): pytest.approx(44.11e-6),
    }
    query = found["BertModel.encoder.query", "forward"]
    assert (query.operator, query.detail) == ("matmul", {"class": "Linear", "flops": 2 * 10.74e9})
    assert found["BertModel.encoder.norm", "forward"].operator == "norm"
    assert [flag.code for flag in imported.flags] == ["synchronised"]


def test_newer_modules(tmp_path: Path) -> None:
    text = "    " + (SUMMARY.splitlines()[0] + "\n" + NEW).replace("\n", "\n    ")
    first, conv = read(FORMAT, written(tmp_path, "a.md", text)).batches[0].operators
    assert first.timing is not None
    assert first.timing.time_s == pytest.approx(80.71e-3)
    assert (conv.name, conv.operator, conv.detail["flops"]) == ("ResNet.conv1", "convolution", 2 * 1.89e9)


@pytest.mark.parametrize(
    "line", ["fwd latency:      0 ms", "bwd latency:     nan ms", "iter latency:    1e999 s", "step latency: -1 us"]
)
def test_broken_latencies(tmp_path: Path, line: str) -> None:
    imported = read(FORMAT, written(tmp_path, "a.txt", SUMMARY + line + "\n"))
    assert [bad.where for bad in imported.bad_rows] == ["line 15"]


def test_cut_anywhere(tmp_path: Path) -> None:
    whole = (SUMMARY + OLD + NEW).encode()
    for end in range(0, len(whole), 41):
        with suppress(DocumentInvalid):
            read_anyway(FORMAT, [written(tmp_path, "a.txt", whole[:end])])


def test_a_profile_without_latency_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="latency"):
        read_anyway(FORMAT, [written(tmp_path, "a.txt", SUMMARY.splitlines()[0] + "\nparams: 3\n")])
