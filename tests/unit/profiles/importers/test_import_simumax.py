"""SimuMax's system files: times recovered from efficiencies by hand, and broken keys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.simumax import FORMAT
from tests.importing import read, read_anyway, sample, written


def test_a100_pcie() -> None:
    imported = read(FORMAT, sample("simumax/a100_pcie.json"))
    (batch,) = imported.batches
    assert (batch.environment.device, batch.environment.devices_per_node) == ("a100-pcie-80gb", 8)
    # 183 products, 12 and 12 attentions, 12 grouped products; three operators have a default only.
    assert (len(batch.operators), imported.bad_rows, list(imported.skipped.values())) == (219, [], [3])
    assert [flag.code for flag in imported.flags] == ["derived-from-efficiency"]
    forward, dgrad, wgrad = batch.operators[:3]
    times = [each.timing.time_s for each in (forward, dgrad, wgrad) if each.timing]
    flops = 2 * 4096 * 5120 * 1536
    assert times == [
        pytest.approx(flops / (0.7876672065615554 * 312e12)),
        pytest.approx(flops / (0.737505124681297 * 312e12)),
        pytest.approx(flops / (0.6244545650481178 * 312e12)),
    ]
    # All three belong to the weight of 1536 outputs and 5120 inputs.
    assert forward.shape == {"m": 4096, "n": 1536, "k": 5120}
    assert dgrad.shape == {"m": 4096, "n": 5120, "k": 1536}
    assert wgrad.shape == {"m": 1536, "n": 5120, "k": 4096}
    assert [each.phase for each in (forward, dgrad, wgrad)] == ["forward", "dgrad", "wgrad"]
    attention = next(each for each in batch.operators if each.name == "sdp_bwd")
    assert attention.timing is not None
    assert attention.timing.time_s == pytest.approx(5 * 4096**2 * 128 * 320 / (0.8018473732899901 * 312e12))
    assert (attention.phase, attention.causal, attention.shape["value_head_dim"]) == ("backward", True, 128)
    grouped = [each for each in batch.operators if each.operator == "grouped_matmul"][1]
    assert grouped.shape == {"num_groups": 40, "m": 616, "n": 3072, "k": 5120}
    assert grouped.phase == "dgrad"
    assert grouped.timing is not None
    assert grouped.timing.time_s == pytest.approx(2 * 40 * 616 * 3072 * 5120 / (0.6790978664070304 * 312e12))
    # 30 GB/s of 2^30 bytes, times the efficiency of this collective.
    assert imported.facts["intra_node_pcie_8x.all_reduce.bus_bandwidth_bytes_per_s"] == pytest.approx(
        30 * 2**30 * 0.4176
    )
    assert imported.facts["inter_node.p2p.latency_s"] == pytest.approx(40e-6)


def system(key: str, efficiency: object) -> str:
    """A system file with one good and one other efficiency."""
    good = "b=1, m=16, k=16, n=16, layout=TN, accumulate=False, out_dtype=bf16"
    table = {"tflops": 100, "efficient_factor": 0.5, "accurate_efficient_factor": {good: 0.5, key: efficiency}}
    return json.dumps({"sys_name": "x", "num_per_node": 8, "accelerator": {"op": {"matmul": table}}})


@pytest.mark.parametrize(
    ("key", "efficiency"),
    [
        ("b=1, m=16, k=16, n=8, layout=TN", 0),
        ("b=1, m=16, k=16, n=8, layout=TN", -1),
        ("b=1, m=16, k=16, n=8, layout=TN", "x"),
        ("b=1, m=16, k=16, n=8, layout=TT", 0.5),
        ("b=1, m=16, k=16, layout=TN", 0.5),
        ("b=1, m=0, k=16, n=8, layout=TN", 0.5),
        ("hello", 0.5),
    ],
)
def test_broken_keys_are_reported(tmp_path: Path, key: str, efficiency: object) -> None:
    imported = read(FORMAT, written(tmp_path, "x.json", system(key, efficiency)))
    assert len(imported.bad_rows) == 1
    assert len(imported.batches[0].operators) == 1


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"accelerator": {"op": {"matmul": {"tflops": 3}}}}', '{"accelerator": 3}']
)
def test_without_measurements_it_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "x.json", text)])
