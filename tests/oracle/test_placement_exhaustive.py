"""Placement: the program over classes and leaves agrees with trying every order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from solver.constraint_program import Effort
from solver.placement import Family, Phase, PlacementProblem, SwitchTier, cost_s, in_order, place

EFFORT = Effort(wall_s=20.0, deterministic_s=5.0)
LEAF = np.inf


def grid(rows: int, stages: int) -> np.ndarray:
    """[row, stage]: positions of a job whose stages are side by side in blocks."""
    return np.arange(rows * stages).reshape(stages, rows).T


def stages_problem(
    free: list[int], rows: int, stages: int, weights: tuple[float, float], **phase: float
) -> PlacementProblem:
    """Rings within a stage in one phase, neighbours in the next."""
    positions = grid(rows, stages)
    families = [Family("ring", positions.T, np.full(stages, weights[0]), 0)]
    families += [Family("ring", positions[:, [at, at + 1]], np.full(rows, weights[1]), 1) for at in range(stages - 1)]
    tier = SwitchTier(np.arange(len(free)), np.array(free, dtype=float))
    kinds = np.repeat(np.arange(stages), rows)
    return PlacementProblem(
        rows * stages, np.array(free), (tier,), families, (Phase(**phase), Phase()), kind_of_position=kinds
    )


def experts_problem(free: list[int]) -> PlacementProblem:
    """Two stages of two expert groups of two; rings across the groups; two leaves of a pod."""
    exchange = np.arange(8).reshape(4, 2)
    rings = np.array([[0, 2], [1, 3], [4, 6], [5, 7]])
    families = [
        Family("all_to_all", exchange, np.full(4, 3.0), 0),
        Family("ring", rings, np.full(4, 1.0), 1),
        Family("ring", np.arange(8).reshape(2, 4), np.full(2, 2.0), 1),
    ]
    leaves = SwitchTier(np.arange(len(free)), np.array(free, dtype=float))
    pods = SwitchTier(np.arange(len(free)) // 2, np.ones((len(free) + 1) // 2))
    return PlacementProblem(8, np.array(free), (leaves, pods), families, (Phase(), Phase()), np.repeat([0, 1], 4))


def least_s(problem: PlacementProblem) -> float:
    """The least cost of all ways to deal leaves to positions."""
    slots = np.repeat(np.arange(len(problem.free)), problem.free).tolist()
    seen = {order[: problem.num_positions] for order in itertools.permutations(slots)}
    return min(cost_s(problem, np.array(order)) for order in seen)


@pytest.mark.parametrize(
    "problem",
    [
        stages_problem([4, 2, 2], 4, 2, (1.0, 1.0)),
        stages_problem([3, 3, 2], 4, 2, (1.0, 0.1)),
        stages_problem([3, 3, 2], 4, 2, (0.1, 1.0)),
        stages_problem([3, 3, 1], 2, 3, (1.0, 0.4), floor_s=0.4, share=0.2, cover_s=0.5),
        experts_problem([3, 3, 2]),
        experts_problem([2, 2, 2, 2]),
    ],
    ids=["stages", "rings", "neighbours", "covered, a node too many", "experts", "two tiers"],
)
def test_no_order_is_better_and_the_bound_holds(problem: PlacementProblem) -> None:
    best_s = least_s(problem)
    found = place(problem, EFFORT)
    assert found.objective_s == pytest.approx(cost_s(problem, found.leaf_of_position))
    assert found.bound_s <= best_s * (1 + 1e-9)
    assert found.objective_s == pytest.approx(best_s)
    assert (np.bincount(found.leaf_of_position, minlength=len(problem.free)) <= problem.free).all()
