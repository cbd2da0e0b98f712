"""EleutherAI's sizing benchmark: both real files, the forms of forks, broken lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.eleuther_sizing import FORMAT
from tests.importing import read, read_anyway, sample, written

PAIR = "Elapsed time for {0}: {1}\nThroughput (in TFLOP/s) for {0}: {2}\n"


def test_products() -> None:
    imported = read(FORMAT, sample("torch/eleuther_sizing_mm.out"), given={"dtype": "fp16"})
    found = imported.batches[0].operators
    # Elapsed times are printed as 0.000: the throughput has the digits.
    assert [each.shape for each in found] == [{"m": 1024, "n": 1024, "k": k} for k in (1024, 1280, 1536, 1792)]
    assert [each.timing.time_s for each in found if each.timing] == [
        pytest.approx(2 * 1024 * 1024 * k / (rate * 1e12))
        for k, rate in ((1024, 59.919), (1280, 68.985), (1536, 52.429), (1792, 63.276))
    ]
    assert {each.dtype for each in found} == {"fp16"}
    assert (imported.bad_rows, imported.flags) == ([], [])


def test_transformer_layer() -> None:
    imported = read(FORMAT, sample("torch/eleuther_sizing_transformer.out"))
    found = {each.name: each for each in imported.batches[0].operators}
    assert len(found) == 12
    assert found["qkv_transform"].shape == {"m": 8192, "n": 12288, "k": 4096}
    assert found["attention_over_value"].shape == {"batch_size": 64, "m": 2048, "n": 256, "k": 2048}
    assert found["mlp_4h_to_h"].shape == {"m": 8192, "n": 4096, "k": 16384}
    qkv, softmax = found["qkv_transform"].timing, found["attention_softmax"].timing
    assert qkv is not None
    assert qkv.time_s == pytest.approx(2 * 8192 * 12288 * 4096 / 241.616e12)
    assert softmax is not None
    assert softmax.time_s == 0.0076
    assert found["attention_softmax"].shape == {"num_elements": 4 * 16 * 2048 * 2048}
    assert found["transformer_layer_norm"].operator == "norm"
    assert imported.skipped == {"total of several operators": 7}
    assert {flag.code for flag in imported.flags} == {"rounded", "dtype-not-stated"}


SIZES = (
    "num_attention_heads: 128, hidden_size: 8192, train_micro_batch_size_per_gpu: 4, {0}tensor_mp_size: 1, dp_size: 1"
)
BLOCKS = """

{1}
------
Attention duration (in seconds): 0.0388
Attention throughput (in TFLOP/s): 127.357
MLP duration (in seconds): 0.0367
MLP throughput (in TFLOP/s): 239.830
Transformer - MLP - Attention (in seconds): 0.0031
====
"""


def test_whole_blocks_that_ran(tmp_path: Path) -> None:
    """Figures of EleutherAI/cookbook sizing/results/transformer_data/tensor_parallel_h_sweep.out."""
    text = (SIZES + BLOCKS).format("", "Actual") + (SIZES + BLOCKS).format("seq_length: 2048, ", "Actual")
    imported = read(FORMAT, written(tmp_path, "a.out", text))
    old, _, new, mlp = imported.batches[0].operators
    assert (old.operator, old.name, old.timing and old.timing.time_s) == ("module", "Attention", 0.0388)
    sizes = {"num_heads": 128, "hidden_size": 8192, "batch_size": 4, "tensor_parallel": 1}
    assert (old.shape, new.shape) == (sizes, {**sizes, "query_length": 2048})
    assert new.timing is not None
    assert new.timing.time_s == pytest.approx(4 * 4 * 2048 * 8192 * (2 * 8192 + 2048) / 127.357e12)
    assert mlp.timing is not None
    assert mlp.timing.time_s == pytest.approx(0.0367, abs=5e-5)
    assert imported.bad_rows == []


def test_estimated_blocks_are_sums(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="no operator with a time"):
        read(FORMAT, written(tmp_path, "a.out", (SIZES + BLOCKS).format("", "Estimate")))


def test_norm_has_rows(tmp_path: Path) -> None:
    text = "Elapsed time for layer_norm (2048x4x4096): 0.0001\n" + PAIR.format("8x8x8", "0.001", "0.1")
    imported = read(FORMAT, written(tmp_path, "a.out", text))
    assert imported.batches[0].operators[0].shape == {"num_tokens": 8192, "hidden_size": 4096}


def test_microseconds_and_zero(tmp_path: Path) -> None:
    text = "Elapsed time (in us) for mlp (4x8x16, b=2): 250.0\n" + PAIR.format("8x8x8", "0.000", "0.000")
    imported = read(FORMAT, written(tmp_path, "a.out", text))
    (found,) = imported.batches[0].operators
    assert found.timing is not None
    assert found.timing.time_s == pytest.approx(250e-6)
    assert found.shape == {"m": 8, "n": 16, "k": 8}
    assert imported.skipped == {"time rounded to zero, or a size of zero": 1}


@pytest.mark.parametrize(
    ("elapsed", "rate"), [("nan", "1.0"), ("-1", "1.0"), ("0.1", "nan"), ("0.1", "-4"), ("x", "1")]
)
def test_broken_numbers(tmp_path: Path, elapsed: str, rate: str) -> None:
    text = PAIR.format("8x8x8", elapsed, rate) + PAIR.format("16x8x8", "0.1", "1.0")
    imported = read(FORMAT, written(tmp_path, "a.out", text))
    assert len(imported.bad_rows) == 1
    assert [each.shape["m"] for each in imported.batches[0].operators][-1] == 16


def test_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "a.out", "Elapsed time for 8x8: x\n")])
