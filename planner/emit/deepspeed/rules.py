"""Which strategies does DeepSpeed 0.19.8 refuse, or accept and run differently?  Small functions over a ``RuleInput``.

Letters: C ``DeepSpeedConfig`` refuses the file; E the engine, the pipeline, AutoTP, AutoEP or Ulysses refuses at
start; T accepted in silence, but another thing runs than planned; P not expressible (see ``project``); M the model
itself (``model_rules``).  The config file's own rules (unknown and removed keys) are in ``config_keys``.

Everything here is integer arithmetic on a few fields, so that the search can ask it for every strategy.
"""

from __future__ import annotations

from planner.emit.deepspeed.engine_rules import ENGINE_RULES
from planner.emit.deepspeed.expressible_rules import EXPRESSIBLE_RULES
from planner.emit.deepspeed.model_rules import MODEL_RULES
from planner.emit.deepspeed.rule_input import DeepSpeedRule, RuleInput, rule_input
from planner.emit.emission import Finding, Rule
from planner.plan import Plan

STRATEGY_RULES: tuple[DeepSpeedRule, ...] = (*ENGINE_RULES, *EXPRESSIBLE_RULES)


def violations(given: RuleInput, *, model_too: bool = True) -> list[Finding]:
    """All rules that the strategy breaks; ``model_too=False`` leaves out those that depend on the model alone."""
    found = []
    for rule in (*MODEL_RULES, *STRATEGY_RULES) if model_too else STRATEGY_RULES:
        message = rule.check(given)
        if message is not None:
            found.append(Finding(f"deepspeed.{rule.id}", message, rule.source))
    return found


def rules() -> tuple[Rule, ...]:
    """The same rules over a whole plan."""
    return tuple(_adapt(rule) for rule in (*MODEL_RULES, *STRATEGY_RULES))


def _adapt(rule: DeepSpeedRule) -> Rule:
    def check(plan: Plan) -> str | None:
        return rule.check(rule_input(plan))

    return Rule(f"deepspeed.{rule.id}", rule.source, check)
