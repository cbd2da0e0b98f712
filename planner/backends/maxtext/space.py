"""Which strategies does MaxText refuse, or not express?  Small functions over a ``RuleInput``.

Letters: M the model itself (``model_rules``), W the workload, G batch and mesh, S slices, T tensor parallelism,
C context parallelism, E experts, P pipeline, Z data parallelism, R recompute and offload, O overlap.  Integer
arithmetic on a few fields, so that the search can ask it for every strategy.
"""

from __future__ import annotations

from planner.backends.maxtext.axis_rules import AXIS_RULES
from planner.backends.maxtext.model_rules import MODEL_RULES
from planner.backends.maxtext.run_rules import RUN_RULES
from planner.backends.rules.rule import RuleTable, TargetRule

STRATEGY_RULES: tuple[TargetRule, ...] = (*AXIS_RULES, *RUN_RULES)

TABLE = RuleTable("maxtext", MODEL_RULES, STRATEGY_RULES)
violations, rules = TABLE.violations, TABLE.over_plans
