"""A deployment played: its roles on their devices, and its step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from planner.errors import DocumentInvalid, NoFeasiblePlan
from planner.model.parameters import active_parameters, total_parameters
from planner.rl.deployment import RlDeployment, SyncMethod, TrainerLayout
from planner.rl.plan import RankedRl, RlPrediction
from planner.rl.predict.part import cluster_part
from planner.rl.predict.replica import EngineTimes
from planner.rl.predict.step import RlStep, Roles, step
from planner.rl.predict.trainer import TrainerTimes, given_trainer, searched_trainer, total_lengths
from planner.rl.predict.weight_way import switch_s, sync_s
from planner.rl.problem import RlProblem
from planner.rl.search.divisions import Division
from planner.rl.words import ENGINE_MEMORY, Offload
from planner.serving.layout import InstanceGroup, InstanceLayout, InstanceSettings

BYTES_A_WEIGHT = 2.0
EngineMaker = Callable[[RlProblem, InstanceGroup, float], EngineTimes | None]
"""(question, group, bytes of a device that are not free for the engine) -> times, or None where it has no room."""


def played(
    problem: RlProblem,
    division: Division,
    engine: EngineMaker,
    *,
    rollout_tp: int | None = None,
    strategy: Mapping[str, Any] | None = None,
) -> RankedRl:
    """The best deployment of one division; what is given is held, the rest is the best.

    Raises NoFeasiblePlan where trainer or engines have no room, FindingsInvalid for a strategy that cannot be run,
    DocumentInvalid for engines that do not divide their devices.
    """
    if rollout_tp is not None and rollout_tp not in _degrees(division.rollout_devices):
        raise DocumentInvalid(
            f"engine instances of {rollout_tp} devices do not divide {division.rollout_devices} devices of the engines",
            where="/rollout_tp",
            hint=f"one of {', '.join(map(str, _degrees(division.rollout_devices)))}",
        )
    cluster = cluster_part(problem.cluster, division.trainer_devices)
    if strategy is None:
        actor = searched_trainer(problem, problem.actor, cluster)
    else:
        actor = given_trainer(problem, problem.actor, cluster, strategy, problem.constraints.trainers[0])
    critic = None if problem.critic is None else searched_trainer(problem, problem.critic, cluster)
    if actor is None or (problem.critic is not None and critic is None):
        raise NoFeasiblePlan(
            f"no layout of the trainer fits on {division.trainer_devices} devices", binding="memory", relaxations=()
        )
    steps = [
        ranked(problem, division, actor, critic, group, times)
        for group in rollout_groups(problem, division)
        if rollout_tp in (None, group.layout.num_devices)
        and (times := engine(problem, group, held_bytes(problem, division, actor, critic))) is not None
    ]
    if not steps:
        raise NoFeasiblePlan(
            f"no layout of the engines has room on {division.rollout_devices} devices", binding="memory", relaxations=()
        )
    return min(steps, key=lambda each: each.prediction.step_s)


def trainer_s(problem: RlProblem, actor: TrainerTimes, critic: TrainerTimes | None) -> float:
    """Seconds of all stages of the trainer, a reward model left out."""
    updates = problem.mini_batches * problem.epochs
    passes = 1.0 * problem.old_log_prob + 1.0 * problem.has_reference
    total = passes * actor.forward_s + updates * actor.update_s
    return total if critic is None else total + critic.forward_s + updates * critic.update_s


def held_bytes(problem: RlProblem, division: Division, actor: TrainerTimes, critic: TrainerTimes | None) -> float:
    """Bytes of a device that the trainer keeps while engines generate."""
    if problem.trainer_offload or division.placement == "split":
        return 0.0
    return _resident_bytes(problem, actor, critic)


def _resident_bytes(problem: RlProblem, actor: TrainerTimes, critic: TrainerTimes | None) -> float:
    """Bytes of a device between two steps: states of actor and critic, weights of a reference."""
    reference = actor.weight_bytes if problem.has_reference else 0.0
    return actor.state_bytes + (critic.state_bytes if critic else 0.0) + reference


def leaving(problem: RlProblem, division: Division, actor: TrainerTimes, critic: TrainerTimes | None) -> Offload:
    """What goes to the host while other roles work.

    Colocated as the question says.  Split: the weights of a reference where they are too much beside the peaks, and the
    states of actor and critic where even these are.
    """
    if division.placement == "colocated":
        return "states" if problem.trainer_offload else "nothing"
    states = actor.state_bytes + (critic.state_bytes if critic else 0.0)
    peaks = [each.peak_bytes - each.state_bytes for each in (actor, critic) if each is not None]
    limit = actor.plan.memory_limit_bytes
    if states + max(peaks) > limit:
        return "states"
    reference = actor.weight_bytes if problem.has_reference else 0.0
    return "reference" if states + max(peaks) + reference > limit else "nothing"


def _degrees(devices: int) -> list[int]:
    """Powers of two that divide the devices of the engines."""
    return [tp for tp in (1 << bit for bit in range(devices.bit_length())) if not devices % tp]


def rollout_groups(problem: RlProblem, division: Division) -> Iterator[InstanceGroup]:
    """Equal engine instances on all of these devices: every tp, with experts whole or spread over it."""
    pins, devices = problem.constraints.rollout_pins, division.rollout_devices
    settings = InstanceSettings(memory_fraction=ENGINE_MEMORY[division.placement])
    for tp in _degrees(devices):
        if "tp" in pins and pins["tp"] != tp:
            continue
        spread = (1, tp) if problem.actor.has_experts and tp > 1 else (1,)
        for ep in spread:
            if "ep" in pins and pins["ep"] != ep:
                continue
            yield InstanceGroup(num_instances=devices // tp, layout=InstanceLayout(tp=tp, ep=ep), settings=settings)


def roles_of(  # noqa: PLR0917  # what a deployment is made of
    problem: RlProblem,
    division: Division,
    actor: TrainerTimes,
    critic: TrainerTimes | None,
    engine: EngineTimes,
    group: InstanceGroup,
    method: SyncMethod,
) -> Roles:
    """What each role takes in one deployment."""
    pool = problem.cluster.pools[0]
    model_bytes = BYTES_A_WEIGHT * total_parameters(problem.actor)
    reference = actor if problem.has_reference else None
    moved = {"nothing": 0.0, "reference": actor.weight_bytes, "states": _resident_bytes(problem, actor, critic)}
    offload = leaving(problem, division, actor, critic)
    reward = problem.reward.model
    reward_s = 0.0 if reward is None else actor.forward_s * active_parameters(reward) / active_parameters(problem.actor)
    return Roles(
        actor=actor,
        critic=critic,
        reference=reference,
        reward_model_s=reward_s,
        engine=engine,
        num_replicas=group.num_instances,
        sync_s=sync_s(method, model_bytes, group.layout.num_devices, pool),
        offload=offload,
        switch_s=switch_s(moved[offload], pool),
    )


def ranked(  # what a deployment is made of
    problem: RlProblem,
    division: Division,
    actor: TrainerTimes,
    critic: TrainerTimes | None,
    group: InstanceGroup,
    engine: EngineTimes,
) -> RankedRl:
    """One deployment with its step."""
    colocated = division.placement == "colocated"
    method: SyncMethod = "reshard" if colocated else "sharded"
    roles = roles_of(problem, division, actor, critic, engine, group, method)
    played = step(problem, roles, division.synchrony, colocated=colocated)
    return _told(problem, division, actor, group, roles, played)


def _told(  # the parts of a ranked deployment
    problem: RlProblem,
    division: Division,
    actor: TrainerTimes,
    group: InstanceGroup,
    roles: Roles,
    played: RlStep,
) -> RankedRl:
    plan = actor.plan
    layout = TrainerLayout(
        trainer=actor.trainer,
        num_devices=division.trainer_devices,
        strategy=plan.strategy,
        stage_layers=tuple(stage.layers for stage in plan.stages),
    )
    deployment = RlDeployment(
        placement=division.placement,
        synchrony=division.synchrony,
        trainer=layout,
        rollout=group,
        weight_sync="reshard" if division.placement == "colocated" else "sharded",
        offload=roles.offload,
    )
    lengths = total_lengths(problem)
    tokens = problem.num_samples * sum(lengths) / len(lengths)
    prediction = RlPrediction(
        step_s=played.seconds,
        stages_s=dict(played.stages_s.items()),
        samples_per_s=problem.num_samples / played.seconds,
        tokens_per_s_per_device=tokens / played.seconds / deployment.num_devices,
        engines_idle=played.engines_idle,
        trainer_idle=played.trainer_idle,
        tail_s=played.rollout.tail_s,
        mean_running=played.rollout.mean_running,
        trainer_peak_bytes=actor.peak_bytes,
    )
    return RankedRl(deployment=deployment, prediction=prediction)
