"""How devices may be divided between trainer and engines, and how fast a step of a division can be at best."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from planner.model.parameters import active_parameters
from planner.rl.predict.trainer import total_lengths
from planner.rl.problem import RlProblem
from planner.rl.words import Placement, Synchrony

_STEPS = 512
"""Lengths that stand for a distribution."""


@dataclass(frozen=True, slots=True)
class Division:
    """So many devices for each side; colocated sides have the same ones."""

    placement: Placement
    synchrony: Synchrony
    trainer_devices: int
    rollout_devices: int


def divisions(problem: RlProblem) -> Iterator[Division]:
    """Every division in whole nodes; within one node, in powers of two.

    Colocated devices train and generate in turns, which is synchronous.  Split ones overlap, so that they are only
    asked with a synchrony that lets them.
    """
    pool = problem.cluster.pools[0]
    asked, total = problem.constraints, pool.num_devices
    if "colocated" in asked.placements and "synchronous" in asked.synchrony:
        yield Division("colocated", "synchronous", total, total)
    if "split" not in asked.placements:
        return
    for synchrony in asked.synchrony:
        for rollout in _parts(total, pool.devices_per_node):
            yield Division("split", synchrony, total - rollout, rollout)


def _parts(total: int, node: int) -> list[int]:
    if total > node:
        return list(range(node, total, node))
    return [part for part in (1 << bit for bit in range(total.bit_length())) if part < total]


@dataclass(frozen=True, slots=True)
class LeastWork:
    """FLOPs of a step that no layout saves: two a weight and token forward, four backward.

    Matrix products alone: attention and everything else only adds.
    """

    trained_flops: float
    generated_flops: float
    peak_flops_per_s: float

    def step_s(self, division: Division, rollout_s: float = 0.0, trainer_s: float = 0.0) -> float:
        """No step of this division is shorter, since no device is faster than its peak.

        ``rollout_s``, ``trainer_s``: the shortest generation of any layout of the engines, and what the trainer's
        proved layout takes on its devices, where they are known.
        """
        trained_s = max(trainer_s, self.trained_flops / (division.trainer_devices * self.peak_flops_per_s))
        generated_s = self.generated_flops / (division.rollout_devices * self.peak_flops_per_s)
        if division.synchrony == "asynchronous":
            return max(trained_s, generated_s)
        generated_s = max(generated_s, rollout_s)
        return trained_s + generated_s if division.synchrony == "synchronous" else max(trained_s, generated_s)


def _tool_tokens(problem: RlProblem) -> float:
    """Tokens of a sample that tools answer: they are read, not generated."""
    return (problem.turns.mean - 1) * problem.turns.tool_tokens if problem.turns else 0.0


def least_work(problem: RlProblem) -> LeastWork:
    """The least work of a question's step."""
    lengths = total_lengths(problem)
    tokens = problem.num_samples * float(np.mean(lengths))
    # Over-sampled, the step ends when enough have ended, which are the shortest at best.
    ended = np.sort(lengths)[: max(1, int(len(lengths) / problem.over_sampling))]
    others = float(np.mean(problem.prompt_tokens.lengths(_STEPS))) + _tool_tokens(problem)
    generated = problem.num_samples * max(0.0, float(np.mean(ended)) - others)
    weights = float(active_parameters(problem.actor))
    passes = 1.0 * problem.old_log_prob + 1.0 * problem.has_reference
    trained = 2.0 * weights * tokens * (passes + 3.0 * problem.epochs)
    if problem.critic is not None:
        trained += 2.0 * active_parameters(problem.critic) * tokens * (1.0 + 3.0 * problem.epochs)
    device = problem.cluster.pools[0].device
    rates = device.peak_flops_per_s
    peak = max(rate for name, rate in rates.items() if name in (problem.precision, "bf16", "fp16"))
    fraction = max(device.achievable_matmul_fraction.get(problem.precision, 1.0), 0.5)
    return LeastWork(trained, 2.0 * weights * generated, peak * fraction)
