"""The time in which 512 scattered nodes are placed, the gap to the bound, and what the order wins.

1,024 nodes of DGX H100 under 32 leaves, a quarter of the capacity above them.  Other jobs hold 307 nodes in runs of 1
to 8 drawn with a fixed seed, and the job gets 512 of the others at random, so that the cluster is 80 % full.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.measurement import Measurement, Spec
from planner.answers.placement.placement import Placement, place_nodes
from planner.answers.placement.switches import read_switches
from planner.model.load import load_model
from planner.plan.plan import Plan
from planner.question.problem import Constraints, Problem, Workload
from planner.search.estimate import estimate
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from solver.constraint_program import Effort

NODES, LEAF, JOB, FULL = 1024, 32, 512, 0.8
OVERSUBSCRIPTION = 4.0
TARGET_S = 10.0
EFFORT = Effort(wall_s=5.0, deterministic_s=20.0)
CASES = {
    "dense": ("llama-3.1-405b", Strategy(tp=8, sp=True, pp=16, dp_shard=32, num_microbatches=64)),
    "experts": ("deepseek-v3", Strategy(ep=64, pp=16, dp_shard=256, num_microbatches=32)),
}


def allocation(seed: int = 0) -> tuple[list[str], str]:
    """Names of the job's nodes, in order, and the leaves of the cluster."""
    draw, taken = np.random.default_rng(seed), np.zeros(NODES, dtype=bool)
    while taken.sum() < int(FULL * NODES) - JOB:
        length = int(draw.integers(1, 9))
        first = int(draw.integers(0, NODES - length))
        taken[first : first + length] = True
    nodes = np.sort(draw.choice(np.flatnonzero(~taken), JOB, replace=False))
    leaves = [f"leaf{at:02d}: n[{at * LEAF:04d}-{at * LEAF + LEAF - 1:04d}]" for at in range(NODES // LEAF)]
    return [f"n{node:04d}" for node in nodes.tolist()], "\n".join(leaves)


def plan_of(case: str) -> Plan:
    """The plan that is placed."""
    model, strategy = CASES[case]
    cluster = load_cluster("dgx-h100", JOB * 8)
    leaf, *above = cluster.fabric
    fabric = (leaf.model_copy(update={"oversubscription": OVERSUBSCRIPTION}), *above)
    problem = Problem(
        model=load_model(model),
        cluster=cluster.model_copy(update={"fabric": fabric}),
        workload=Workload(global_batch_size=strategy.global_batch_size, sequence_length=4096),
        constraints=Constraints(backends=("megatron",)),
    )
    return estimate(problem, strategy)


def placements(repeats: int) -> list[Measurement]:
    """Seconds of each case, with gap and step times."""
    nodes, leaves = allocation()
    return [_measured(case, nodes, leaves, repeats) for case in CASES]


def _measured(case: str, nodes: list[str], leaves: str, repeats: int) -> Measurement:
    plan, samples, cpu_s, found = plan_of(case), list[float](), list[float](), list[Placement]()
    for _ in range(repeats):
        start_s, start_cpu_s = time.perf_counter(), time.process_time()
        found.append(place_nodes(plan, nodes, read_switches(leaves), EFFORT))
        samples.append(time.perf_counter() - start_s)
        cpu_s.append(time.process_time() - start_cpu_s)
    answer = found[-1]
    return Measurement(
        f"placement-512-{case}",
        f"512 of 1,024 nodes placed under 32 leaves with a bound ({plan.problem.model.name})",
        "s",
        TARGET_S,
        tuple(samples),
        tuple(cpu_s),
        details={
            "gap": answer.gap,
            "exposed_s": [answer.listed_exposed_s, answer.placed_exposed_s, answer.bound_exposed_s],
            "step_time_s": [answer.plan_step_time_s, answer.listed_step_time_s, answer.placed_step_time_s],
            "faster_by": answer.faster_by,
        },
    )


PLACEMENT = Spec("placement", placements)
