"""Which strategies does MaxText refuse, or not express?  Small functions over a ``RuleInput``.

Letters: M the model itself (``model_rules``), W the workload, G batch and mesh, S slices, T tensor parallelism,
C context parallelism, E experts, P pipeline, Z data parallelism, R recompute and offload, O overlap.  Integer
arithmetic on a few fields, so that the search can ask it for every strategy.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.backends.backend import Space
from planner.backends.maxtext.axis_rules import AXIS_RULES
from planner.backends.maxtext.model_rules import MODEL_RULES
from planner.backends.maxtext.run_rules import RUN_RULES
from planner.backends.maxtext.saved_tensors import canonical_modules
from planner.backends.rules.columns import Columns
from planner.backends.rules.rule import RuleInput, RuleTable, SpaceRule, used_kinds
from planner.strategy import Strategy

STRATEGY_RULES: tuple[SpaceRule, ...] = (*AXIS_RULES, *RUN_RULES)

TABLE = RuleTable("maxtext", MODEL_RULES, STRATEGY_RULES)
violations, rules = TABLE.violations, TABLE.over_plans


def spelled(s: Strategy, given: RuleInput) -> Strategy:
    """One spelling for switches that mean nothing beside the others, as the file gives them back."""
    changes: dict[str, Any] = {"microbatch_group_size": 0}
    if s.pp == 1:
        changes |= {"schedule": "1f1b", "axis_order": "tp-cp-ep-dp-pp"}
    if s.cp == 1:
        changes["cp_kind"] = "none"
    if s.tp == 1:
        changes["sp"] = False
    if s.zero_stage == 3 and s.dp_shard * s.cp * s.ep == 1:
        changes |= {"zero_stage": 0, "dp_replicate": 1, "dp_shard": s.dp}
    if s.zero_stage == 0:
        changes |= {"dp_replicate": 1, "dp_shard": s.dp}
    if s.recompute == "full":
        changes["recompute_modules"] = ()
    elif s.recompute == "selective":
        kinds = used_kinds(given.model)
        changes["recompute_modules"] = canonical_modules(
            s.recompute_modules,
            dense_layers=any(kind.mlp or (kind.moe and kind.moe.shared_intermediate_size) for kind in kinds),
            expert_layers=any(kind.moe for kind in kinds),
        )
    return replace(s, **changes)


SPACE = Space(
    Columns(
        schedules=("1f1b", "gpipe"),
        zero_stages=(0, 1, 3),
        zero_stages_with_pipeline=(0, 1, 3),
        axis_orders=(0,),
        activation_offload=False,
        overlap_ep=(False,),
        overlap_tp=False,
        even_layers=True,
    ),
    TABLE,
    spelled,
)
