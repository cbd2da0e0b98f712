"""Scripts that start a trainer with a configuration file are followed into the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner.errors import DocumentInvalid
from planner.operations.launch_files import read_script
from planner.operations.said_script import SaidScript

TOML = (
    "[model]\nname = 'llama3'\nflavor = '8B'\n[training]\nlocal_batch_size = 2\nseq_len = 4096\n"
    "[parallelism]\ntensor_parallel_degree = 2\n"
)
AUTO = (
    '{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "bf16": {"enabled": "auto"}, '
    '"zero_optimization": {"stage": 3}}'
)
FSDP = (
    "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 8\n"
    "fsdp_config:\n  fsdp_version: 2\n"
)
MODULE = """
def llama3_8b() -> Trainer.Config:
    return Trainer.Config(
        model_spec=model_registry("8B"),
        training=TrainingConfig(local_batch_size=1, seq_len=8192),
        activation_checkpoint=SelectiveAC.Config(),
    )


def mine() -> Trainer.Config:
    config = llama3_8b()
    config.parallelism = ParallelismConfig(tensor_parallel_degree=2)
    return config
"""
MAXTEXT = "base_config: base.yml\nmodel_name: llama3.1-8b\nper_device_batch_size: 2\nmax_target_length: 2048\n"
CASES: dict[str, tuple[str, dict[str, str], int | None, str, dict[str, Any]]] = {
    "torchtitan": (
        'CONFIG_FILE=${CONFIG_FILE:-"./confs/l.toml"}\nNGPU=${NGPU:-8}\n'
        "torchrun --nproc_per_node=${NGPU} --local-ranks-filter 0 -m torchtitan.train "
        '--job.config_file ${CONFIG_FILE} --training.seq_len 2048 --compile.enable "$@"\n',
        {"confs/l.toml": TOML}, None, "torchtitan==0.2.2",
        {"tp": 2, "dp_shard": 4, "micro_batch_size": 2, "sequence_length": 2048, "global_batch_size": 8},
    ),
    "torchtitan's config module": (
        'NGPU=${NGPU:-"8"}\nMODULE=${MODULE:-"llama3"}\nCONFIG=${CONFIG:-"mine"}\n'
        "torchrun --nproc_per_node=${NGPU} --rdzv_backend c10d --role rank --tee 3 -m torchtitan.train "
        '--module ${MODULE} --config ${CONFIG} --training.seq_len 2048 "$@"\n',
        {"torchtitan/models/llama3/config_registry.py": MODULE}, None, "torchtitan",
        {"tp": 2, "dp_shard": 4, "micro_batch_size": 1, "sequence_length": 2048, "global_batch_size": 4},
    ),
    "a config module of one's own": (
        "torchrun --nproc-per-node 4 -m torchtitan.train --module=ours.llama3 --config=llama3_8b\n",
        {"ours/llama3.py": MODULE}, None, "torchtitan", {"tp": 1, "dp_shard": 4, "sequence_length": 8192},
    ),
    "maxtext": (
        "export RUN=a\npython3 -m MaxText.train conf/mine.yml run_name=$RUN ici_fsdp_parallelism=4 "
        "ici_tensor_parallelism=2 per_device_batch_size=1\n",
        {"conf/mine.yml": MAXTEXT}, 8, "maxtext", {"tp": 2, "dp_shard": 4, "sequence_length": 2048},
    ),
    "maxtext's own file": (
        "python3 MaxText/train.py MaxText/configs/base.yml model_name=llama3.1-8b per_device_batch_size=1 "
        "max_target_length=4096 steps=3\n",
        {}, 16, "maxtext", {"dp_shard": 16, "sequence_length": 4096, "global_batch_size": 16},
    ),
    "deepspeed": (
        "deepspeed --num_gpus 8 train_sft.py --deepspeed ds.json --model_name_or_path meta-llama/Llama-2-7b-hf "
        "--per_device_train_batch_size 4 --gradient_accumulation_steps 2 --bf16 True --gradient_checkpointing True "
        "--model_max_length 1024 --output_dir out --learning_rate 2e-5\n",
        {"ds.json": AUTO}, None, "deepspeed",
        {"zero_stage": 3, "micro_batch_size": 4, "global_batch_size": 64, "sequence_length": 1024, "precision": "bf16",
         "recompute": "full"},
    ),
    "accelerate": (
        "ACC=$(dirname $0)/fsdp.yaml\naccelerate launch --config_file fsdp.yaml --num_processes 16 \\\n  run_clm.py "
        "--model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 1 "
        "--gradient_accumulation_steps 2 --block_size 2048 --do_train\n",
        {"fsdp.yaml": FSDP}, None, "accelerate",
        {"zero_stage": 3, "global_batch_size": 32, "sequence_length": 2048, "precision": "bf16"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("sent", [False, True])
def test_a_script_is_followed_into_its_file(tmp_path: Path, case: str, sent: bool) -> None:
    text, files, devices, software, expected = CASES[case]
    for name, content in {"run.sh": text, **files}.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    if sent:
        job = read_script(SaidScript("run.sh", devices=devices, sent=text, beside=files))
    else:
        job = read_script(SaidScript(str(tmp_path / "run.sh"), devices=devices))
    found = job.workload | job.strategy
    assert job.software == software
    assert {name: found.get(name) for name in expected} == expected
    assert job.arguments.unknown == ()


def test_a_script_in_a_folder_names_files_from_the_top(tmp_path: Path) -> None:
    (tmp_path / "scripts/run").mkdir(parents=True)
    (tmp_path / "confs").mkdir()
    (tmp_path / "confs/l.toml").write_text(TOML, encoding="utf-8")
    script = tmp_path / "scripts/run/go.sh"
    script.write_text(CASES["torchtitan"][0], encoding="utf-8")
    assert read_script(SaidScript(str(script))).strategy["tp"] == 2


@pytest.mark.parametrize(("sent", "hint"), [(False, "put it where"), (True, "send it with the script: files")])
def test_a_missing_file_is_asked_for_by_name(tmp_path: Path, sent: bool, hint: str) -> None:
    text = CASES["deepspeed"][0]
    script = tmp_path / "run.sh"
    script.write_text(text, encoding="utf-8")
    with pytest.raises(DocumentInvalid, match=r"deepspeed with ds\.json, which is not there") as raised:
        read_script(SaidScript("run.sh" if sent else str(script), sent=text if sent else None))
    assert hint in (raised.value.hint or "")


def test_a_model_that_is_not_known_is_asked_for(tmp_path: Path) -> None:
    text = CASES["deepspeed"][0].replace("meta-llama/Llama-2-7b-hf", "somebody/own-7b")
    said = SaidScript("run.sh", sent=text, beside={"ds.json": AUTO})
    with pytest.raises(DocumentInvalid, match="somebody/own-7b") as raised:
        read_script(said)
    assert "--model" in (raised.value.hint or "")
    job = read_script(SaidScript("run.sh", sent=text, beside={"ds.json": AUTO}, model="llama-2-7b"))
    assert job.model.name == "llama-2-7b"


def test_torchtitan_without_a_job_file_is_told() -> None:
    with pytest.raises(DocumentInvalid, match="does not say the job file"):
        read_script(SaidScript("run.sh", sent="torchrun --nproc_per_node=8 -m torchtitan.train --training.steps 3\n"))


def test_a_module_that_is_nowhere_is_told_with_its_places() -> None:
    text = "torchrun --nproc_per_node=8 -m torchtitan.train --module llama3 --config llama3_8b\n"
    with pytest.raises(DocumentInvalid, match=r"torchtitan/models/llama3/config_registry\.py") as raised:
        read_script(SaidScript("run.sh", sent=text))
    assert "llama3/config_registry.py or llama3.py" in (raised.value.hint or "")


def test_megatron_deepspeed_is_not_followed() -> None:
    text = (
        "deepspeed --num_gpus 8 pretrain_gpt.py --deepspeed --deepspeed_config ds.json --num-layers 4 --hidden-size 64 "
        "--num-attention-heads 4 --seq-length 128 --max-position-embeddings 128 --micro-batch-size 1 --bf16 "
        "--global-batch-size 8 --vocab-size 1000 --zero-stage 1\n"
    )
    assert read_script(SaidScript("run.sh", sent=text)).software == "megatron-deepspeed"
