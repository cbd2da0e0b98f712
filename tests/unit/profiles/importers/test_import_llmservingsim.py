"""LLMServingSim's layer profiles: old and new forms written out from the published files, and broken rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.llmservingsim import FORMAT
from tests.importing import read, read_anyway, written


def seconds(text: str, tmp_path: Path) -> list[tuple[Any, ...]]:
    """Operator, name, time and shape of each row."""
    found = read(FORMAT, written(tmp_path, "layers.csv", text), given={"dtype": "bf16"}).batches[0].operators
    return [(each.operator, each.name, each.timing.time_s if each.timing else 0.0, each.shape) for each in found]


def test_nanoseconds_of_the_old_form(tmp_path: Path) -> None:
    text = "layer_name,input,kv_cache,tp_size,latency(ns)\n"
    text += "q_proj,16,0,4,16243\nattn,1,512,4,5545\ninput_layernorm,8,0,4,18000\n"
    assert seconds(text, tmp_path) == [
        ("matmul", "q_proj", pytest.approx(16.243e-6), {"m": 16}),
        ("attention", "attn", pytest.approx(5.545e-6), {"query_length": 1, "key_length": 513}),
        ("norm", "input_layernorm", pytest.approx(18e-6), {"num_tokens": 8}),
    ]


def test_device_and_model_in_the_oldest_form(tmp_path: Path) -> None:
    text = "hardware,model,layer_name,input,kv_cache,latency(ns)\n"
    text += "RTX3090,meta-llama/Llama-3.1-8B-Instruct,embedding,1,0,74101\n"
    imported = read(FORMAT, written(tmp_path, "RTX3090.csv", text))
    (found,) = imported.batches[0].operators
    assert imported.batches[0].environment.device_reported == "RTX3090"
    assert found.detail == {"model": "meta-llama/Llama-3.1-8B-Instruct"}
    assert [flag.code for flag in imported.flags] == ["dtype-not-stated"]


def test_microseconds_of_the_new_forms(tmp_path: Path) -> None:
    assert seconds("layer,tokens,time_us\nact_fn,2,3.18967\n", tmp_path) == [
        ("activation", "act_fn", pytest.approx(3.18967e-6), {"num_tokens": 2})
    ]
    assert seconds("layer,sequences,time_us\nlm_head,4,1106.89\n", tmp_path) == [
        ("matmul", "lm_head", pytest.approx(1106.89e-6), {"m": 4})
    ]
    assert seconds("ep,tokens,activated_experts,time_us\n2,16,32,238.678\n", tmp_path) == [
        ("moe", "moe", pytest.approx(238.678e-6), {"num_tokens": 16, "expert_parallel": 2})
    ]
    header = "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n"
    assert seconds(header + "0,0,4,1024,36.105\n16,256,0,0,17.364\n16,0,1,16,9.696\n", tmp_path) == [
        (
            "decode_attention",
            "attention",
            pytest.approx(36.105e-6),
            {"batch_size": 4, "query_length": 1, "key_length": 1024},
        ),
        ("attention", "attention", pytest.approx(17.364e-6), {"batch_size": 1, "query_length": 16, "key_length": 272}),
        ("other", "attention", pytest.approx(9.696e-6), {}),
    ]


@pytest.mark.parametrize("row", ["act_fn,2,nan", "act_fn,2,-1", "act_fn,2,0", "act_fn,x,1", ",2,1", "act_fn,2"])
def test_broken_rows(tmp_path: Path, row: str) -> None:
    imported = read(FORMAT, written(tmp_path, "dense.csv", f"layer,tokens,time_us\n{row}\nact_fn,2,1\n"))
    assert [bad.where for bad in imported.bad_rows] == ["line 2"]
    assert imported.batches[0].operators[0].row == 3


def test_predictions_are_refused(tmp_path: Path) -> None:
    file = written(
        tmp_path, "attn_decode_predictions.csv", "layer_name,input,kv_cache,tp_size,latency(ns)\na,1,0,1,5\n"
    )
    with pytest.raises(DocumentInvalid, match="predictions"):
        read_anyway(FORMAT, [file])


def test_percentiles_of_a_tpu_are_nanoseconds(tmp_path: Path) -> None:
    header = "prefill_chunk_size,kv_cache_size,batch_size,is_prefill,mean_ns,p50_ns,p90_ns,max_ns\n"
    rows = "32,64,1,True,8274.4,8242.5,8390.1,8528.6\n0,512,8,False,9000.0,8000.0,9500.0,9900.0\n32,-1,1,True,1,1,1,1\n"
    imported = read(FORMAT, written(tmp_path, "prefill_attn_profile.csv", header + rows))
    prefill, decode = imported.batches[0].operators
    assert (prefill.operator, prefill.shape) == ("attention", {"batch_size": 1, "query_length": 32, "key_length": 96})
    assert prefill.timing is not None
    assert prefill.timing.statistic == "median"
    assert prefill.timing.time_s == pytest.approx(8242.5e-9)
    assert prefill.timing.p90_s == pytest.approx(8390.1e-9)
    assert prefill.timing.max_s == pytest.approx(8528.6e-9)
    assert (decode.operator, decode.shape["query_length"], decode.shape["key_length"]) == ("decode_attention", 1, 513)
    assert [bad.where for bad in imported.bad_rows] == ["line 4"]


def test_predictions_are_refused_by_their_column(tmp_path: Path) -> None:
    file = written(tmp_path, "attn.csv", "kv_cache_size,prefill_chunk_size,prediction\n0,32,0.01\n")
    assert FORMAT.matches(file.head())
    with pytest.raises(DocumentInvalid, match="predictions"):
        read_anyway(FORMAT, [file])
