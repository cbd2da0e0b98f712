"""Recipe files as users of Megatron-Bridge write them, made for the tests: idioms, with the fields in each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple


class RecipeFile(NamedTuple):
    """A file, its words and variables, and the fields that are to be read."""

    name: str
    text: str
    expected: dict[str, Any]
    words: tuple[str, ...] = ()
    variables: Mapping[str, str] = MappingProxyType({})
    devices: int | None = 64
    beside: Mapping[str, str] = MappingProxyType({})


ASSIGNED = RecipeFile(
    "assigned.py",
    '''
from megatron.bridge.recipes.llama import llama3_70b_pretrain_config
from megatron.bridge.training.gpt_step import forward_step
from megatron.bridge.training.pretrain import pretrain


def main() -> None:
    cfg = llama3_70b_pretrain_config()
    cfg.model.tensor_model_parallel_size = 8
    cfg.model.pipeline_model_parallel_size = 2
    cfg.model.virtual_pipeline_model_parallel_size = None
    cfg.train.global_batch_size = 256
    cfg.logger.log_interval = 1
    pretrain(cfg, forward_step)


if __name__ == "__main__":
    main()
''',
    {"layers": 80, "tp": 8, "pp": 2, "vpp": 1, "cp": 2, "sp": True, "global_batch": 256, "seq_len": 8192,
     "micro_batch": 1, "precision": "bf16", "zero_stage": 1, "overlap_tp": True, "overlap_grad_reduce": True},
)  # fmt: skip
UNTOUCHED = RecipeFile(
    "untouched.py",
    "from megatron.bridge.recipes.qwen.qwen3_moe import qwen3_30b_a3b_pretrain_config as base\n"
    "from megatron.bridge.training.pretrain import pretrain\n"
    "pretrain(config=base(), forward_step_func=None)\n",
    {"layers": 48, "experts": 128, "topk": 8, "tp": 1, "pp": 1, "ep": 16, "global_batch": 1024, "seq_len": 4096,
     "zero_stage": 1, "recompute": "none"},
)  # fmt: skip
CONTAINER = RecipeFile(
    "container.py",
    '''
import torch.nn.functional as F
from megatron.bridge.models import GPTModelProvider
from megatron.bridge.training.config import (
    ConfigContainer, DistributedDataParallelConfig, GPTDatasetConfig, OptimizerConfig, SchedulerConfig, TokenizerConfig,
    TrainingConfig,
)
from megatron.bridge.training.pretrain import pretrain

HIDDEN = 2048
cfg = ConfigContainer(
    model=GPTModelProvider(
        num_layers=24, hidden_size=HIDDEN, ffn_hidden_size=4 * HIDDEN, num_attention_heads=16, num_query_groups=4,
        seq_length=2048, normalization="RMSNorm", gated_linear_unit=True, activation_func=F.silu, add_bias_linear=False,
        position_embedding_type="rope", share_embeddings_and_output_weights=False, vocab_size=32000,
        tensor_model_parallel_size=2, sequence_parallel=True, recompute_granularity="selective",
        recompute_modules=["core_attn", "mlp"],
    ),
    train=TrainingConfig(train_iters=100, global_batch_size=128, micro_batch_size=2),
    optimizer=OptimizerConfig(optimizer="adam", lr=3e-4, use_distributed_optimizer=True),
    scheduler=SchedulerConfig(lr_decay_style="cosine"),
    ddp=DistributedDataParallelConfig(use_distributed_optimizer=True, overlap_grad_reduce=True),
    dataset=GPTDatasetConfig(sequence_length=2048, random_seed=1),
    tokenizer=TokenizerConfig(tokenizer_type="NullTokenizer", vocab_size=32000),
    mixed_precision="bf16_mixed",
)
pretrain(cfg, None)
''',
    {"layers": 24, "hidden": 2048, "ffn": 8192, "heads": 16, "kv_heads": 4, "vocab": 32000, "tp": 2, "sp": True,
     "micro_batch": 2, "global_batch": 128, "seq_len": 2048, "recompute": "selective", "zero_stage": 1,
     "overlap_grad_reduce": True, "overlap_param_gather": False},
    devices=16,
)  # fmt: skip
HELPER = RecipeFile(
    "helper.py",
    '''
from megatron.bridge.recipes import llama
from megatron.bridge.training.pretrain import pretrain

DEGREES = {"tensor_model_parallel_size": 2, "context_parallel_size": 4}


def shape(cfg, *, degrees=DEGREES, samples):
    for name, value in degrees.items():
        setattr(cfg.model, name, value)
    cfg.model.sequence_parallel = cfg.model.tensor_model_parallel_size > 1
    cfg.train.global_batch_size = samples * 2
    return cfg


cfg = shape(llama.llama31_8b_pretrain_config(), samples=64)
cfg.ddp.overlap_param_gather = False
cfg.comm_overlap = None
pretrain(cfg)
''',
    {"layers": 32, "tp": 2, "cp": 4, "sp": True, "global_batch": 128, "overlap_param_gather": False,
     "overlap_grad_reduce": True, "overlap_tp": False},
)  # fmt: skip
ARGPARSE = RecipeFile(
    "argparse_words.py",
    '''
import argparse
from megatron.bridge.recipes.llama.llama3 import llama3_8b_pretrain_config
from megatron.bridge.training.pretrain import pretrain

parser = argparse.ArgumentParser()
parser.add_argument("--tp", type=int, default=1)
parser.add_argument("--micro-batch", dest="mbs", type=int, default=1)
parser.add_argument("--fp8", action="store_true")
args, overrides = parser.parse_known_args()
cfg = llama3_8b_pretrain_config()
cfg.model.tensor_model_parallel_size = args.tp
cfg.train.micro_batch_size = args.mbs
if args.fp8:
    cfg.mixed_precision = "bf16_with_fp8_current_scaling_mixed"
pretrain(cfg)
''',
    {"tp": 4, "micro_batch": 2, "precision": "fp8", "cp": 1, "pp": 2, "global_batch": 512},
    words=("--tp", "4", "--micro-batch=2", "--fp8", "model.context_parallel_size=1",
           "model.pipeline_model_parallel_size=2"),
)  # fmt: skip
ENVIRONMENT = RecipeFile(
    "environment.py",
    '''
import os
from megatron.bridge.recipes.deepseek import deepseek_v3_pretrain_config
from megatron.bridge.training.pretrain import pretrain

cfg = deepseek_v3_pretrain_config()
cfg.model.expert_model_parallel_size = int(os.environ.get("EP", 32))
cfg.train.global_batch_size = int(os.environ["GBS"])
cfg.model.moe_token_dispatcher_type = "alltoall"
pretrain(cfg)
''',
    {"layers": 61, "experts": 256, "topk": 8, "tp": 2, "pp": 16, "ep": 32, "etp": 1, "global_batch": 2048,
     "attention_kind": "mla", "optimizer": "adam_bf16_states", "chunk_layers": (4, *[4] * 14, 1)},
    variables={"GBS": "2048"},
    devices=1024,
)  # fmt: skip
HUGGING_FACE = RecipeFile(
    "hugging_face.py",
    '''
from megatron.bridge import AutoBridge
from megatron.bridge.recipes.common import _pretrain_common
from megatron.bridge.recipes.qwen.qwen3 import qwen3_8b_pretrain_config
from megatron.bridge.training.comm_overlap import CommOverlapConfig
from megatron.bridge.training.mixed_precision import bf16_mixed
from megatron.bridge.training.pretrain import pretrain

cfg = qwen3_8b_pretrain_config()
bridge = AutoBridge.from_hf_pretrained("Qwen/Qwen3-32B")
cfg.model = bridge.to_megatron_provider(load_weights=False)
cfg.model.tensor_model_parallel_size = 8
cfg.model.sequence_parallel = True
cfg.model.recompute_granularity = "full"
cfg.model.recompute_method = "block"
cfg.model.recompute_num_layers = 3
cfg.dataset.seq_length = 8192
cfg.comm_overlap = CommOverlapConfig(tp_comm_overlap=True, overlap_grad_reduce=False)
cfg.mixed_precision = bf16_mixed()
cfg.mixed_precision.grad_reduce_in_fp32 = False
pretrain(cfg)
''',
    {"layers": 64, "hidden": 5120, "tp": 8, "seq_len": 8192, "recompute": "full-first-3", "overlap_tp": True,
     "overlap_grad_reduce": False, "overlap_param_gather": True, "gradient_dtype": "bf16"},
)  # fmt: skip
MEGATRON_FSDP = RecipeFile(
    "fsdp.py",
    """
