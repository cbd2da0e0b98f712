"""The best deployment for a question: every division of the devices in best-bound order, each exactly.

What is proved: no division of the devices in whole nodes, with the trainer's proved layout on its part and any of the
engines' layouts on the other, has a shorter step *in the model of ``planner.rl.predict``* than the bound says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from planner.errors import NoFeasiblePlan
from planner.model.parameters import total_parameters
from planner.model.spec import ModelSpec
from planner.rl.deployment import RlDeployment, SyncMethod, TrainerLayout
from planner.rl.plan import RankedRl, RlPlan, RlPrediction
from planner.rl.predict.part import cluster_part
from planner.rl.predict.replica import EngineTimes
from planner.rl.predict.step import RlStep, Roles, step, step_rollout
from planner.rl.predict.trainer import TrainerTimes, searched_trainer, total_lengths
from planner.rl.predict.weight_way import switch_s, sync_s
from planner.rl.problem import RlProblem
from planner.rl.search.divisions import Division, LeastWork, divisions, least_work
from planner.serving.layout import InstanceGroup, InstanceLayout

MOST_SHOWN = 8
BYTES_A_WEIGHT = 2.0
EngineMaker = Callable[[RlProblem, InstanceGroup, float], EngineTimes | None]
"""(question, group, bytes of a device that are not free for the engine) -> times, or None where it has no room."""


@dataclass(slots=True)
class _Search:
    problem: RlProblem
    engine: EngineMaker
    work: LeastWork
    trainers: dict[tuple[int, str], TrainerTimes | None] = field(default_factory=dict)
    layouts: dict[int, list[tuple[InstanceGroup, EngineTimes, float]]] = field(default_factory=dict)
    best: dict[Division, RankedRl] = field(default_factory=dict)
    evaluated: int = 0

    def trainer(self, model: ModelSpec, devices: int) -> TrainerTimes | None:
        """The proved layout of one role on so many devices, asked once."""
        key = (devices, model.name)
        if key not in self.trainers:
            cluster = cluster_part(self.problem.cluster, devices)
            self.trainers[key] = searched_trainer(self.problem, model, cluster)
        return self.trainers[key]

    def engines(self, division: Division) -> list[tuple[InstanceGroup, EngineTimes, float]]:
        """Every layout of the engines that has room, and the seconds in which it generates a step's samples."""
        known = self.layouts.get(division.rollout_devices)
        if known is None:
            known = []
            for group in rollout_groups(self.problem, division.rollout_devices):
                engine = self.engine(self.problem, group, 0.0)
                if engine is not None:
                    once = step_rollout(self.problem, engine, group.num_instances)
                    known.append((group, engine, once.seconds))
            self.layouts[division.rollout_devices] = known
        return known

    def shortest_s(self) -> float:
        """The shortest step so far."""
        return min((each.prediction.step_s for each in self.best.values()), default=float("inf"))

    def evaluate(self, division: Division) -> None:
        """Every layout of the engines beside the trainer's proved layout; the shortest step is kept."""
        problem = self.problem
        engines = self.engines(division)
        shortest_s = min((once_s for *_, once_s in engines), default=float("inf"))
        if self.work.step_s(division, shortest_s) >= self.shortest_s():
            return
        actor = self.trainer(problem.actor, division.trainer_devices)
        critic = None if problem.critic is None else self.trainer(problem.critic, division.trainer_devices)
        if actor is None or (problem.critic is not None and critic is None):
            return
        self.evaluated += 1
        colocated = division.placement == "colocated"
        held = 0.0 if problem.trainer_offload or not colocated else actor.state_bytes
        for group, _, _ in engines:
            engine = self.engine(problem, group, held)
            if engine is None:
                continue
            method: SyncMethod = "reshard" if colocated else "sharded"
            roles = roles_of(problem, division, actor, critic, engine, group, method)
            played = step(problem, roles, division.synchrony, colocated=colocated)
            ranked = _ranked(problem, division, actor, group, method, played)
            known = self.best.get(division)
            if known is None or ranked.prediction.step_s < known.prediction.step_s:
                self.best[division] = ranked


