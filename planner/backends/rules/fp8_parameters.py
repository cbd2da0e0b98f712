"""When Megatron-Core stores the weights of layers in 8 bit and nothing wider beside their fp32 masters.

``--fp8-param-gather`` (megatron-core 0.19.2 training/arguments.py:1060-1062 and 1803-1811): with the distributed
optimizer, which quantizes its master shards into the parameters (core/optimizer/distrib_optimizer.py:2815-2845), and
beside optimizer offload under the delayed recipe alone.  Megatron-FSDP takes it, too, and is not described here;
the release's layer-wise optimizers keep 16-bit weights.
"""

from __future__ import annotations

from planner.backends.rules.rule import RuleInput
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy

UPDATES = frozenset({"adam", "adam_bf16_states", "adam_precision_aware", "sgd"})
"""Optimizers whose shards the distributed optimizer quantizes."""


def fp8_parameters_problem(workload: Workload, zero_stage: int, *, optimizer_offload: bool) -> str | None:
    """Why weights would not be stored in 8 bit; None where they can be."""
    if workload.matmul_format != "fp8":
        return f"fp8_parameters needs products in fp8, not {workload.matmul_format}"
    if zero_stage != 1:
        return f"fp8_parameters needs the distributed optimizer: zero_stage 1, not {zero_stage}"
    if workload.optimizer not in UPDATES:
        return f"fp8_parameters is not there for {workload.optimizer}; use adam"
    if workload.trained.holds_frozen:
        return "fp8_parameters is for training of all weights; leave it out beside frozen ones"
    if optimizer_offload and workload.fp8_recipe != "delayed":
        return "fp8_parameters beside optimizer_offload needs the fp8 recipe delayed"
    return None


def fp8_parameters(given: RuleInput) -> str | None:
    """Does the strategy store weights in 8 bit where the release does not?"""
    s = given.strategy
    if not s.fp8_parameters:
        return None
    return fp8_parameters_problem(given.workload, s.zero_stage, optimizer_offload=s.optimizer_offload)


def weights_kept(workload: Workload, strategy: Strategy, setting: str) -> tuple[str, ...]:
    """How weights of layers are kept, for the notes of an emission; nothing to say in 16 bit.

    ``setting``: the back-end's own word for it, with ``{}`` in the place of fp8 or fp4.
    """
    if workload.precision != "fp8":
        return ()
    form, on = workload.matmul_format, strategy.fp8_parameters
    kept = "kept in 8 bit" if on else "kept and gathered in bf16"
    return (f"{form}: weights of layers are {kept} ({'' if on else 'no '}{setting.format(form)}).",)
