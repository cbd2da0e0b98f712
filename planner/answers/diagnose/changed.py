"""The step time that the cost model gives a plan with some values changed, as a log states them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.backends.asked import problem_of
from planner.errors import MeshwrightError
from planner.plan.plan import Plan
from planner.question.problem import Problem
from planner.search.estimate import estimate
from planner.strategy.strategy import Strategy


def estimated_s(plan: Plan, problem: Problem, strategy: Strategy) -> float:
    """The step time of a strategy, its layers dealt anew.  Raises FindingsInvalid.

    All layers recompute or offload, unless the plan's own relief is kept, and only some of its layers have it.
    """
    relief = ("recompute", "activation_offload")
    kept = all(getattr(strategy, name) == getattr(plan.chosen(), name) for name in relief)
    partial = any(sum(stage.recompute.num_layers_per_chunk) < stage.layers for stage in plan.stages)
    some = kept and partial and strategy.recompute != "none"
    return estimate(problem, strategy, relief="where_needed" if some else "every").step_time_s


class Changed:
    """Predictions of a plan's strategy under the plan's own question, the layers dealt anew each time."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._own_s: float | None = None

    def more_s(self, step_s: float | None) -> float | None:
        """How much longer than the unchanged strategy; None where one of the two is refused."""
        if step_s is None:
            return None
        if self._own_s is None:
            self._own_s = self.step_s({})
        return None if self._own_s is None else step_s - self._own_s

    def step_s(self, changes: Mapping[str, Any]) -> float | None:
        """The step time; None where a rule of the plan's back-end refuses the change, or it divides nothing."""
        try:
            problem, strategy = self._changed(changes)
            return estimated_s(self._plan, problem, strategy)
        except (MeshwrightError, ValueError, ZeroDivisionError):
            return None

    def _changed(self, changes: Mapping[str, Any]) -> tuple[Problem, Strategy]:
        problem, own = problem_of(self._plan), self._plan.chosen()
        sizes = {
            name: changes[name] for name in ("global_batch_size", "sequence_length", "precision") if name in changes
        }
        if sizes:
            # Validated again: a log may state what no question may.
            workload = problem.workload.model_validate({**problem.workload.model_dump(), **sizes})
            problem = problem.model_copy(update={"workload": workload})
        fields = {name: changes[name] for name in changes if name not in sizes and name != "dp"}
        if "recompute" in fields:
            # Megatron-LM's default modules of a selective policy (arguments.py: recompute_modules).
            fields["recompute_modules"] = ("attention_core",) if fields["recompute"] == "selective" else ()
        strategy = replace(own, **fields)
        dp = int(changes.get("dp", strategy.dp))
        replicate = strategy.dp_replicate if dp % strategy.dp_replicate == 0 else 1
        microbatches, left = divmod(problem.workload.global_batch_size, strategy.micro_batch_size * dp)
        if left:
            raise ValueError("the micro-batches do not divide the batch")
        return problem, replace(
            strategy, dp_replicate=replicate, dp_shard=dp // replicate, num_microbatches=microbatches
        )
