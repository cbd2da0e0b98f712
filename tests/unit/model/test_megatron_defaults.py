"""What Megatron-LM makes of what a script says and of what it leaves out."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.megatron_args import LaunchJob, megatron_job
from planner.model.megatron_strategy import with_what_is_off
from planner.model.shell.launches import Given
from profiles.errors import DocumentInvalid
from profiles.validation import FindingsInvalid

MODEL = "--num-layers 8 --hidden-size 96 --num-attention-heads 4 --seq-length 8 --vocab-size 100 "
ROPE = MODEL + "--position-embedding-type rope "
MOE = ROPE + "--num-experts 8 "


def read(more: str, model: str = ROPE, **variables: str) -> LaunchJob:
    return megatron_job(model + more, "x", "args", Given(variables))


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("--sequence-parallel", {"tp": None, "sp": None}),
        ("--sequence-parallel --tensor-model-parallel-size 1", {"tp": 1, "sp": None}),
        ("--sequence-parallel --tensor-model-parallel-size 2", {"tp": 2, "sp": True}),
        ("--tensor-model-parallel-size 2", {"etp": None}),
        ("--use-distributed-optimizer", {"zero_stage": 1, "dp_replicate": None}),
        ("--use-distributed-optimizer --num-distributed-optimizer-instances 4", {"zero_stage": 1, "dp_replicate": 4}),
        ("--num-distributed-optimizer-instances 4", {"zero_stage": 0, "dp_replicate": None}),
        ("--zero-stage 2", {"zero_stage": 2}),
        ("--zero-stage=0 --use-distributed-optimizer", {"zero_stage": 0}),
        ("--zero-stage 0 --bf16", {"zero_stage": 1}),
        ("--use-megatron-fsdp", {"zero_stage": 3}),
        ("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads", {"zero_stage": 2}),
        ("--use-megatron-fsdp --data-parallel-sharding-strategy no_shard", {"zero_stage": 0}),
        ("--use-torch-fsdp2", {"zero_stage": 3}),
        ("--overlap-grad-reduce", {"overlap_grad_reduce": True, "overlap_param_gather": None}),
        ("--context-parallel-size 2", {"cp_kind": "ring"}),
        ("--context-parallel-size 2 --cp-comm-type a2a", {"cp_kind": "all_to_all"}),
        ("--context-parallel-size 2 --cp-comm-type a2a+p2p", {"cp_kind": "ring"}),
        ("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1", {"recompute": "full"}),
        (
            "--recompute-granularity full --recompute-method block --recompute-num-layers 3",
            {"recompute": "full-first-3"},
        ),
        ("--tp-comm-overlap", {"overlap_tp": True}),
        ("--fine-grained-activation-offloading", {"activation_offload": True}),
        ("--optimizer-cpu-offload", {"optimizer_offload": True}),
        ("--use-tp-pp-dp-mapping", {"axis_order": "tp-cp-ep-pp-dp"}),
        (
            "--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2",
            {"vpp": 2, "schedule": "interleaved", "microbatch_group_size": 2},
        ),
        (
            "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1"
            " --microbatch-group-size-per-virtual-pipeline-stage 4",
            {"vpp": 4, "microbatch_group_size": 4},
        ),
    ],
)
def test_fields_of_the_strategy(more: str, expected: dict[str, Any]) -> None:
    strategy = read(more).strategy
    assert {name: strategy.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("--tensor-model-parallel-size 4", {"etp": 4}),
        ("--tensor-model-parallel-size 4 --expert-tensor-parallel-size 1", {"etp": 1}),
        ("--expert-model-parallel-size 8", {"ep": 8, "etp": None}),
        ("--overlap-moe-expert-parallel-comm", {"overlap_ep": True}),
        ("--optimizer muon", {"zero_stage": 0}),
        ("--optimizer dist_muon", {"zero_stage": 1}),
        ("--moe-token-dispatcher-type alltoall", {"dispatcher": "alltoall"}),
        ("--moe-token-dispatcher-type flex", {"dispatcher": "deepep"}),
        ("--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep", {"dispatcher": "hybridep"}),
        (
            "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend ncclep --moe-enable-deepep",
            {"dispatcher": "deepep"},
        ),
        ("--expert-model-parallel-size 8", {"dispatcher": "allgather"}),
        ("", {"dispatcher": None}),
        (
            "--recompute-activations --moe-layer-recompute",
            {"recompute": "selective", "recompute_modules": ("attention_core", "moe")},
        ),
        (
            "--recompute-granularity selective --recompute-modules moe_act layernorm mla_up_proj",
            {"recompute_modules": ("activation", "norm", "mla_up_proj")},
        ),
    ],
)
def test_fields_of_the_strategy_of_experts(more: str, expected: dict[str, Any]) -> None:
    job = read(more, MOE)
    assert {name: job.strategy.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("--bf16", {"precision": "bf16"}),
        ("--fp16", {"precision": "fp16"}),
        ("--bf16 --fp8-format hybrid", {"precision": "fp8"}),
        (
            "--bf16 --fp8-format e4m3 --fp8-recipe blockwise",
            {"precision": "fp8", "fp8_recipe": "blockwise"},
        ),
        ("--bf16 --fp8-format hybrid", {"fp8_recipe": None}),
        ("--bf16 --fp8-recipe mxfp8", {"precision": "bf16", "fp8_recipe": None}),
        ("--bf16 --grad-reduce-in-bf16", {"gradient_dtype": "bf16"}),
        ("--bf16", {"gradient_dtype": None, "optimizer": None}),
        (
            "--use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16",
            {"optimizer": "adam_bf16_states"},
        ),
        (
            "--use-precision-aware-optimizer --exp-avg-dtype bf16",
            {
                "optimizer": "adam_precision_aware",
                "optimizer_states": {"first": "bf16", "second": "fp32", "master": "fp32"},
            },
        ),
        (
            "--use-precision-aware-optimizer",
            {"optimizer": "adam_precision_aware", "optimizer_states": None},
        ),
        (
            "--use-precision-aware-optimizer --optimizer-cpu-offload",
            {"optimizer": None, "optimizer_states": None},
        ),
        ("--exp-avg-dtype bf16 --exp-avg-sq-dtype bf16", {"optimizer": None}),
        ("--optimizer sgd", {"optimizer": "sgd"}),
    ],
)  # fmt: skip
def test_parts_of_the_workload(more: str, expected: dict[str, Any]) -> None:
    workload = read(more).workload
    assert {name: workload.get(name) for name in expected} == expected


def test_a_switch_behind_a_variable() -> None:
    script = 'FP8=${FP8:-hybrid}\nA=()\n[ -n "$FP8" ] && A+=(--fp8-format $FP8)\ntorchrun train_gpt.py ${A[@]} ' + ROPE
    assert megatron_job(script + "--bf16", "x", "a").workload["precision"] == "fp8"
    assert megatron_job(script + "--bf16", "x", "a", Given({"FP8": ""})).workload["precision"] == "fp8"
    off = megatron_job(script.replace("${FP8:-hybrid}", "${FP8-hybrid}") + "--bf16", "x", "a", Given({"FP8": ""}))
    assert off.workload["precision"] == "bf16"


def test_alibi_has_no_table_of_positions() -> None:
    alibi = read("--position-embedding-type alibi", MODEL).model
    assert (alibi.position, alibi.learned_positions) == ("alibi", 0)


@pytest.mark.parametrize(
    ("more", "chunks"),
    [
        ('--pipeline-model-parallel-layout "Et*3|t*5L"', (3, 5)),
        ("--pipeline-model-parallel-layout 'Ett|ttt|tt|tL'", (2, 3, 2, 1)),
        ("--decoder-first-pipeline-num-layers 3", (3, 5)),
        ("--decoder-last-pipeline-num-layers 2", (6, 2)),
        ("", (4, 4)),
    ],
)
def test_the_layers_of_the_stages(more: str, chunks: tuple[int, ...] | None) -> None:
    assert read(f"--pipeline-model-parallel-size 2 {more}").chunk_layers == chunks


def test_an_arguments_file_is_split_at_blanks_as_its_reader_does() -> None:
    text = "# Model\n" + ROPE.replace(" --", "\n--") + "\n--pipeline-model-parallel-size 2\n"
    assert megatron_job(text + "--pipeline-model-parallel-layout Et*3|t*5L\n", "x", "a").chunk_layers == (3, 5)
    with pytest.raises(FindingsInvalid, match="has 1 chunks"):
        megatron_job(
            f"torchrun pretrain_gpt.py {text[8:]}".replace("\n", " ") + "--pipeline-model-parallel-layout Et*3|t*5L",
            "x",
            "a",
        )  # a shell sees a pipe


def test_without_a_batch_a_step_is_one_micro_batch_a_replica() -> None:
    launch = (
        "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --micro-batch-size 2 --tensor-model-parallel-size 4 "
    )
    job = megatron_job(launch + ROPE, "x", "a")
    assert (job.num_devices, job.workload["global_batch_size"]) == (16, 8)
    assert "global batch 8: one micro-batch a replica" in job.assumed
    said = megatron_job(launch + ROPE + "--global-batch-size 64", "x", "a")
    assert said.workload["global_batch_size"] == 64
    assert not any("global batch" in line for line in said.assumed)


def test_what_is_derived_is_told() -> None:
    job = read("--tensor-model-parallel-size 2 --bf16", MOE)
    assert job.assumed == ("etp=2: experts are split as tp says",)
    assert any(line.startswith("precision:") for line in read("").assumed)
    assert not any(line.startswith("precision:") for line in read("--fp16").assumed)


def test_switches_that_the_script_does_not_ask_for_are_off() -> None:
    off = with_what_is_off(read("--use-distributed-optimizer --overlap-grad-reduce").strategy)
    assert (off["sp"], off["overlap_grad_reduce"], off["overlap_param_gather"]) == (False, True, False)


def test_variables_that_nobody_set_are_told() -> None:
    script = 'if [ -n "$USE_FP8" ]; then X=--fp8-format; fi\nTP=${TP:-2}\n'
    script += f"torchrun pretrain_gpt.py $X --tensor-model-parallel-size $TP {ROPE}"
    job = megatron_job(script, "x", "a")
    assert dict(job.taken_as_unset) == {"USE_FP8": 1, "TP": 2}
    assert job.strategy["tp"] == 2
    told = megatron_job(script, "x", "a", Given({"TP": "4", "USE_FP8": ""}))
    assert told.taken_as_unset == ()
    assert told.strategy["tp"] == 4


def test_the_lists_of_a_script() -> None:
    script = "deepspeed --hostfile h pretrain_gpt.py --bf16 --lr 1e-4 --use-nccl-ub --no-such-flag 3 "
    script += "--moe-router-dtype fp32 "
    lists = megatron_job(script + ROPE, "x", "a").arguments
    assert "--bf16" in lists.used
    assert "--num-layers 8" in lists.used
    assert lists.no_influence == ("--lr 1e-4", "--moe-router-dtype fp32")
    assert lists.not_modelled == ("--use-nccl-ub",)
    assert lists.unknown == ("--no-such-flag 3",)


def test_a_program_of_another_model_is_told() -> None:
    job = megatron_job("torchrun --nproc_per_node 8 pretrain_bert.py --bf16 " + ROPE, "x", "a")
    assert job.arguments.not_modelled == ("pretrain_bert.py (taken as pretrain_gpt.py)",)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ("--context-parallel-size 2 --cp-comm-type a2a+p2p", "--cp-comm-type a2a+p2p (taken as a ring)"),
        ("--optimizer soap", "--optimizer soap (taken as adam)"),
        ("--fp8-format e4m3 --fp8-recipe custom", "--fp8-recipe custom (taken as one scale a tensor)"),
        (
            "--recompute-granularity selective --recompute-modules core_attn shared_experts",
            "--recompute-modules shared_experts",
        ),
        ("--hidden-dropout 0.1", "--hidden-dropout 0.1"),
        ("--cuda-graph-impl local", "--cuda-graph-impl local"),
        (
            "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend ncclep",
            "--moe-flex-dispatcher-backend ncclep (taken as deepep)",
        ),
    ],
)
def test_values_that_are_not_modelled_are_told(more: str, line: str) -> None:
    assert line in read(more, MOE).arguments.not_modelled


@pytest.mark.parametrize(
    "more",
    [
        "--hidden-dropout 0.0",
        "--cuda-graph-impl none",
        "--attention-backend flash",
    ],
)
def test_values_that_the_prediction_assumes_are_not(more: str) -> None:
    lists = read(more, MOE).arguments
    assert lists.not_modelled == ()
    assert more in lists.no_influence


@pytest.mark.parametrize(
    "more",
    [
        "--hybrid-layer-pattern M-M*",
        "--heterogeneous-layers-config-path x.json",
        "--experimental-attention-variant dsa",
    ],
)
def test_another_model_than_the_arguments_describe_is_refused(more: str) -> None:
    with pytest.raises(FindingsInvalid, match="no description of") as raised:
        read(more)
    assert raised.value.findings[0].pointer == f"/{more.partition(' ')[0]}"


def test_a_script_that_ends_early_says_where_and_what_to_say() -> None:
    script = "if [ $# -lt 2 ]; then echo usage; exit 1; fi\ntorchrun pretrain_gpt.py --num-layers $1\n"
    with pytest.raises(DocumentInvalid, match="line 1") as raised:
        megatron_job(script, "x", "a", Given({}, ()))
    assert "--script-args" in str(raised.value.hint)
