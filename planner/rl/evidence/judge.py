"""How far predicted steps are from measured ones, and whether placements and layouts stand in the measured order.

Order first: pairs of runs of one group whose measured steps differ by more than ``TIE`` count, and a pair is right
where the predicted steps differ the same way.  Times only where a source states mean lengths, device and layout.
Sources are split whole between what constants may be fitted on and what is judged.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median

from planner.rl.deployment import SyncMethod
from planner.rl.evidence.measured import MeasuredStep, responses
from planner.rl.predict.part import cluster_part
from planner.rl.predict.step import RlStep, step
from planner.rl.predict.trainer import TrainerTimes, given_trainer, searched_trainer
from planner.rl.problem import RlProblem
from planner.rl.search.divisions import Division
from planner.rl.search.find import EngineMaker, roles_of, rollout_groups
from profiles.validation import FindingsInvalid

TIE = 0.05
FIT_SHARE = 0.3
ROUNDS = 2
"""Of inferring a mean: the update is nearly linear in it."""


@dataclass(frozen=True, slots=True)
class JudgedStep:
    """A measured run beside its prediction; None and a reason where there is none."""

    run: MeasuredStep
    predicted: RlStep | None
    reason: str = ""

    @property
    def ratio(self) -> float | None:
        """Predicted step over measured."""
        if self.predicted is None or self.run.step_s is None:
            return None
        return self.predicted.seconds / self.run.step_s


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a part of the runs says."""

    runs: int
    timed: int
    median_error: float | None
    median_ratio: float | None
    pairs: int
    pairs_right: int


def fitted(run: MeasuredStep) -> bool:
    """Whether a run's source is of the part that constants may be fitted on: by a hash of the source's name."""
    digest = hashlib.sha256(run.source.encode()).digest()
    return digest[0] / 256 < FIT_SHARE


def judged(runs: Iterable[MeasuredStep], engine: EngineMaker) -> list[JudgedStep]:
    """Every run that can be asked, predicted as it was run.

    Where a group states no mean response, it is inferred from its colocated run: the mean with which the predicted
    update takes as long as the measured one.  Only the order of such a group is judged.
    """
    runs = list(runs)
    means = {run.group: inferred_mean(run) for run in runs if _is_baseline(run)}
    return [_judged(_with_mean(run, means.get(run.group)), engine) for run in runs]


def _is_baseline(run: MeasuredStep) -> bool:
    asked = run.problem is not None and not run.left_out and not run.times_can_be_judged
    return asked and run.placement == "colocated" and "actor_update" in run.stages_s


def inferred_mean(run: MeasuredStep) -> float | None:
    """Mean response of a colocated run whose update was measured; None where no layout fits."""
    mean = run.problem.response_tokens.mean if run.problem else None
    for _ in range(ROUNDS):
        asked = _with_mean(run, mean).problem
        assert asked is not None
        assert mean is not None
        trainer = _trainer(run, asked)
        if trainer is None:
            return None
        predicted_s = trainer.update_s * asked.mini_batches * asked.epochs
        mean *= run.stages_s["actor_update"] / predicted_s
    return mean


def _with_mean(run: MeasuredStep, mean: float | None) -> MeasuredStep:
    if mean is None or run.problem is None or run.times_can_be_judged:
        return run
    longest = run.problem.longest_response
    lengths = responses(mean, longest, run.problem.num_samples)
    return replace(run, problem=run.problem.model_copy(update={"response_tokens": lengths}))


def verdict(steps: Sequence[JudgedStep]) -> Verdict:
    """Errors and order over some runs."""
    ratios = [each.ratio for each in steps if each.ratio is not None and each.run.times_can_be_judged]
    right = [_right(*pair) for pair in _pairs(steps)]
    return Verdict(
        runs=sum(each.ratio is not None for each in steps),
        timed=len(ratios),
        median_error=median(abs(ratio - 1.0) for ratio in ratios) if ratios else None,
        median_ratio=median(ratios) if ratios else None,
        pairs=len(right),
        pairs_right=sum(right),
    )


def _judged(run: MeasuredStep, engine: EngineMaker) -> JudgedStep:
    problem = run.problem
    if problem is None or run.left_out:
        return JudgedStep(run, None, run.left_out or "no question")
    try:
        actor = _trainer(run, problem)
    except FindingsInvalid as error:
        return JudgedStep(run, None, f"the trainer's layout: {error.what}")
    if actor is None:
        return JudgedStep(run, None, "no layout of the trainer fits")
    colocated = run.placement == "colocated"
    division = Division(run.placement, run.synchrony, run.trainer_devices, run.rollout_devices)
    method: SyncMethod = "reshard" if colocated else "sharded"
    best: RlStep | None = None
    for group in rollout_groups(problem, run.rollout_devices):
        if run.rollout_tp not in (None, group.layout.num_devices):
            continue
        times = engine(problem, group, 0.0)
        if times is None:
            continue
        roles = roles_of(problem, division, actor, None, times, group, method)
        played = step(problem, roles, run.synchrony, colocated=colocated)
        best = played if best is None or played.seconds < best.seconds else best
    return JudgedStep(run, best, "" if best else "no layout of the engines has room")


def _trainer(run: MeasuredStep, problem: RlProblem) -> TrainerTimes | None:
    cluster = cluster_part(problem.cluster, run.trainer_devices)
    if run.strategy is None:
        return searched_trainer(problem, problem.actor, cluster)
    return given_trainer(problem, problem.actor, cluster, run.strategy, problem.constraints.trainers[0])


def _pairs(steps: Sequence[JudgedStep]) -> Iterable[tuple[JudgedStep, JudgedStep]]:
    """Pairs of one group whose measured steps are no tie."""
    groups: dict[str, list[JudgedStep]] = defaultdict(list)
    for each in steps:
        if each.ratio is not None and each.run.group != "single":
            groups[each.run.group].append(each)
    for members in groups.values():
        for one, other in combinations(members, 2):
            first, second = one.run.step_s or 0.0, other.run.step_s or 0.0
            if abs(first - second) > TIE * min(first, second):
                yield one, other


def _right(one: JudgedStep, other: JudgedStep) -> bool:
    measured = (one.run.step_s or 0.0) - (other.run.step_s or 0.0)
    assert one.predicted is not None
    assert other.predicted is not None
    return measured * (one.predicted.seconds - other.predicted.seconds) > 0
