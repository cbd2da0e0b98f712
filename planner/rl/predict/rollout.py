"""The generation of a step's samples: seconds, when samples end, how idle the tail leaves the engines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.rl.predict.replica import GRAIN, EngineTimes, Replica
from planner.rl.predict.samples import Samples
from planner.rl.problem import RlProblem

_MOST_LATE = 1 / 32
"""Part of a mean turn by which a sample may end late."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """One replica's part of a step, which is the slowest one's: the step's longest sample is among its."""

    seconds: float
    """Until the last needed sample has ended."""
    ends_s: NDArray[np.float64]
    """When its samples end, ascending."""
    generated_tokens: float
    mean_running: float
    tail_s: float
    """Part of ``seconds`` in which less than a quarter of the most samples at once still ran."""


def rollout(problem: RlProblem, samples: Samples, times: EngineTimes, needed: float | None = None) -> Rollout:
    """Generate ``samples`` from nothing in flight; ``needed`` of them end the stage (all = None)."""
    replica = replica_of(problem, times, samples)
    turns = turns_of(problem)
    wanted = len(samples.responses) if needed is None else max(1, round(needed))
    waiting, most, tail_s = 0, 0, 0.0
    while len(replica.finished) < wanted:
        while waiting < len(samples.prompts) and replica.has_room(float(samples.prompts[waiting])):
            replica.start(float(samples.prompts[waiting]), float(samples.responses[waiting]), turns)
            waiting += 1
        most = max(most, replica.in_flight)
        until_s = replica.next_event_s()
        if until_s is None:
            break
        before_s, few = replica.now_s, replica.in_flight < 0.25 * most
        replica.advance(until_s)
        tail_s += (replica.now_s - before_s) if few else 0.0
    seconds = replica.finished[min(wanted, len(replica.finished)) - 1]
    return Rollout(
        seconds=seconds,
        ends_s=np.array(replica.finished),
        generated_tokens=replica.generated,
        mean_running=replica.running_seconds / max(seconds, 1e-12),
        tail_s=tail_s,
    )


def replica_of(problem: RlProblem, times: EngineTimes, samples: Samples) -> Replica:
    """An idle instance for a question's samples."""
    turns, share = problem.turns, 1.0 / problem.samples_per_prompt
    latency_s, tokens = (0.0, 0.0) if turns is None else (turns.tool_latency_s, turns.tool_tokens)
    grain = min(GRAIN, _MOST_LATE * float(np.mean(samples.responses)) / turns_of(problem))
    return Replica(times, latency_s, tokens, share, grain)


def turns_of(problem: RlProblem) -> int:
    """Turns of every sample: their mean, a whole number."""
    return 1 if problem.turns is None else max(1, round(problem.turns.mean))
