"""Laws that every played step keeps, on small questions drawn at random."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from planner.errors import DocumentInvalid
from planner.question.sequences import Sequences
from planner.rl.predict.rollout import rollout
from planner.rl.predict.samples import Samples, replica_samples
from planner.rl.predict.step import Roles, step
from planner.rl.predict.trainer import TrainerTimes, given_trainer
from planner.rl.predict.windows import asynchronous_window
from planner.rl.problem import RlConstraints, RlProblem, Turns
from planner.rl.search.divisions import Division, least_work
from planner.rl.search.played import held_bytes
from planner.rl.words import Synchrony
from tests.unit.rl.rl_questions import EvenEngine, rl_problem

EVERY = RlConstraints(synchrony=("synchronous", "one_step_off", "asynchronous"))
SYNCHRONIES: tuple[Synchrony, ...] = ("synchronous", "one_step_off", "asynchronous")


def questions(count: int) -> Iterator[tuple[RlProblem, EvenEngine, int]]:
    """A question, an engine, and how many instances there are."""
    draw = random.Random(28)
    for _ in range(count):
        mini = draw.choice((1, 2, 4))
        problem = rl_problem(
            prompts=draw.choice((4, 8, 16)) * mini,
            samples_per_prompt=draw.choice((1, 4)),
            mini_batches=mini,
            epochs=draw.choice((1, 2)),
            response_tokens=Sequences(kind="padded", mean=draw.choice((3, 60, 700))),
            longest_response=draw.choice((None, 64, 2000)),
            over_sampling=draw.choice((1.0, 1.0, 3.0)),
            staleness=draw.choice((0.0, 0.3, 2.0)),
            turns=draw.choice((None, Turns(mean=3.4, tool_latency_s=draw.choice((0.0, 0.7)), tool_tokens=20))),
            constraints=EVERY.model_copy(update={"partial_rollout": draw.random() < 0.6}),
        )
        engine = EvenEngine(
            step_s=draw.choice((0.002, 0.02)),
            more_s=draw.choice((0.0, 1e-4)),
            max_running=draw.choice((1, 3, 1000)),
            cache_tokens=draw.choice((50.0, 500.0, 1e9)),  # 50: not even a prompt beside another
        )
        yield problem, engine, draw.choice((1, 3, 64))


def times(**changes: float) -> TrainerTimes:
    said: dict[str, Any] = {"update_s": 1.0, "forward_s": 0.5, "state_bytes": 9.0, "weight_bytes": 2.0}
    return TrainerTimes("megatron", plan=None, peak_bytes=20.0, **{**said, **changes})  # type: ignore[arg-type]


def roles(engine: EvenEngine, replicas: int, trainer: TrainerTimes) -> Roles:
    return Roles(trainer, None, trainer, 0.0, engine, replicas, sync_s=0.3, offload="states", switch_s=0.1)


def test_every_sample_ends_once_and_in_order() -> None:
    for problem, engine, replicas in questions(12):
        samples = replica_samples(problem, replicas)
        found = rollout(problem, samples, engine)
        assert len(found.ends_s) == len(samples.responses)
        assert list(found.ends_s) == sorted(found.ends_s)
        assert found.seconds == found.ends_s[-1] >= max(samples.responses) * engine.step_s * (1 - 1e-9)
        tokens = float(samples.responses.sum())
        assert tokens * (1 - 1e-9) <= found.generated_tokens <= tokens * 1.05 + 1
        assert 0 <= found.tail_s <= found.seconds * (1 + 1e-9)


def test_steps_hold_their_parts_and_idle_shares_are_shares() -> None:
    for problem, engine, replicas in questions(8):
        steps = {each: step(problem, roles(engine, replicas, times()), each, colocated=False) for each in SYNCHRONIES}
        trained_s = 1.0 + problem.mini_batches * problem.epochs
        for each in steps.values():
            assert each.seconds >= (trained_s + 0.3) * (1 - 1e-9)
            assert 0 <= each.engines_idle <= 1
            assert 0 <= each.trainer_idle <= 1
        assert steps["one_step_off"].seconds <= steps["synchronous"].seconds + 1e-9
        slower = step(problem, roles(engine, replicas, times(update_s=1.2)), "synchronous", colocated=False)
        assert slower.seconds > steps["synchronous"].seconds


def test_far_ahead_is_not_slower_than_one_step_off() -> None:
    """Samples of several steps fill the engines' tails; only ends of windows are cut differently."""
    for problem, engine, replicas in questions(12):
        constraints = EVERY.model_copy(update={"partial_rollout": True})
        ahead = problem.model_copy(update={"staleness": 3.0, "constraints": constraints, "over_sampling": 1.0})
        if ahead.num_samples < 4 * replicas:
            continue
        found = roles(engine, replicas, times())
        apart = step(ahead, found, "one_step_off", colocated=False)
        assert step(ahead, found, "asynchronous", colocated=False).seconds <= apart.seconds * 1.1


def test_more_devices_on_both_sides_are_not_slower() -> None:
    for problem, engine, _ in questions(12):
        for synchrony in ("synchronous", "one_step_off"):
            few = step(problem, roles(engine, 2, times()), synchrony, colocated=False)
            many = step(problem, roles(engine, 4, times(update_s=0.5, forward_s=0.25)), synchrony, colocated=False)
            assert many.seconds <= few.seconds * 1.1


def test_a_window_without_staleness_and_with_many_parts_ends() -> None:
    problem = rl_problem(prompts=8, samples_per_prompt=1, mini_batches=8, constraints=EVERY)
    for engine in (EvenEngine(max_running=1), EvenEngine(cache_tokens=1.0)):
        found = asynchronous_window(problem, replica_samples(problem, 1), engine, 1, 1.0, 0.1)
        assert found.seconds > 0
        assert 0 <= found.engines_idle <= 1


def test_over_sampling_lowers_the_least_work() -> None:
    """Ten times as many are started: the shortest tenth ends the step, so that the mean is no bound."""
    plain, more = least_work(rl_problem()), least_work(rl_problem(over_sampling=10.0))
    assert more.generated_flops < 0.1 * plain.generated_flops
    assert more.trained_flops == plain.trained_flops
    tools = least_work(rl_problem(turns={"mean": 3, "tool_latency_s": 1, "tool_tokens": 500}))
    assert tools.generated_flops == pytest.approx(plain.generated_flops, rel=0.02)


def test_short_responses_end_on_time() -> None:
    samples = Samples(np.full(4, 100.0), np.full(4, 4.0))
    assert rollout(rl_problem(), samples, EvenEngine()).seconds == pytest.approx(0.04, rel=0.05)


def test_what_stays_on_the_devices_is_everything_that_trains() -> None:
    division = Division("colocated", "synchronous", 8, 8)
    problem = rl_problem(algorithm="ppo", trainer_offload=False)
    assert held_bytes(problem, division, times(), times()) == 9 + 9 + 2
    assert held_bytes(rl_problem(algorithm="ppo"), division, times(), times()) == 0
    assert held_bytes(rl_problem(algorithm="dapo", trainer_offload=False), division, times(), None) == 9


def test_fsdp2_has_no_tensor_parallelism() -> None:
    problem = rl_problem()
    with pytest.raises(DocumentInvalid, match="fsdp2 has tp = 1, not 2"):
        given_trainer(problem, problem.actor, problem.cluster, {"tp": 2}, "fsdp2")
