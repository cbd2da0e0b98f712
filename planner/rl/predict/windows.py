"""Asynchronous training: generation and updates overlap, and generation may run ahead by a bounded part of a step.

A window is the time between two synchronisations of weights, in which the trainer consumes one step's samples in
``mini_batches`` parts, each as soon as enough samples have ended.  Engines start a sample while not more than
``(1 + staleness)`` steps' samples were started since those that the trainer has consumed (verl
docs/advance/fully_async.md: ``staleness_threshold``).  With partial rollouts running samples pause for the
synchronisation and go on; without, none may start before it and all running ones end first.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.rl.predict.replica import EngineTimes, Replica
from planner.rl.predict.rollout import replica_of, turns_of
from planner.rl.predict.samples import Samples
from planner.rl.problem import RlProblem

WARM_UP = 2
"""Windows that pass before one is measured..."""
MEASURED = 3
"""... and those whose mean is the answer."""


@dataclass(frozen=True, slots=True)
class Window:
    """The mean window in steady state."""

    seconds: float
    wait_s: float
    """The trainer waits for samples."""
    engines_idle: float


@dataclass(slots=True)
class _Play:
    """One replica, and its part of what the trainer consumes."""

    problem: RlProblem
    samples: Samples
    replica: Replica
    quota: float
    """Samples of a window that this replica gives."""
    started: int = 0
    allowed: float = 0.0
    """Samples that may have been started by now."""

    def fill(self) -> None:
        turns, count = turns_of(self.problem), len(self.samples.prompts)
        while self.started < self.allowed:
            at = self.started % count
            if not self.replica.has_room(float(self.samples.prompts[at])):
                return
            self.replica.start(float(self.samples.prompts[at]), float(self.samples.responses[at]), turns)
            self.started += 1

    def run_until(self, until_s: float) -> None:
        """Generate until this moment."""
        while self.replica.now_s < until_s:
            self.fill()
            event_s = self.replica.next_event_s()
            self.replica.advance(until_s if event_s is None else min(event_s, until_s))

    def run_until_finished(self, count: float) -> float:
        """Generate until so many samples have ended; when that was."""
        while len(self.replica.finished) < count:
            self.fill()
            event_s = self.replica.next_event_s()
            if event_s is None:
                break
            self.replica.advance(event_s)
        return self.replica.now_s

    def drain(self) -> None:
        """Let everything that runs end."""
        while (event_s := self.replica.next_event_s()) is not None:
            self.replica.advance(event_s)

    def pause(self, seconds: float) -> None:
        """Nothing is generated: tool calls aside, time only passes."""
        self.replica.now_s += seconds


def asynchronous_window(  # what a window is made of
    problem: RlProblem,
    samples: Samples,
    times: EngineTimes,
    num_replicas: int,
    trainer_s: float,
    sync_s: float,
) -> Window:
    """Play windows until they are steady, and give the mean of the last."""
    quota = problem.num_samples / num_replicas
    play = _Play(problem, samples, replica_of(problem, times, samples), quota)
    play.allowed = (1.0 + problem.staleness) * quota
    parts = problem.mini_batches
    part_s, ends, waits, busy_s = trainer_s / parts, [0.0], list[float](), [0.0]
    for number in range(WARM_UP + MEASURED):
        now_s, waited_s = play.replica.now_s, 0.0
        for part in range(parts):
            needed = quota * number + quota * (part + 1) / parts
            ready_s = now_s
            if len(play.replica.finished) < needed - 1e-9:
                ready_s = max(now_s, play.run_until_finished(needed - 1e-9))
            waited_s += ready_s - now_s
            now_s = ready_s + part_s
            play.run_until(now_s)
        if not problem.constraints.partial_rollout:
            play.drain()
            now_s = max(now_s, play.replica.now_s)
        play.pause(sync_s)
        play.allowed = quota * (number + 1) + (1.0 + problem.staleness) * quota
        ends.append(now_s + sync_s)
        waits.append(waited_s)
        busy_s.append(play.replica.busy_s)
    begun, ended = ends[WARM_UP], ends[-1]
    return Window(
        seconds=(ended - begun) / MEASURED,
        wait_s=sum(waits[WARM_UP:]) / MEASURED,
        engines_idle=max(0.0, 1.0 - (busy_s[-1] - busy_s[WARM_UP]) / max(ended - begun, 1e-12)),
    )
