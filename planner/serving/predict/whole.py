"""A whole deployment under its traffic, of the curves of its instances.

Closed loop (``concurrency``; ``all_at_once`` counts as so many in flight): equal instances share the requests evenly.
Open loop (``requests_per_s``): the load at which that rate is answered; arrivals are random, so the number in flight
varies with a Poisson process, and the ``q``-th percentile of the time to the first token is that of a load
``z(q) sqrt(load)`` higher.  Prefill and decode instances: see ``Predictor.predicted_at``; waiting for a free prefill
instance is taken as exponential.
"""

from __future__ import annotations

import math

import numpy as np

from planner.serving.layout import Deployment, InstanceGroup
from planner.serving.predict.curve import MEAN, PERCENTILES, InstanceCurve
from planner.serving.predict.lengths import request_sizes
from planner.serving.predict.predict import Array, Predictor
from planner.serving.predict.prediction import InstancePrediction, Limit, ServingPrediction, Spread
from planner.serving.traffic import Traffic

LOADS: Array = np.geomspace(0.25, 8192.0, 46)
KERNELS = ("matmul_s", "decode_attention_s", "prefill_attention_s", "experts_s", "collective_s")


def whole_prediction(predictor: Predictor, traffic: Traffic, deployment: Deployment) -> ServingPrediction:
    """What a deployment gives; without any load in the traffic, with one request in flight."""
    roles = [group.role for group in deployment.groups]
    curves = [predictor.instance_curve(traffic, deployment, role, LOADS) for role in roles]
    unfit = next((curve for curve in curves if not curve.fits), None)
    if unfit is not None:
        return ServingPrediction(fits=False, reason=unfit.reason)
    if deployment.disaggregated:
        return _apart(predictor, traffic, deployment, curves)
    return _together(predictor, traffic, deployment, curves[0])


def _together(
    predictor: Predictor, traffic: Traffic, deployment: Deployment, curve: InstanceCurve
) -> ServingPrediction:
    group = deployment.groups[0]
    rates = np.maximum.accumulate(curve.requests_per_s)
    if traffic.requests_per_s is None:
        load = max((traffic.concurrency or traffic.all_at_once or 1) / group.num_instances, float(LOADS[0]))
        spare = 0.0
    else:
        load = float(np.interp(traffic.requests_per_s / group.num_instances, rates, LOADS))
        spare = math.sqrt(load)
    rate = float(np.interp(load, LOADS, curve.requests_per_s)) * group.num_instances
    if traffic.requests_per_s is not None:
        rate = min(rate, traffic.requests_per_s)
    ttft = {q: _at(curve.ttft_s[q], load + PERCENTILES.get(q, 0.0) * spare) for q in (MEAN, *PERCENTILES)}
    tpot = {q: _at(curve.tpot_s[q], load) for q in (MEAN, *PERCENTILES)}
    whole = {q: _at(curve.end_to_end_s[q], load) for q in (MEAN, *PERCENTILES)}
    whole = {q: seconds + ttft[q] - _at(curve.ttft_s[q], load) for q, seconds in whole.items()}
    bound = curve.bound_by[int(np.argmin(np.abs(LOADS - load)))]
    answered = traffic.requests_per_s is not None and rate >= traffic.requests_per_s * 0.999
    return _prediction(
        predictor,
        traffic,
        deployment,
        rate,
        (ttft, tpot, whole),
        ((curve, load),),
        "arrivals" if answered else bound,
    )


