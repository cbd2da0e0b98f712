"""What is predicted for a measured point, in the quantities that were measured.

``prepared`` looks a point's kernels up once; what is left is arithmetic, so that a fit asks for many behaviours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from planner.serving.evidence.mapped import MeasuredPoint
from planner.serving.evidence.unmapped import RowUnmapped
from planner.serving.layout import InstanceGroup
from planner.serving.predict.behaviour import Behaviour
from planner.serving.predict.curve import MEAN, instance_curve
from planner.serving.predict.instance_times import InstanceTimes, as_behaves
from planner.serving.predict.iteration_time import Batch
from planner.serving.predict.lengths import RequestSizes, request_sizes
from planner.serving.predict.loads import all_at_once as sent_together
from planner.serving.predict.loads import at_rate
from planner.serving.predict.pools import Pools
from profiles.serving_kernels import kernel_times

MOST = 65536.0
_SOME_LOADS = np.geomspace(1.0, 4096.0, 25)
NEUTRAL: dict[str, float] = {
    "decode_factor": 1.0,
    "prompt_factor": 1.0,
    "host_s": 0.0,
    "host_s_a_sequence": 0.0,
    "request_s_a_layer": 0.0,
    "request_s": 0.0,
    "wait_iterations": 1.0,
}
"""The fitted fields of a behaviour, at values that change nothing."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """Times in seconds; None where a kind of run has no such quantity."""

    ttft_s: float | None = None
    tpot_s: float | None = None
    output_tokens_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A point with its kernels looked up."""

    point: MeasuredPoint
    sizes: RequestSizes
    times: InstanceTimes
    places: float
    batch_s: tuple[float, float]
    """Of a static batch: reading all prompts, one decoding iteration; as looked up."""
    pools: Pools

    def predicted(self, behaviour: Behaviour) -> Predicted:
        """Predict it for an engine that behaves so."""
        point = self.point
        if point.kind in {"static batch", "first token"}:
            return self._static(behaviour)
        if point.kind == "disaggregated":
            return self._disaggregated(behaviour)
        times = as_behaves(self.times, behaviour)
        loads = np.array([min(float(point.load), MOST)])
        if point.kind in {"rate", "all at once"}:
            return self._open(times)
        curve = instance_curve(times, self.sizes, "aggregated", loads, self.places, waves=point.waves)
        tokens = float(curve.requests_per_s[0]) * self.sizes.output_tokens
        if point.kind == "offline throughput":
            return Predicted(output_tokens_per_s=tokens)
        return Predicted(float(curve.ttft_s[MEAN][0]), float(curve.tpot_s[MEAN][0]), tokens)

    def _open(self, times: InstanceTimes) -> Predicted:
        curve = instance_curve(times, self.sizes, "aggregated", _SOME_LOADS, self.places)
        rate = self.point.row.number("request_rate")
        if self.point.kind == "rate" and rate is not None:
            found = at_rate(curve, rate)
            if found.saturated:
                raise RowUnmapped("more requests arrive than are predicted to be answered")
        else:
            found = sent_together(times, curve, float(self.point.load), self.places)
        at = found.load
        ttft = float(np.interp(at, curve.loads, curve.ttft_s[MEAN])) + found.waiting[MEAN]
        tpot = float(np.interp(at, curve.loads, curve.tpot_s[MEAN])) + found.slower_s
        return Predicted(ttft, tpot, found.requests_per_s * self.sizes.output_tokens)

    def _static(self, behaviour: Behaviour) -> Predicted:
        """All prompts first, then all outputs: offline measurements before continuous batching."""
        prompts, decode = self.batch_s
        first = prompts * behaviour.prompt_factor + behaviour.host_s
        first += behaviour.request_s_a_layer * self.times.num_layers
        if self.point.kind == "first token":
            return Predicted(ttft_s=first)
        each = decode * behaviour.decode_factor + behaviour.host_s + behaviour.host_s_a_sequence * self.point.load
        whole = first + (self.sizes.output_tokens - 1) * each
        return Predicted(first, each, self.point.load * self.sizes.output_tokens / whole)

    def _disaggregated(self, behaviour: Behaviour) -> Predicted:
        pools = Pools(self.pools.model, self.pools.cluster, self.pools.kernels, behaviour)
        point = self.point
        curve = pools.predicted_at(
            point.traffic, point.deployment, np.array([float(point.load)]), waves=max(point.waves, 1.0)
        )
        if not curve.fits:
            raise RowUnmapped(f"does not fit: {curve.reason}")
        return Predicted(float(curve.ttft_s[0]), float(curve.tpot_s[0]), float(curve.output_tokens_per_s[0]))


@cache
def _pools(model: str, device: str, engine: str, subject: _Alike) -> Pools:
    behaviour = replace(subject.behaviour, **NEUTRAL)  # type: ignore[arg-type]
    return Pools(subject.point.model, subject.point.cluster, kernel_times(device, engine), behaviour)


@dataclass(frozen=True, slots=True, eq=False)
class _Alike:
    """A point that stands for its model, machine and engine in a cache: all are equal."""

    point: MeasuredPoint
    behaviour: Behaviour

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Alike)

    def __hash__(self) -> int:
        return 0


def prepared(point: MeasuredPoint, behaviour: Behaviour) -> Prepared:
    """Look a point's kernels up; raises RowUnmapped where memory says that it cannot run.

    Of ``behaviour`` the memory and limits are taken, not the fitted fields.
    """
    pools = _pools(point.model.name, point.device, point.engine, _Alike(point, behaviour))
    sizes = request_sizes(point.traffic)
    group, formats = point.deployment.groups[0], point.deployment.formats
    places = math.inf
    if point.kind not in {"static batch", "first token", "disaggregated"}:
        places = pools.places(sizes, group, formats)
        if places < 1:
            raise RowUnmapped("weights and one request of the longest have no room by the engine's rules")
    batch = _batch_s(pools, point, group, sizes) if point.kind in {"static batch", "first token"} else (0.0, 0.0)
    return Prepared(point, sizes, pools.instance_times(point.traffic, group, formats), places, batch, pools)


def _batch_s(pools: Pools, point: MeasuredPoint, group: InstanceGroup, sizes: RequestSizes) -> tuple[float, float]:
    load = float(point.load)
    both = Batch(
        prompts=np.array([load, 0.0]),
        prompt_tokens=np.array([sizes.new_tokens, 0.0]),
        sequences=np.array([0.0, load]),
        context=sizes.context,
    )
    seconds = pools.iteration_times(group, point.deployment.formats).seconds(both)
    return float(seconds[0]), float(seconds[1])
