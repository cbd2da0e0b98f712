"""The best placements on one mesh, and a bound of how good any could be.

The solver minimises the tables of ``planner.shard.selection_tables``.  Its answer is placed, billed and simulated anew;
if resharding buffers push the simulated peak over the device's memory, the solver gets that much less and tries again.
The bound stays that of the first, loosest problem, so the gap is honest for the final answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from planner.errors import BudgetSpent, NoFeasiblePlan
from planner.predict.cost.hardware import COMMUNICATOR_BYTES, FRAMEWORK_BYTES, Hardware
from planner.shard.folding import FoldedGraph, fold_repeated_blocks, unfolded
from planner.shard.memory_over_time import MemoryOverTime, memory_over_time
from planner.shard.mesh_shapes import MeshShape
from planner.shard.operator_graph import OperatorGraph
from planner.shard.operator_work import OperatorTimes
from planner.shard.placed_step import PlacedStep, StepBill, bill, placed_step
from planner.shard.redistribution import RedistributionTimes
from planner.shard.selection_tables import SelectionTables, TableBuilder
from planner.shard.training_state import TrainingState
from solver.selection.answer import Answer
from solver.selection.problem import SelectionProblem

Solve = Callable[[SelectionProblem, float], Answer]
MOST_ATTEMPTS = 6
_NODES_NAMED = 5


@dataclass(frozen=True)
class StepQuestion:
    """A traced step, the devices it runs on, and what else decides: precision, optimizer, memory kept free."""

    graph: OperatorGraph
    mesh: MeshShape
    hardware: Hardware
    precision: str
    state: TrainingState
    memory_margin: float = 0.06
    fold: bool = True

    @property
    def capacity_bytes(self) -> int:
        """What is left of a device's memory after margin, back-end and one communicator an axis."""
        free = self.hardware.memory_bytes * (1.0 - self.memory_margin)
        return int(free - FRAMEWORK_BYTES - COMMUNICATOR_BYTES * sum(size > 1 for size in self.mesh.sizes))


@dataclass(frozen=True)
class ProvedStep:
    """The best placement found, its bill and memory, and the proof."""

    question: StepQuestion
    folded: FoldedGraph
    builder: TableBuilder
    tables: SelectionTables
    choice: tuple[int, ...]
    placed: PlacedStep
    bill: StepBill
    memory: MemoryOverTime
    bound_ps: int

    @property
    def gap(self) -> float:
        """(cost - bound) / cost."""
        return max(self.bill.total_ps - self.bound_ps, 0) / max(self.bill.total_ps, 1)


def table_builder(question: StepQuestion) -> TableBuilder:
    """The builder of a question's tables."""
    folded = fold_repeated_blocks(question.graph) if question.fold else unfolded(question.graph)
    times = OperatorTimes(question.mesh, question.hardware, question.precision)
    redistribution = RedistributionTimes(question.mesh, question.hardware)
    return TableBuilder(question.graph, folded, times, redistribution, question.state, question.capacity_bytes)


def prove(
    question: StepQuestion, solve: Solve, time_limit_s: float = 60.0, builder: TableBuilder | None = None
) -> ProvedStep:
    """Solve one question.  Raises NoFeasiblePlan (names the operators that bind) or BudgetSpent."""
    builder = builder or table_builder(question)
    tables = builder.build()
    capacity, bound = question.capacity_bytes, None
    end = time.monotonic() + time_limit_s
    for attempt in range(MOST_ATTEMPTS):
        # Kernels may be compiled inside the first attempt, which has the whole time; the others share what is left.
        left_s = time_limit_s if attempt == 0 else end - time.monotonic()
        if left_s <= 0:
            break
        answer = solve(replace(tables.problem, capacity=capacity), left_s)
        if answer.choice is None:
            raise _no_answer(question, builder, tables, answer)
        bound = answer.bound if bound is None else bound
        placed = placed_step(question.graph, tables, answer.choice)
        memory = memory_over_time(question.graph, placed, question.mesh, question.state)
        if memory.peak_bytes <= question.capacity_bytes:
            charged = bill(question.graph, placed, builder)
            return ProvedStep(
                question, builder.folded, builder, tables, answer.choice, placed, charged, memory, bound or 0
            )
        capacity -= memory.peak_bytes - question.capacity_bytes
    if left_s <= 0:
        raise BudgetSpent(
            f"the time limit ended before a placement on {question.mesh.text} fitted with its buffers",
            where="--time-limit",
            hint="allow more seconds, use more devices or trace a smaller batch",
        )
    raise NoFeasiblePlan(
        f"no placement on {question.mesh.text} fits once the buffers of its own resharding are counted",
        binding="memory",
        relaxations=("use more devices", "lower --memory-margin"),
        where=f"operator {question.graph.nodes[memory.peak_step].name}",
    )


def _no_answer(
    question: StepQuestion, builder: TableBuilder, tables: SelectionTables, answer: Answer
) -> NoFeasiblePlan | BudgetSpent:
    if answer.status != "infeasible":
        return BudgetSpent(
            f"the time limit ended before any placement on {question.mesh.text} was found",
            where="--time-limit",
            hint="allow more seconds",
        )
    window = answer.binding_window
    if window is None:
        names = ", ".join(tables.problem.name(node) for node in answer.forbidden_nodes[:_NODES_NAMED])
        return NoFeasiblePlan(
            f"no placements on {question.mesh.text} go together: none of {names} can be resharded as the others need",
            binding=f"placements of {names}",
            relaxations=("use another mesh shape",),
            where=f"operators {names}",
        )
    gib = 2.0**30
    kept = [node.name for node, stays in zip(question.graph.nodes, builder.folded.kept, strict=True) if stays]
    first, last = kept[min(window.begin, len(kept) - 1)], kept[min(window.end, len(kept)) - 1]
    return NoFeasiblePlan(
        f"at least {window.least_usage / gib:.2f} GiB of {window.capacity / gib:.2f} GiB are needed at once "
        f"on {question.mesh.text}",
        binding="memory",
        relaxations=("use more devices", "lower --memory-margin", "trace a smaller batch"),
        where=f"operators {first} .. {last}",
    )
