"""The name of each of Megatron-LM's flags in Bridge's ``ConfigContainer``.

Paths are ``section.field`` (megatron-bridge 0.6.2 ``training/config.py:962``); a flag that says one thing in two
sections has two.  ``comm_overlap`` overwrites ``ddp`` and ``model`` when it is applied, so overlaps are said there too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["value", "list", "true", "false"]


@dataclass(frozen=True, slots=True)
class Field:
    """One flag: where its value goes.  ``true`` and ``false`` are what a switch without value becomes."""

    flag: str
    paths: tuple[str, ...]
    kind: Kind = "value"


def _model(flags: str, kind: Kind = "value") -> list[Field]:
    """Flags whose field has the flag's own name, with ``flag=field`` for those that have another."""
    pairs = [word.partition("=") for word in flags.split()]
    return [Field(f"--{flag}", (f"model.{name or flag.replace('-', '_')}",), kind) for flag, _, name in pairs]


FIELDS: tuple[Field, ...] = (
    *_model(
        "num-layers hidden-size ffn-hidden-size num-attention-heads kv-channels num-query-groups kv-lora-rank"
        " q-lora-rank qk-head-dim qk-pos-emb-head-dim v-head-dim softmax-type normalization"
        " norm-epsilon=layernorm_epsilon glu-linear-offset activation-func-clamp-value position-embedding-type"
        " rotary-base rotary-percent mtp-num-layers make-vocab-size-divisible-by attention-dropout hidden-dropout"
    ),
    *_model("use-rope-scaling=rope_scaling cross-entropy-loss-fusion", "true"),
    *_model("cross-entropy-fusion-impl"),
    *_model("multi-latent-attention qk-layernorm swiglu=gated_linear_unit add-qkv-bias", "true"),
    *_model("untie-embeddings-and-output-weights=share_embeddings_and_output_weights", "false"),
    *_model("disable-bias-linear=add_bias_linear", "false"),
    *_model("window-size window-attn-skip-freq", "list"),
    *_model(
        "num-experts=num_moe_experts moe-router-topk moe-ffn-hidden-size moe-token-dispatcher-type moe-router-dtype"
        " moe-flex-dispatcher-backend"
        " moe-shared-expert-intermediate-size moe-router-score-function moe-router-num-groups moe-router-group-topk"
        " moe-router-bias-update-rate moe-router-topk-scaling-factor moe-router-load-balancing-type moe-aux-loss-coeff"
        " rotary-scaling-factor mscale mscale-all-dim rope-scaling-factor"
    ),
    *_model(
        "moe-grouped-gemm moe-permute-fusion moe-shared-expert-gate moe-router-enable-expert-bias"
        " moe-router-pre-softmax",
        "true",
    ),
    *_model("moe-layer-freq linear-attention-freq", "list"),
    *_model("attention-output-gate", "true"),
    *_model("no-rope-fusion=apply_rope_fusion", "false"),
    *_model(
        "experimental-attention-variant linear-conv-kernel-dim linear-key-head-dim linear-value-head-dim"
        " linear-num-key-heads linear-num-value-heads dsa-indexer-n-heads dsa-indexer-head-dim dsa-indexer-topk"
        " hybrid-layer-pattern mamba-state-dim mamba-head-dim mamba-num-groups mamba-num-heads moe-latent-size"
    ),
    *_model(
        "tensor-model-parallel-size pipeline-model-parallel-size context-parallel-size expert-model-parallel-size"
        " expert-tensor-parallel-size cp-comm-type pipeline-model-parallel-layout"
        " num-virtual-stages-per-pipeline-rank=virtual_pipeline_model_parallel_size"
        " microbatch-group-size-per-virtual-pipeline-stage=microbatch_group_size_per_vp_stage"
    ),
    *_model("sequence-parallel", "true"),
    Field("--use-tp-pp-dp-mapping", ("dist.use_tp_pp_dp_mapping",), "true"),
    Field("--tp-comm-overlap", ("comm_overlap.tp_comm_overlap",), "true"),
    Field("--overlap-moe-expert-parallel-comm", ("comm_overlap.overlap_moe_expert_parallel_comm",), "true"),
    Field("--seq-length", ("model.seq_length", "dataset.seq_length")),
    Field("--micro-batch-size", ("train.micro_batch_size",)),
    Field("--global-batch-size", ("train.global_batch_size",)),
    Field("--bf16", ("mixed_precision.bf16",), "true"),
    Field("--fp16", ("mixed_precision.fp16",), "true"),
    Field("--fp8-format", ("mixed_precision.fp8",)),
    Field("--fp8-recipe", ("mixed_precision.fp8_recipe",)),
    Field("--fp8-param-gather", ("mixed_precision.fp8_param_gather", "ddp.fp8_param_gather"), "true"),
    Field(
        "--reuse-grad-buf-for-mxfp8-param-ag",
        ("mixed_precision.reuse_grad_buf_for_mxfp8_param_ag", "ddp.reuse_grad_buf_for_mxfp8_param_ag"),
        "true",
    ),
    Field("--fp4-format", ("mixed_precision.fp4",)),
    Field("--fp4-recipe", ("mixed_precision.fp4_recipe",)),
    Field("--grad-reduce-in-bf16", ("mixed_precision.grad_reduce_in_fp32", "ddp.grad_reduce_in_fp32"), "false"),
    Field("--optimizer", ("optimizer.optimizer",)),
    Field("--use-precision-aware-optimizer", ("optimizer.use_precision_aware_optimizer",), "true"),
    Field(
        "--use-distributed-optimizer",
        ("ddp.use_distributed_optimizer", "optimizer.use_distributed_optimizer"),
        "true",
    ),
    Field("--num-distributed-optimizer-instances", ("ddp.num_distributed_optimizer_instances",)),
    Field("--use-megatron-fsdp", ("ddp.use_megatron_fsdp", "dist.use_megatron_fsdp"), "true"),
    Field("--data-parallel-sharding-strategy", ("ddp.data_parallel_sharding_strategy",)),
    *_model("init-model-with-meta-device", "true"),
    *_model("no-gradient-accumulation-fusion=gradient_accumulation_fusion", "false"),
    Field("--ckpt-format", ("checkpoint.ckpt_format",)),
    Field("--dist-ckpt-optim-fully-reshardable", ("checkpoint.dist_ckpt_optim_fully_reshardable",), "true"),
    Field("--overlap-grad-reduce", ("ddp.overlap_grad_reduce", "comm_overlap.overlap_grad_reduce"), "true"),
    Field("--overlap-param-gather", ("ddp.overlap_param_gather", "comm_overlap.overlap_param_gather"), "true"),
    *_model("recompute-granularity recompute-method recompute-num-layers"),
    *_model("recompute-modules offload-modules", "list"),
    Field("--optimizer-cpu-offload", ("optimizer.optimizer_cpu_offload",), "true"),
    Field("--overlap-cpu-optimizer-d2h-h2d", ("optimizer.overlap_cpu_optimizer_d2h_h2d",), "true"),
    *_model("cpu-offloading-num-layers"),
    *_model("fine-grained-activation-offloading", "true"),
)

SPOKEN_OTHERWISE = frozenset(
    {
        "--group-query-attention",  # num_query_groups says it
        "--squared-relu",  # a function: in bridge_recipe.py
        "--quick-geglu",  # a function: in bridge_recipe.py
        "--max-position-embeddings",  # Bridge makes as many positions as seq_length
        "--spec",  # Bridge's own provider of hybrids has it: in bridge_recipe.py
        "--exp-avg-dtype",  # a torch type: in bridge_recipe.py
        "--exp-avg-sq-dtype",
        "--main-params-dtype",
        "--transformer-impl",  # Bridge's default is Transformer Engine
        "--attention-backend",  # auto is Bridge's default too
    }
)
"""Flags that the overrides have no word for."""

ALWAYS_SAID = (
    "--overlap-grad-reduce",
    "--overlap-param-gather",
    "--tp-comm-overlap",
    "--sequence-parallel",
    "--use-distributed-optimizer",
)
"""Switches that are written when off, too: a recipe or ``comm_overlap`` may have turned them on."""

CPU_OFFLOADING = "model.cpu_offloading"
"""In Bridge a switch of its own beside the number of layers."""
