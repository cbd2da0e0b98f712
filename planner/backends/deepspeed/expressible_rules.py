"""The parts of a plan that the DeepSpeed files cannot say."""

from __future__ import annotations

from planner.backends.deepspeed.version import DEEPSPEED_VERSION
from planner.backends.rules.foreign_names import foreign_names
from planner.backends.rules.rule import RuleInput, SpaceRule
from planner.strategy.strategy import Strategy

_DS = f"deepspeed {DEEPSPEED_VERSION}"

PIPELINE_FAMILIES = frozenset(
    foreign_names("""
    llama mistral qwen2 qwen3 phi3 olmo2 glm4 mixtral qwen2_moe qwen3_moe glm4_moe deepseek_v2 deepseek_v3 kimi_k2
    """)
)
"""Classes made of embed_tokens, layers, norm, lm_head and one rotary table, which the script can cut into stages."""


def gradient_overlap_possible(s: Strategy, *, fp32_gradients_on_bf16: bool) -> bool:
    """Whether any gradient reduction can run during backward.

    None without ZeRO, none with a pipeline (it is switched off there), and none in the BF16 optimizer that ZeRO-1
    with bf16 weights, fp32 gradients and no offload selects.
    """
    if s.zero_stage == 0 or s.pp > 1:
        return False
    return not (s.zero_stage == 1 and fp32_gradients_on_bf16 and not s.optimizer_offload)


def fp32_gradients_on_bf16(given: RuleInput) -> bool:
    """bf16 weights with fp32 gradient accumulation."""
    return given.workload.precision == "bf16" and given.workload.gradient_dtype == "fp32"


def _schedule(given: RuleInput) -> str | None:
    s = given.strategy
    if s.schedule == "1f1b":
        return "vpp > 1 needs an interleaved schedule" if s.vpp > 1 else None
    if s.schedule != "dualpipev":
        return f"DeepSpeed has the schedules 1f1b and dualpipev, not {s.schedule}"
    return None if s.pp > 1 and s.vpp == 2 else "DualPipeV needs pp > 1 and two chunks a stage"


def _group_size(given: RuleInput) -> str | None:
    return "microbatch_group_size belongs to the interleaved schedule" if given.strategy.microbatch_group_size else None


def _one_model_axis(given: RuleInput) -> str | None:
    s = given.strategy
    return f"AutoTP (tp={s.tp}) and Ulysses (cp={s.cp}) exclude each other" if s.tp > 1 and s.cp > 1 else None


def _pipeline_alone(given: RuleInput) -> str | None:
    s = given.strategy
    named = [f"{name}={value}" for name, value in (("tp", s.tp), ("cp", s.cp), ("ep", s.ep)) if value > 1]
    if s.pp > 1 and named:
        return f"PipelineModule runs with data parallelism only; {', '.join(named)} must be 1 when pp={s.pp}"
    return None


def _pipeline_family(given: RuleInput) -> str | None:
    if given.strategy.pp > 1 and given.model.family not in PIPELINE_FAMILIES:
        return f"the script cannot cut {given.model.family} into stages; use pp=1"
    return None


def _sequence_parallel(given: RuleInput) -> str | None:
    return "AutoTP keeps norms and dropout whole on every tp rank: sp must be off" if given.strategy.sp else None


def _ring(given: RuleInput) -> str | None:
    s = given.strategy
    wanted = "all_to_all" if s.cp > 1 else "none"
    return f"context parallelism is Ulysses: cp_kind must be {wanted}, is {s.cp_kind}" if s.cp_kind != wanted else None


def _expert_tensor(given: RuleInput) -> str | None:
    etp = given.strategy.etp
    return f"AutoEP has only etp=1, not {etp}" if etp > 1 else None


def _hybrid_sharding(given: RuleInput) -> str | None:
    s = given.strategy
    if s.dp_replicate > 1 and s.zero_stage:
        return "ZeRO shards over all data-parallel ranks (MiCS was removed): dp_replicate must be 1"
    return None


def _selective(given: RuleInput) -> str | None:
    stages = given.layout or ()
    if given.strategy.recompute == "selective" or any(stage.recompute.policy == "selective" for stage in stages):
        return "DeepSpeed recomputes whole layers, not single modules: use recompute full or none"
    return None


def _activation_offload(given: RuleInput) -> str | None:
    stages = given.layout or ()
    if given.strategy.activation_offload or any(stage.offload.activation_layers for stage in stages):
        return "DeepSpeed moves only inputs of recomputed layers to the host, not a layer's saved activations"
    return None


