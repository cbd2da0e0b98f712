"""The closed form of an engine's scheduler against its simulator, iteration by iteration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.model.builtin import builtin_model
from planner.serving.engines.sglang import behaviour as sglang
from planner.serving.engines.vllm import behaviour as vllm
from planner.serving.evidence.predicted import NEUTRAL
from planner.serving.layout import Formats, InstanceGroup, InstanceLayout
from planner.serving.predict.behaviour import Behaviour
from planner.serving.predict.instance_times import InstanceTimes, instance_times
from planner.serving.predict.iteration_operators import iteration_operators
from planner.serving.predict.iteration_time import IterationTimes, Links
from planner.serving.predict.lengths import RequestSizes
from planner.serving.predict.simulate import simulated
from planner.serving.predict.steady_state import closed_loop
from profiles.serving_kernels import kernel_times

LINKS = Links(8, 50e9, 5e-6)
# Clients of the simulator send the next request at once, and its engines add nothing to kernels.
PLAIN = NEUTRAL | {"wait_iterations": 0.0}
VLLM, SGLANG = (replace(room.BEHAVIOUR, **PLAIN) for room in (vllm, sglang))
FORMATS = Formats(weights="fp8", kv_cache="fp8")
WAVES = 8


def times_of(behaviour: Behaviour, layout: InstanceLayout, new_tokens: float, output: float) -> InstanceTimes:
    engine = "vllm" if behaviour is VLLM else "sglang"
    operators = iteration_operators(builtin_model("qwen3-30b-a3b"), layout, FORMATS)
    iterations = IterationTimes(operators, kernel_times("h100-sxm5-80gb", engine), "fp8", LINKS)
    sizes = RequestSizes(new_tokens, 0.0, output, new_tokens + output, 0.0)
    return instance_times(iterations, InstanceGroup(layout=layout), sizes, behaviour, 80e9)


@pytest.mark.parametrize("behaviour", [VLLM, SGLANG])
@pytest.mark.parametrize(("new_tokens", "output", "load"), [(1024, 256, 4), (4096, 256, 24)])
@pytest.mark.parametrize("alike", [True, False])
def test_the_closed_form_agrees_with_the_simulator(
    behaviour: Behaviour, new_tokens: int, output: int, load: int, alike: bool
) -> None:
    times = times_of(behaviour, InstanceLayout(tp=2), new_tokens, output)
    number = WAVES * load
    drawn = np.random.default_rng(1).integers(int(output * 0.8), int(output * 1.2), number)
    passes = np.full(number, output - 1) if alike else drawn - 1
    seen = simulated(times, passes, places=1e9, concurrency=load)
    state = closed_loop(times, np.array([float(load)]), 1e9, waves=WAVES, alike=alike)
    assert state.interval[0] == pytest.approx(seen.tpot.mean(), rel=0.12)
    assert state.ttft[0] == pytest.approx(seen.ttft.mean(), rel=0.25)
    assert state.requests_per_s[0] == pytest.approx(seen.requests_per_s, rel=0.15)


def test_ranks_that_read_at_random_lengthen_each_others_iterations() -> None:
    times = times_of(VLLM, InstanceLayout(attention_dp=4, ep=4), 2048, 256)
    passes = np.random.default_rng(2).integers(150, 360, 320)
    seen = simulated(times, passes, places=1e9, concurrency=32)
    state = closed_loop(times, np.array([32.0]), 1e9)
    assert state.interval[0] == pytest.approx(seen.tpot.mean(), rel=0.15)


def test_requests_beyond_the_places_wait_for_one() -> None:
    times = times_of(VLLM, InstanceLayout(tp=1), 512, 128)
    free, tight = (closed_loop(times, np.array([64.0]), places) for places in (1e9, 16.0))
    assert tight.ttft[0] > 5 * free.ttft[0]
    assert tight.requests_per_s[0] < free.requests_per_s[0]
    in_flight = tight.requests_per_s[0] * (tight.ttft[0] + times.passes * tight.interval[0])
    assert in_flight == pytest.approx(64, rel=0.02)  # Little's law
