"""What a framework holds beside model and strategy: closed forms by hand, nothing for the neutral traits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from planner.backends.asked import problem_hardware
from planner.backends.nanotron.physics import NANOTRON
from planner.model.mlp_operators import mlp_operators
from planner.model.spec import MlpSpec
from planner.predict.cost.hardware import hardware_of
from planner.predict.memory.framework_memory import (
    collective_buffer_bytes,
    framework_buffer_bytes,
    step_copy_bytes,
    with_framework_gradients,
    with_framework_kept,
)
from planner.predict.memory.states import state_bytes
from planner.predict.physics.physics import TUNED
from planner.question.problem import Constraints, Problem, Workload
from profiles.catalogue import load_device
from tests.plan_factory import make_cluster, make_model

WORKLOAD = Workload(global_batch_size=1, sequence_length=1)
ONE = np.array([1.0])


def _total(zero: int, ranks: int, kept_per_parameter: float) -> float:
    zeros, shared = np.array([zero]), np.array([float(ranks)])
    state = state_bytes(WORKLOAD, zeros, shared, np.array([0]))
    return float(with_framework_gradients(state, zeros, shared, np.array([kept_per_parameter]), NANOTRON).total[0])


@pytest.mark.parametrize(("zero", "ranks", "total"), [(0, 1, 18), (0, 8, 20), (1, 8, 8 + 12 / 8), (3, 8, 18 / 8)])
def test_buckets_cost_two_bytes_where_whole_gradients_are_reduced(zero: int, ranks: int, total: float) -> None:
    assert _total(zero, ranks, kept_per_parameter=9.0) == pytest.approx(total)


@pytest.mark.parametrize(("kept", "passing"), [(0.0, 2.0), (1.5, 0.5), (2.0, 0.0), (7.0, 0.0)])
def test_passing_gradients_count_beyond_what_the_pass_frees(kept: float, passing: float) -> None:
    assert _total(0, 8, kept) == pytest.approx(20 + passing)


def test_an_unfused_gate_keeps_four_widths_instead_of_three() -> None:
    operators = mlp_operators(MlpSpec(intermediate_size=100, gated=True), 30, input_from="")
    kept = sum(operator.saved_width for operator in with_framework_kept(operators, NANOTRON))
    assert sum(operator.saved_width for operator in operators) == 30 + 300
    assert kept == 30 + 400
    assert with_framework_kept(operators, TUNED) == tuple(operators)


def test_a_plain_non_linearity_keeps_the_same_in_one_kernel_or_alone() -> None:
    operators = mlp_operators(MlpSpec(intermediate_size=100, gated=False), 30, input_from="")
    assert with_framework_kept(operators, NANOTRON) == tuple(operators)


def test_two_buffers_stay_where_tensors_are_parallel() -> None:
    held = collective_buffer_bytes(NANOTRON, np.array([5.0, 5.0]), np.array([1, 8]))
    assert held.tolist() == [0.0, 10.0]


def test_working_tensors_of_a_layer() -> None:
    """Three whole tensors, and the gradients of two thirds of what the layer keeps."""
    assert framework_buffer_bytes(NANOTRON, 5.0 * ONE, np.array([1]), 30.0 * ONE)[0] == pytest.approx(15 + 20)
    assert framework_buffer_bytes(TUNED, 5.0 * ONE, np.array([8]), 30.0 * ONE)[0] == 0


@pytest.mark.parametrize(("zero", "shards", "copies"), [(0, 8, 0), (1, 1, 0), (1, 8, 2 + 2 / 8), (3, 8, 0)])
def test_the_step_of_zero_one_copies_shard_and_whole(zero: int, shards: int, copies: float) -> None:
    found = step_copy_bytes(NANOTRON, np.array([zero]), np.array([float(shards)]))
    assert found[0] == pytest.approx(copies)
    assert step_copy_bytes(TUNED, np.array([zero]), np.array([float(shards)]))[0] == 0


def test_a_plan_keeps_dropout_masks_where_its_workload_asks_for_dropout_and_nowhere_else() -> None:
    """The launch files of a plan set dropout by the workload, whatever a back-end's default is."""
    for name, dropout in itertools.product(("unrestricted", "megatron==2.5"), (False, True)):
        workload = WORKLOAD.model_copy(update={"dropout": dropout})
        problem = Problem(
            model=make_model(), cluster=make_cluster(8), workload=workload, constraints=Constraints(backends=(name,))
        )
        assert problem_hardware(problem).physics.dropout is dropout


def test_devices_without_fused_kernels_keep_the_scores_that_their_attention_writes() -> None:
    cluster = make_cluster(8)
    pool = cluster.pools[0].model_copy(update={"device": load_device("v100-sxm2-32gb")})
    old = hardware_of(cluster.model_copy(update={"pools": (pool,)}), "fp16")
    assert old.physics.attention == "unfused"
    assert hardware_of(cluster, "bf16").physics.attention == "best"
