"""The strategies that DeepSpeed 0.19.8 refuses or runs differently: small functions over a ``RuleInput``.

Letters: C ``DeepSpeedConfig`` refuses the file; E the engine, the pipeline, AutoTP, AutoEP or Ulysses refuses at
start; T accepted in silence, but another thing runs than planned; P no word of the files; M the model itself
(``model_rules``); V the devices.  The config file's own rules (unknown and removed keys) are in ``config_keys``.

Everything here is integer arithmetic on a few fields, so that the search can ask it for every strategy.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.backends.backend import Space
from planner.backends.deepspeed.adapters import FAMILY_RULES, SCRIPT_RULES
from planner.backends.deepspeed.engine_rules import ENGINE_RULES, QUESTION_RULES
from planner.backends.deepspeed.expressible_rules import (
    EXPRESSIBLE_RULES,
    fp32_gradients_on_bf16,
    gradient_overlap_possible,
)
from planner.backends.deepspeed.model_rules import MODEL_RULES, TRACED_RECOMPUTE
from planner.backends.deepspeed.version import DEEPSPEED_VERSION
from planner.backends.rules.columns import Columns
from planner.backends.rules.packed_sequences import packed_sequences
from planner.backends.rules.pipeline import end_problem, placement_problem
from planner.backends.rules.rule import RuleInput, RuleTable, SpaceRule
from planner.backends.rules.token_mixers import decoders_only
from planner.backends.rules.training_kinds import SIXTEEN_BIT, training_kinds
from planner.strategy.strategy import Strategy


def _device(given: RuleInput) -> str | None:
    if given.architecture == "battlemage":
        return "DeepSpeed runs on Intel's Gaudi and Data Center GPU Max, not on Arc; name another --backend"
    return None


def _one_policy(given: RuleInput) -> str | None:
    wanted = given.strategy.recompute
    if any(stage.recompute.policy not in ("none", wanted) for stage in given.layout or ()):
        return f"the strategy says recompute={wanted}, a stage recomputes otherwise"
    return None


def _chunks_in_place(given: RuleInput) -> str | None:
    return placement_problem(given, of_chunk=end_problem)


DEVICE_RULES: tuple[SpaceRule, ...] = (
    SpaceRule("V1", f"deepspeed {DEEPSPEED_VERSION} README: contributed hardware support", _device),
)
STRATEGY_RULES: tuple[SpaceRule, ...] = (
    *ENGINE_RULES,
    *EXPRESSIBLE_RULES,
    SpaceRule("P18", "docs: emit deepspeed (training.json)", _one_policy, ("recompute",)),
    SpaceRule("P19", "docs: emit deepspeed (training.json)", _chunks_in_place, ("pp", "vpp")),
    TRACED_RECOMPUTE,
)
KINDS = training_kinds(
    "docs: emit deepspeed (train_deepspeed.py: adapter_config.json)",
    bases=SIXTEEN_BIT,
    instead="name --backend accelerate, which goes through DeepSpeed for ZeRO-1 and optimizer offload",
)
PACKED = packed_sequences("docs: emit deepspeed (train_deepspeed.py feeds whole sequences)")
DECODERS = decoders_only("docs: emit deepspeed (train_deepspeed.py: AutoModelForCausalLM)")
TABLE = RuleTable(
    "deepspeed",
    (*DEVICE_RULES, KINDS, PACKED, DECODERS, *FAMILY_RULES, *MODEL_RULES, *QUESTION_RULES),
    (*STRATEGY_RULES, *SCRIPT_RULES),
)


def spelled(s: Strategy, given: RuleInput) -> Strategy:
    """One spelling for switches that mean nothing beside the others, as the files give them back."""
    changes: dict[str, Any] = {"microbatch_group_size": 0}
    if s.pp == 1:
        changes |= {"schedule": "1f1b", "vpp": 1, "axis_order": "tp-cp-ep-dp-pp"}
    if s.cp == 1:
        changes["cp_kind"] = "none"
    if s.tp == 1:
        changes |= {"sp": False, "overlap_tp": False}
    if s.ep == 1:
        changes["overlap_ep"] = False
    if s.recompute != "selective":
        changes["recompute_modules"] = ()
    if s.dp * s.cp == 1:
        fp32 = fp32_gradients_on_bf16(given)
        overlaps = s.overlap_grad_reduce and gradient_overlap_possible(s, fp32_gradients_on_bf16=fp32)
        changes["overlap_grad_reduce"] = overlaps
        changes["overlap_param_gather"] = s.overlap_param_gather and s.zero_stage == 3 and overlaps
    return replace(s, **changes)


SPACE = Space(
    Columns(
        schedules=("1f1b", "dualpipev"),
        cp_kinds=("all_to_all",),
        sequence_parallel=(False,),
        hybrid_sharding=False,
        apart=(("pp", "tp"), ("pp", "cp"), ("pp", "ep"), ("tp", "cp"), ("cp", "ep")),
        overlap_grad_with_pipeline=False,
        zero_stages_with_pipeline=(0, 1),
        axis_orders=(0,),
        expert_tensor_parallel=False,
        activation_offload=False,
        overlap_ep=(False,),
        overlap_data=((True, True), (True, False), (False, False)),
        recompute=("none", "full"),
    ),
    TABLE,
    spelled,
)
