"""One engine instance that generates: against sums that are done by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from planner.question.sequences import Sequences
from planner.rl.predict.replica import Replica
from planner.rl.predict.rollout import rollout
from planner.rl.predict.samples import Samples, replica_samples
from planner.rl.predict.windows import asynchronous_window
from planner.rl.problem import RlConstraints, Turns
from tests.unit.rl.rl_questions import EvenEngine, rl_problem

ASYNCHRONOUS = RlConstraints(synchrony=("asynchronous",))


def samples(*responses: float) -> Samples:
    return Samples(np.full(len(responses), 100.0), np.array(responses, dtype=np.float64))


def test_samples_that_run_together_end_by_their_length() -> None:
    found = rollout(rl_problem(), samples(300, 100, 200), EvenEngine())
    assert found.ends_s == pytest.approx([1.0, 2.0, 3.0])
    assert found.generated_tokens == pytest.approx(600)
    assert found.mean_running == pytest.approx((3 + 2 + 1) / 3)


def test_iterations_are_slower_while_more_run() -> None:
    found = rollout(rl_problem(), samples(100, 200), EvenEngine(step_s=0.0, more_s=0.01))
    assert found.seconds == pytest.approx(100 * 0.02 + 100 * 0.01)


@pytest.mark.parametrize(
    ("engine", "seconds"),
    [
        (EvenEngine(max_running=1), 6.0),
        (EvenEngine(max_running=2), 4.0),  # 300 beside 100, then 200 beside what is left
        (EvenEngine(cache_tokens=150), 6.0),  # two prompts do not fit
    ],
)
def test_who_has_no_room_waits(engine: EvenEngine, seconds: float) -> None:
    assert rollout(rl_problem(), samples(300, 100, 200), engine).seconds == pytest.approx(seconds, rel=0.35)
    alone = rollout(rl_problem(), samples(300, 100, 200), EvenEngine())
    assert rollout(rl_problem(), samples(300, 100, 200), engine).seconds >= alone.seconds


def test_samples_that_outgrow_the_cache_are_set_back_and_read_again() -> None:
    """Two prompts of 100 fit beside one another, two contexts of 400 do not: the second one goes on when the first
    has ended."""
    two, read = samples(400, 400), []

    class Reading(EvenEngine):
        def prefill_s(self, tokens: float) -> float:
            read.append(tokens)
            return 0.0

    found = rollout(rl_problem(), two, Reading(cache_tokens=600))
    assert found.ends_s[0] == pytest.approx(4.0, rel=0.02)
    assert 4.0 < found.ends_s[1] < 8.0
    assert found.generated_tokens == pytest.approx(800, rel=0.03)
    assert max(read) > 300  # its prompt and what it had generated
    assert rollout(rl_problem(), two, EvenEngine(cache_tokens=1000)).seconds == pytest.approx(4.0, rel=0.02)


def test_needed_samples_end_the_stage() -> None:
    assert rollout(rl_problem(), samples(300, 100, 200), EvenEngine(), needed=2).seconds == pytest.approx(2.0)


def test_tools_are_waited_for_between_turns() -> None:
    turns = Turns(mean=3, tool_latency_s=5.0)
    found = rollout(rl_problem(turns=turns), samples(300), EvenEngine())
    assert found.seconds == pytest.approx(3.0 + 2 * 5.0)


def test_contexts_are_those_of_what_runs() -> None:
    heard: list[tuple[float, float]] = []

    class Hearing(EvenEngine):
        def decode_s(self, running: float, context: float) -> float:
            heard.append((running, context))
            return 0.01

    replica = Replica(Hearing())
    replica.start(100.0, 50.0)
    replica.start(300.0, 50.0)
    until_s = replica.next_event_s()
    assert until_s is not None
    running, context = heard[0]
    assert running == 2
    assert context == pytest.approx(200.0 + 128.0)  # the middle of a stride of 256 tokens
    replica.advance(until_s)
    assert replica.finished == pytest.approx([0.5, 0.5])


def test_the_longest_sample_of_the_step_is_among_a_replicas() -> None:
    problem = rl_problem(prompts=4096, longest_response=None)
    one, of_many = replica_samples(problem, 1), replica_samples(problem, 64)
    assert len(of_many.responses) == 4096 * 4 // 64
    assert max(of_many.responses) == pytest.approx(max(one.responses), rel=0.05)
    assert np.mean(of_many.responses) == pytest.approx(500, rel=0.05)


def test_a_window_is_as_long_as_its_slower_side() -> None:
    flat = Sequences(kind="padded", histogram=((500.0, 1.0),))
    problem = rl_problem(constraints=ASYNCHRONOUS, staleness=1.0, response_tokens=flat)
    even, times = replica_samples(problem, 1), EvenEngine()
    slow_trainer = asynchronous_window(problem, even, times, 1, 60.0, 1.0)
    assert slow_trainer.seconds == pytest.approx(61.0, rel=0.02)
    assert slow_trainer.wait_s == pytest.approx(0.0, abs=0.5)
    slow_engines = asynchronous_window(problem, even, EvenEngine(step_s=0.2), 1, 10.0, 1.0)
    assert slow_engines.wait_s > 0
    assert slow_engines.seconds > 11.0


def test_staleness_never_makes_a_window_longer() -> None:
    windows = []
    for staleness in (0.0, 0.25, 0.5, 1.0):
        problem = rl_problem(constraints=ASYNCHRONOUS, staleness=staleness, mini_batches=4)
        found = asynchronous_window(problem, replica_samples(problem, 4), EvenEngine(), 4, 8.0, 0.5)
        windows.append(found.seconds)
    assert all(later <= earlier * 1.02 for earlier, later in pairwise(windows))
    assert windows[-1] < windows[0]
