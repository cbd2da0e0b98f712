"""Vidur's operator profiles: real files, shapes worked out by hand, attention written out, broken rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.vidur_compute import FORMAT
from profiles.observations.timing import Timing
from tests.importing import read, read_anyway, sample, written

HEADER = (
    "time_stats.attn_pre_proj.median,time_stats.attn_pre_proj.min,time_stats.mlp_up_proj.median,"
    "time_stats.mlp_down_proj.median,time_stats.attn_rope.median,"
    "n_head,n_kv_head,n_embd,n_expanded_embd,vocab_size,use_gated_mlp,num_tokens,num_tensor_parallel_workers\n"
)


def test_llama2_7b_on_a100() -> None:
    imported = read(FORMAT, sample("vidur/compute_a100_llama2-7b_mlp.csv"), given={"device": "a100-sxm4-80gb"})
    (batch,) = imported.batches
    # 1,045 lines are a header and 1,044 rows of 10 operators.
    assert (batch.num_observations, imported.bad_rows, imported.skipped) == (10_440, [], {})
    assert batch.environment.device == "a100-sxm4-80gb"
    first = {each.name: each for each in batch.operators[:10]}
    assert first["mlp_up_proj"].shape == {"m": 4096, "n": 22016, "k": 4096}
    assert first["mlp_down_proj"].shape == {"m": 4096, "n": 4096, "k": 11008}
    assert first["attn_pre_proj"].shape == {"m": 4096, "n": 12288, "k": 4096}
    assert first["emb"].timing == Timing(
        0.234 * 1e-3, "median", min_s=0.215 * 1e-3, max_s=0.23900000000000002 * 1e-3,
        std_s=0.008032530233376871 * 1e-3,
    )  # fmt: skip
    assert (first["emb"].phase, first["emb"].row, first["emb"].dtype) == ("forward", 2, "")
    assert [flag.code for flag in imported.flags] == ["dtype-not-stated"]


def test_phi_2_has_no_second_norm_and_no_gate() -> None:
    imported = read(FORMAT, sample("vidur/compute_h100_phi-2_mlp.csv"), given={"dtype": "half"})
    operators = imported.batches[0].operators
    assert len(operators) == 261 * 9
    assert {each.dtype for each in operators} == {"fp16"}
    up = next(each for each in operators if each.name == "mlp_up_proj")
    assert up.shape == {"m": 4096, "n": 10240, "k": 2560}
    assert imported.flags == []


def test_grouped_queries_and_sharding_by_hand(tmp_path: Path) -> None:
    # 64 heads of 128, 8 kv heads, 8192 wide, gated 28672, on 8 devices: (64 + 16) * 128 / 8 = 1280 columns.
    row = "1.5,1.25,2.0,3.0,0.5,64,8,8192,28672,128256,True,512,8\n"
    found = read(FORMAT, written(tmp_path, "mlp.csv", "\ufeff" + HEADER + row)).batches[0].operators
    assert [each.shape for each in found] == [
        {"m": 512, "n": 1280, "k": 8192},
        {"m": 512, "n": 7168, "k": 8192},
        {"m": 512, "n": 8192, "k": 3584},
        {"num_tokens": 512, "num_heads": 8, "num_kv_heads": 1, "head_dim": 128},
    ]
    assert found[0].timing == Timing(0.0015, "median", min_s=0.00125)
    assert found[0].detail == {"tensor_parallel": 8}


def test_attention_rows_hold_one_of_two_operators(tmp_path: Path) -> None:
    text = (
        "time_stats.attn_prefill.median,time_stats.attn_decode.median,n_embd,n_q_head,n_kv_head,"
        "num_tensor_parallel_workers,max_model_len,batch_size,prefill_chunk_size,kv_cache_size,is_prefill,"
        "attention_backend\n"
        "0.25,,4096,32,8,2,131072,1,512,1024,True,FLASH_ATTENTION\n"
        ",0.125,4096,32,8,2,131072,16,0,1024,False,FLASH_ATTENTION\n"
    )
    imported = read(FORMAT, written(tmp_path, "attention.csv", text))
    prefill, decode = imported.batches[0].operators
    heads = {"num_heads": 16, "num_kv_heads": 4, "head_dim": 128}
    assert (prefill.operator, prefill.causal) == ("attention", True)
    assert prefill.shape == {"batch_size": 1, "query_length": 512, "key_length": 1536, **heads}
    assert decode.operator == "decode_attention"
    assert decode.shape == {"batch_size": 16, "query_length": 1, "key_length": 1025, **heads}
    assert imported.skipped == {"operator that was not run in the row, or in less than a microsecond": 2}


@pytest.mark.parametrize(
    "row",
    [
        "nan,1,2,3,0.5,32,32,4096,11008,32000,True,512,1",
        "-1,1,2,3,0.5,32,32,4096,11008,32000,True,512,1",
        "1,1,2,3,0.5,32,32,4096,11008,32000,True,512,0",
        "1,1,2,3,0.5,32,32,4096,11008,32000,True,512,3",
        "1,1,2,3,0.5,32,32,4096,11008,32000,maybe,512,1",
        "1,1,2,3,0.5,32,32,4096,11008,32000,True,-512,1",
        "1,1,2,3,0.5,0,32,4096,11008,32000,True,512,1",
        "1,1,2,3",
    ],
)
def test_broken_rows_are_reported_and_never_stored(tmp_path: Path, row: str) -> None:
    good = "1.5,1.25,2.0,3.0,0.5,32,32,4096,11008,32000,True,512,1\n"
    imported = read(FORMAT, written(tmp_path, "mlp.csv", HEADER + row + "\n" + good))
    assert [bad.where for bad in imported.bad_rows] == ["line 2"]
    assert {each.row for each in imported.batches[0].operators} == {3}


def test_nothing_usable_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="columns where the header"):
        read_anyway(FORMAT, [written(tmp_path, "mlp.csv", HEADER + "1,2\n")])
    with pytest.raises(DocumentInvalid, match="num_tensor_parallel_workers"):
        read_anyway(FORMAT, [written(tmp_path, "other.csv", "a,b\n1,2\n")])


def test_times_below_the_printed_resolution_cost_only_themselves(tmp_path: Path) -> None:
    names = [f"time_stats.{name}.median" for name in ("attn_input_reshape", "attn_decode", "attn_prefill")]
    sizes = (
        "n_embd,n_q_head,n_kv_head,num_tensor_parallel_workers,batch_size,prefill_chunk_size,kv_cache_size,is_prefill"
    )
    file = written(tmp_path, "a.csv", f"{','.join(names)},{sizes}\n0.0,0.015,,8192,64,8,2,1,0,32,False\n")
    imported = read(FORMAT, file)
    (found,) = imported.batches[0].operators
    assert found.operator == "decode_attention"
    assert found.timing is not None
    assert found.timing.time_s == pytest.approx(15e-6)
    assert imported.bad_rows == []
    assert sum(imported.skipped.values()) == 2
