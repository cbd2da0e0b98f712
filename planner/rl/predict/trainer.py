"""What the trainer takes: an update of a mini-batch, a pass forward over all samples, and its memory.

Samples are packed: whole documents one behind another into sequences as long as the longest sample, with attention
within each (verl ``use_remove_padding`` with ``use_dynamic_bsz``, NeMo-RL sequence packing), so that a mini-batch is
``tokens / longest`` sequences.  The planner of training answers for such a batch; a pass forward is the forward part
of its step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.errors import DocumentInvalid, NoFeasiblePlan
from planner.model.spec import ModelSpec
from planner.plan.plan import Plan
from planner.question.complete import complete_problem
from planner.question.problem import UNRESTRICTED, Constraints, Workload
from planner.question.sequences import Sequences
from planner.rl.predict.software import fitted_factors
from planner.rl.problem import RlProblem
from planner.rl.words import Trainer
from planner.search.estimate import estimate
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.strategy.text import complete_strategy
from profiles.cluster import Cluster

SOFTWARE: Mapping[Trainer, tuple[str, dict[str, int | str | bool]]] = {
    "megatron": ("megatron", {"vpp": 1}),
    "fsdp2": (UNRESTRICTED, {"tp": 1, "pp": 1, "ep": 1, "zero_stage": 3, "recompute": "full"}),
}
"""Back-end of training plans whose physics and space a trainer has, and what it does not leave open.  FSDP2 around
transformers' modules packs samples and cuts them by Ulysses, which no back-end that files are written for does: it has
the neutral physics, parameters sharded over all devices and checkpointing of every layer (verl
``trainer/config/engine/fsdp.yaml``, ``model/hf_model.yaml``: ``enable_gradient_checkpointing: true``).  Megatron runs
without interleaving, as frameworks' own scripts have it: they say layers of a pipeline's ends alone."""
_STEPS = 512
"""Lengths that stand for a distribution."""
_ROUND = 256
_ALONE = SearchOptions(top_k=0, compare=False)
_WORST_ROUNDING = 0.03


@dataclass(frozen=True, slots=True)
class TrainerTimes:
    """One role of the trainer on its devices."""

    trainer: Trainer
    plan: Plan
    update_s: float
    """One mini-batch: forward, backward, optimizer."""
    forward_s: float
    """All samples of a step, forward only."""
    state_bytes: float
    """Weights, gradients and optimizer state of a device."""
    weight_bytes: float
    peak_bytes: float


def packed_batch(problem: RlProblem, divisor: int | None = None) -> tuple[Workload, float]:
    """A mini-batch as packed sequences, and its tokens over those of the workload.

    The number of sequences is a multiple of ``divisor``, or near the true one and divisible by a large power of two.
    """
    lengths = total_lengths(problem)
    longest = math.ceil(longest_sample(problem) / _ROUND) * _ROUND
    tokens = problem.num_samples / problem.mini_batches * float(np.mean(lengths))
    count = _divisible(tokens / longest) if divisor is None else divisor * max(1, round(tokens / longest / divisor))
    histogram = tuple((float(length), 1.0) for length in sorted(set(np.round(lengths))))
    workload = Workload(
        global_batch_size=count,
        sequence_length=longest,
        precision=problem.precision,
        sequences=Sequences(kind="packed", packing="concatenated", histogram=histogram),
    )
    return workload, tokens / (count * longest)


def padded_batch(problem: RlProblem, length: float, divisor: int) -> tuple[Workload, float]:
    """The same with one sample a sequence, all of one length; context parallelism cuts these, packed ones it cannot."""
    tokens = problem.num_samples / problem.mini_batches * float(np.mean(total_lengths(problem)))
    longest = math.ceil(length / _ROUND) * _ROUND
    count = divisor * max(1, round(tokens / longest / divisor))
    workload = Workload(global_batch_size=count, sequence_length=longest, precision=problem.precision)
    return workload, tokens / (count * longest)


def longest_sample(problem: RlProblem) -> float:
    """Tokens of the longest sample that may come: the limit of responses behind a mean prompt, where there is one.

    Frameworks size micro-batches by it (verl ``ppo_max_token_len_per_gpu``, NeMo-RL ``train_mb_tokens``).
    """
    prompt = float(np.mean(problem.prompt_tokens.lengths(_STEPS)))
    return max(*total_lengths(problem), prompt + (problem.longest_response or 0))


def total_lengths(problem: RlProblem) -> list[float]:
    """Tokens of samples, prompt and response, in equal steps of probability."""
    responses = np.array(problem.response_tokens.lengths(_STEPS))
    if problem.longest_response is not None:
        responses = np.minimum(responses, problem.longest_response)
    prompt = float(np.mean(problem.prompt_tokens.lengths(_STEPS)))
    turns = problem.turns
    tools = (turns.mean - 1) * turns.tool_tokens if turns else 0.0
    return [max(1.0, round(float(each))) for each in responses + prompt + tools]


def searched_trainer(problem: RlProblem, model: ModelSpec, cluster: Cluster) -> TrainerTimes | None:
    """The fastest of the proved best layouts of each software for one role on these devices; None where nothing fits.

    Where no layout holds packed sequences, as long as the longest sample, samples of that length are cut by context
    parallelism instead: their attention is then costed as if all were as long, which is too slow, never too fast.
    """
    found = [_searched(problem, model, cluster, trainer) for trainer in problem.constraints.trainers]
    return min((each for each in found if each), key=lambda each: each.update_s, default=None)


def _searched(problem: RlProblem, model: ModelSpec, cluster: Cluster, trainer: Trainer) -> TrainerTimes | None:
    backend, held = SOFTWARE[trainer]
    constraints = Constraints(backends=(backend,), pins={**held, **problem.constraints.trainer_pins})
    longest = longest_sample(problem)
    for workload, share in (packed_batch(problem), padded_batch(problem, longest, 1)):
        try:
            plan = find_plan(complete_problem(model, cluster, workload, constraints), _ALONE)
        except NoFeasiblePlan:
            continue
        return trainer_times(problem, plan, share, trainer)
    return None


def given_trainer(
    problem: RlProblem, model: ModelSpec, cluster: Cluster, strategy: Mapping[str, Any], trainer: Trainer
) -> TrainerTimes:
    """The same of a layout that somebody runs.

    Raises FindingsInvalid or DocumentInvalid where its software cannot run it.
    """
    _check_held(strategy, trainer)
    axes = {name: int(strategy.get(name, 1)) for name in ("tp", "cp", "pp", "micro_batch_size")}
    ranks = cluster.num_devices // (axes["tp"] * axes["cp"] * axes["pp"])
    divisor = max(1, ranks) * axes["micro_batch_size"]
    mean = float(np.mean(total_lengths(problem)))
    packed = axes["cp"] == 1
    workload, share = packed_batch(problem, divisor) if packed else padded_batch(problem, mean, divisor)
    asked = complete_problem(model, cluster, workload, Constraints(backends=(SOFTWARE[trainer][0],)))
    chosen, _ = complete_strategy(strategy, cluster.num_devices, workload.global_batch_size)
    return trainer_times(problem, estimate(asked, chosen, None, strategy, launched=True), share, trainer)


def _check_held(strategy: Mapping[str, Any], trainer: Trainer) -> None:
    """FSDP2 around a module has no tensor, pipeline or expert parallelism, whatever the neutral physics can."""
    held = SOFTWARE[trainer][1]
    wrong = [
        name for name in ("tp", "pp", "ep", "vpp") if name in held and int(strategy.get(name, held[name])) != held[name]
    ]
    if wrong:
        name = wrong[0]
        raise DocumentInvalid(
            f"{trainer} has {name} = {held[name]}, not {strategy[name]}",
            where=f"--strategy {name}",
            hint="leave it out, or name another trainer: --trainer megatron",
        )


def trainer_times(problem: RlProblem, plan: Plan, share: float, trainer: Trainer) -> TrainerTimes:
    """A plan's times in the words of a step of RL.

    A pass forward runs the same micro-batches; it takes the slowest stage's forward time of each, and the bubble of a
    pipeline that is filled and emptied once: ``(m + pp - 1) f``.
    """
    stages = plan.stages
    slowest_s = max(stage.forward_s for stage in stages)
    batches = int(plan.strategy["num_microbatches"])
    forward_s = (batches + len(stages) - 1) * slowest_s * problem.mini_batches
    share *= fitted_factors().trainer
    weights = max(stage.peak_memory_bytes.weights for stage in stages)
    bills = [stage.peak_memory_bytes for stage in stages]
    return TrainerTimes(
        trainer=trainer,
        plan=plan,
        update_s=plan.step_time_s * share,
        forward_s=forward_s * share,
        state_bytes=float(max(bill.weights + bill.gradients + bill.optimizer for bill in bills)),
        weight_bytes=float(weights),
        peak_bytes=float(plan.peak_memory_bytes),
    )


def _divisible(count: float) -> int:
    """Near ``count``, and divisible by as large a power of two as 3 % of rounding allow."""
    best = max(1, round(count))
    power = 2
    while power <= count:
        rounded = max(1, round(count / power)) * power
        if abs(rounded - count) > _WORST_ROUNDING * count:
            break
        best = rounded
        power *= 2
    return best
