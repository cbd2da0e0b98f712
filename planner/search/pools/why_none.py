"""Why a search over pools found no plan: the time, the pins, the rules of the back-end, or memory."""

from __future__ import annotations

from collections.abc import Collection

from planner.errors import BudgetSpent, NoFeasiblePlan
from planner.search.backend_rules import BackEndRules
from planner.search.pin_conflict import value_word
from planner.search.pools.alike import FEWEST_STAGES, alike_spaces, of_stages
from planner.search.pools.microbatch_space import MicrobatchSpace
from planner.search.pools.problem import PoolsProblem
from planner.search.pools.stage_tables import span_classes
from planner.search.pools.sub_mesh import PoolHardware, pool_hardware
from planner.search.space import divisors
from planner.strategy.strategy import Strategy


def microbatch_samples(problem: PoolsProblem) -> list[int]:
    """Numbers of samples at a time."""
    batch, pinned = problem.workload.global_batch_size, problem.pins().get("num_microbatches")
    return [samples for samples in divisors(batch) if pinned is None or batch // samples == pinned]


def nothing_found(
    problem: PoolsProblem, pools: tuple[PoolHardware, ...], choices: int, *, late: bool
) -> BudgetSpent | NoFeasiblePlan:
    """The error of an empty search that looked at so many ``choices``; ``late``: its time was over."""
    if late:
        return BudgetSpent(
            "no plan over the pools was found in the time given", where="--time-limit", hint="allow more time"
        )
    sizes = ", ".join(f"{pool.hardware.num_devices} x {pool.hardware.pool.device.name}" for pool in pools)
    if choices == 0 and not _has_stages(problem):
        return _no_stages(problem, sizes)
    return NoFeasiblePlan(
        f"{problem.model.name} fits on {sizes} in no way: every stage that could hold its share needs more memory",
        binding="device memory of the stages",
        relaxations=("add devices to a pool", "allow recompute and offload (drop the pins that forbid them)"),
        pruned={"micro-batches that could not be filled or did not fit": choices},
    )


def _no_stages(problem: PoolsProblem, sizes: str) -> NoFeasiblePlan:
    """Nothing is large or small enough: pins, or the back-end's own rules, leave no stages whatever the memory."""
    named = (*problem.constraints.pins, *problem.constraints.forbids)
    if named and _has_stages(_under(problem, ())):
        needed = set(named)
        for each in named:
            if not _has_stages(_under(problem, needed - {each})):
                needed -= {each}
        return _pinned(problem, needed, sizes)
    rules = BackEndRules(pool_hardware(problem)[0].problem)
    stages = Strategy(num_microbatches=problem.workload.global_batch_size)
    said = rules.messages(of_stages(rules, stages, FEWEST_STAGES)) if problem.alike else []
    reasons = "; ".join(said) or f"the batch of {problem.workload.global_batch_size} cannot be dealt to two stages"
    return NoFeasiblePlan(
        f"{problem.constraints.backends[0]} runs {problem.model.name} in no stages on {sizes}: {reasons}",
        binding="rules of the back-end",
        relaxations=("plan each pool by itself", "drop --backend: the plan is then for study, without launch files"),
    )


def _pinned(problem: PoolsProblem, needed: Collection[str], sizes: str) -> NoFeasiblePlan:
    """Pins and forbids, each of them needed, that leave no stages."""
    pins = [f"{name}={value_word(value)}" for name, value in problem.constraints.pins.items() if name in needed]
    words = [*pins, *(f"no {name}" for name in problem.constraints.forbids if name in needed)]
    most = min(problem.model.num_layers, problem.num_devices, problem.workload.global_batch_size)
    why = f"; a plan has {FEWEST_STAGES} to {most} stages (pp)" if "pp" in needed else ""
    verb = "leaves" if len(words) == 1 else "together leave"
    return NoFeasiblePlan(
        f"{' and '.join(words)} {verb} no stages on {sizes}, whatever the memory{why}",
        binding="pins",
        relaxations=(f"drop {' or '.join(words)}, or pin another value",),
        where=f"--pin {words[0]}" if pins else f"--forbid {words[0].removeprefix('no ')}",
    )


def _under(problem: PoolsProblem, kept: Collection[str]) -> PoolsProblem:
    """The question with a part of its pins and forbids."""
    asked = problem.constraints
    narrow = {
        "pins": {name: value for name, value in asked.pins.items() if name in kept},
        "forbids": tuple(name for name in asked.forbids if name in kept),
    }
    return problem.model_copy(update={"constraints": asked.model_copy(update=narrow)})


def _has_stages(problem: PoolsProblem) -> bool:
    """Whether some stages are legal, whatever they need of memory."""
    pools, spans = pool_hardware(problem), span_classes(problem.model, problem.model.num_layers)
    for samples in microbatch_samples(problem):
        if problem.alike:
            if next(alike_spaces(problem, pools, samples, spans), None) is not None:
                return True
        elif MicrobatchSpace(problem, pools, samples, spans).meshes:
            return True
    return False
