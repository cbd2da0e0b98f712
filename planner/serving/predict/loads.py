"""Loads other than a closed loop, from the curves of a closed one: requests at a rate, and all at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.serving.predict.curve import MEAN, PERCENTILES, InstanceCurve
from planner.serving.predict.instance_times import InstanceTimes

Array = NDArray[np.float64]
MOST_IN_FLIGHT = 16384.0
LOADS: Array = np.geomspace(1.0, MOST_IN_FLIGHT, 57)
"""Requests in flight at which a curve is read for other loads: a factor of 2^(1/4) apart."""


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """One load of one instance: where on its curve it is, and what waiting comes on top."""

    load: float
    """Requests in flight."""
    waiting: dict[float, float]
    """Seconds to add to the curve's time to the first token, by percentile."""
    requests_per_s: float
    slower_s: float = 0.0
    """Seconds to add to the curve's interval between two tokens."""
    saturated: bool = False
    """More arrives than is answered: waiting grows without end."""


def at_rate(curve: InstanceCurve, requests_per_s: float) -> LoadPoint:
    """Requests that arrive at random times: where the closed curve answers as many.

    On top they wait for the rest of the iteration that runs, half of the mean interval, and for the prompts of chance
    companions: ``u / 2 (1 - u)`` of an own prompt's time at the share ``u`` of the largest rate (M/D/1, at most what
    the closed curve has above an empty instance's); exponential beyond its mean.
    """
    rates = np.maximum.accumulate(curve.requests_per_s)
    most = float(rates[-1])
    if requests_per_s >= 0.999 * most:
        return LoadPoint(
            float(curve.loads[-1]), {MEAN: np.inf, **dict.fromkeys(PERCENTILES, np.inf)}, most, saturated=True
        )
    load = float(np.interp(requests_per_s, rates, curve.loads))
    if requests_per_s < rates[0]:
        load = requests_per_s / float(rates[0])
    use = requests_per_s / most
    own = float(curve.ttft_s[MEAN][0]) if curve.ttft_s else 0.0
    wait = 0.5 * float(np.interp(load, curve.loads, curve.interval_s)) * min(load, 1.0)
    wait += own * use / (2 * (1 - use))
    return LoadPoint(load, {MEAN: wait} | {q: -wait * float(np.log1p(-q / 100)) for q in PERCENTILES}, requests_per_s)


def all_at_once(times: InstanceTimes, curve: InstanceCurve, requests: float, places: float) -> LoadPoint:
    """``requests`` sent together: as many as have a place are read at once, the others as those end.

    Reading all that have a place takes ``read`` seconds: they wait for half of it on average, and it lengthens their
    decoding by the other half.  The others come in at the rate of the closed loop; the last ones drain.
    """
    placed = max(min(requests, places, float(times.max_sequences)), 1.0)
    rate, interval, own = (
        float(np.interp(placed, curve.loads, values))
        for values in (curve.requests_per_s, curve.interval_s, curve.ttft_s[MEAN])
    )
    decode, _, _, full = (float(values[0]) for values in times.all_at(np.array([placed / times.lanes])))
    read = max(placed * times.chunks / (times.ranks * times.prompts_at_once) * full - own, 0.0)
    last = max(requests - placed, 0.0) / rate
    later = max(requests - placed, 0.0) / requests
    waiting = {MEAN: read / 2 + last / 2 * later}
    for q in PERCENTILES:
        rank = q / 100 * requests
        waiting[q] = read * min(rank / placed, 1.0) + max(rank - placed, 0.0) / rate
    slower = (1 - later) * (decode + read / 2 / times.passes - interval) if times.passes else 0.0
    return LoadPoint(placed, waiting, requests / (last + own + read + times.passes * decode), slower_s=slower)
