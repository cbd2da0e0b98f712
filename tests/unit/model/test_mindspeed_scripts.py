"""Scripts of MindSpeed and MindSpeed-LLM are read to the fields that a person reads in them."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.megatron_args import LaunchJob, megatron_job
from planner.operations.launch_files import script_backend, script_strategy
from profiles.validation import FindingsInvalid

SHAPES = "--hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 --vocab-size 256"
WORK = "--micro-batch-size 1 --global-batch-size 64 --bf16 --untie-embeddings-and-output-weights"
SCRIPT = """#!/bin/bash
export HCCL_CONNECT_TIMEOUT=1800
NPUS_PER_NODE=8
NNODES={nodes}
TP={tp}
DISTRIBUTED_ARGS="
    --nproc_per_node $NPUS_PER_NODE \\
    --nnodes $NNODES
"
GPT_ARGS="
    --num-layers {layers} \\
    --tensor-model-parallel-size ${{TP}} \\
    {shapes} {work} \\
    {more}
"
torchrun $DISTRIBUTED_ARGS pretrain_gpt.py $GPT_ARGS | tee logs/train.log
"""


def read(more: str, layers: int = 16, nodes: int = 1, tp: int = 1) -> LaunchJob:
    text = SCRIPT.format(more=more, layers=layers, nodes=nodes, tp=tp, shapes=SHAPES, work=WORK)
    return megatron_job(text, "x", "train.sh")


EXPERTS = "--num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 16"
STRATEGIES: tuple[tuple[str, int, int, dict[str, Any]], ...] = (
    ("--sequence-parallel", 1, 2, {"tp": 2, "sp": True, "zero_stage": 0}),
    ("--swap-optimizer --use-distributed-optimizer", 1, 1, {"optimizer_offload": True, "zero_stage": 1}),
    ("--swap-attention", 1, 1, {"activation_offload": True}),
    ("--use-ascend-mc2 --sequence-parallel", 1, 8, {"overlap_tp": True}),
    ("--use-mc2 --sequence-parallel", 1, 8, {"overlap_tp": True}),
    ("--context-parallel-size 2 --context-parallel-algo ulysses_cp_algo", 1, 1, {"cp": 2, "cp_kind": "all_to_all"}),
    ("--context-parallel-size 2 --context-parallel-algo megatron_cp_algo", 1, 1, {"cp": 2, "cp_kind": "ring"}),
    ("--context-parallel-size 2", 1, 1, {"cp": 2, "cp_kind": "ring"}),
    ("--recompute-norm", 1, 1, {"recompute": "selective", "recompute_modules": ("norm",)}),
    (
        "--recompute-activation-function --recompute-norm",
        1,
        1,
        {"recompute": "selective", "recompute_modules": ("norm", "activation")},
    ),
    ("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1", 1, 1, {"recompute": "full"}),
    (f"{EXPERTS} --expert-model-parallel-size 4 --moe-fb-overlap", 1, 1, {"ep": 4, "overlap_ep": True}),
    (f"{EXPERTS} --expert-model-parallel-size 4 --moe-tp-extend-ep", 1, 2, {"tp": 2, "ep": 8, "etp": 1}),
    (
        "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2",
        1,
        1,
        {"pp": 4, "vpp": 2, "schedule": "interleaved"},
    ),
    ("--pipeline-model-parallel-size 4 --schedules-method dualpipev", 1, 1, {"vpp": 2, "schedule": "dualpipev"}),
)


@pytest.mark.parametrize(("more", "nodes", "tp", "expected"), STRATEGIES, ids=[each[0] for each in STRATEGIES])
def test_the_strategy_of_a_script(more: str, nodes: int, tp: int, expected: dict[str, Any]) -> None:
    job = read(more, nodes=nodes, tp=tp)
    assert script_backend(job) == "mindspeed"
    assert job.num_devices == 8 * nodes
    strategy = script_strategy(job)
    assert {name: strategy.get(name) for name in expected} == expected
    assert job.arguments.unknown == ()


def test_layers_that_do_nothing_are_not_of_the_model() -> None:
    more = f"--pipeline-model-parallel-size 4 --noop-layers 0,15 {EXPERTS} --first-k-dense-replace 3 --moe-layer-freq 1"
    job = read(more)
    assert job.model.num_layers == 14
    assert job.chunk_layers == (3, 4, 4, 3)
    assert [run.count for run in job.model.layer_runs] == [2, 12]
    assert job.model.layer_kinds[0].moe is None


def test_layers_that_do_nothing_on_dualpipev() -> None:
    job = read("--pipeline-model-parallel-size 4 --schedules-method dualpipev --noop-layers 14,15")
    assert job.chunk_layers == (2, 2, 2, 2, 2, 2, 2, 0)


def test_layers_of_every_stage() -> None:
    assert read("--pipeline-model-parallel-size 4 --num-layer-list 5,4,4,3").chunk_layers == (5, 4, 4, 3)


def test_dense_layers_before_sparse_ones_of_a_period() -> None:
    job = read(f"{EXPERTS} --first-k-dense-replace 3 --moe-layer-freq 2", layers=8)
    kinds = [kind for run in job.model.layer_runs for kind in [job.model.layer_kinds[run.kind]] * run.count]
    assert [kind.moe is not None for kind in kinds] == [False, False, False, False, True, False, True, False]


def test_shared_experts_and_the_older_names() -> None:
    job = read(
        "--num-experts 8 --moe-router-topk 2 --moe-intermediate-size 16 --n-shared-experts 3 --n-group 4"
        " --topk-group 2 --multi-head-latent-attention --qk-rope-head-dim 8 --qk-nope-head-dim 24 --kv-lora-rank 16"
        " --v-head-dim 24"
    )
    kind = job.model.layer_kinds[-1]
    assert kind.moe is not None
    assert (kind.moe.shared_intermediate_size, kind.moe.num_groups, kind.moe.top_k_groups) == (48, 4, 2)
    assert (kind.attention.kind, kind.attention.head_dim, kind.attention.qk_rope_head_dim) == ("mla", 32, 8)


@pytest.mark.parametrize("flag", ["--geglu", "--gelu-tanh", "--swiglu"])
def test_gated_layers(flag: str) -> None:
    mlp = read(flag).model.layer_kinds[0].mlp
    assert mlp is not None
    assert mlp.gated


def test_the_lists_of_a_script() -> None:
    job = read(
        "--swap-attention --use-fused-rmsnorm --transformer-impl local --no-masked-softmax-fusion --use-ascend-coc"
        " --reuse-fp32-param --context-parallel-size 2 --context-parallel-algo hybrid_cp_algo --some-thing 3"
    )
    lists = job.arguments
    assert "--swap-attention" in lists.used
    assert {"--use-fused-rmsnorm", "--transformer-impl local", "--no-masked-softmax-fusion"} <= set(lists.no_influence)
    assert set(lists.not_modelled) == {
        "--use-ascend-coc",
        "--reuse-fp32-param",
        "--context-parallel-algo hybrid_cp_algo (taken as a ring)",
    }
    assert lists.unknown == ("--some-thing 3",)


@pytest.mark.parametrize(
    ("more", "pointer"),
    [
        ("--full-attention-interval 4", "/--full-attention-interval"),
        ("--lora-r 16", "/--lora-r"),
        ("--noop-layers 16", "/--noop-layers"),
        ("--noop-layers a,b", "/--noop-layers"),
        ("--pipeline-model-parallel-size 4 --num-layer-list 5,4,4", "/--num-layer-list"),
        ("--pipeline-model-parallel-size 3 --schedules-method dualpipev", "/--num-layers"),
        ("--schedules-method other", "/--schedules-method"),
    ],
)
def test_what_is_refused_by_name(more: str, pointer: str) -> None:
    with pytest.raises(FindingsInvalid) as caught:
        read(more)
    assert pointer in {finding.pointer for finding in caught.value.findings}


def test_a_script_of_megatron_lm_stays_one() -> None:
    text = f"torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 {SHAPES} {WORK} # on HCCL_X"
    assert script_backend(megatron_job(text, "x", "train.sh")) == "megatron"
    assert script_backend(megatron_job(f"{text}\n# ASCEND_RT none", "x", "train.sh")) == "megatron"
