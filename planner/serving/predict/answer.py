"""A prediction as a document: one deployment under one traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.serving.layout import Deployment, InstanceGroup
from planner.serving.predict.curve import MEAN, InstanceCurve
from planner.serving.predict.iteration_time import Batch
from planner.serving.predict.lengths import RequestSizes, request_sizes
from planner.serving.predict.loads import LOADS, LoadPoint, all_at_once, at_rate
from planner.serving.predict.prediction import (
    InstancePrediction,
    IterationPart,
    Likely,
    Limit,
    ServingPrediction,
    TimeSpread,
)
from planner.serving.traffic import ServingTraffic

if TYPE_CHECKING:
    from planner.serving.predict.pools import Pools

_KERNELS = {"matmuls": "matmul_s", "attention": "decode_attention_s", "experts": "experts_s"}
_KERNELS |= {"collectives": "collective_s", "passes": "pass_over_s"}


def predicted_deployment(asked: Pools, traffic: ServingTraffic, deployment: Deployment) -> ServingPrediction:
    """The whole document."""
    if deployment.disaggregated:
        return _disaggregated(asked, traffic, deployment)
    group, sizes = deployment.groups[0], request_sizes(traffic)
    instances = group.num_instances
    if traffic.concurrency is not None:
        load = max(traffic.concurrency / instances, 1e-3)
        curve = asked.curve(traffic, group, deployment.formats, np.array([load]))
        if not curve.fits:
            return ServingPrediction(fits=False, reason=curve.reason)
        point = LoadPoint(load, {}, float(curve.requests_per_s[0]))
    else:
        curve = asked.curve(traffic, group, deployment.formats, LOADS)
        if not curve.fits:
            return ServingPrediction(fits=False, reason=curve.reason)
        point = _open(asked, deployment, curve, traffic)
    return _document(asked, deployment, group, sizes, curve, point)


def _open(asked: Pools, deployment: Deployment, curve: InstanceCurve, traffic: ServingTraffic) -> LoadPoint:
    group = deployment.groups[0]
    if traffic.requests_per_s is not None:
        return at_rate(curve, traffic.requests_per_s / group.num_instances)
    if traffic.all_at_once is not None:
        sizes = request_sizes(traffic, prefix_caching=group.settings.prefix_caching)
        times = asked.instance_times(traffic, group, deployment.formats)
        places = asked.places(sizes, group, deployment.formats)
        return all_at_once(times, curve, traffic.all_at_once / group.num_instances, places)
    return LoadPoint(1.0, {}, float(curve.requests_per_s[0]))


def _document(
    asked: Pools,
    deployment: Deployment,
    group: InstanceGroup,
    sizes: RequestSizes,
    curve: InstanceCurve,
    point: LoadPoint,
) -> ServingPrediction:
    rate = point.requests_per_s * group.num_instances
    tokens = rate * sizes.output_tokens
    instance = _instance(asked, deployment, group, sizes, curve, point.load)
    bound: Limit = curve.bound_by[int(np.argmin(np.abs(curve.loads - point.load)))]
    if (
        point.waiting
        and not point.saturated
        and not point.slower_s
        and bound in {"prefill_compute", "decode_bandwidth"}
    ):
        bound = "arrivals"
    shared = _shared(asked, deployment, instance) | {"bound_by": bound, "instances": (instance,)}
    if point.saturated:
        return ServingPrediction(
            fits=True,
            reason="more requests arrive than are answered: their waiting grows without end",
            requests_per_s=rate,
            output_tokens_per_s=tokens,
            output_tokens_per_s_per_device=tokens / deployment.num_devices,
            **shared,  # type: ignore[arg-type]
        )
    tpot = _spread(curve.tpot_s, curve, point.load, dict.fromkeys(curve.tpot_s, point.slower_s))
    return ServingPrediction(
        fits=True,
        ttft=_spread(curve.ttft_s, curve, point.load, point.waiting),
        tpot=tpot,
        end_to_end=_spread(curve.end_to_end_s, curve, point.load, point.waiting),
        requests_per_s=rate,
        output_tokens_per_s=tokens,
        output_tokens_per_s_per_device=tokens / deployment.num_devices,
        output_tokens_per_s_per_user=1 / tpot.p50_s if tpot.p50_s else 0.0,
        **shared,  # type: ignore[arg-type]
    )


def _shared(asked: Pools, deployment: Deployment, instance: InstancePrediction) -> dict[str, object]:
    """What does not depend on the load: how sure the numbers are."""
    behaviour, weights = asked.behaviour, deployment.formats.weights
    known = [part for part in instance.parts if part.name in _KERNELS]
    measured = sum(part.seconds for part in known if asked.kernels.measured(_KERNELS[part.name], weights) == "measured")
    whole = sum(part.seconds for part in known)

    def likely(pair: tuple[float, float]) -> Likely:
        return Likely(low=pair[0], high=pair[1])

    return {
        "likely_ttft": likely(behaviour.likely_ttft),
        "likely_tpot": likely(behaviour.likely_tpot),
        "likely_throughput": likely(behaviour.likely_throughput),
        "measured_share": measured / whole if whole else 0.0,
    }


def _spread(
    times: dict[float, np.ndarray], curve: InstanceCurve, load: float, waiting: dict[float, float]
) -> TimeSpread:
    def at(percentile: float) -> float:
        return float(np.interp(load, curve.loads, times[percentile])) + waiting.get(percentile, 0.0)

    return TimeSpread(mean_s=at(MEAN), p50_s=at(50.0), p90_s=at(90.0), p95_s=at(95.0), p99_s=at(99.0))


def _instance(
    asked: Pools,
    deployment: Deployment,
    group: InstanceGroup,
    sizes: RequestSizes,
    curve: InstanceCurve,
    load: float,
) -> InstancePrediction:
    formats = deployment.formats
    memory = asked.memory(group, formats)
    running = float(np.interp(load, curve.loads, curve.running))
    lanes = group.layout.attention_dp * group.layout.pp
    times = asked.iteration_times(group, formats)
    if group.role == "prefill":
        batch = Batch(prompts=1.0, prompt_tokens=sizes.new_tokens, cached_tokens=sizes.cached_tokens)
    else:
        batch = Batch(sequences=max(running, 1.0) / lanes, context=sizes.context)
    parts = {name: float(seconds) for name, seconds in times.parts(batch).items()}
    interval = float(np.interp(load, curve.loads, curve.interval_s))
    rest = max(interval - sum(parts.values()), 0.0)
    held = memory.tokens(sizes.longest_tokens)
    used = running * sizes.context
    return InstancePrediction(
        running=running,
        iteration_s=max(interval, sum(parts.values())),
        parts=(
            *(IterationPart(name=name, seconds=seconds) for name, seconds in parts.items()),
            IterationPart(name="prompts and host", seconds=rest),
        ),
        weight_bytes=memory.weight_bytes,
        reserved_bytes=max(memory.reserved_bytes, 0.0),
        cache_bytes=max(memory.cache_bytes, 0.0),
        cache_tokens=held,
        cache_used=min(used / held, 1.0) if held else 0.0,
    )


def _disaggregated(asked: Pools, traffic: ServingTraffic, deployment: Deployment) -> ServingPrediction:
    """Prefill and decode instances at the load at which both answer as many requests."""
    prefill, decode = deployment.groups
    sizes = request_sizes(traffic)
    wanted = np.array([float(traffic.concurrency)]) if traffic.concurrency else LOADS * decode.num_instances
    pools = asked.predicted_at(traffic, deployment, wanted)
    if not pools.fits:
        return ServingPrediction(fits=False, reason=pools.reason)
    index, saturated = 0, False
    if traffic.requests_per_s is not None:
        saturated = traffic.requests_per_s >= 0.999 * float(pools.requests_per_s.max())
        index = int(np.argmin(np.abs(pools.requests_per_s - traffic.requests_per_s)))
    elif traffic.all_at_once is not None:
        index = int(np.argmin(np.abs(pools.loads - traffic.all_at_once)))
    rate, ttft, tpot = (float(v[index]) for v in (pools.requests_per_s, pools.ttft_s, pools.tpot_s))
    read = asked.curve(traffic, prefill, deployment.formats, np.array([1.0, 4096.0]))
    run = asked.curve(traffic, decode, deployment.formats, np.geomspace(1.0, 8192.0, 40))
    inside = rate * tpot * max(sizes.output_tokens - 1, 0.0) / decode.num_instances
    instances = (
        _instance(asked, deployment, prefill, sizes, read, 1.0),
        _instance(asked, deployment, decode, sizes, run, max(inside, 1.0)),
    )
    full = rate > 0.95 * float(read.requests_per_s[-1]) * prefill.num_instances
    own = float(read.ttft_s[MEAN][0])
    beyond = max(ttft - own, 0.0)
    first = {50.0: own + 0.7 * beyond, 90.0: own + 2.3 * beyond, 95.0: own + 3.0 * beyond, 99.0: own + 4.6 * beyond}
    whole = tpot * max(sizes.output_tokens - 1, 0.0)
    tokens = rate * sizes.output_tokens
    shared = _shared(asked, deployment, instances[1])
    known: dict[str, object] = {}
    if not saturated:
        known = {
            "ttft": _named(ttft, first),
            "tpot": _named(tpot, dict.fromkeys(first, tpot)),
            "end_to_end": _named(ttft + whole, {q: value + whole for q, value in first.items()}),
            "output_tokens_per_s_per_user": 1 / tpot if tpot else 0.0,
        }
    return ServingPrediction(
        fits=True,
        requests_per_s=rate,
        output_tokens_per_s=tokens,
        output_tokens_per_s_per_device=tokens / deployment.num_devices,
        kv_transfer_s=asked.kv_transfer_s(traffic, deployment),
        bound_by="prefill_compute" if full else "decode_bandwidth",
        instances=instances,
        **known,  # type: ignore[arg-type]
        **shared,  # type: ignore[arg-type]
    )


def _named(mean: float, percentiles: dict[float, float]) -> TimeSpread:
    p50, p90, p95, p99 = (percentiles[q] for q in (50.0, 90.0, 95.0, 99.0))
    return TimeSpread(mean_s=mean, p50_s=p50, p90_s=p90, p95_s=p95, p99_s=p99)
