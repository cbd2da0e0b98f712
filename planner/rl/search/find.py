"""The best deployment for a question: every division of the devices in best-bound order, each exactly.

What is proved: no division of the devices in whole nodes, with the trainer's proved layout on its part and any of the
engines' layouts on the other, has a shorter step *in the model of ``planner.rl.predict``* than the bound says.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from planner.errors import NoFeasiblePlan
from planner.model.spec import ModelSpec
from planner.rl.plan import RankedRl, RlPlan
from planner.rl.predict.part import cluster_part
from planner.rl.predict.replica import EngineTimes
from planner.rl.predict.step import step_rollout
from planner.rl.predict.trainer import TrainerTimes, searched_trainer
from planner.rl.problem import RlProblem
from planner.rl.search.divisions import Division, LeastWork, divisions, least_work
from planner.rl.search.played import EngineMaker, held_bytes, ranked, rollout_groups, trainer_s
from planner.rl.words import STAGE_WORDS
from planner.serving.layout import InstanceGroup

MOST_SHOWN = 8


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
            for group in rollout_groups(self.problem, division):
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
        trained_s = trainer_s(problem, actor, critic)
        if self.work.step_s(division, shortest_s, trained_s) >= self.shortest_s():
            return
        self.evaluated += 1
        for group, free, _ in engines:
            held = held_bytes(problem, division, actor, critic)
            engine = self.engine(problem, group, held) if held else free
            if engine is None:
                continue
            found = ranked(problem, division, actor, critic, group, engine)
            if division not in self.best or found.prediction.step_s < self.best[division].prediction.step_s:
                self.best[division] = found


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
    told = tuple(each.model_copy(update={"slower_by": each.prediction.step_s / best_s - 1.0}) for each in order)
    return RlPlan(
        problem=problem,
        best=told[0],
        runners_up=told[1 : 1 + MOST_SHOWN],
        lower_bound_s=bound_s,
        gap=(best_s - bound_s) / best_s,
        num_divisions=len(waiting),
        num_evaluated=found.evaluated,
        reasons=tuple(reasons(told)),
    )


def reasons(ranked: tuple[RankedRl, ...]) -> Iterator[str]:
    """Why the first is the first."""
    best = ranked[0]
    stages = best.prediction.stages_s
    longest = max(stages, key=lambda stage: stages[stage])
    share = stages[longest] / best.prediction.step_s
    yield f"the longest stage is {STAGE_WORDS[longest]}: {stages[longest]:.1f} s ({share:.0%} of the step)"
    if best.prediction.tail_s > 0.1 * best.prediction.step_s:
        yield (
            f"for {best.prediction.tail_s:.1f} s less than a quarter of an engine's samples still run: the longest"
            " responses bound the generation"
        )
    other = next((each for each in ranked[1:] if each.deployment.placement != best.deployment.placement), None)
    if other is not None:
        word = f"{other.deployment.placement} ({other.deployment.synchrony.replace('_', ' ')})"
        yield f"the best {word} step takes {other.prediction.step_s:.1f} s, {other.slower_by:.0%} more"
