"""Own words of Megatron-DeepSpeed, MindSpeed, DeepSpeed-Chat and Accelerate, and runs that our files cannot say."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import MeshwrightError
from planner.model.megatron_args import LaunchJob, megatron_job
from planner.operations.estimate import estimated
from planner.operations.launch_files import read_script, script_strategy
from planner.operations.question import asked_problem, cluster_of
from planner.operations.said_script import SaidScript
from planner.plan.plan import Plan
from planner.question.problem import Constraints, Objective, Workload
from profiles.validation import FindingsInvalid

MODEL = (
    "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32"
    " --vocab-size 128 --micro-batch-size 1 --global-batch-size 16 --bf16"
)
ENGINE = f"deepspeed --num_gpus 8 pretrain_gpt.py {MODEL} --deepspeed --deepspeed_config ds.json"


def job(script: str) -> LaunchJob:
    return megatron_job(script, "run", "run.sh")


def run_of(read: LaunchJob, cluster: str) -> Plan:
    workload = Workload.model_validate(read.workload)
    constraints = Constraints(backends=(read.software,))
    asked = asked_problem(read.model, cluster_of(cluster, read.num_devices), workload, constraints, Objective(), None)
    return estimated(asked, script_strategy(read), read.chunk_layers, launched=True).plan


def test_layers_that_nobody_deals_are_even_and_what_does_not_divide_is_told() -> None:
    even = job(f"torchrun --nproc-per-node 8 pretrain_gpt.py {MODEL} --pipeline-model-parallel-size 2")
    assert even.chunk_layers == (2, 2)
    odd = job(f"torchrun --nproc-per-node 8 pretrain_gpt.py {MODEL} --pipeline-model-parallel-size 8")
    assert odd.chunk_layers is None
    assert any("4 do not divide over 8 chunks, so Megatron-LM refuses" in line for line in odd.assumed)


def test_the_model_in_words_of_microsofts_fork() -> None:
    read = job(
        f"{ENGINE} --zero-stage 1 --num-key-value-heads 2 --normalization rmsnorm --swiglu --disable-bias-linear"
        " --use-rotary-position-embeddings --rotary-position-embeddings-theta 500000"
    )
    kind = read.model.layer_kinds[0]
    assert (kind.attention.num_kv_heads, kind.norm, read.model.rotary_base) == (2, "rms", 500000.0)
    assert (read.software, read.strategy["zero_stage"]) == ("megatron-deepspeed", 1)
    assert "--deepspeed" in read.arguments.used
    assert not read.arguments.unknown


def test_bigscience_gates_leave_the_width() -> None:
    mlp = job(f"{ENGINE} --zero-stage 1 --glu-activation geglu").model.layer_kinds[0].mlp
    assert mlp is not None
    assert (mlp.gated, mlp.intermediate_size) == (True, 256)


def test_experts_and_sequences_over_plain_deepspeed() -> None:
    read = job(
        f"{ENGINE} --no-pipeline-parallel --zero-stage 2 --cpu-optimizer --ds-sequence-parallel-size 2"
        " --tensor-model-parallel-size 2 --num-experts 8 --moe-expert-parallel-size 2"
        " --enable-expert-tensor-parallelism"
    )
    said = read.strategy
    assert read.software == "deepspeed"
    assert (said["cp"], said["cp_kind"], said["zero_stage"], said["optimizer_offload"]) == (2, "all_to_all", 2, True)
    assert (said["ep"], said["etp"], read.workload["gradient_dtype"]) == (2, 2, "bf16")


def test_the_file_that_a_script_writes_says_stage_and_offload() -> None:
    written = (
        'cat <<EOT > ds.json\n{"zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu"}},'
        ' "data_types": {"grad_accum_dtype": "fp32"}}\nEOT\n'
    )
    read = job(f"{written}{ENGINE.replace('--bf16', '--fp16')} --no-pipeline-parallel\n")
    assert (read.strategy["zero_stage"], read.strategy["optimizer_offload"]) == (1, True)
    assert "gradient_dtype" not in read.workload


@pytest.mark.parametrize("flag", ["--kd", "--mlp-type residual", "--glu-activation liglu"])
def test_other_models_of_the_forks_are_refused_by_name(flag: str) -> None:
    with pytest.raises(FindingsInvalid, match=flag.partition(" ")[0]):
        job(f"{ENGINE} {flag}")


@pytest.mark.parametrize(
    ("words", "experts"),
    [
        ("--first-k-dense-replace -1 --moe-layer-freq -1", [True] * 4),
        ("--first-k-dense-replace 2 --moe-layer-freq -1", [False, False, True, True]),
    ],
)
def test_minus_one_of_mindspeed_leaves_no_layer_dense(words: str, experts: list[bool]) -> None:
    read = job(f"export HCCL_CONNECT_TIMEOUT=1\ntorchrun pretrain_gpt.py {MODEL} --num-experts 4 {words}")
    kinds = read.model.layer_kinds
    assert [kinds[kind].moe is not None for kind in read.model.layer_kind_sequence()] == experts


CHAT = (
    "OUT=$1\ndeepspeed main.py --model_name_or_path meta-llama/Llama-2-7b-hf --per_device_train_batch_size 4"
    " --max_seq_len 512 --gradient_accumulation_steps 2 --gradient_checkpointing --zero_stage $2 --deepspeed"
    " --offload --num_warmup_steps 0 --output_dir $OUT\n"
)


def test_deepspeed_chat_builds_its_own_file(tmp_path: Path) -> None:
    read = read_script(SaidScript("chat.sh", sent=CHAT, arguments=("/out", "3"), devices=8))
    assert (read.model.name, read.software, read.workload["precision"]) == ("llama-2-7b", "deepspeed", "fp16")
    assert (read.workload["global_batch_size"], read.workload["sequence_length"]) == (64, 512)
    said = read.strategy
    assert (said["zero_stage"], said["recompute"], said["optimizer_offload"]) == (3, "full", True)
    assert not read.arguments.unknown
    with pytest.raises(MeshwrightError, match="zero-stage"):
        read_script(SaidScript("chat.sh", sent=CHAT, devices=8))


def test_deepspeed_chat_trains_adapters_alone() -> None:
    text = CHAT.replace("--offload", "--lora_dim 128 --lora_module_name layers. --only_optimize_lora")
    training = read_script(SaidScript("c.sh", sent=text, arguments=("/o", "3"), devices=8)).workload["training"]
    assert (training["kind"], training["rank"], len(training["targets"])) == ("lora", 128, 7)
    both = read_script(
        SaidScript("c.sh", sent=text.replace("--only_optimize_lora", ""), arguments=("/o", "3"), devices=8)
    )
    assert any(line.startswith("--lora-dim 128") for line in both.arguments.not_modelled)


def test_a_trainer_with_arguments_of_its_own_is_named() -> None:
    text = "deepspeed main.py --actor_model_name_or_path facebook/opt-1.3b --actor_zero_stage 3\n"
    with pytest.raises(MeshwrightError, match=r"main\.py takes its model from --actor-model-name-or-path"):
        read_script(SaidScript("rlhf.sh", sent=text))


def test_ulysses_through_accelerate_is_a_run_of_deepspeed(tmp_path: Path) -> None:
    config = (
        "distributed_type: DEEPSPEED\nmixed_precision: bf16\nnum_processes: 4\ndeepspeed_config: {zero_stage: 3}\n"
        "parallelism_config: {parallelism_config_sp_size: 2, parallelism_config_sp_backend: deepspeed}\n"
    )
    read = read_script(SaidScript("acc.yaml", sent=config, model="llama-3.2-1b"))
    assert (read.software, read.strategy["cp_kind"], read.workload["gradient_dtype"]) == (
        *("deepspeed", "all_to_all", "bf16"),
    )


def test_a_run_whose_model_the_files_cannot_say_is_estimated_and_told() -> None:
    script = (
        f"export HCCL_CONNECT_TIMEOUT=1\ntorchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} --num-experts 4"
        " --expert-model-parallel-size 4 --moe-router-topk 2 --use-flash-attn --position-embedding-type rope"
        " --moe-token-dispatcher-type alltoall"
    )
    plan = run_of(job(script), "ascend-910b-8")
    told = [line for line in plan.assumptions if line.startswith("predicted as the run builds its model")]
    assert [line.partition("since ")[2].partition(":")[0] for line in told] == ["mindspeed.M12", "mindspeed.M17"]


def test_dualpipev_may_leave_the_head_alone() -> None:
    script = (
        f"export HCCL_CONNECT_TIMEOUT=1\ntorchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} --noop-layers 3"
        " --pipeline-model-parallel-size 2 --schedules-method dualpipev --untie-embeddings-and-output-weights"
        " --use-distributed-optimizer --position-embedding-type rope"
    )
    read = job(script)
    assert read.chunk_layers == (1, 1, 1, 0)
    plan = run_of(read, "ascend-910b-8")
    assert sorted(chunk.num_layers for stage in plan.stages for chunk in stage.chunks) == [0, 1, 1, 1]
