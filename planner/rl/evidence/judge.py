"""How far predicted steps are from measured ones, and whether placements and layouts stand in the measured order.

Order first: pairs of runs of one group whose measured steps differ by more than ``TIE`` count, and a pair is right
where the predicted steps differ the same way.  Times only where a source states mean lengths, device and layout.
The factors of RL's software were fitted to one source (``FITTED_ON``); the others are judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median

from planner.errors import NoFeasiblePlan
from planner.rl.evidence.measured import MeasuredStep, responses
from planner.rl.plan import RlPrediction
from planner.rl.predict.part import cluster_part
from planner.rl.predict.trainer import searched_trainer
from planner.rl.search.divisions import Division
from planner.rl.search.played import EngineMaker, played
from profiles.validation import FindingsInvalid

TIE = 0.05
FITTED_ON = "nemorl-v0.4"
"""Beginning of the ids of the runs that the factors of RL's software are fitted to: one source, whole."""
ROUNDS = 2
"""Of inferring a mean: the update is nearly linear in it."""


@dataclass(frozen=True, slots=True)
class JudgedStep:
    """A measured run beside its prediction; None and a reason where there is none."""

    run: MeasuredStep
    predicted: RlPrediction | None
    reason: str = ""

    @property
    def ratio(self) -> float | None:
        """Predicted step over measured."""
        if self.predicted is None or self.run.step_s is None:
            return None
        return self.predicted.step_s / self.run.step_s


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
    """Whether the factors of RL's software were fitted to this run."""
    return run.id.startswith(FITTED_ON)


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
        trainer = searched_trainer(asked, asked.actor, cluster_part(asked.cluster, run.trainer_devices))
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
    division = Division(run.placement, run.synchrony, run.trainer_devices, run.rollout_devices)
    try:
        found = played(problem, division, engine, rollout_tp=run.rollout_tp, strategy=run.strategy)
    except (FindingsInvalid, NoFeasiblePlan) as error:
        return JudgedStep(run, None, error.what)
    return JudgedStep(run, found.prediction)


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
    return measured * (one.predicted.step_s - other.predicted.step_s) > 0
