"""CPU-seconds of this process for tracing a module and proving its placements, step by step.

Run: ``python -m benchmarks.module_sharding [--model]``.  The Llama-3-8B block (hidden 4096, ffn 14336, 32 heads, 8 of
keys, 8192 tokens, batch 16 and 2) with its backward pass on 2x8 and on 2x2x4 H100, beside Megatron's and FSDP's schemes
under the same cost model; ``--model``: all 32 layers with embedding, head and loss, folded, on 2x8.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

PRECISION, CLUSTER = "bf16", "dgx-h100"


class Laps:
    """CPU-seconds between calls."""

    def __init__(self) -> None:
        self.last = time.process_time()

    def __call__(self) -> float:
        """Seconds since the last call."""
        now = time.process_time()
        spent, self.last = now - self.last, now
        return spent


def measure(module: str, arguments: dict[str, Any], mesh_text: str, import_s: float, *, baselines: bool) -> None:
    """Trace, solve and print one row a phase."""
    from planner.predict.cost.hardware import hardware_of
    from planner.shard.baselines import BASELINES, prove_baseline
    from planner.shard.mesh_shapes import read_mesh
    from planner.shard.prove import StepQuestion, prove, table_builder
    from planner.shard.questions import sharding_plan
    from planner.shard.torch_graph.module_source import load_module
    from planner.shard.torch_graph.read_graph import operator_graph, traced_step
    from planner.shard.training_state import training_state
    from profiles.catalogue import load_cluster
    from solver.selection.answer import Answer
    from solver.selection.problem import SelectionProblem
    from solver.selection.solve import solve

    solving: list[float] = []

    def timed(problem: SelectionProblem, time_limit_s: float) -> Answer:
        lap = Laps()
        answer = solve(problem, time_limit_s=time_limit_s, threads=1)
        solving.append(lap())
        return answer

    lap = Laps()
    mesh = read_mesh(mesh_text)
    source = load_module(module, arguments)
    step = traced_step(source)
    traced_s = lap()
    graph = operator_graph(step, sorted(set(mesh.divisors)))
    rules_s = lap()
    hardware = hardware_of(load_cluster(CLUSTER, mesh.num_devices), PRECISION)
    question = StepQuestion(graph, mesh, hardware, PRECISION, training_state("adamw"))
    proved = prove(question, timed, 60.0, table_builder(question))
    proved_s = lap()
    plan = sharding_plan(proved, source, CLUSTER)
    plan_s = lap()
    problem = proved.tables.problem
    print(f"\n{module} {arguments} on {mesh_text}: {len(graph.nodes)} operators, {problem.num_nodes} variables")
    print(
        f"  {problem.num_edges} edges, {problem.edge_costs.size:,} cells, up to {problem.option_counts.max()} options"
    )
    print(f"  step {plan.costs.total_s * 1e3:.3f} ms, bound {plan.bound_s * 1e3:.3f} ms, gap {plan.gap:.4%}")
    print(f"  CPU-seconds: imports {import_s:.2f}, trace {traced_s:.2f}, rules {rules_s:.2f}", end="")
    print(f", tables and checks {proved_s - sum(solving):.2f}, solve {sum(solving):.2f}, plan {plan_s:.2f}")
    total = traced_s + rules_s + proved_s + plan_s
    print(f"  total {total:.2f} without imports, {total + import_s:.2f} with them")
    for name in BASELINES if baselines else ():
        other = prove_baseline(name, question, timed)
        ratio = other.bill.total_ps / proved.bill.total_ps
        print(f"  {name}: {other.bill.total_ps / 1e9:.3f} ms, {ratio:.3f} x the plan found")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="store_true", help="the whole model of 32 layers, folded, as well")
    asked = parser.parse_args()
    lap = Laps()
    import planner.shard.torch_graph.read_graph
    import solver.selection.solve  # noqa: F401

    del planner
    import_s = lap()
    for mesh in ("2x8", "2x2x4"):
        for batch in (16, 2):
            measure("tests.examples.llama_block:LlamaBlock", {"batch": batch}, mesh, import_s, baselines=batch == 16)
    if asked.model:
        measure("tests.examples.llama_block:Llama", {"batch": 16, "layers": 32}, "2x8", import_s, baselines=False)


if __name__ == "__main__":
    main()
