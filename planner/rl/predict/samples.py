"""The samples of one replica: as many lengths as it gets, among them the longest one of the whole step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from planner.question.sequences import Sequences
from planner.rl.problem import RlProblem

_SEED = 20260
"""Which sample comes when does not depend on its length; one fixed order makes equal questions equal."""
_FINE = 4096


@dataclass(frozen=True, slots=True)
class Samples:
    """Tokens of prompts and of responses, in the order in which they are started."""

    prompts: NDArray[np.float64]
    responses: NDArray[np.float64]

    @property
    def total(self) -> NDArray[np.float64]:
        """Tokens that the trainer sees."""
        return self.prompts + self.responses


def replica_samples(problem: RlProblem, num_replicas: int) -> Samples:
    """The samples of the replica that generates the longest response of a step.

    ``n`` lengths stand in equal steps of probability; the last stands for the longest of all ``N`` of the step, at
    probability ``1 - 1 / (2 N)``.  Over-sampling starts more of them.
    """
    started = problem.num_samples * problem.over_sampling
    count = max(1, round(started / num_replicas))
    responses = np.array(_lengths(problem.response_tokens, count))
    fine = max(_FINE, round(started))
    if count < started:
        responses[-1] = _lengths(problem.response_tokens, fine)[-1]
    longest = problem.longest_response
    if longest is not None:
        responses = _cut(responses, longest)
    prompts = np.array(_lengths(problem.prompt_tokens, count))
    order = np.random.default_rng(_SEED)
    return Samples(order.permutation(prompts), order.permutation(responses))


@lru_cache(maxsize=64)
def _lengths(lengths: Sequences, count: int) -> tuple[float, ...]:
    """Asked for by every layout of the engines and every division."""
    return tuple(lengths.lengths(count))


def _cut(responses: NDArray[np.float64], longest: int) -> NDArray[np.float64]:
    """Cut at the limit; what is cut off is not made up for."""
    return np.minimum(responses, float(longest))
