"""Questions about sharding for tests: a traced module on a mesh of H100s, and how it is solved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.predict.cost.hardware import hardware_of
from planner.shard.mesh_shapes import read_mesh
from planner.shard.prove import Solve, StepQuestion
from planner.shard.torch_graph.module_source import ModuleSource, load_module
from planner.shard.torch_graph.read_graph import operator_graph, traced_step
from planner.shard.training_state import training_state
from profiles.catalogue import load_cluster
from solver.selection.answer import Answer
from solver.selection.problem import SelectionProblem
from solver.selection.solve import solve

SMALL_BLOCK = {"hidden_size": 1024, "ffn_size": 2816, "heads": 8, "kv_heads": 4, "sequence": 4096, "batch": 8}
SMALL_MODEL = {**SMALL_BLOCK, "vocabulary": 8192, "sequence": 1024}


def source_of(name: str, **arguments: Any) -> ModuleSource:
    """A module of ``tests.examples`` on the meta device."""
    return load_module(f"tests.examples.{name}", arguments)


def question_of(source: ModuleSource, mesh: str, *, fold: bool = True, margin: float = 0.06) -> StepQuestion:
    """The step of a module on a mesh of H100s."""
    shape = read_mesh(mesh)
    graph = operator_graph(traced_step(source), divisors_of(mesh))
    hardware = hardware_of(load_cluster("dgx-h100", shape.num_devices), "bf16")
    return StepQuestion(graph, shape, hardware, "bf16", training_state("adamw"), margin, fold)


def divisors_of(mesh: str) -> Sequence[int]:
    """What sharding rules are asked with."""
    return sorted(set(read_mesh(mesh).divisors))


def engine(problem: SelectionProblem, time_limit_s: float) -> Answer:
    """The selection solver on one thread."""
    return solve(problem, time_limit_s=time_limit_s, threads=1)


ENGINE: Solve = engine