def _apart(
    predictor: Predictor, traffic: Traffic, deployment: Deployment, curves: list[InstanceCurve]
) -> ServingPrediction:
    prefill, decode = deployment.groups
    if traffic.requests_per_s is None:
        wanted = np.array([float(traffic.concurrency or traffic.all_at_once or 1)])
        found = predictor.predicted_at(traffic, deployment, wanted)
        rate, first = float(found.requests_per_s[0]), float(found.ttft_s[0])
    else:
        wanted = np.geomspace(1.0, 8192.0 * deployment.num_devices, 60)
        found = predictor.predicted_at(traffic, deployment, wanted)
        rates = np.maximum.accumulate(found.requests_per_s)
        rate = min(traffic.requests_per_s, float(rates[-1]))
        first = float(np.interp(rate, rates, found.ttft_s))
    read, run = curves
    transfer = predictor.kv_transfer_s(traffic, deployment)
    alone = float(read.ttft_s[MEAN][0])
    wait = max(first - alone - transfer, 0.0)
    ttft = {MEAN: first} | {q: alone + transfer - wait * math.log1p(-q / 100) for q in PERCENTILES}
    loads = [
        float(np.interp(rate / group.num_instances, np.maximum.accumulate(curve.requests_per_s), LOADS))
        for group, curve in ((prefill, read), (decode, run))
    ]
    tpot = {q: _at(run.tpot_s[q], loads[1]) for q in (MEAN, *PERCENTILES)}
    outputs = request_sizes(traffic).output_tokens
    whole = {q: ttft[q] + tpot[q] * (outputs - 1) for q in (MEAN, *PERCENTILES)}
    answered = traffic.requests_per_s is not None and rate >= traffic.requests_per_s * 0.999
    most = [
        float(curve.requests_per_s.max()) * group.num_instances for group, curve in ((prefill, read), (decode, run))
    ]
    slower = 0 if most[0] < most[1] else 1
    bound = (read, run)[slower].bound_by[int(np.argmin(np.abs(LOADS - loads[slower])))]
    return _prediction(
        predictor,
        traffic,
        deployment,
        rate,
        (ttft, tpot, whole),
        ((read, loads[0]), (run, loads[1])),
        "arrivals" if answered else bound,
        transfer,
    )


def _prediction(  # noqa: PLR0917  # what a prediction is made of
    predictor: Predictor,
    traffic: Traffic,
    deployment: Deployment,
    rate: float,
    times: tuple[dict[float, float], dict[float, float], dict[float, float]],
    at: tuple[tuple[InstanceCurve, float], ...],
    bound: Limit,
    transfer: float = 0.0,
) -> ServingPrediction:
    tokens = rate * request_sizes(traffic).output_tokens
    ttft, tpot, whole = (_spread(each) for each in times)
    instances = tuple(
        _instance(predictor, traffic, deployment, group, curve, load)
        for group, (curve, load) in zip(deployment.groups, at, strict=True)
    )
    formats = deployment.formats
    measured = [predictor.kernels.measured(name, formats.weights) == "measured" for name in KERNELS]
    return ServingPrediction(
        fits=True,
        ttft=ttft,
        tpot=tpot,
        end_to_end=whole,
        requests_per_s=rate,
        output_tokens_per_s=tokens,
        output_tokens_per_s_per_device=tokens / deployment.num_devices,
        output_tokens_per_s_per_user=1.0 / tpot.p50_s if tpot.p50_s > 0 else 0.0,
        kv_transfer_s=transfer,
        bound_by=bound,
        instances=instances,
        measured_share=sum(measured) / len(measured),
    )


def _instance(
    predictor: Predictor,
    traffic: Traffic,
    deployment: Deployment,
    group: InstanceGroup,
    curve: InstanceCurve,
    load: float,
) -> InstancePrediction:
    memory = predictor.memory(group, deployment.formats)
    sizes = request_sizes(traffic, prefix_caching=group.settings.prefix_caching)
    reads = group.role == "prefill"
    running = load if reads else _at(curve.running, load)
    iteration = float(curve.ttft_s[MEAN][0]) if reads else _at(curve.interval_s, load)
    length = sizes.new_tokens + sizes.cached_tokens + (0.0 if reads else sizes.output_tokens)
    holds = max(memory.tokens(length), 0)
    return InstancePrediction(
        running=running,
        iteration_s=max(iteration, 1e-9),
        weight_bytes=memory.weight_bytes,
        reserved_bytes=memory.reserved_bytes,
        cache_bytes=max(memory.cache_bytes, 0.0),
        cache_tokens=holds,
        cache_used=min(running * sizes.context / max(holds, 1), 1.0),
    )


def _at(values: Array, load: float) -> float:
    return max(float(np.interp(load, LOADS, values)), 0.0)


def _spread(times: dict[float, float]) -> Spread:
    return Spread(mean_s=times[MEAN], p50_s=times[50.0], p90_s=times[90.0], p95_s=times[95.0], p99_s=times[99.0])
