"""An evaluator of a few lines, to test the search by: a roofline at a fixed part of the peaks, with host time."""

from __future__ import annotations

import numpy as np

from planner.model.spec import ModelSpec
from planner.serving.layout import Deployment, InstanceGroup
from planner.serving.predict.curve import InstanceCurve, unfit
from planner.serving.predict.prediction import ServingPrediction, TimeSpread
from planner.serving.search.amounts import FloatArray, distinct_experts, model_amounts, request_amounts
from planner.serving.search.bounds import peak
from planner.serving.search.curves import LOADS, PERCENTILES, Family
from planner.serving.traffic import ServingTraffic
from planner.serving.words import CACHE_BYTES, WEIGHT_BYTES
from profiles.cluster import Cluster

EFFICIENCY = 0.6
HOST_S = 2e-3
COLLECTIVE_S = 8e-6


def made(
    loads: FloatArray,
    rates: FloatArray,
    ttft: dict[float, FloatArray] | None = None,
    tpot: dict[float, FloatArray] | None = None,
    whole: dict[float, FloatArray] | None = None,
) -> InstanceCurve:
    """A curve of these arrays."""
    return InstanceCurve(True, "", loads, rates, ttft or {}, tpot or {}, whole or {}, (), loads, rates)


class RooflineEvaluator:
    """See the module; counts what it was asked."""

    def __init__(self, model: ModelSpec, cluster: Cluster, traffic: ServingTraffic) -> None:
        self.amounts, self.request = model_amounts(model), request_amounts(traffic)
        self.device, self.layers = cluster.pools[0].device, model.num_layers
        self.asked = 0

    def curve(self, family: Family, group: InstanceGroup, loads: FloatArray) -> InstanceCurve:
        """One instance."""
        self.asked += 1
        amounts, request, layout, formats = self.amounts, self.request, group.layout, family.formats
        stage, devices, device = layout.stage_devices, layout.num_devices, self.device
        dense = (amounts.attention_weights / layout.tp + amounts.other_weights / stage) * WEIGHT_BYTES[formats.weights]
        experts = amounts.expert_weights * WEIGHT_BYTES[formats.of_experts] / stage
        room = device.memory_bytes * 0.9 - (dense + experts) / layout.pp
        shards = min(max(layout.tp // layout.dcp, 1), amounts.kv_heads) * layout.dcp
        kept = amounts.cache_values_per_token * CACHE_BYTES[formats.kv_cache] / layout.pp / shards
        kept *= request.context_tokens / layout.attention_dp / layout.cp
        most = np.floor(room / kept)
        if most < 1:
            return unfit("no room for the weights and one request")
        limit = min(most, group.settings.max_num_sequences or 256)
        active = amounts.expert_weights * amounts.experts_per_token / max(amounts.num_experts, 1)
        flops_s = 2 * (amounts.attention_weights + amounts.other_weights) / peak(device, formats.weights)
        flops_s = (flops_s + 2 * active / peak(device, formats.of_experts)) / EFFICIENCY
        exchange = COLLECTIVE_S * self.layers * (layout.tp + layout.ep / 4 - 1.25 + layout.dcp / 8)
        prompt_s = flops_s * request.new_input_tokens + amounts.attention_flops_per_pair * request.prompt_pairs / (
            peak(device, "bf16") * EFFICIENCY
        )
        prompt_alone = prompt_s / stage + exchange + HOST_S * layout.pp
        if group.role == "prefill":
            rates = np.minimum(loads / prompt_alone, layout.pp / (prompt_alone - HOST_S * (layout.pp - 1)))
            rates = np.minimum(rates, devices / prompt_s)
            return made(loads, rates, {each: loads / rates * (0.5 + each / 100) for each in PERCENTILES})
        running = np.minimum(loads, limit)
        met = distinct_experts(amounts, running / layout.pp) / max(amounts.num_experts, 1)
        step = np.minimum(running, layout.pp) * (dense + experts * met) / layout.pp + running * kept
        step = step / device.memory_bandwidth_bytes_per_s / EFFICIENCY + running * flops_s / devices
        step = step + HOST_S * layout.pp + exchange
        own_prompt = prompt_s / devices if group.role == "aggregated" else 0.0
        cycle = request.output_tokens * step + running * (own_prompt + (exchange / 8 if own_prompt else 0.0))
        rates = running / cycle
        wait = (loads - running) / rates
        tpot = {each: cycle / request.output_tokens * (0.5 + each / 100) for each in PERCENTILES}
        if group.role == "decode":
            return made(loads, rates, None, tpot)
        ttft = {each: (prompt_alone + step + wait) * (0.5 + each / 100) for each in PERCENTILES}
        whole = {each: ttft[each] + tpot[each] * (request.output_tokens - 1) for each in PERCENTILES}
        return made(loads, rates, ttft, tpot, whole)

    def predicted(self, deployment: Deployment, traffic: ServingTraffic) -> ServingPrediction:
        """The whole deployment in a closed loop, by its instances' curves; open loops by the load that answers them."""
        family = Family(deployment.engine, deployment.release, deployment.formats)
        curves = [(self.curve(family, group, LOADS), group.num_instances) for group in deployment.groups]
        if not all(curve.fits for curve, _ in curves):
            return ServingPrediction(fits=False, reason="no room for the weights and one request")
        rates = np.geomspace(1e-4, min(float(curve.requests_per_s.max()) * count for curve, count in curves), 400)
        inside = [
            np.interp(rates / count, np.maximum.accumulate(curve.requests_per_s), curve.loads) * count
            for curve, count in curves
        ]
        if traffic.requests_per_s is not None:
            at = int(np.argmax(rates >= min(traffic.requests_per_s, rates[-1])))
        else:
            at = int(np.argmin(np.abs(sum(inside) - (traffic.concurrency or 1))))
        first, last = curves[0][0], curves[-1][0]
        loads = [each[at] / count for each, (_, count) in zip(inside, curves, strict=True)]
        ttft = {each: float(np.interp(loads[0], LOADS, first.ttft_s[each])) for each in PERCENTILES}
        tpot = {each: float(np.interp(loads[-1], LOADS, last.tpot_s[each])) for each in PERCENTILES}
        outputs = self.request.output_tokens
        whole = {each: ttft[each] + (outputs - 1) * tpot[each] for each in PERCENTILES}
        tokens = float(rates[at]) * outputs
        return ServingPrediction(
            fits=True,
            ttft=_spread(ttft),
            tpot=_spread(tpot),
            end_to_end=_spread(whole),
            requests_per_s=float(rates[at]),
            output_tokens_per_s=tokens,
            output_tokens_per_s_per_device=tokens / deployment.num_devices,
            output_tokens_per_s_per_user=1.0 / tpot[50],
            bound_by="decode_bandwidth",
        )


def _spread(times: dict[float, float]) -> TimeSpread:
    return TimeSpread(mean_s=times[50], p50_s=times[50], p90_s=times[90], p95_s=times[95], p99_s=times[99])
