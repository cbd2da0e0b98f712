"""Configurations of DeepSpeed and Accelerate are read to the fields that a person reads in them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planner.backends.accelerate.job import job_of_yaml
from planner.backends.deepspeed.config_keys import KEYS
from planner.backends.deepspeed.job import _list_of, job_of_config
from planner.errors import DocumentInvalid
from planner.model.builtin import builtin_model
from planner.model.megatron_args import LaunchJob, megatron_job

MODEL = builtin_model("llama-3.1-8b")


def deepspeed(config: dict[str, Any], devices: int | None = 8, *words: str) -> LaunchJob:
    return job_of_config(json.dumps(config, indent=1), "ds.json", MODEL, words, devices)


CASES: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({}, {"zero_stage": 0, "overlap_grad_reduce": False, "tp": 1, "optimizer_offload": False}),
    ({"zero_optimization": {"stage": 3}}, {"zero_stage": 3, "overlap_grad_reduce": True, "overlap_param_gather": True}),
    (
        {"zero_optimization": {"stage": 3, "overlap_comm": False}},
        {"overlap_grad_reduce": False, "overlap_param_gather": False},
    ),
    ({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}, {"optimizer_offload": True}),
    ({"tensor_parallel": {"autotp_size": 2}}, {"tp": 2, "sp": False}),
    ({"sequence_parallel_size": 4}, {"cp": 4, "cp_kind": "all_to_all"}),
    ({"pipeline": {"stages": 4, "activation_checkpoint_interval": 1}}, {"pp": 4, "recompute": "full"}),
    ({"expert_parallel": {"enabled": True, "autoep_size": 8}}, {"ep": 8, "etp": 1}),
)


@pytest.mark.parametrize(("config", "expected"), CASES, ids=[json.dumps(case[0]) for case in CASES])
def test_the_strategy_of_a_deepspeed_file(config: dict[str, Any], expected: dict[str, Any]) -> None:
    strategy = deepspeed(config).strategy
    assert {name: strategy.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4}, (2, 4, 64)),
        ({"train_micro_batch_size_per_gpu": 2}, (2, 1, 16)),
        ({"train_batch_size": 64, "gradient_accumulation_steps": 4}, (2, 4, 64)),
        ({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2}, (2, None, 64)),
        ({"train_micro_batch_size_per_gpu": 2, "tensor_parallel": {"autotp_size": 2}}, (2, 1, 8)),
    ],
)
def test_the_batch_of_a_deepspeed_file(config: dict[str, Any], expected: tuple[int | None, ...]) -> None:
    job = deepspeed(config)
    found = (job.strategy.get("micro_batch_size"), job.strategy.get("num_microbatches"))
    assert (*found, job.workload["global_batch_size"]) == expected


def test_values_that_the_trainer_fills_in_are_told_and_can_be_said() -> None:
    config = {"train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3}}
    job = deepspeed(config)
    assert [(place.line, place.what) for place in job.undecided] == [
        (4, "bf16.enabled is auto"), (2, "train_micro_batch_size_per_gpu is auto"),
    ]  # fmt: skip
    assert "micro_batch_size" not in job.strategy
    said = deepspeed(config, 8, "--train_micro_batch_size_per_gpu", "4", "--bf16.enabled", "true")
    assert (said.undecided, said.strategy["micro_batch_size"], said.workload["precision"]) == ((), 4, "bf16")


def test_every_key_of_deepspeed_is_in_a_list() -> None:
    for section, inside in KEYS.items():
        for key in (section,) if inside is None else (f"{section}.{name}" for name in inside):
            assert _list_of(key, "?") != "unknown", key


def test_what_becomes_of_each_key() -> None:
    zero = {"stage": 3, "offload_param": {"device": "cpu"}, "reduce_scatter": True, "sub_group_size": "auto"}
    lists = deepspeed(
        {
            "zero_optimization": zero,
            "foo": 1,
            "steps_per_print": 10,
            "amp": {"enabled": True},
            "bf16": {"enabled": True},
        }
    ).arguments
    assert lists.unknown == ("foo = 1",)
    assert lists.not_modelled == ("zero_optimization.offload_param.device = cpu", "amp.enabled = True")
    assert "zero_optimization.stage = 3" in lists.used
    assert {"steps_per_print = 10", "zero_optimization.sub_group_size = auto"} <= set(lists.no_influence)


@pytest.mark.parametrize(
    ("config", "what"),
    [
        ({"zero_optimization": {"stage": 4}}, "stage is 4"),
        ({"train_batch_size": 1.5}, "not a whole number"),
        ({"bf16": {"enabled": "yes"}}, "neither true nor false"),
        (
            {"train_batch_size": 60, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4},
            "is not 2 x 4",
        ),
        ({"architectures": ["LlamaForCausalLM"]}, "no configuration of DeepSpeed"),
    ],
)
def test_deepspeed_files_that_are_refused(config: dict[str, Any], what: str) -> None:
    with pytest.raises(DocumentInvalid, match=what):
        deepspeed(config)


def accelerate(more: str, kind: str = "FSDP", devices: int | None = None, *words: str) -> LaunchJob:
    text = f"compute_environment: LOCAL_MACHINE\ndistributed_type: {kind}\nmixed_precision: bf16\nnum_processes: 8\n"
    return job_of_yaml(f"{text}{more}", "fsdp.yaml", MODEL, words, devices)


FSDP = "fsdp_config:\n  fsdp_version: 2\n"
SIZES = "parallelism_config:\n  parallelism_config_"


@pytest.mark.parametrize(
    ("more", "kind", "expected"),
    [
        (FSDP, "FSDP", {"zero_stage": 3, "dp_shard": 8, "recompute": "none"}),
        (f"{FSDP}  fsdp_reshard_after_forward: false\n", "FSDP", {"zero_stage": 2}),
        (f"{FSDP}  fsdp_activation_checkpointing: true\n", "FSDP", {"recompute": "full"}),
        ("fsdp_config:\n  fsdp_sharding_strategy: SHARD_GRAD_OP\n", "FSDP", {"zero_stage": 2}),
        ("fsdp_config:\n  fsdp_sharding_strategy: 3\n", "FSDP", {"zero_stage": 0}),
        (
            "num_machines: 2\nfsdp_config:\n  fsdp_sharding_strategy: HYBRID_SHARD\n",
            "FSDP",
            {"zero_stage": 3, "dp_replicate": 2, "dp_shard": 4},
        ),
        (f"{FSDP}{SIZES}tp_size: 2\n", "FSDP", {"tp": 2, "sp": False, "dp_shard": 4}),
        (f"{FSDP}{SIZES}cp_size: 8\n", "FSDP", {"cp": 8, "cp_kind": "ring", "dp_shard": 1}),
        (f"deepspeed_config:\n  zero_stage: 3\n{SIZES}sp_size: 2\n", "DEEPSPEED", {"cp": 2, "cp_kind": "all_to_all"}),
        (
            "deepspeed_config:\n  zero_stage: 2\n  offload_optimizer_device: cpu\n  gradient_accumulation_steps: 4\n",
            "DEEPSPEED",
            {"zero_stage": 2, "optimizer_offload": True, "num_microbatches": 4},
        ),
        ("", "MULTI_GPU", {"zero_stage": 0, "dp_shard": 8}),
    ],
)
def test_the_strategy_of_an_accelerate_file(more: str, kind: str, expected: dict[str, Any]) -> None:
    job = accelerate(more, kind)
    assert {name: job.strategy.get(name) for name in expected} == expected
    workload = {"precision": "bf16"} | ({"gradient_dtype": "bf16"} if kind == "DEEPSPEED" else {})
    software = "deepspeed" if kind == "DEEPSPEED" else "accelerate"
    assert (job.num_devices, job.workload, job.software) == (8, workload, software)
    assert job.arguments.unknown == ()


def test_lists_and_settings_behind_an_accelerate_file() -> None:
    words = ("--fsdp_config.fsdp_offload_params", "true", "--num_processes=16", "--thing", "1")
    job = accelerate(f"{FSDP}  fsdp_state_dict_type: X\n{SIZES}cp_size: 2\n", "FSDP", None, *words)
    assert job.num_devices == 16
    assert job.arguments.unknown == ("thing = 1",)
    assert set(job.arguments.not_modelled) == {
        "parallelism_config_cp_comm_strategy = allgather (keys and values are sent round a ring)",
        "fsdp_config.fsdp_offload_params = True",
    }


@pytest.mark.parametrize(
    ("more", "kind", "what"),
    [
        ("", "MEGATRON_LM", "MEGATRON_LM is not read"),
        (f"{FSDP}{SIZES}tp_size: 3\n", "FSDP", "do not make 8 devices"),
        (f"{FSDP}{SIZES}dp_shard_size: 4\n", "FSDP", "do not make 8 devices"),
        ("fsdp_config:\n  fsdp_sharding_strategy: X\n", "FSDP", "X is not known"),
        ("deepspeed_config:\n  deepspeed_config_file: ds.json\n", "DEEPSPEED", "a file of its own"),
        ("a: [", "FSDP", "not YAML"),
    ],
)
def test_accelerate_files_that_are_refused(more: str, kind: str, what: str) -> None:
    with pytest.raises(DocumentInvalid, match=what):
        accelerate(more, kind)


def test_experts_of_megatron_deepspeed() -> None:
    shapes = "--num-layers 8 --hidden-size 64 --num-attention-heads 4 --seq-length 8 --max-position-embeddings 8"
    text = f"{shapes} --vocab-size 100 --zero-stage 1 --num-experts 16 --moe-expert-parallel-size 4"
    job = megatron_job(text, "x", "a")
    sparse = [job.model.layer_kinds[index].moe for index in job.model.layer_kind_sequence()]
    assert [moe is not None for moe in sparse] == [False, True] * 4
    assert (job.strategy["ep"], job.strategy["etp"], sparse[1].top_k if sparse[1] else None) == (4, 1, 1)
    assert not megatron_job(text.replace("--num-experts 16", "--num-experts 1"), "x", "a").model.has_experts
