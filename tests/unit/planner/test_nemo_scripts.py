"""NeMo's recipes and configurations, followed and never run: model, work, strategy and the three lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner.errors import MeshwrightError
from planner.operations.launch_files import read_script
from planner.operations.said_script import SaidScript

HEAD = """
import nemo_run as run
from nemo import lightning as nl
from nemo.collections import llm
from nemo.collections.common.tokenizers import AutoTokenizer
from nemo.lightning.pytorch.callbacks.megatron_comm_overlap import MegatronCommOverlapCallback
"""
RECIPE = """
def build(nodes: int = 4):
    recipe = llm.llama3_70b.pretrain_recipe(dir="/x", name="mine", num_nodes=nodes, num_gpus_per_node=8)
    recipe.trainer.strategy.tensor_model_parallel_size = 8
    recipe.trainer.strategy.context_parallel_size = 1
    recipe.trainer.strategy.ckpt_async_save = False
    recipe.trainer.callbacks.append(run.Config(MegatronCommOverlapCallback, tp_comm_overlap=True))
    recipe.data.global_batch_size = 128
    recipe.data.tokenizer = run.Config(AutoTokenizer, "meta-llama/Meta-Llama-3-70B")
    recipe.broadcast(max_steps=100)
    return recipe
"""
STARTS = {
    "run": "with run.Experiment('e') as exp:\n    exp.add(build(), executor=run.LocalExecutor(), name='t')\n",
    "cli": "run.cli.main(llm.pretrain, default_factory=build)\n",
    "partial": "from functools import partial\nrecipe = partial(build, nodes=4)()\nrun.run(recipe)\n",
}
BY_HAND = """
model = llm.LlamaModel(llm.Llama3Config8B(num_layers=16))
trainer = nl.Trainer(devices=8, num_nodes=2, plugins=nl.MegatronMixedPrecision(precision="bf16-mixed"),
    strategy=nl.MegatronStrategy(tensor_model_parallel_size=2, sequence_parallel=True))
llm.pretrain(model=model, data=llm.MockDataModule(seq_length=4096, micro_batch_size=2, global_batch_size=64),
    trainer=trainer)
"""
YAML = """
trainer: {devices: 8, num_nodes: 4, precision: bf16, max_steps: 10}
model:
  mcore_gpt: true
  micro_batch_size: 1
  global_batch_size: 128
  tensor_model_parallel_size: 4
  pipeline_model_parallel_size: 2
  virtual_pipeline_model_parallel_size: 4
  encoder_seq_length: 4096
  num_layers: 32
  hidden_size: 4096
  ffn_hidden_size: ${multiply:4, ${.hidden_size}}
  num_attention_heads: 32
  activation: fast-swiglu
  normalization: rmsnorm
  bias: false
  share_embeddings_and_output_weights: false
  position_embedding_type: rope
  sequence_parallel: true
  activations_checkpoint_granularity: full
  activations_checkpoint_method: block
  activations_checkpoint_num_layers: 2
  fp8: true
  moe_expert_capacity_factor: 1.0
  tokenizer: {library: megatron, type: GPT2BPETokenizer, model: null}
  optim: {name: mcore_distributed_optim, grad_sync_dtype: bf16, overlap_grad_sync: true, overlap_param_sync: true}
