"""Idioms of public launch scripts that were once read wrong, or asked for in a way that led nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner.errors import MeshwrightError
from planner.operations.launch_files import read_script
from planner.operations.said_script import SaidScript

DS = (
    '{"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",'
    ' "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2}}'
)
TRAINER = (
    "deepspeed --num_gpus 8 sft.py --model_name_or_path meta-llama/Llama-3.1-8B --deepspeed ds.json --bf16 True"
    " --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --max_seq_length 1024"
)
FACTORY = """
model_name_or_path: meta-llama/Llama-3.1-8B
finetuning_type: lora
lora_target: all
deepspeed: ds.json
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
cutoff_len: 2048
bf16: true
"""
BRIDGE = """
set -e
cmd=$(cat <<- EOM
  cd /opt/Megatron-Bridge ;
  numactl --cpunodebind=\\$((LOCAL_RANK/2)) nsys profile -t nvtx -o "/logs/rank-\\$RANK" nice -10 \\
  python scripts/performance/my_setup_experiment.py --gpu gb200 --model_family_name qwen \\
    --model_recipe_name qwen3_235b_a22b --num_gpus 64 --compute_dtype fp8_mx --pipeline_model_parallel_size 8 \\
    --virtual_pipeline_model_parallel_size 3 --expert_model_parallel_size 8
EOM
)
echo "$cmd" > worker.sh
torchrun --nproc-per-node=4 --nnodes=16 --no-python bash worker.sh
"""
MAXTEXT = """
python3 -m maxtext.trainers.pre_train.train ${CONFIGS:-$PWD/src/maxtext/configs}/models/llama3.1_405b.yml run_name=x \\
    model_name=llama3.1-405b per_device_batch_size=1 max_target_length=8192 remat_policy=full \\
    dcn_fsdp_parallelism=32 ici_fsdp_parallelism=8
"""


def read(tmp_path: Path, text: str, **said: Any) -> Any:
    (tmp_path / "run.sh").write_text(text, encoding="utf-8")
    (tmp_path / "ds.json").write_text(DS, encoding="utf-8")
    (tmp_path / "f.yaml").write_text(FACTORY, encoding="utf-8")
    return read_script(SaidScript(str(tmp_path / "run.sh"), **said))


@pytest.mark.parametrize(
    ("flags", "training"),
    [
        ("--use_peft --lora_r 32 --lora_target_modules q_proj,k_proj o_proj", {"rank": 32, "targets": ["q", "k", "o"]}),
        ("--use_peft", {"rank": 16, "targets": ["q", "v"]}),
        ("--use_peft_lora True --lora_r 8 --lora_target_modules qkv_proj,o_proj --load_in_4bit",
         {"kind": "qlora", "rank": 8, "targets": ["q", "k", "v", "o"]}),
        ("--use_peft --lora_target_modules all-linear --use_dora --lora_r 4", {"rank": 4, "dora": True}),
    ],
)  # fmt: skip
def test_adapters_of_a_trainer(tmp_path: Path, flags: str, training: dict[str, Any]) -> None:
    job = read(tmp_path, f"{TRAINER} {flags} --gradient_checkpointing True\n")
    held = job.workload["training"]
    assert {name: held.get(name) for name in training} == training
    assert (job.strategy["recompute"], job.workload["global_batch_size"]) == ("full", 64)
    assert not [line for line in job.assumed if line.startswith("recompute")]
    assert not [row for row in (*job.arguments.unknown, *job.arguments.not_modelled) if "lora" in row]


@pytest.mark.parametrize("flags", ["--use_lora", "--lora_r 16", "--use_peft --lora_target_modules experts.w9"])
def test_adapters_that_nothing_decides_are_told_by_name(tmp_path: Path, flags: str) -> None:
    job = read(tmp_path, f"{TRAINER} {flags}\n")
    assert "training" not in job.workload
    told = [row for row in job.arguments.not_modelled if "no adapters are predicted" in row]
    assert flags.split(maxsplit=1)[0].replace("_", "-") in {row.split()[0] for row in told}


def test_yaml_of_llama_factory(tmp_path: Path) -> None:
    job = read(tmp_path, "FORCE_TORCHRUN=1 llamafactory-cli train f.yaml per_device_train_batch_size=2\n", devices=8)
    assert (job.workload["training"]["rank"], len(job.workload["training"]["targets"])) == (8, 7)
    assert (job.workload["global_batch_size"], job.workload["sequence_length"]) == (128, 2048)
    with pytest.raises(MeshwrightError, match=r"gone\.yaml"):
        read(tmp_path, "torchrun --nproc-per-node 8 train.py gone.yaml\n")


def test_bridge_launcher_in_a_heredoc_behind_profilers(tmp_path: Path) -> None:
    job = read(tmp_path, BRIDGE)
    assert (job.software, job.num_devices, job.workload["fp8_recipe"]) == ("megatron-bridge", 64, "mxfp8")
    assert {name: job.strategy[name] for name in ("pp", "vpp", "ep")} == {"pp": 8, "vpp": 3, "ep": 8}


def test_maxtext_models_of_the_release_and_slices(tmp_path: Path) -> None:
    job = read(tmp_path, MAXTEXT, devices=256)
    assert (job.model.num_layers, job.strategy["dp_shard"], job.workload["global_batch_size"]) == (126, 256, 256)
    assert "num_slices=32: what the dcn degrees make" in job.assumed


def test_commands_of_other_scripts_are_not_mixed(tmp_path: Path) -> None:
    text = "TP=1 bash ./go.sh --recompute-granularity full\nTP=2 bash ./go.sh --recompute-modules moe_act\n"
    with pytest.raises(MeshwrightError, match=r"no training program that is known: line 1: bash \./go\.sh"):
        read(tmp_path, text)


def test_how_to_say_an_open_value(tmp_path: Path) -> None:
    text = "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers $1 --seq-length $LENGTH --hidden-size 64\n"
    with pytest.raises(MeshwrightError) as error:
        read(tmp_path, f"while [ $MORE ]; do shift; LENGTH=$1; done\n{text}")
    assert "-- ARGS" in str(error.value) or "--set" in str(error.value)


def test_main_gradients_of_megatron_fsdp(tmp_path: Path) -> None:
    flags = (
        "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 --bf16"
    )
    more = "--use-megatron-fsdp --megatron-fsdp-main-grads-dtype bf16 --vocab-size 128 --micro-batch-size 1"
    job = read(tmp_path, f"torchrun --nproc-per-node 8 pretrain_gpt.py {flags} {more}\n")
    assert job.workload["gradient_dtype"] == "bf16"
    assert not job.arguments.not_modelled


TRL = """
for name in $NAMES; do WORLD=$((WORLD - 8)); done
CMD="scripts/sft.py --config f.yaml"
LAUNCHER="LEVEL=info accelerate launch --config_file acc.yaml --num_processes $WORLD"
srun --wait=60 --kill-on-bad-exit=1 --nodes=2 bash -c "$LAUNCHER $CMD" 2>&1
"""


def test_processes_that_nothing_decides_are_asked_for(tmp_path: Path) -> None:
    config = "distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 8\nfsdp_config: {fsdp_version: 2}\n"
    (tmp_path / "acc.yaml").write_text(config, encoding="utf-8")
    with pytest.raises(MeshwrightError, match="--num_processes is"):
        read(tmp_path, TRL)
    job = read(tmp_path, TRL, devices=16)
    assert (job.num_devices, job.software, job.workload["training"]["kind"]) == (16, "accelerate", "lora")
