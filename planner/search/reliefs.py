"""The ways to keep less for the backward pass that are worth a look: memory reliefs of a model in a back-end.

Full recompute, offload of activations, and selective recompute of every set of modules that

* the back-end recomputes: none of its rules about recompute alone refuses the set, and
* frees something that no smaller such set frees: recomputing attention behind a fused kernel, say, frees nothing, and
  recomputing an MLP frees its activation's input anyway.

A set that is left out keeps as much as one that is tried, and runs at least as much again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations
from typing import get_args

from planner.backends.asked import the_software
from planner.backends.rules.rule import RuleInput, SpaceRule
from planner.model.operators import layer_operators
from planner.model.recompute import freed_operators
from planner.predict.physics.physics import Physics
from planner.question.problem import Problem
from planner.strategy.strategy import OPERATOR_MODULES, RecomputeModule, Relief, Strategy

MODULES: tuple[RecomputeModule, ...] = get_args(RecomputeModule)
SETS: tuple[tuple[RecomputeModule, ...], ...] = tuple(
    chain.from_iterable(combinations(MODULES, size) for size in range(1, len(MODULES) + 1))
)
"""Every set of modules, the small ones first."""
OF_RECOMPUTE = frozenset({"recompute", "recompute_modules"})


def relief_choices(problem: Problem) -> tuple[Relief, ...]:
    """Memory reliefs of a problem of one back-end, from cheap to thorough; the first is none."""
    selective = (Relief("selective", modules) for modules in selective_sets(problem))
    return (Relief(), *selective, Relief("full"), Relief(offload=True))


def selective_sets(problem: Problem) -> list[tuple[RecomputeModule, ...]]:
    """Sets of modules of selective recompute that the back-end runs and that free something of their own."""
    wanted = the_software(problem)
    physics = wanted.release.physics
    if physics.operator_checkpointing:
        return [OPERATOR_MODULES]
    if wanted.release.space.columns.selective_modules:
        return [wanted.release.space.columns.selective_modules]
    alone = {module: _freed(problem, module, physics) for module in MODULES}
    of_recompute = [rule for rule in wanted.release.space.rules.strategy_rules if _about_recompute(rule)]
    kept: list[tuple[RecomputeModule, ...]] = []
    freed = list[frozenset[tuple[int, str]]]()
    for modules in SETS:
        frees = frozenset[tuple[int, str]]().union(*(alone[module] for module in modules))
        smaller = any(set(one) < set(modules) and what == frees for one, what in zip(kept, freed, strict=True))
        if frees and not smaller and not _refused(problem, of_recompute, modules):
            kept.append(modules)
            freed.append(frees)
    return kept


def _freed(problem: Problem, module: RecomputeModule, physics: Physics) -> frozenset[tuple[int, str]]:
    """What recomputing a module frees: names of operators, by layer kind, and what only this back-end keeps.

    Several modules free what each of them frees.
    """
    beyond = module == "attention_core" and _keeps_more_of_attention(physics)
    freed = {
        (kind, name)
        for kind in {run.kind for run in problem.model.layer_runs}
        for name in freed_operators(layer_operators(problem.model, kind), (module,))
    }
    return frozenset(freed | ({(-1, "attention_core")} if beyond else set()))


def _keeps_more_of_attention(physics: Physics) -> bool:
    """Whether the back-end keeps scores, or copies of the output, that recomputing the attention core frees."""
    return physics.attention == "unfused" or physics.attention_output_copies > 0.0 or physics.gathered_context


def _about_recompute(rule: SpaceRule) -> bool:
    """Whether the rule looks at recompute and at nothing else of a strategy."""
    return bool(rule.fields) and OF_RECOMPUTE.issuperset(rule.fields)


def _refused(problem: Problem, rules: Sequence[SpaceRule], modules: tuple[RecomputeModule, ...]) -> bool:
    """Whether one of the rules that are about recompute alone refuses the set for this model."""
    given = RuleInput(Strategy(recompute="selective", recompute_modules=modules), problem.model, problem.workload)
    return any(rule.check(given) is not None for rule in rules)
