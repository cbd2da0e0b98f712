"""Configurations of MaxText's users are read to the fields that a person reads in them."""

from __future__ import annotations

from typing import Any

import pytest

from planner.backends.checking.environment import is_ready, overlay
from planner.backends.maxtext.job import DEFAULTS, DEGREES, HARMLESS, USED, base_keys, job_of_yaml, list_of
from planner.backends.maxtext.read import parse_config
from planner.backends.maxtext.shipped_models import BASE, shipped, shipped_model
from planner.backends.maxtext.validator import VALIDATOR
from planner.backends.maxtext.version import MAXTEXT_VERSION
from planner.errors import DocumentInvalid
from planner.model.megatron_args import LaunchJob
from planner.model.parameters import total_parameters


def read(more: str, devices: int | None = 8, *words: str) -> LaunchJob:
    text = "base_config: base.yml\nmodel_name: llama3.1-8b\nper_device_batch_size: 2\nmax_target_length: 4096\n"
    return job_of_yaml(f"{text}{more}", "train.yml", words, devices)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", {"tp": 1, "dp_shard": 8, "zero_stage": 3, "micro_batch_size": 2, "num_microbatches": 1}),
        ("", {"recompute": "full"}),
        ("ici_tensor_parallelism: 4\n", {"tp": 4, "sp": True, "dp_shard": 2, "micro_batch_size": 8}),
        ("ici_data_parallelism: 8\nici_fsdp_parallelism: 1\n", {"zero_stage": 0, "dp_shard": 8}),
        ("num_slices: 2\n", {"dp_replicate": 2, "dp_shard": 4, "zero_stage": 3}),
        ("num_slices: 2\ndcn_data_parallelism: 1\ndcn_fsdp_parallelism: 2\n", {"dp_replicate": 1, "dp_shard": 8}),
        ("ici_context_parallelism: 2\ncontext_parallel_strategy: ulysses\n", {"cp": 2, "cp_kind": "all_to_all"}),
        ("ici_context_parallelism: 2\n", {"cp": 2, "cp_kind": "ring"}),
        ("ici_pipeline_parallelism: 4\n", {"pp": 4, "vpp": 8, "num_microbatches": 4, "schedule": "looped_bfs"}),
        ("gradient_accumulation_steps: 4\n", {"num_microbatches": 4, "micro_batch_size": 2}),
        ("remat_policy: minimal\n", {"recompute_modules": ("attention_core", "norm", "activation")}),
        (
            "remat_policy: minimal_with_context\n",
            {"recompute": "selective", "recompute_modules": ("norm", "activation")},
        ),
        ("optimizer_memory_host_offload: true\n", {"optimizer_offload": True}),
    ],
)
def test_the_strategy_of_a_configuration(more: str, expected: dict[str, Any]) -> None:
    job = read(more)
    assert {name: job.strategy.get(name) for name in expected} == expected
    assert job.software == "maxtext"
    assert job.arguments.unknown == ()


def test_named_policies_keep_no_tensor_of_experts() -> None:
    text = "base_config: base.yml\nmodel_name: mixtral-8x7b\nper_device_batch_size: 1\nremat_policy: minimal\n"
    assert job_of_yaml(text, "a.yml", (), 8).strategy["recompute_modules"] == ("attention_core", "norm", "moe")
    latent = job_of_yaml(text.replace("mixtral-8x7b", "deepseek3-671b"), "a.yml", (), 8)
    assert any("latent" in line for line in latent.arguments.not_modelled)


def test_work_and_words_behind_the_file() -> None:
    assert read("").workload == {"global_batch_size": 16, "sequence_length": 4096, "precision": "bf16"}
    job = read("", 16, "per_device_batch_size=0.5", "quantization=fp8", "max_target_length=8192")
    assert job.workload == {"global_batch_size": 8, "sequence_length": 8192, "precision": "fp8"}
    summed = read("ici_data_parallelism: 8\nici_fsdp_parallelism: 1\nshard_optimizer_over_data: true\n", 8)
    assert "gradient_dtype" not in summed.workload
    words = "gradient_accumulation_steps=4"
    summed = read("ici_data_parallelism: 8\nici_fsdp_parallelism: 1\nshard_optimizer_over_data: true\n", 8, words)
    assert summed.workload["gradient_dtype"] == "bf16"


