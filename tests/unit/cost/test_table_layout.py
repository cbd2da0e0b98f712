"""Tables of layer costs lie in memory as rows are picked: of any other layout each pick copies the whole table."""

from __future__ import annotations

from dataclasses import fields

import pytest

from planner.backends.asked import the_software
from planner.model.load import load_model
from planner.predict.cost.hardware import problem_hardware
from planner.predict.cost.row_cost import CostModel
from planner.question.problem import Constraints, Problem, Workload
from planner.search.space import Space
from profiles.catalogue import load_cluster


@pytest.mark.parametrize("backend", ["megatron", "torchtitan"])
def test_every_table_of_layers_lies_row_by_row(backend: str) -> None:
    problem = Problem(
        model=load_model("mixtral-8x7b"),
        cluster=load_cluster("dgx-h100", 8),
        workload=Workload(global_batch_size=64, sequence_length=2048),
        constraints=Constraints(backends=(backend,)),
    )
    hardware = problem_hardware(problem, the_software(problem).release.physics)
    space = Space(problem, 8)
    costs = CostModel(problem.model, problem.workload, hardware, space.reliefs)
    layers = costs.keyed(space.cores)[0].layers
    assert layers.relief_s.ndim == layers.saved_bytes.ndim == 3
    assert [each.name for each in fields(layers) if not getattr(layers, each.name).flags.c_contiguous] == []