from megatron.bridge.recipes.llama import *
from megatron.bridge.training.pretrain import pretrain

cfg = llama3_8b_pretrain_config()
cfg.model.context_parallel_size = 1
cfg.ddp.use_megatron_fsdp = True
cfg.ddp.data_parallel_sharding_strategy = "optim_grads_params"
cfg.ddp.num_distributed_optimizer_instances = 2
cfg.checkpoint.ckpt_format = "fsdp_dtensor"
pretrain(cfg)
""",
    {"zero_stage": 3, "dp_replicate": 2, "tp": 1, "pp": 1, "cp": 1},
)
BENCHMARK = RecipeFile(
    "benchmark.py",
    "from megatron.bridge.perf_recipes.llama.h100.llama3 import llama3_70b_pretrain_64gpu_h100_bf16_config\n"
    "from megatron.bridge.training.pretrain import pretrain\n"
    "cfg = llama3_70b_pretrain_64gpu_h100_bf16_config()\n"
    "pretrain(cfg)\n",
    {"tp": 4, "pp": 4, "cp": 2, "vpp": 5, "global_batch": 256, "vocab": 128256, "gradient_dtype": "bf16"},
)
LAYOUT = RecipeFile(
    "layout.py",
    """
from functools import partial
from megatron.bridge.recipes.llama import llama3_8b_pretrain_config

