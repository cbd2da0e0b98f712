"""What Megatron-core asks of a strategy for the optimizer of the workload."""

from __future__ import annotations

from planner.backends.rules.rule import RuleInput
from planner.predict.memory.states import REDUCED
from planner.question.optimizers import OptimizerName

EMERGING: tuple[OptimizerName, ...] = ("muon", "lion")
"""Optimizers of the package emerging_optimizers, which the release calls for them (core/optimizer/__init__.py:730)."""
ALL: tuple[OptimizerName, ...] = ("adam", "adam_bf16_states", "adam_precision_aware", "sgd", *EMERGING)


def layer_wise(given: RuleInput) -> str | None:
    """Optimizers of the emerging ones, whose states are dealt to data-parallel ranks weight by weight."""
    s, name = given.strategy, given.workload.optimizer
    if name not in EMERGING:
        return None
    if s.zero_stage >= 2:
        return f"Megatron-FSDP (zero_stage 2 and 3) takes only adam and sgd; use zero_stage 1 with {name}"
    return None


def dealt_to_all(given: RuleInput) -> str | None:
    """Whole weights of one replica: the release takes more instances and deals to all ranks all the same."""
    s, name = given.strategy, given.workload.optimizer
    wrong = name in EMERGING and s.dp_replicate > 1
    return f"{name} deals whole weights to all data-parallel ranks: dp_replicate must be 1" if wrong else None


def emerging_fp16(given: RuleInput) -> str | None:
    """No loss scaling around them."""
    workload = given.workload
    wrong = workload.optimizer in EMERGING and workload.precision == "fp16"
    return f"{workload.optimizer} does not work with fp16; use bf16" if wrong else None


def precision_aware(given: RuleInput) -> str | None:
    """States in other number formats than fp32, or on the host."""
    s, optimizer = given.strategy, given.workload.optimizer
    if not s.optimizer_offload and optimizer not in REDUCED:
        return None
    reason = "optimizer offload" if s.optimizer_offload else "states in other formats than fp32"
    if s.zero_stage == 0:
        return f"{reason} needs the distributed optimizer: zero_stage >= 1"
    return None if optimizer == "adam" or optimizer in REDUCED else f"{reason} works with adam only"