def test_sizes_of_a_model_of_ones_own() -> None:
    text = (
        "base_config: base.yml\nper_device_batch_size: 1\nbase_emb_dim: 1024\nnum_experts: 8\nnum_experts_per_tok: 2\n"
    )
    job = job_of_yaml(f"{text}decoder_block: mixtral\nici_expert_parallelism: 8\n", "a.yml", (), 8)
    moe = job.model.layer_kinds[0].moe
    assert moe is not None
    assert (job.model.hidden_size, moe.num_experts, moe.top_k, moe.expert_intermediate_size) == (1024, 8, 2, 7168)
    assert (job.strategy["ep"], job.strategy["etp"]) == (8, 1)


def test_what_becomes_of_each_key() -> None:
    lists = read("run_name: x\nmegablox: true\nfoo: 1\nici_context_parallelism: 2\nquantization: int8\n").arguments
    assert lists.unknown == ("foo: 1",)
    assert set(lists.not_modelled) == {
        "megablox: True",
        "context_parallel_strategy: all_gather (taken as a ring)",
        "quantization: int8 (bf16 is predicted)",
    }
    assert "run_name: x" in lists.no_influence


@pytest.mark.parametrize(
    ("more", "devices", "what"),
    [
        ("", None, "--devices N"),
        ("ici_tensor_parallelism: 3\n", 8, "do not make 8"),
        ("ici_data_parallelism: -1\n", 8, "do not make 8"),
        ("ici_sequence_parallelism: 2\n", 8, "ici_sequence_parallelism has no word"),
        ("remat_policy: save_qkv_proj\n", 8, "remat_policy 'save_qkv_proj'"),
        ("base_emb_dim: 1024\n", 8, "beside model_name"),
        ("override_model_config: true\ndecoder_block: gemma2\n", 8, "decoder block 'gemma2'"),
        ("num_slices: 3\n", 8, "3 slices"),
        ("ici_expert_parallelism: 2\n", 8, "without experts"),
    ],
)
def test_what_is_refused(more: str, devices: int | None, what: str) -> None:
    with pytest.raises(DocumentInvalid, match=what):
        read(more, devices)


@pytest.mark.parametrize(
    ("name", "billions"),
    [("llama3.1-70b", 70.6), ("mixtral-8x7b", 46.7), ("qwen3-30b-a3b", 30.5), ("deepseek3-671b", 671.0)],
)
def test_shipped_models_have_the_published_sizes(name: str, billions: float) -> None:
    assert total_parameters(shipped_model(name, {}, 4096, "a")) / 1e9 == pytest.approx(billions, rel=0.01)


def test_every_shipped_model_is_one() -> None:
    assert len(shipped()) == 39
    for name in shipped():
        assert shipped_model(name, {}, 4096, "a").num_layers > 0
    with pytest.raises(DocumentInvalid):
        shipped_model("gemma2-9b", {}, 4096, "a")


def test_the_keys_are_those_of_the_release() -> None:
    if not is_ready(VALIDATOR, MAXTEXT_VERSION):
        pytest.skip(f"validator maxtext=={MAXTEXT_VERSION} is not installed: python -m tests.install_validators")
    folder = overlay(VALIDATOR, MAXTEXT_VERSION) / "maxtext" / "configs"
    base = parse_config((folder / "base.yml").read_text(encoding="utf-8"))
    assert set(base) == base_keys()
    mine = {**DEFAULTS, **BASE}
    assert {key: base[key] for key in mine} == mine
    assert {key: base[key] for key in DEGREES} == {
        key: -1 if key in ("ici_fsdp_parallelism", "dcn_data_parallelism") else 1 for key in DEGREES
    }
    assert USED - {"base_config"} <= base_keys()
    for name, keys in shipped().items():
        theirs = parse_config((folder / "models" / f"{name}.yml").read_text(encoding="utf-8"))
        assert {key: theirs.get(key) for key in keys} == keys
    assert not {key for key in base if list_of(key) == "unknown"}
    assert not [start for start in HARMLESS if not any(key.startswith(start) for key in base)]