factory = partial(llama3_8b_pretrain_config)
cfg = factory()
model = cfg.model
model.pipeline_model_parallel_size = 4
model.context_parallel_size = 1
model.pipeline_model_parallel_layout = "Et*7|t*9|" + "t*9|" + f"t*{32 - 25}L"
""",
    {"pp": 4, "chunk_layers": (7, 9, 9, 7), "cp": 1},
)
YAML_BESIDE = RecipeFile(
    "yaml_beside.py",
    '''
import argparse
from omegaconf import OmegaConf
from megatron.bridge.recipes.llama import llama3_8b_pretrain_config
from megatron.bridge.training.pretrain import pretrain

parser = argparse.ArgumentParser()
parser.add_argument("--config-file", type=str, default="conf/over.yaml")
args = parser.parse_args()
cfg = llama3_8b_pretrain_config()
merged = OmegaConf.merge(cfg, OmegaConf.load(args.config_file))
pretrain(cfg)
''',
    {"tp": 2, "pp": 4, "cp": 2, "global_batch": 96, "micro_batch": 3},
    beside={"conf/over.yaml": "model:\n  tensor_model_parallel_size: 2\n  pipeline_model_parallel_size: 4\n"
            "train:\n  global_batch_size: 96\n  micro_batch_size: 3\n"},
)  # fmt: skip
SIZES = RecipeFile(
    "sizes.py",
    """
from megatron.bridge.recipes.llama import llama3_70b_pretrain_config

cfg = llama3_70b_pretrain_config()
cfg.model.num_layers = 20
cfg.model.hidden_size //= 2
cfg.model.ffn_hidden_size = 14336
""",
    {"layers": 20, "ffn": 14336, "hidden": 4096, "kv_heads": 8, "vpp": 5, "pp": 4},
)
FINE_TUNING = RecipeFile(
    "fine_tuning.py",
    """
from megatron.bridge.recipes.llama import llama31_70b_sft_config
from megatron.bridge.training.finetune import finetune

cfg = llama31_70b_sft_config()
cfg.checkpoint.pretrained_checkpoint = "/ckpt"
cfg.train.global_batch_size = 64
finetune(config=cfg, forward_step_func=None)
""",
    {"layers": 80, "tp": 8, "pp": 4, "global_batch": 64, "seq_len": 4096},
)
LAUNCHED = RecipeFile(
    "launched.sh",
    """#!/bin/bash
