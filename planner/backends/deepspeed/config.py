"""The content of ``ds_config.json``.

``train_batch_size = train_micro_batch_size_per_gpu * gradient_accumulation_steps * dp``; accumulation steps are the
pipeline's micro-batches.  Sources: deepspeed 0.19.8 ``runtime/config.py``, ``runtime/zero/config.py``.
"""

from __future__ import annotations

from typing import Any

from planner.backends.deepspeed.engine_rules import AUTOEP_PRESETS
from planner.backends.rules.optimizer_recipe import (
    BETAS,
    CLIP_GRADIENT_NORM,
    EPSILON,
    LEARNING_RATE,
    MUON_MOMENTUM,
    SGD_MOMENTUM,
    WEIGHT_DECAY,
)
from planner.plan.plan import Plan
from planner.question.problem import Problem
from planner.strategy.strategy import Strategy

CONFIG_FILE = "ds_config.json"
PREFETCH_ELEMENTS = 50_000_000


def ds_config(plan: Plan) -> dict[str, Any]:
    """The config of a plan, whether the rules take it or not: what DeepSpeed's own parser would be asked."""
    s, problem = plan.chosen(), plan.problem
    config: dict[str, Any] = {
        "train_batch_size": problem.workload.global_batch_size,
        "train_micro_batch_size_per_gpu": s.micro_batch_size,
        "gradient_accumulation_steps": s.num_microbatches,
        "steps_per_print": 1_000_000_000,
        "gradient_clipping": CLIP_GRADIENT_NORM,
        "optimizer": _optimizer(problem, s),
        "zero_allow_untested_optimizer": True,
        "zero_optimization": _zero(problem, s),
        **_precision(problem),
    }
    if s.tp > 1:
        config["tensor_parallel"] = {"autotp_size": s.tp, "tp_overlap_comm": s.overlap_tp}
    if s.ep > 1 or s.etp > 1:
        config["expert_parallel"] = {
            "enabled": True,
            "autoep_size": s.ep,
            "expert_tensor_parallel_size": s.etp,
            "preset_model": AUTOEP_PRESETS.get(problem.model.family),
        }
    if s.pp > 1:
        # The module cuts the stages and recomputes layers itself; these two keep DeepSpeed from doing more.
        config["pipeline"] = {"stages": s.pp, "activation_checkpoint_interval": 0}
    return config


def _optimizer(problem: Problem, s: Strategy) -> dict[str, Any]:
    kind = problem.workload.optimizer
    if kind == "sgd":
        return {"type": "SGD", "params": {"lr": LEARNING_RATE, "momentum": SGD_MOMENTUM}}
    if kind == "muon":
        numbers = {"lr": LEARNING_RATE, "momentum": MUON_MOMENTUM, "weight_decay": WEIGHT_DECAY}
        return {"type": "Muon", "params": {**numbers, "torch_adam": True}}
    if kind == "lion":
        return {"type": "Lion", "params": {"lr": LEARNING_RATE, "betas": list(BETAS), "weight_decay": WEIGHT_DECAY}}
    params: dict[str, Any] = {
        "lr": LEARNING_RATE,
        "betas": list(BETAS),
        "eps": EPSILON,
        "weight_decay": WEIGHT_DECAY,
    }
    if not s.optimizer_offload:
        # PyTorch's fused AdamW needs no compiler on the node; DeepSpeed's FusedAdam is built at the first start.
        params |= {"torch_adam": True, "fused": True}
    return {"type": "AdamW", "params": params}


def _zero(problem: Problem, s: Strategy) -> dict[str, Any]:
    zero: dict[str, Any] = {"stage": s.zero_stage, "overlap_comm": s.overlap_grad_reduce}
    if s.zero_stage:
        zero["contiguous_gradients"] = True
        zero["reduce_scatter"] = problem.workload.optimizer != "muon"
    if s.zero_stage == 3:
        zero["stage3_prefetch_bucket_size"] = PREFETCH_ELEMENTS if s.overlap_param_gather else 0
    if s.optimizer_offload:
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    return zero


def _precision(problem: Problem) -> dict[str, Any]:
    workload = problem.workload
    half = workload.precision if workload.precision != "fp8" else "bf16"
    gradients = "fp32" if workload.gradient_dtype == "fp32" else half
    section: dict[str, Any] = {"enabled": True}
    if workload.optimizer == "adam_bf16_states":
        section |= {"bf16_master_weights_and_grads": True, "bf16_optimizer_states": True}
    return {half: section, "data_types": {"grad_accum_dtype": gradients}, "communication_data_type": gradients}