"""


def read(tmp_path: Path, name: str, text: str, **said: Any) -> Any:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_script(SaidScript(str(path), **said))


@pytest.mark.parametrize("start", list(STARTS))
def test_changed_recipe(tmp_path: Path, start: str) -> None:
    job = read(tmp_path, "a.py", HEAD + RECIPE + STARTS[start])
    says = {name: job.strategy.get(name) for name in ("tp", "pp", "cp", "vpp", "sp", "zero_stage", "overlap_tp")}
    assert says == {"tp": 8, "pp": 4, "cp": 1, "vpp": 5, "sp": True, "zero_stage": 1, "overlap_tp": True}
    assert (job.software, job.num_devices, job.workload["global_batch_size"]) == ("nemo", 32, 128)
    assert job.model.vocab_size == 129_024
    assert (job.arguments.not_modelled, job.arguments.unknown, job.undecided) == ((), (), ())
    assert "trainer.strategy.ckpt_async_save=False" in job.arguments.no_influence
    assert "trainer.strategy.tensor_model_parallel_size=8" in job.arguments.used


def test_command_line_of_another_recipe_of_the_script(tmp_path: Path) -> None:
    text = HEAD + RECIPE + "def other():\n    return llm.llama3_8b.pretrain_recipe(num_nodes=2)\n" + STARTS["cli"]
    job = read(tmp_path, "a.py", text, arguments=("--factory", "other", "data.micro_batch_size=2"))
    assert (job.model.num_layers, job.strategy["micro_batch_size"], job.num_devices) == (32, 2, 16)


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ("pretrain --factory 'mixtral_8x7b(num_nodes=8)' data.micro_batch_size=2 -y",
         {"ep": 8, "micro_batch_size": 2, "dispatcher": "alltoall", "vpp": 8}),
        ("finetune -f llama3_8b trainer.strategy.tensor_model_parallel_size=2", {"tp": 2, "zero_stage": 0}),
    ],
)  # fmt: skip
def test_nemo_llm(tmp_path: Path, words: str, fields: dict[str, Any]) -> None:
    job = read(tmp_path, "a.sh", f"#!/bin/bash\nnemo llm {words}\n")
    assert {name: job.strategy.get(name) for name in fields} == fields
    assert ("training" in job.workload) == words.startswith("finetune")


def test_parts_made_by_hand(tmp_path: Path) -> None:
    job = read(tmp_path, "a.py", HEAD + BY_HAND)
    assert (job.model.num_layers, job.strategy["tp"], job.strategy["zero_stage"]) == (16, 2, 1)
    assert (job.num_devices, job.workload["sequence_length"], job.model.vocab_size) == (16, 4096, 50_432)


def test_a_script_that_starts_the_python_file(tmp_path: Path) -> None:
    (tmp_path / "pre.py").write_text(HEAD + RECIPE + STARTS["cli"], encoding="utf-8")
    job = read(tmp_path, "a.sh", "torchrun --nproc-per-node 8 --nnodes 8 pre.py trainer.num_nodes=8\n")
    assert (job.software, job.strategy["tp"], job.num_devices) == ("nemo", 8, 64)


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (
            "    recipe.trainer.strategy.tensor_model_parallel_size = find_tp()\n",
            "tensor_model_parallel_size is mine.find_tp(...)",
        ),
        ("    recipe.optim = mine.optimizer(lr=1)\n", "optimizer(...)"),
        ("    recipe.trainer.strategy = mine.strategy(tp=8)\n", "strategy"),
    ],
)
def test_what_the_text_does_not_decide_is_asked_for(tmp_path: Path, more: str, what: str) -> None:
    text = HEAD + "import mine\nfrom mine import find_tp\n" + RECIPE.replace("    return", f"{more}    return")
    with pytest.raises(MeshwrightError) as error:
        read(tmp_path, "a.py", text + STARTS["run"])
    assert what in str(error.value)


def test_functions_of_other_files_are_told(tmp_path: Path) -> None:
    text = HEAD + "from mine import tune\n" + RECIPE.replace("    return recipe", "    return tune(recipe)")
    job = read(tmp_path, "a.py", text + STARTS["run"])
    assert [each.what for each in job.undecided] == ["mine.tune(...)"]
    assert job.strategy["tp"] == 8


def test_primary_perf_configs(tmp_path: Path) -> None:
    text = (
        HEAD
        + """
from scripts.performance.helpers import set_primary_perf_configs
recipe = llm.llama31_405b.pretrain_recipe(performance_mode=True)
recipe = set_primary_perf_configs(recipe, "pre_train", num_nodes=32, num_gpus_per_node=4, mbs=1, gbs=64, max_steps=30,
    tp_size=4, pp_size=8, cp_size=2, vp_size=8, ep_size=1, compute_dtype="fp8", fp8_recipe="cs", recompute_layers=1)
run.run(recipe)
"""
    )
    job = read(tmp_path, "a.py", text)
    assert (job.num_devices, job.workload["precision"], job.workload["fp8_recipe"]) == (128, "fp8", "tensorwise")
    assert {name: job.strategy[name] for name in ("tp", "pp", "cp", "vpp")} == {"tp": 4, "pp": 8, "cp": 2, "vpp": 8}
    assert job.strategy["recompute"] != "none"


def test_yaml_of_nemo_1(tmp_path: Path) -> None:
    job = read(tmp_path, "c.yaml", YAML, arguments=("model.tensor_model_parallel_size=2",))
    says = {name: job.strategy.get(name) for name in ("tp", "pp", "vpp", "sp", "zero_stage", "overlap_grad_reduce")}
    assert says == {"tp": 2, "pp": 2, "vpp": 4, "sp": True, "zero_stage": 1, "overlap_grad_reduce": True}
    assert (job.num_devices, job.workload["precision"], job.workload["gradient_dtype"]) == (32, "fp8", "bf16")
    assert job.model.vocab_size == 50_432
    assert job.arguments.not_modelled == ("model.moe_expert_capacity_factor=1.0",)
    with pytest.raises(MeshwrightError, match="FSDP"):
        read(tmp_path, "d.yaml", YAML + "  fsdp: true\n")
