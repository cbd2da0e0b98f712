"""What one instance gives at many loads, as arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.serving.predict.instance_times import InstanceTimes
from planner.serving.predict.lengths import RequestSizes
from planner.serving.predict.prediction import Limit
from planner.serving.predict.steady_state import SteadyState, closed_loop, decode_only, prompts_only
from planner.serving.words import Role

Array = NDArray[np.float64]
PERCENTILES: dict[float, float] = {50.0: 0.0, 90.0: 1.2816, 95.0: 1.6449, 99.0: 2.3263}
"""Percentiles that are given, with their place in a normal distribution."""
_ALIKE = 0.01
"""Variation of output lengths below which requests that began together end together."""
MEAN = 0.0
"""Key of the mean beside percentiles."""


@dataclass(frozen=True, slots=True)
class InstanceCurve:
    """One instance at ``loads`` requests in flight; times in seconds by percentile, ``MEAN`` for the mean."""

    fits: bool
    reason: str
    loads: Array
    requests_per_s: Array
    ttft_s: dict[float, Array]
    tpot_s: dict[float, Array]
    end_to_end_s: dict[float, Array]
    bound_by: tuple[Limit, ...]
    running: Array
    """Requests that decode."""
    interval_s: Array
    """Mean iteration."""


def unfit(reason: str) -> InstanceCurve:
    """The curve of an instance that cannot run."""
    nothing = np.zeros(0)
    return InstanceCurve(False, reason, nothing, nothing, {}, {}, {}, (), nothing, nothing)


def instance_curve(
    times: InstanceTimes,
    sizes: RequestSizes,
    role: Role,
    loads: Array,
    places: float,
    *,
    waves: float = math.inf,
) -> InstanceCurve:
    """The steady state of one instance, with percentiles of what requests see.

    ``waves``: see ``closed_loop``.
    """
    if role == "prefill":
        state = prompts_only(times, loads)
    elif role == "decode":
        state = decode_only(times, loads, places)
    else:
        state = closed_loop(times, loads, places, waves=waves, alike=sizes.output_variation < _ALIKE)
    ttft = {} if role == "decode" else _first_token(times, state)
    tpot = {} if role == "prefill" else _next_tokens(times, state)
    return InstanceCurve(
        fits=True,
        reason="",
        loads=loads,
        requests_per_s=state.requests_per_s,
        ttft_s=ttft,
        tpot_s=tpot,
        end_to_end_s=_whole(times, sizes, state, ttft, tpot) if role == "aggregated" else {},
        bound_by=tuple(_limits(times, state, loads, places)),
        running=state.running,
        interval_s=np.maximum(state.interval, state.reading / times.chunks * (times.passes == 0)),
    )


def _first_token(times: InstanceTimes, state: SteadyState) -> dict[float, Array]:
    """An own prompt's time is certain, what others add to it is taken as exponential."""
    own = times.at(times.one_prompt, state.running / times.lanes) * times.chunks
    certain = np.minimum(own, state.reading) + state.wait
    uncertain = np.maximum(state.ttft - certain, 0.0)
    spread = {q: certain - uncertain * np.log1p(-q / 100) for q in PERCENTILES}
    return {MEAN: state.ttft, **spread}


def _next_tokens(times: InstanceTimes, state: SteadyState) -> dict[float, Array]:
    """The mean interval of a request varies with the prompts read while it decodes, whose number is Poisson's."""
    tokens = max(times.output_tokens - 1, 1e-9)
    seconds = times.passes * state.interval
    met = np.maximum(state.prompt_share * times.passes, 1e-12)
    added = state.interval - state.decode_s
    deviation = np.where(added > 0, added * times.passes / np.sqrt(met), 0.0)
    return {MEAN: seconds / tokens} | {
        q: np.maximum(seconds + place * deviation, 0.0) / tokens for q, place in PERCENTILES.items()
    }


def _whole(
    times: InstanceTimes,
    sizes: RequestSizes,
    state: SteadyState,
    ttft: dict[float, Array],
    tpot: dict[float, Array],
) -> dict[float, Array]:
    tokens = max(times.output_tokens - 1, 0.0)
    mean = ttft[MEAN] + tpot[MEAN] * tokens
    by_length = sizes.output_variation * tpot[MEAN] * tokens
    by_prompts = (tpot[90.0] - tpot[50.0]) / PERCENTILES[90.0] * tokens
    by_wait = ttft[MEAN] - np.minimum(ttft[50.0], ttft[MEAN])
    deviation = np.sqrt(by_length**2 + by_prompts**2 + by_wait**2)
    return {MEAN: mean} | {q: mean + place * deviation for q, place in PERCENTILES.items()}


def _limits(times: InstanceTimes, state: SteadyState, loads: Array, places: float) -> list[Limit]:
    """What keeps the instance from answering more at each load."""
    prompts = state.prompt_share * np.maximum(state.interval - state.decode_s, 0.0)
    reads = prompts > 0.5 * state.interval if times.passes else np.ones(loads.shape, dtype=bool)
    limits: list[Limit] = []
    for load, placed, read in zip(loads.tolist(), state.placed.tolist(), reads.tolist(), strict=True):
        if load > placed + 1e-9 and times.passes:
            limits.append("kv_memory" if places < times.max_sequences else "batch_limit")
        else:
            limits.append("prefill_compute" if read else "decode_bandwidth")
    return limits
