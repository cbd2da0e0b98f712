"""Predictions of deployments: loads of each kind, pools, speculation, prefix caching, memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.model.builtin import builtin_model
from planner.serving.engines.vllm.behaviour import BEHAVIOUR
from planner.serving.layout import (
    Deployment,
    Formats,
    InstanceGroup,
    InstanceLayout,
    InstanceSettings,
    Speculation,
)
from planner.serving.predict.curve import MEAN
from planner.serving.predict.instance_times import accepted_tokens
from planner.serving.predict.lengths import moments
from planner.serving.predict.predict import Predictor
from planner.serving.predict.prediction import TimeSpread
from planner.serving.traffic import Lengths, ServingTraffic
from profiles.catalogue import load_cluster
from profiles.serving_kernels import kernel_times

LENGTHS: dict[str, Any] = {
    "input_tokens": Lengths(mean=1024),
    "output_tokens": Lengths(kind="lognormal", mean=256, spread=0.5),
}


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    kernels = kernel_times("h100-sxm5-80gb", "vllm")
    return Predictor(builtin_model("llama-3.1-8b"), load_cluster("dgx-h100"), kernels, BEHAVIOUR)


def told(spread: TimeSpread | None) -> TimeSpread:
    assert spread is not None
    return spread


def deployment(instances: int = 1, tp: int = 1, **settings: Any) -> Deployment:
    group = InstanceGroup(num_instances=instances, layout=InstanceLayout(tp=tp), settings=InstanceSettings(**settings))
    return Deployment(engine="vllm", release="0.33.0", formats=Formats(weights="fp8"), groups=(group,))


def pools(prefill: int, decode: int) -> Deployment:
    groups = (
        InstanceGroup(role="prefill", num_instances=prefill),
        InstanceGroup(role="decode", num_instances=decode),
    )
    return Deployment(engine="vllm", release="0.33.0", formats=Formats(weights="fp8"), groups=groups)


def test_a_closed_loop_obeys_littles_law_and_its_percentiles_rise(predictor: Predictor) -> None:
    found = predictor.predicted(ServingTraffic(**LENGTHS, concurrency=64), deployment(instances=2))
    assert found.fits
    assert found.requests_per_s * told(found.end_to_end).mean_s == pytest.approx(64, rel=0.03)
    for spread in (told(found.ttft), told(found.tpot), told(found.end_to_end)):
        assert spread.p50_s <= spread.p90_s <= spread.p95_s <= spread.p99_s
    assert found.output_tokens_per_s == pytest.approx(256 * found.requests_per_s)
    assert found.instances[0].weight_bytes == pytest.approx(9.1e9, rel=0.03)
    assert 0 < found.measured_share <= 1


def test_two_instances_do_what_one_does_at_half_the_load(predictor: Predictor) -> None:
    one = predictor.predicted_at(ServingTraffic(**LENGTHS), deployment(), [4.0, 32.0])
    two = predictor.predicted_at(ServingTraffic(**LENGTHS), deployment(instances=2), [8.0, 64.0])
    assert two.requests_per_s == pytest.approx(2 * one.requests_per_s)
    assert two.tpot_s == pytest.approx(one.tpot_s)


def test_more_in_flight_answers_more_and_slower(predictor: Predictor) -> None:
    curve = predictor.predicted_at(ServingTraffic(**LENGTHS), deployment(), np.geomspace(1, 256, 9))
    assert (np.diff(curve.requests_per_s) > 0).all()
    assert (np.diff(curve.tpot_s) > 0).all()


def test_requests_at_a_rate_wait_more_the_fuller_it_is(predictor: Predictor) -> None:
    slow, fast = (
        predictor.predicted(ServingTraffic(**LENGTHS, requests_per_s=rate), deployment()) for rate in (1.0, 20.0)
    )
    assert slow.requests_per_s == pytest.approx(1.0)
    assert told(slow.ttft).p99_s < told(fast.ttft).p99_s
    assert fast.bound_by == "arrivals"
    beyond = predictor.predicted(ServingTraffic(**LENGTHS, requests_per_s=1e4), deployment())
    assert beyond.ttft is None
    assert "without end" in beyond.reason
    assert beyond.requests_per_s < 1e4


def test_requests_sent_together_wait_for_each_other(predictor: Predictor) -> None:
    together = predictor.predicted(ServingTraffic(**LENGTHS, all_at_once=4000), deployment())
    steady = predictor.predicted(ServingTraffic(**LENGTHS, concurrency=64), deployment())
    assert told(together.ttft).mean_s > 10 * told(steady.ttft).mean_s
    assert told(together.ttft).p50_s < told(together.ttft).p99_s


def test_pools_answer_as_much_as_the_narrower_one(predictor: Predictor) -> None:
    wide, narrow = (predictor.predicted_at(ServingTraffic(**LENGTHS), pools(number, 4), [2000.0]) for number in (4, 1))
    most = predictor.instance_curve(ServingTraffic(**LENGTHS), pools(1, 1), "prefill", [4096.0]).requests_per_s[0]
    assert narrow.requests_per_s[0] <= 1.001 * most
    assert wide.requests_per_s[0] > narrow.requests_per_s[0]
    document = predictor.predicted(ServingTraffic(**LENGTHS, concurrency=64), pools(1, 1))
    assert document.kv_transfer_s > 0
    assert len(document.instances) == 2
    decode = predictor.instance_curve(ServingTraffic(**LENGTHS), pools(1, 1), "decode", [32.0])
    assert decode.ttft_s == {}
    assert (
        told(document.tpot).mean_s
        < told(predictor.predicted(ServingTraffic(**LENGTHS, concurrency=64), deployment()).tpot).mean_s
    )
    assert decode.tpot_s[MEAN][0] > 0


def test_cached_prefixes_and_accepted_drafts_save_time(predictor: Predictor) -> None:
    plain = predictor.predicted(ServingTraffic(**LENGTHS, concurrency=16), deployment())
    cached = predictor.predicted(ServingTraffic(**LENGTHS, concurrency=16, prefix_share=0.8), deployment())
    assert told(cached.ttft).mean_s < told(plain.ttft).mean_s
    speculation = Speculation(method="eagle3", num_tokens=3)
    drafted = predictor.predicted(
        ServingTraffic(**LENGTHS, concurrency=1, acceptance=0.8), deployment(speculation=speculation)
    )
    alone = predictor.predicted(ServingTraffic(**LENGTHS, concurrency=1), deployment())
    assert told(drafted.tpot).mean_s < 0.6 * told(alone.tpot).mean_s
    assert accepted_tokens(3, 0.8) == pytest.approx(1 + 0.8 + 0.64 + 0.512)


def test_what_does_not_fit_says_what_takes_the_room() -> None:
    kernels = kernel_times("h100-sxm5-80gb", "vllm")
    large = Predictor(builtin_model("llama-3.1-70b"), load_cluster("dgx-h100"), kernels, BEHAVIOUR)
    unquantised = deployment().model_copy(update={"formats": Formats()})
    found = large.predicted(ServingTraffic(**LENGTHS, concurrency=1), unquantised)
    assert not found.fits
    assert found.reason == "weights take 131.4 GiB of a device that has 79.2 GiB"


def test_moments_of_lengths() -> None:
    assert moments(Lengths(mean=7)).variation == 0
    uniform = moments(Lengths(kind="uniform", low=1, high=99))
    assert (uniform.mean, uniform.longest) == (50, 99)
    table = moments(Lengths(kind="table", tokens=(1, 3), weights=(1.0, 1.0)))
    assert (table.mean, table.variation) == (2.0, 0.5)
