"""Which strategies does DeepSpeed 0.19.8 refuse, or accept and run differently?  Small functions over a ``RuleInput``.

Letters: C ``DeepSpeedConfig`` refuses the file; E the engine, the pipeline, AutoTP, AutoEP or Ulysses refuses at
start; T accepted in silence, but another thing runs than planned; P not expressible (see ``project``); M the model
itself (``model_rules``).  The config file's own rules (unknown and removed keys) are in ``config_keys``.

Everything here is integer arithmetic on a few fields, so that the search can ask it for every strategy.
"""

from __future__ import annotations

from planner.backends.deepspeed.engine_rules import ENGINE_RULES
from planner.backends.deepspeed.expressible_rules import EXPRESSIBLE_RULES
from planner.backends.deepspeed.model_rules import MODEL_RULES
from planner.backends.rules.rule import RuleTable, TargetRule

STRATEGY_RULES: tuple[TargetRule, ...] = (*ENGINE_RULES, *EXPRESSIBLE_RULES)

TABLE = RuleTable("deepspeed", MODEL_RULES, STRATEGY_RULES)
violations, rules = TABLE.violations, TABLE.over_plans
