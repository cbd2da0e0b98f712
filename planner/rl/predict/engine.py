"""A serving engine as a generator of samples: its iterations and its memory, from ``planner.serving.predict``.

Iterations are looked up once on a grid of running samples and contexts, and read between its points: the play of a
step asks some thousand times.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from planner.model.spec import ModelSpec
from planner.rl.predict.software import fitted_factors
from planner.rl.predict.trainer import total_lengths
from planner.rl.problem import RlProblem
from planner.serving.engines.vllm.behaviour import BEHAVIOUR
from planner.serving.layout import Formats, InstanceGroup, InstanceLayout
from planner.serving.predict.iteration_operators import iteration_operators
from planner.serving.predict.iteration_time import Batch, IterationTimes, Links
from planner.serving.predict.memory import device_memory
from profiles.cluster import Cluster
from profiles.serving_kernels import kernel_times

_RUNNING = tuple(float(1 << power) for power in range(12))
_CONTEXTS = tuple(128.0 * 2**power for power in range(12))
_PROMPT = 2048.0


@dataclass(frozen=True, slots=True)
class ServedEngine:
    """``planner.rl.predict.replica.EngineTimes`` of one instance."""

    max_running: int
    cache_tokens: float
    prompt_token_s: float
    grid: tuple[tuple[float, ...], ...]
    """Seconds of an iteration, by running samples and by context."""

    def decode_s(self, running: float, context: float) -> float:
        """One iteration, linear between the points of the grid."""
        row, across = _place(_RUNNING, running)
        column, along = _place(_CONTEXTS, context)
        low, high = self.grid[row], self.grid[row + 1]
        fewer = low[column] + along * (low[column + 1] - low[column])
        more = high[column] + along * (high[column + 1] - high[column])
        return fewer + across * (more - fewer)

    def prefill_s(self, tokens: float) -> float:
        """Tokens of prompts, as a long batch of prompts takes them."""
        return tokens * self.prompt_token_s


def served_engine(problem: RlProblem, group: InstanceGroup, held_bytes: float) -> ServedEngine | None:
    """One instance of a group, where ``held_bytes`` of a device are the trainer's; None where it has no room."""
    pool, model = problem.cluster.pools[0], problem.actor
    heads = {getattr(kind.attention, "num_heads", 0) for kind in model.layer_kinds} - {0}
    if any(count % group.layout.tp for count in heads):
        return None
    memory = device_memory(model, pool.device.memory_bytes - held_bytes, group, Formats(), BEHAVIOUR)
    lengths = total_lengths(problem)
    held = memory.tokens(float(np.mean(lengths)))
    if held < max(lengths):
        return None
    grid, prompt_token_s = _times(model, problem.cluster, group.layout)
    limits = BEHAVIOUR.limits(pool.device.memory_bytes)
    return ServedEngine(group.settings.max_num_sequences or limits.max_num_sequences, held, prompt_token_s, grid)


@lru_cache(maxsize=256)
def _times_of(
    model: ModelSpec, device: str, links: Links, layout: InstanceLayout
) -> tuple[tuple[tuple[float, ...], ...], float]:
    kernels = kernel_times(device, "vllm")
    times = IterationTimes(iteration_operators(model, layout, Formats()), kernels, "bf16", links)
    running, contexts = np.meshgrid(_RUNNING, _CONTEXTS, indexing="ij")
    seconds = times.seconds(Batch(sequences=running.ravel(), context=contexts.ravel())).reshape(running.shape)
    host: NDArray[np.float64] = BEHAVIOUR.host_s + BEHAVIOUR.host_s_a_sequence * running
    factor = fitted_factors().rollout
    grid = (seconds * BEHAVIOUR.decode_factor + host) * factor
    prompt = times.seconds(Batch(prompts=np.array([4.0]), prompt_tokens=np.array([_PROMPT])))
    per_token = float(prompt[0]) * BEHAVIOUR.prompt_factor * factor / (4.0 * _PROMPT)
    return tuple(tuple(float(each) for each in row) for row in grid), per_token


def _times(model: ModelSpec, cluster: Cluster, layout: InstanceLayout) -> tuple[tuple[tuple[float, ...], ...], float]:
    pool = cluster.pools[0]
    return _times_of(model, pool.device.name, Links.of_pool(pool), layout)


def _place(points: tuple[float, ...], value: float) -> tuple[int, float]:
    """The interval of a value, and where it stands in it; beyond the points the last interval goes on."""
    at = min(max(bisect_right(points, value) - 1, 0), len(points) - 2)
    return at, (value - points[at]) / (points[at + 1] - points[at]) if value > points[0] else 0.0