#SBATCH --nodes=4
#SBATCH --gpus-per-node=8
TP=${TP:-4}
for CONFIG in "2,1" "1,2"; do
    IFS=, read -r PP CP <<< "$CONFIG"
    srun uv run python scripts/training/run_recipe.py --recipe llama3_70b_pretrain_config --dataset mock \\
        -tp $TP -pp $PP model.context_parallel_size=$CP model.virtual_pipeline_model_parallel_size=null \\
        model.sequence_parallel=true train.global_batch_size=128 logger.log_interval=5
done
""",
    {"tp": 4, "pp": 2, "cp": 1, "vpp": 1, "sp": True, "global_batch": 128, "world_size": 32},
    devices=None,
)
STEM = RecipeFile(
    "stem.sh",
    "torchrun --nproc_per_node=8 --nnodes=2 scripts/training/run_recipe.py --model qwen3_30b_a3b --mode pretrain "
    "--dataset mock -sl 2048 -mb 1 -gb 64 -ep 16 model.sequence_parallel=true\n",
    {"experts": 128, "ep": 16, "global_batch": 64, "seq_len": 2048, "world_size": 16},
    devices=None,
)
PERFORMANCE = RecipeFile(
    "performance.sh",
    "python scripts/performance/setup_experiment.py --account me --partition batch -m llama -mr llama3_70b -ng 128 "
    "-gn 8 -g h100 -c bf16 -t 00:20:00 --task pretrain -mb 1\n",
    {"tp": 4, "pp": 4, "cp": 2, "vpp": 5, "global_batch": 512, "world_size": 128},
    devices=None,
)
EARLIER = RecipeFile(
    "earlier.sh",
    "python scripts/performance/setup_experiment.py --gpu h100 -m llama3 -s 70b -ng 64 -gn 8 -c fp8_cs "
    "--container_image c --task pretrain -tp 2 -vp None -gb 64 --recompute_num_layers 2\n",
    {
        "tp": 2,
        "vpp": 1,
        "sp": True,
        "global_batch": 64,
        "precision": "fp8",
        "recompute": "full-first-2",
        "world_size": 64,
    },
    devices=None,
)
SAVED = RecipeFile(
    "saved.yaml",
    """
model:
  _target_: megatron.bridge.models.gpt_provider.GPTModelProvider
  num_layers: 16
  hidden_size: 1024
  num_attention_heads: 8
  seq_length: 1024
  vocab_size: 32000
  position_embedding_type: rope
  tensor_model_parallel_size: 2
train: {_target_: megatron.bridge.training.config.TrainingConfig, global_batch_size: 32, micro_batch_size: 4}
ddp: {use_distributed_optimizer: true, overlap_grad_reduce: true}
dataset: {sequence_length: 1024}
mixed_precision: {bf16: true}
""",
    {"layers": 16, "hidden": 1024, "tp": 2, "sp": False, "micro_batch": 4, "global_batch": 32, "zero_stage": 1},
    devices=16,
)
OVERRIDES = RecipeFile(
    "overrides.yaml",
    "model:\n  tensor_model_parallel_size: 2\ntrain:\n  global_batch_size: 64\n",
    {"tp": 2, "global_batch": 64, "cp": 2, "layers": 32},
    words=("--recipe", "llama3_8b_pretrain_config"),
)
PRECISION = RecipeFile(
    "precision.py",
    """
from megatron.bridge.recipes.llama import llama3_8b_pretrain_config
from megatron.bridge.training.mixed_precision import bf16_with_mxfp8_mixed

cfg = llama3_8b_pretrain_config()
cfg.mixed_precision = bf16_with_mxfp8_mixed()
cfg.mixed_precision.fp8_param_gather = True
cfg.ddp.num_distributed_optimizer_instances = 2
cfg.model.recompute_granularity, cfg.model.recompute_modules = "selective", ["layernorm", "mlp"]
""",
    {"precision": "fp8", "recompute": "selective", "recompute_modules": ["layernorm", "mlp"], "zero_stage": 1},
)
FILES = (
    ASSIGNED, UNTOUCHED, CONTAINER, HELPER, ARGPARSE, ENVIRONMENT, HUGGING_FACE, MEGATRON_FSDP, BENCHMARK, LAYOUT,
    YAML_BESIDE, SIZES, FINE_TUNING, LAUNCHED, STEM, PERFORMANCE, EARLIER, SAVED, OVERRIDES, PRECISION,
)  # fmt: skip