def _even_offload(given: RuleInput) -> str | None:
    wanted = given.strategy.optimizer_offload
    if any(stage.offload.optimizer != wanted for stage in given.layout or ()):
        return "one config serves all stages: optimizer offload is on for all of them or for none"
    return None


def _gradient_overlap(given: RuleInput) -> str | None:
    s = given.strategy
    possible = gradient_overlap_possible(s, fp32_gradients_on_bf16=fp32_gradients_on_bf16(given))
    if s.overlap_grad_reduce and not possible:
        return "gradient reduction overlaps only with ZeRO-2 and 3, or ZeRO-1 off the BF16 optimizer, without pipeline"
    return None


def _gather_overlap(given: RuleInput) -> str | None:
    s = given.strategy
    if s.overlap_param_gather and s.zero_stage != 3:
        return "parameters are prefetched only in ZeRO-3; overlap_param_gather must be off"
    if s.overlap_param_gather and not s.overlap_grad_reduce:
        return "one switch (overlap_comm) makes both streams: overlap_param_gather needs overlap_grad_reduce"
    return None


def _expert_overlap(given: RuleInput) -> str | None:
    return "AutoEP does not overlap its all-to-all; overlap_ep must be off" if given.strategy.overlap_ep else None


def _tensor_overlap(given: RuleInput) -> str | None:
    s = given.strategy
    return "overlap_tp needs tp > 1" if s.overlap_tp and s.tp == 1 else None


def _axis_order(given: RuleInput) -> str | None:
    if given.strategy.axis_order != "tp-cp-ep-dp-pp":
        return "stages are the outermost axis: axis_order must be tp-cp-ep-dp-pp"
    return None


EXPRESSIBLE_RULES: tuple[SpaceRule, ...] = (
    SpaceRule("P1", f"{_DS} runtime/pipe/schedule.py", _schedule, ("schedule", "vpp", "pp")),
    SpaceRule("P2", f"{_DS} runtime/pipe/schedule.py", _group_size, ("microbatch_group_size",)),
    SpaceRule("P3", f"{_DS} runtime/engine.py (_configure_tensor_parallel_states)", _one_model_axis, ("tp", "cp")),
    SpaceRule("P4", f"{_DS} __init__.py:582, runtime/pipe/topology.py:232", _pipeline_alone, ("pp", "tp", "cp", "ep")),
    SpaceRule("P5", "docs: emit deepspeed", _pipeline_family, ("pp",)),
    SpaceRule("P6", f"{_DS} module_inject/layers.py", _sequence_parallel, ("sp",)),
    SpaceRule("P7", f"{_DS} runtime/sequence_parallel/", _ring, ("cp_kind", "cp")),
    SpaceRule("P8", f"{_DS} module_inject/auto_ep_folding.py:215", _expert_tensor, ("etp",)),
    SpaceRule("P9", f"{_DS} runtime/config.py:143", _hybrid_sharding, ("dp_replicate", "zero_stage")),
    SpaceRule("P10", f"{_DS} runtime/pipe/module.py (activation_checkpoint_interval)", _selective, ("recompute",)),
    SpaceRule(
        "P11",
        f"{_DS} runtime/activation_checkpointing/config.py (cpu_checkpointing)",
        _activation_offload,
        ("activation_offload",),
    ),
    SpaceRule("P12", f"{_DS} runtime/zero/offload_config.py", _even_offload, ("optimizer_offload",)),
    SpaceRule(
        "P13",
        f"{_DS} runtime/engine.py:2305, runtime/engine.py:2665",
        _gradient_overlap,
        ("overlap_grad_reduce", "zero_stage", "pp"),
    ),
    SpaceRule(
        "P14",
        f"{_DS} runtime/zero/parameter_offload.py:195",
        _gather_overlap,
        ("overlap_param_gather", "zero_stage", "overlap_grad_reduce"),
    ),
    SpaceRule("P15", f"{_DS} module_inject/auto_ep_layer.py", _expert_overlap, ("overlap_ep",)),
    SpaceRule(
        "P16", f"{_DS} runtime/tensor_parallel/config.py (tp_overlap_comm)", _tensor_overlap, ("overlap_tp", "tp")
    ),
    SpaceRule("P17", f"{_DS} runtime/pipe/topology.py:232-248", _axis_order, ("axis_order",)),
)
