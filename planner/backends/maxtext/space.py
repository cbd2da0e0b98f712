"""The strategies that MaxText refuses or cannot express: small functions over a ``RuleInput``.

Letters: M the model itself (``model_rules``), W the workload, G batch and mesh, S slices, T tensor parallelism,
C context parallelism, E experts, P pipeline, Z data parallelism, R recompute and offload, O overlap.  Integer
arithmetic on a few fields, so that the search can ask it for every strategy.
"""

from __future__ import annotations

from dataclasses import replace

from planner.backends.backend import Space
from planner.backends.maxtext.axis_rules import AXIS_RULES
from planner.backends.maxtext.model_rules import MODEL_RULES
from planner.backends.maxtext.run_rules import QUESTION_RULES, RUN_RULES
from planner.backends.rules.columns import Columns
from planner.backends.rules.overlap import data_parallel, plain_spelling
from planner.backends.rules.rule import RuleInput, RuleTable, SpaceRule
from planner.strategy.strategy import Strategy

STRATEGY_RULES: tuple[SpaceRule, ...] = (*AXIS_RULES, *RUN_RULES)

TABLE = RuleTable("maxtext", (*MODEL_RULES, *QUESTION_RULES), STRATEGY_RULES)
violations = TABLE.violations


def spelled(s: Strategy, given: RuleInput) -> Strategy:
    """One spelling for switches that mean nothing beside the others, as the file gives them back."""
    changes = plain_spelling(s) | {"microbatch_group_size": 0}
    if s.pp == 1:
        changes["schedule"] = "1f1b"
    if s.zero_stage == 0:
        changes |= {"dp_replicate": 1, "dp_shard": s.dp, "overlap_param_gather": True}
    if not data_parallel(given):
        changes |= {"overlap_grad_reduce": True, "overlap_param_gather": True}
    return replace(s, **changes)


SPACE = Space(
    Columns(
        schedules=("gpipe", "looped_bfs"),
        sequence_parallel=(True,),
        repeated_kv_heads=False,
        zero_stages=(0, 1, 3),
        zero_stages_with_pipeline=(0, 1, 3),
        hybrid_zero_stages=(3,),
        axis_orders=(0,),
        expert_tensor="tp",
        activation_offload=False,
        overlap_ep=(False,),
        overlap_tp=False,
        recompute=("selective", "full"),
        even_layers=True,
    ),
    TABLE,
    spelled,
)
