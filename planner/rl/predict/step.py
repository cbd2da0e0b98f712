"""The seconds of a step, stage by stage, in each placement.

Synchronous and colocated: the stages follow one another.  One step off: engines generate the next step's samples while
the trainer works; the longer of the two is the step.  Asynchronous: see ``windows``.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.rl.predict.replica import EngineTimes
from planner.rl.predict.rollout import Rollout, rollout
from planner.rl.predict.samples import replica_samples
from planner.rl.predict.trainer import TrainerTimes
from planner.rl.predict.windows import asynchronous_window
from planner.rl.problem import RlProblem
from planner.rl.words import Offload, Stage, Synchrony

_LATENCY_TAIL = 5.0
"""Slowest latency over the mean where only the mean is known."""


@dataclass(frozen=True, slots=True)
class RlStep:
    """One step in steady state."""

    seconds: float
    stages_s: dict[Stage, float]
    """Of trainer and engines; those that overlap with others count whole."""
    rollout: Rollout
    engines_idle: float
    """Part of the step in which the engines do nothing..."""
    trainer_idle: float
    """... and the trainer."""


@dataclass(frozen=True, slots=True)
class Roles:
    """What each role takes on the devices that it has."""

    actor: TrainerTimes
    critic: TrainerTimes | None
    reference: TrainerTimes | None
    reward_model_s: float
    engine: EngineTimes
    num_replicas: int
    sync_s: float
    offload: Offload
    switch_s: float
    """Where states leave for the host: to it and back."""


def trainer_stages(problem: RlProblem, roles: Roles) -> dict[Stage, float]:
    """Everything that the trainer does in a step, in order."""
    updates = problem.mini_batches * problem.epochs
    stages: dict[Stage, float] = {}
    if problem.old_log_prob:
        stages["old_log_prob"] = roles.actor.forward_s
    if roles.reference is not None:
        stages["reference_log_prob"] = roles.reference.forward_s
    if roles.reward_model_s:
        stages["reward"] = roles.reward_model_s
    if roles.critic is not None:
        stages["values"] = roles.critic.forward_s
        stages["critic_update"] = roles.critic.update_s * updates
    stages["actor_update"] = roles.actor.update_s * updates
    if roles.switch_s:
        stages["switch"] = roles.switch_s
    return stages


def step(problem: RlProblem, roles: Roles, synchrony: Synchrony, *, colocated: bool) -> RlStep:
    """The step of one deployment."""
    once = step_rollout(problem, roles.engine, roles.num_replicas)
    trained = trainer_stages(problem, roles)
    trainer_s = sum(trained.values())
    reward_s = _reward_wait_s(problem)
    if synchrony == "asynchronous":
        return _asynchronous(problem, roles, once, trained)
    generated_s = once.seconds + reward_s
    if synchrony == "synchronous":
        seconds = generated_s + trainer_s + roles.sync_s
    else:
        seconds = max(generated_s, trainer_s) + roles.sync_s
    stages: dict[Stage, float] = {"rollout": once.seconds}
    if reward_s:
        stages["reward"] = reward_s + trained.get("reward", 0.0)
    stages |= {stage: time for stage, time in trained.items() if stage not in stages}
    stages["weight_sync"] = roles.sync_s
    if synchrony == "one_step_off":
        stages["rollout_wait"] = max(0.0, generated_s - trainer_s)
    busy = 1.0 if colocated else trainer_s / seconds
    return RlStep(
        seconds=seconds,
        stages_s=stages,
        rollout=once,
        engines_idle=0.0 if colocated else max(0.0, 1.0 - once.seconds / seconds),
        trainer_idle=max(0.0, 1.0 - busy),
    )


def step_rollout(problem: RlProblem, engine: EngineTimes, num_replicas: int) -> Rollout:
    """The generation of a step's samples by equal instances, from nothing in flight."""
    samples = replica_samples(problem, num_replicas)
    needed = problem.num_samples / num_replicas
    return rollout(problem, samples, engine, needed if problem.over_sampling > 1 else None)


def _asynchronous(problem: RlProblem, roles: Roles, once: Rollout, trained: dict[Stage, float]) -> RlStep:
    trainer_s = sum(trained.values())
    samples = replica_samples(problem, roles.num_replicas)
    window = asynchronous_window(problem, samples, roles.engine, roles.num_replicas, trainer_s, roles.sync_s)
    stages: dict[Stage, float] = {"rollout_wait": window.wait_s, **trained, "weight_sync": roles.sync_s}
    return RlStep(
        seconds=window.seconds,
        stages_s=stages,
        rollout=once,
        engines_idle=window.engines_idle,
        trainer_idle=max(0.0, 1.0 - trainer_s / window.seconds),
    )


def _reward_wait_s(problem: RlProblem) -> float:
    """What rewards add behind the last sample: it ends last and waits for its own reward, and a slow one may end later.

    Rewards of other samples are computed while these generate; the slowest latency bounds what is left.
    """
    reward = problem.reward
    if reward.kind != "sandbox":
        return 0.0
    return reward.longest_latency_s or _LATENCY_TAIL * reward.latency_s
