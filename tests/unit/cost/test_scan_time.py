"""Chunked recurrences: published kernel times, those of devices that fitted nothing among them."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from planner.model.mixers.delta_rule import DeltaRuleSpec, delta_rule_operators
from planner.model.mixers.lightning import LightningSpec, lightning_operators
from planner.model.mixers.mamba import Mamba2Spec, mamba2_operators
from planner.model.operator import Operator
from planner.predict.cost.efficiency import device_rates
from planner.predict.cost.hardware import Hardware, hardware_of
from planner.predict.cost.operator_time import operator_backward_s, operator_forward_s
from planner.predict.cost.scan_time import CHUNK_S
from planner.predict.layer_keys import LayerKeys
from profiles.catalogue import load_cluster, load_device

PUBLISHED = Path(__file__).parents[3] / "benchmarks" / "published" / "scan_kernels.csv"
Row = dict[str, str]


def published() -> list[Row]:
    with PUBLISHED.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def hardware(device: str) -> Hardware:
    return replace(hardware_of(load_cluster("dgx-h100", 8), "bf16"), rates=device_rates(load_device(device), "bf16"))


def keys(samples: int, length: int, tp: int = 1) -> LayerKeys:
    one, none = np.ones(1), np.zeros(1)
    return LayerKeys(
        tp=tp * one, sp=none, cp=one, ring=none, ep=one, etp=one, micro_batch_size=samples * one,
        overlap_tp=none, overlap_ep=none, sequence_length=length,
    )  # fmt: skip


def scan(kernel: str, heads: int, key_dim: int = 128, value_dim: int = 128, chunk: int = 64) -> Operator:
    if kernel == "mamba2":
        mamba = Mamba2Spec(num_heads=heads, head_dim=value_dim, state_size=key_dim, num_groups=1, chunk_size=chunk)
        operators = mamba2_operators(mamba, 4096, input_from="")
    elif kernel == "lightning":
        lightning = LightningSpec(num_heads=heads, head_dim=key_dim, block_size=chunk)
        operators = lightning_operators(lightning, 4096, input_from="")
    else:
        delta = DeltaRuleSpec(
            kind=kernel, num_value_heads=heads, num_key_heads=heads, key_head_dim=key_dim,  # type: ignore[arg-type]
            value_head_dim=value_dim, chunk_size=chunk,
        )  # fmt: skip
        operators = delta_rule_operators(delta, 4096, input_from="")
    return next(each for each in operators if each.name == "recurrence")


def seconds(operator: Operator, at: LayerKeys, device: str) -> tuple[float, float]:
    where = hardware(device)
    forward_s = operator_forward_s(operator, at, where)
    backward_s, weights_s = operator_backward_s(operator, at, where, forward_s)
    assert weights_s == 0.0
    return float(forward_s[0]), float(backward_s[0])


def error(row: Row) -> float:
    """ln(predicted / measured) of one published kernel time."""
    sizes = (int(row[name]) for name in ("heads", "key_dim", "value_dim", "chunk"))
    at = keys(int(row["batch"]), int(row["sequence_length"]))
    forward_s, backward_s = seconds(scan(row["kernel"], *sizes), at, row["device"])
    return math.log((forward_s if row["way"] == "forward" else backward_s) * 1e3 / float(row["milliseconds"]))


@pytest.mark.parametrize(
    ("kernel", "way", "use", "most"),
    [
        ("gated_delta", "forward", "fit", 0.06),
        ("gated_delta", "backward", "fit", 0.12),
        ("gated_delta", "forward", "report", 0.10),
        ("gated_delta", "backward", "report", 0.22),
        ("mamba2", "forward", "fit", 0.06),
        ("mamba2", "forward", "report", 0.20),
        ("kimi_delta", "forward", "fit", 0.05),
        ("kimi_delta", "forward", "report", 0.05),
        ("lightning", "forward", "report", 0.08),
        ("lightning", "backward", "report", 0.05),
    ],
)
def test_published_kernels(kernel: str, way: str, use: str, most: float) -> None:
    """The device that fitted the rates, and those that did not (gated delta: GB200 at its own fp32 rate)."""
    rows = [row for row in published() if (row["kernel"], row["way"], row["use"]) == (kernel, way, use)]
    found = median(abs(error(row)) for row in rows)
    print(kernel, way, use, len(rows), f"{found:.3f}", f"bias {median(error(row) for row in rows):+.3f}")
    assert found < most


def test_few_heads_wait_for_the_chain_of_chunks() -> None:
    """Tensor parallelism splits the heads, not the chunks that follow one another."""
    operator, chunks = scan("gated_delta", 64), 32768 / 64
    whole_s, split_s = (seconds(operator, keys(1, 32768, tp), "h200-sxm-141gb")[0] for tp in (1, 8))
    assert split_s > 1.5 * whole_s / 8
    assert split_s > chunks * CHUNK_S["gated_delta"][0]


def test_a_recurrence_follows_the_vector_rate_and_not_the_tensor_cores() -> None:
    """A GB200 has 2.5 times the 16-bit rate of an H200, and 80 TFLOP/s of fp32 for 67."""
    operator, at = scan("mamba2", 128, 128, 64, 256), keys(1, 8192)
    ratio = seconds(operator, at, "h200-sxm-141gb")[0] / seconds(operator, at, "gb200")[0]
    assert ratio == pytest.approx(80 / 67, rel=0.02)


def test_a_device_without_a_known_vector_rate_is_still_costed() -> None:
    device = load_device("h100-sxm5-80gb")
    bare = device.model_copy(update={"peak_flops_per_s": {"bf16": device.peak_flops_per_s["bf16"]}})
    where = replace(hardware("h100-sxm5-80gb"), rates=device_rates(bare, "bf16"))
    operator, at = scan("gated_delta", 64), keys(1, 8192)
    assert operator_forward_s(operator, at, where)[0] == pytest.approx(
        seconds(operator, at, "h100-sxm5-80gb")[0], rel=0.1
    )