def find_rl_plan(problem: RlProblem, engine: EngineMaker, time_limit_s: float | None = None) -> RlPlan:
    """The best deployment, with its bound.  Raises NoFeasiblePlan where no division has one that fits."""
    work, started_s = least_work(problem), time.monotonic()
    found = _Search(problem, engine, work)
    waiting = sorted((work.step_s(each), number, each) for number, each in enumerate(divisions(problem)))
    left = 0
    for number, (bound_s, _, division) in enumerate(waiting):
        late = time_limit_s is not None and time.monotonic() - started_s > time_limit_s
        if bound_s >= found.shortest_s() or late:
            left = len(waiting) - number
            break
        found.evaluate(division)
    if not found.best:
        raise NoFeasiblePlan(
            f"no division of {problem.cluster.num_devices} devices holds trainer and engines",
            binding="memory",
            relaxations=("more devices", "another trainer back-end or pins", "shorter responses"),
        )
    order = sorted(found.best.values(), key=lambda each: each.prediction.step_s)
    best_s = order[0].prediction.step_s
    first_left_s = waiting[len(waiting) - left][0] if left else best_s
    bound_s = min(best_s, first_left_s)
    ranked = tuple(each.model_copy(update={"slower_by": each.prediction.step_s / best_s - 1.0}) for each in order)
    return RlPlan(
        problem=problem,
        best=ranked[0],
        runners_up=ranked[1 : 1 + MOST_SHOWN],
        lower_bound_s=bound_s,
        gap=(best_s - bound_s) / best_s,
        num_divisions=len(waiting),
        num_evaluated=found.evaluated,
        reasons=tuple(reasons(ranked)),
    )


def rollout_groups(problem: RlProblem, devices: int) -> Iterator[InstanceGroup]:
    """Equal engine instances on all of these devices: every tp, with experts whole or spread over it."""
    pins = problem.constraints.rollout_pins
    for tp in (1 << bit for bit in range(devices.bit_length())):
        if devices % tp or ("tp" in pins and pins["tp"] != tp):
            continue
        spread = (1, tp) if problem.actor.has_experts and tp > 1 else (1,)
        for ep in spread:
            if "ep" in pins and pins["ep"] != ep:
                continue
            yield InstanceGroup(num_instances=devices // tp, layout=InstanceLayout(tp=tp, ep=ep))


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
    reference = actor if problem.reference else None
    moved = actor.state_bytes + (critic.state_bytes if critic else 0.0) + (actor.weight_bytes if reference else 0.0)
    reward = problem.reward.model
    reward_s = 0.0 if reward is None else actor.forward_s * total_parameters(reward) / total_parameters(problem.actor)
    return Roles(
        actor=actor,
        critic=critic,
        reference=reference,
        reward_model_s=reward_s,
        engine=engine,
        num_replicas=group.num_instances,
        sync_s=sync_s(method, model_bytes, group.layout.num_devices, pool),
        switch_s=switch_s(moved, pool) if division.placement == "colocated" and problem.trainer_offload else 0.0,
    )


def _ranked(  # the parts of a ranked deployment
    problem: RlProblem,
    division: Division,
    actor: TrainerTimes,
    group: InstanceGroup,
    method: SyncMethod,
    played: RlStep,
) -> RankedRl:
    plan = actor.plan
    layout = TrainerLayout(trainer=actor.trainer, num_devices=division.trainer_devices, strategy=plan.strategy)
    deployment = RlDeployment(
        placement=division.placement,
        synchrony=division.synchrony,
        trainer=layout,
        rollout=group,
        weight_sync=method,
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


def reasons(ranked: tuple[RankedRl, ...]) -> Iterator[str]:
    """Why the first is the first."""
    best = ranked[0]
    stages = best.prediction.stages_s
    longest = max(stages, key=lambda stage: stages[stage])
    share = stages[longest] / best.prediction.step_s
    yield f"{longest} is the longest stage: {stages[longest]:.1f} s of {best.prediction.step_s:.1f} s ({share:.0%})"
    if best.prediction.tail_s > 0.1 * best.prediction.step_s:
        yield (
            f"for {best.prediction.tail_s:.1f} s less than a quarter of an engine's samples still run: the longest"
            " responses bound the generation"
        )
    other = next((each for each in ranked[1:] if each.deployment.placement != best.deployment.placement), None)
    if other is not None:
        word = f"{other.deployment.placement} ({other.deployment.synchrony.replace('_', ' ')})"
        yield f"the best {word} step takes {other.prediction.step_s:.1f} s, {other.slower_by:.0%} more"
